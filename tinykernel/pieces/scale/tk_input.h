/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs: raw value -> quantized value -> sign of B -> first stage of the first transform. */
#ifndef TK_INPUT_H
#define TK_INPUT_H

#if TK_RAW_FLOAT
#include "tk_float.h"
#endif
#include "tk_words.h"

#define TK_INPUT_HALF  (INT32_C(1) << (TK_INPUT_BITS - 1))
#define TK_HALVE_INPUT (TK_HALVE_FIRST & 1u)
#define TK_INPUT_TOP   ((INT32_C(1) << TK_INPUT_BITS) - 1)

#if TK_INPUT_BITS == 32

/* Raw values as integers of the same order, for trees. Of floats, -0 and 0 are the same, and NaN is
 * the least. */
TK_INLINE int32_t tk_quantize_value(tk_raw_t raw, uint32_t i)
{
    (void)i;
#if TK_RAW_FLOAT
    {
        const uint32_t bits = tk_float_bits(raw);
        const uint32_t size = bits & 0x7fffffffu;
        if (size > 0x7f800000u) {
            return INT32_MIN;
        }
        return (int32_t)(bits == size ? size : 0u - size);
    }
#else
    return (int32_t)raw;
#endif
}

#else

#if !TK_RAW_FLOAT
/* Level of raw input i in fixed point, with 16 fractional bits. */
TK_INLINE uint32_t tk_scaled_level(tk_raw_t raw, uint32_t i)
{
    const int32_t value = (int32_t)raw;
    const int32_t offset = TK_OFFSET(i);
#if TK_RAW_WIDE
    uint32_t above = value > offset ? (uint32_t)value - (uint32_t)offset : 0u;
#else
    /* With a literal offset the compiler may see that the clamp is not needed. */
    uint32_t above = tk_positive_part((int32_t)((uint32_t)value - (uint32_t)offset),
                                      TK_IS_LITERAL(TK_OFFSET(i)));
#endif
    (void)i;
    if (above > TK_SPAN(i)) {
        above = TK_SPAN(i);
    }
    return (above >> TK_PRE_SHIFT(i)) * TK_MULTIPLIER(i);
}
#endif

/* Quantized value of raw input i, in [-2^(bits-1), 2^(bits-1)). Any raw value is allowed; NaN
 * counts as minus infinity. The result for a constant input is ignored by the caller. */
TK_INLINE int32_t tk_quantize_value(tk_raw_t raw, uint32_t i)
{
#if TK_RAW_FLOAT
    (void)i;
    return (int32_t)tk_float_level(raw, TK_OFFSET(i), TK_MULTIPLIER(i), (uint32_t)TK_INPUT_TOP) -
           TK_INPUT_HALF;
#else
    return (int32_t)(tk_scaled_level(raw, i) >> 16) - TK_INPUT_HALF;
#endif
}

#endif

#if TK_BLOCKS

/* Input i of the transform, before its sign is applied. The type of `input` is tk_raw_t if `raw` is
 * not 0, else tk_quantized_t. */
TK_INLINE int32_t tk_input_value(const void *input, uint32_t i, int raw)
{
    const tk_raw_t *const raws = (const tk_raw_t *)input;
    const int32_t value =
        raw != 0 ? tk_quantize_value(raws[i], i) : (int32_t)((const tk_quantized_t *)input)[i];
#if TK_INPUT_BITS == 16
    return value < -32767 ? -32767 : value;
#else
    return value;
#endif
}

/* Input i + 1, or 0 if i is the last one. */
TK_INLINE int32_t tk_next_value(const void *input, uint32_t i, int raw)
{
    if (TK_FEATURES % 2u != 0u && i + 1u == TK_FEATURES) {
        return 0;
    }
    return tk_input_value(input, i + 1u, raw);
}

/* Stage 0 on inputs i and i + 1, i even: clear constant inputs, apply the signs of B, compute sum
 * and difference. The flags of input i are bit 15 of *signs and *constants, those of i + 1 bit 31;
 * both words are then shifted up by one. The halves of the result are exchanged, the sum in the
 * high one: see tk_diagonal.h. */
#if TK_DSP

/* Inputs i and i + 1 side by side. */
TK_INLINE uint32_t tk_two_values(const void *input, uint32_t i, int raw)
{
    uint32_t pair;
#if TK_INPUT_BITS == 8 && !TK_RAW_FLOAT && TK_FEATURES % 2u == 0u
    if (raw != 0) {
        const tk_raw_t *const next = (const tk_raw_t *)input + i;
        const uint32_t even = tk_scaled_level(next[0], i);
        const uint32_t odd = tk_scaled_level(next[1], i + 1u);
        if (TK_IS_LITERAL(TK_MULTIPLIER(i))) {
            TK_PKHBT(pair, even >> 16, odd >> 16, 16); /* no shifts if the multiplier is 65536 */
        } else {
            TK_PKHTB(pair, odd, even, 16);
        }
        return tk_ssub16(pair, TK_INPUT_HALF * 0x00010001u);
    }
#endif
    TK_PKHBT(pair, tk_input_value(input, i, raw), tk_next_value(input, i, raw), 16);
    return pair;
}

TK_INLINE uint32_t tk_input_pair(const void *input, uint32_t i, int raw, uint32_t *signs,
                                 uint32_t *constants)
{
    uint32_t pair = tk_two_values(input, i, raw);
#if TK_CONSTANTS
    pair = tk_select16(0u, pair, constants);
#endif
#if TK_SIGNS
    pair = tk_select16(tk_ssub16(0u, pair), pair, signs);
#endif
    (void)signs;
    (void)constants;
    return TK_HALVE_INPUT ? tk_shasx(pair, pair) : tk_sasx(pair, pair);
}

#else

TK_INLINE uint32_t tk_input_pair(const void *input, uint32_t i, int raw, uint32_t *signs,
                                 uint32_t *constants)
{
    int32_t even = tk_input_value(input, i, raw);
    int32_t odd = tk_next_value(input, i, raw);
#if TK_CONSTANTS
    even &= ~(int32_t)tk_top_mask(*constants << 16);
    odd &= ~(int32_t)tk_top_mask(*constants);
    *constants <<= 1;
#endif
#if TK_SIGNS
    even = (even ^ (int32_t)tk_top_mask(*signs << 16)) - (int32_t)tk_top_mask(*signs << 16);
    odd = (odd ^ (int32_t)tk_top_mask(*signs)) - (int32_t)tk_top_mask(*signs);
    *signs <<= 1;
#endif
    (void)signs;
    (void)constants;
    return tk_pack((even - odd) >> TK_HALVE_INPUT, (even + odd) >> TK_HALVE_INPUT);
}

#endif

#endif

#if TK_SIGNS
#define TK_SIGN_WORD(i) tk_signs[(i) / 32u]
#else
#define TK_SIGN_WORD(i) 0u
#endif
#if TK_CONSTANTS
#define TK_CONSTANT_WORD(i) tk_constants[(i) / 32u]
#else
#define TK_CONSTANT_WORD(i) 0u
#endif

#if TK_BLOCKS

/* Compute B q and stage 0: n inputs become d/2 words, padded with zeros. */
TK_INLINE void tk_load(const void *input, uint32_t *words, int raw)
{
    const uint32_t n_even = (TK_FEATURES + 1u) & ~1u;
    uint32_t *const end = words + TK_PAIRS;
    uint32_t i = 0u;
    while (i != n_even) {
        /* cppcheck-suppress knownConditionTrueFalse ; few inputs make one group */
        const uint32_t group = n_even - i > 32u ? i + 32u : n_even;
        uint32_t signs = TK_SIGN_WORD(i);
        uint32_t constants = TK_CONSTANT_WORD(i);
        do {
            *words++ = tk_input_pair(input, i, raw, &signs, &constants);
            i += 2u;
        } while (i != group);
    }
    while (words != end) {
        *words++ = 0u;
        TK_PLAIN_LOOP();
    }
}

#endif

/* Mask of input i: -1, or 0 if it is constant. */
TK_INLINE int32_t tk_varying(uint32_t i)
{
    const uint32_t pair = i % 32u / 2u;
    const uint32_t constant = TK_CONSTANT_WORD(i) << ((i & 1u) != 0u ? pair : pair + 16u);
    return ~(int32_t)tk_top_mask(constant);
}

/* Quantize input[n] to output[n]; constant inputs become 0. */
TK_INLINE void tk_quantize(const tk_raw_t *input, tk_quantized_t *output)
{
    uint32_t i;
    for (i = 0u; i < TK_FEATURES; ++i) {
        const int32_t value = tk_quantize_value(input[i], i);
        output[i] = (tk_quantized_t)(value & tk_varying(i));
    }
}

#endif
