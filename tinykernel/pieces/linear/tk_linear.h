/* SPDX-License-Identifier: Apache-2.0 */
/* Linear part: dot products of packed weights and quantized inputs. */
#ifndef TK_LINEAR_H
#define TK_LINEAR_H

#include "tk_contract.h"

#define TK_LINEAR_CODES (32u / TK_LINEAR_BITS) /* weights in a word, a multiple of 4 */

/* The weight at the top of a word. */
TK_INLINE int32_t tk_linear_weight(uint32_t word)
{
#if TK_LINEAR_BITS == 1
    return 1 | ((int32_t)word >> 31);
#else
    return (int32_t)word >> (32 - TK_LINEAR_BITS);
#endif
}

/* Dot product of a word of weights and as many inputs. */
TK_INLINE uint32_t tk_linear_word(uint32_t word, const tk_quantized_t *input)
{
    uint32_t dot = 0u;
    uint32_t left = TK_LINEAR_CODES;
    do {
        dot += (uint32_t)(tk_linear_weight(word) * input[0]);
        dot += (uint32_t)(tk_linear_weight(word << TK_LINEAR_BITS) * input[1]);
        dot += (uint32_t)(tk_linear_weight(word << 2 * TK_LINEAR_BITS) * input[2]);
        dot += (uint32_t)(tk_linear_weight(word << 3 * TK_LINEAR_BITS) * input[3]);
        input += 4;
#if TK_LINEAR_BITS != 8
        word <<= 4 * TK_LINEAR_BITS;
#endif
        left -= 4u;
    } while (left != 0u);
    return dot;
}

/* Compute dots[TK_OUTPUTS]; proved to fit int32. */
TK_SHARED void tk_dots(const tk_quantized_t *input, int32_t *dots)
{
    const TK_FLASH uint32_t *weights = tk_linear;
    int32_t *const end = dots + TK_OUTPUTS;
    do {
        const tk_quantized_t *place = input;
        uint32_t dot = 0u;
#if TK_FEATURES / TK_LINEAR_CODES != 0u
        const tk_quantized_t *const full = input + TK_FEATURES / TK_LINEAR_CODES * TK_LINEAR_CODES;
        do {
            dot += tk_linear_word(*weights++, place);
            place += TK_LINEAR_CODES;
        } while (place != full);
#endif
#if TK_FEATURES % TK_LINEAR_CODES != 0u
        {
            uint32_t word = *weights++;
            uint32_t left = TK_FEATURES % TK_LINEAR_CODES;
            do {
                dot += (uint32_t)(tk_linear_weight(word) * *place++);
                word <<= TK_LINEAR_BITS;
            } while (--left != 0u);
        }
#endif
        *dots++ = (int32_t)dot;
    } while (dots != end);
}

#if defined(TK_GAIN)
/* Another part is included before: the dot products are beside its sums. */
#define TK_MORE_GAIN(output) ((uint32_t)tk_linear_gains[output])

TK_INLINE void tk_more(const tk_quantized_t *input, int32_t *more)
{
    tk_dots(input, more);
}
#else
#define TK_GAIN(output) ((uint32_t)tk_linear_gains[output])

TK_INLINE void tk_sums(const tk_quantized_t *input, uint32_t *scratch, int32_t *sums)
{
    (void)scratch;
    tk_dots(input, sums);
}
#endif

#endif
