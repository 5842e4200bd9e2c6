/* SPDX-License-Identifier: Apache-2.0 */
/* Distance to the nearest prototype. */
#ifndef TK_PROTOTYPES_H
#define TK_PROTOTYPES_H

#include "tk_contract.h"

#include "tk_input.h"

/* The top 8 bits of quantized input i, -128 to 127; 0 if it is constant. */
TK_INLINE int32_t tk_coarse(const tk_quantized_t *input, uint32_t i)
{
    return ((int32_t)input[i] >> (TK_INPUT_BITS - 8)) & tk_varying(i);
}

/* Squared distance of input[TK_FEATURES] to the nearest prototype; proved to fit int32. */
TK_SHARED int32_t tk_distance(const tk_quantized_t *input)
{
    const TK_FLASH uint32_t *words = tk_prototypes;
    int32_t least = INT32_MAX;
    uint32_t left = TK_PROTOTYPES;
    do {
        uint32_t distance = 0u;
        uint32_t word = 0u;
        uint32_t i = 0u;
        do {
            int32_t apart;
            if (i % 8u == 0u) {
                word = *words++;
            }
            /* The prototype's input is in the middle of the 16 values of a level. */
            apart = tk_coarse(input, i) - (((int32_t)word >> 28) * 16 + 8);
            distance += (uint32_t)(apart * apart);
            word <<= 4;
        } while (++i != TK_FEATURES);
        if ((int32_t)distance < least) {
            least = (int32_t)distance;
        }
    } while (--left != 0u);
    return least;
}

#if TK_ONE_CLASS
#define TK_GAIN(output) 1u

TK_INLINE void tk_sums(const tk_quantized_t *input, uint32_t *scratch, int32_t *sums)
{
    (void)scratch;
    sums[0] = tk_distance(input);
}
#endif

#endif
