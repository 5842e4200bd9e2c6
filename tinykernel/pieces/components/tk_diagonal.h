/* SPDX-License-Identifier: Apache-2.0 */
/* Projections of a block: v = H G u. One pass computes the product with G and the first stages.
 *
 * u is in side-by-side words with exchanged halves: value 2i high, 2i + 1 low. That way stage 0 is
 * one packed instruction, SSAX (subtract and add with exchange). v has the normal order. */
#ifndef TK_DIAGONAL_H
#define TK_DIAGONAL_H

#include "tk_transform.h"

/* Number of words that the pass with G processes at a time, and of its stages after stage 0. With
 * eight low registers it has the fewest stages that leave an even number of others. */
#if TK_RADIX == 8
#define TK_FUSED        8u
#define TK_FUSED_STAGES 3u
#elif TK_RADIX == 4 && TK_LOG2_DIMENSION % 2
#define TK_FUSED        4u
#define TK_FUSED_STAGES 2u
#else
#define TK_FUSED        2u
#define TK_FUSED_STAGES 1u
#endif

#define TK_HALVE_PRODUCT (TK_HALVE_SECOND & 1u)

/* The stages of the pass after stage 0, on TK_FUSED words. */
TK_INLINE void tk_fused_stages(uint32_t *w)
{
#if TK_FUSED_STAGES == 3
    tk_stages8(w, TK_HALVE_SECOND >> 1);
#elif TK_FUSED_STAGES == 2
    tk_stages4(w, TK_HALVE_SECOND >> 1);
#else
    tk_butterfly(&w[0], &w[1], TK_HALVE_SECOND & 2u);
#endif
}

#if TK_DIAGONAL_BITS == 1

#define TK_DIAGONAL_WORDS (TK_DIMENSION / 32u) /* table words of a block */
#define TK_WORDS_AT_ONCE  1u                   /* table words read at a time */
#define TK_DIAGONAL_GROUP 16u                  /* words of u that these are for */
typedef uint32_t tk_factors;                   /* signs of the next pairs */

/* Word of v after stage 0, from a word of u and its signs, bits 31 (even row) and 15 (odd row) of
 * *signs. Shifts *signs up by one bit. */
TK_INLINE uint32_t tk_signed_pair(const uint32_t *u, uint32_t *signs)
{
#if TK_DSP
    const uint32_t pair = tk_select16(tk_ssub16(0u, *u), *u, signs);
    return TK_HALVE_PRODUCT ? tk_shsax(pair, pair) : tk_ssax(pair, pair);
#else
    const int32_t even_sign = (int32_t)tk_top_mask(*signs);
    const int32_t odd_sign = (int32_t)tk_top_mask(*signs << 16);
    const int32_t even = (tk_load_side_high(u) ^ even_sign) - even_sign;
    const int32_t odd = (tk_load_low(u) ^ odd_sign) - odd_sign;
    *signs <<= 1;
    return tk_first_butterfly(even, odd, TK_HALVE_PRODUCT);
#endif
}

/* Two words of v after stage 0, from two words of u. */
TK_INLINE void tk_multiply(uint32_t *w, const uint32_t *u, tk_factors *signs)
{
    w[0] = tk_signed_pair(&u[0], signs);
    w[1] = tk_signed_pair(&u[1], signs);
}

#elif TK_DIAGONAL_BITS == 4

#define TK_DIAGONAL_WORDS (TK_DIMENSION / 8u)
#define TK_WORDS_AT_ONCE  (TK_FUSED == 8u ? 2u : 1u)
#define TK_DIAGONAL_GROUP (4u * TK_WORDS_AT_ONCE)
typedef uint32_t tk_factors; /* factors of the next pairs */

/* Word of v after stage 0, from a word of u and its factors, bits 28-31 (even row) and 12-15 (odd
 * row) of `factors`. The other bits are ignored. */
TK_INLINE uint32_t tk_scaled_pair(const uint32_t *u, uint32_t factors)
{
#if TK_DSP
    const uint32_t scaled = factors & 0xf000f000u; /* factor * 2^12 in each half */
    uint32_t pair;
    TK_PKHTB(pair, tk_smultt(scaled, *u) << 1, tk_smulbb(scaled, *u), 15);
    return TK_HALVE_PRODUCT ? tk_shsax(pair, pair) : tk_ssax(pair, pair);
#else
    const int32_t even_factor = (int32_t)factors >> 28;
    const int32_t odd_factor = (int32_t)(factors << 16) >> 28;
    return tk_first_butterfly((tk_load_side_high(u) * even_factor) >> 3,
                              (tk_load_low(u) * odd_factor) >> 3, TK_HALVE_PRODUCT);
#endif
}

/* Two words of v after stage 0, from two words of u. Shifts *factors up by eight bits. */
TK_INLINE void tk_multiply(uint32_t *w, const uint32_t *u, tk_factors *factors)
{
    w[0] = tk_scaled_pair(&u[0], *factors);
    w[1] = tk_scaled_pair(&u[1], *factors << 4);
    *factors <<= 8;
}

#else

#define TK_DIAGONAL_WORDS (TK_DIMENSION / 4u)
typedef const TK_FLASH uint32_t *tk_factors; /* the next word of the table */

/* Two words of v after stage 0, from two words of u and the four int8 factors of a table word. */
TK_INLINE void tk_multiply(uint32_t *w, const uint32_t *u, tk_factors *table)
{
#if TK_DSP
    const uint32_t even_factors = tk_sxtb16(**table);
    const uint32_t odd_factors = tk_sxtb16_odd(**table);
    uint32_t first;
    uint32_t second;
    TK_PKHTB(first, tk_smulbt(even_factors, u[0]) << 9, tk_smulbb(odd_factors, u[0]), 7);
    TK_PKHTB(second, tk_smultt(even_factors, u[1]) << 9, tk_smultb(odd_factors, u[1]), 7);
    w[0] = TK_HALVE_PRODUCT ? tk_shsax(first, first) : tk_ssax(first, first);
    w[1] = TK_HALVE_PRODUCT ? tk_shsax(second, second) : tk_ssax(second, second);
#else
    const TK_FLASH int8_t *const factors = (const TK_FLASH int8_t *)*table;
    w[0] = tk_first_butterfly((tk_load_side_high(&u[0]) * factors[0]) >> 7,
                              (tk_load_low(&u[0]) * factors[1]) >> 7, TK_HALVE_PRODUCT);
    w[1] = tk_first_butterfly((tk_load_side_high(&u[1]) * factors[2]) >> 7,
                              (tk_load_low(&u[1]) * factors[3]) >> 7, TK_HALVE_PRODUCT);
#endif
    ++*table;
}

#endif

/* TK_FUSED words of v after the stages of the pass, from as many words of u. */
TK_INLINE void tk_fused_step(uint32_t *v, const uint32_t *u, tk_factors *factors)
{
    uint32_t w[TK_FUSED];
    tk_multiply(w, u, factors);
#if TK_FUSED_STAGES >= 2
    tk_multiply(w + 2, u + 2, factors);
#endif
#if TK_FUSED_STAGES == 3
#if TK_DIAGONAL_BITS == 4
    ++factors;
#endif
    tk_multiply(w + 4, u + 4, factors);
    tk_multiply(w + 6, u + 6, factors);
#endif
    tk_fused_stages(w);
    v[0] = w[0];
    v[1] = w[1];
#if TK_FUSED_STAGES >= 2
    v[2] = w[2];
    v[3] = w[3];
#endif
#if TK_FUSED_STAGES == 3
    v[4] = w[4];
    v[5] = w[5];
    v[6] = w[6];
    v[7] = w[7];
#endif
}

/* Compute d/2 words v from d/2 words u; `table` has the TK_DIAGONAL_WORDS words of the block. */
TK_SHARED void tk_project(uint32_t *v, const uint32_t *u, const TK_FLASH uint32_t *table)
{
    uint32_t *target = v;
    uint32_t *const end = v + TK_PAIRS;
    do {
#if TK_DIAGONAL_BITS < 8
        uint32_t *const group = target + TK_DIAGONAL_GROUP;
        tk_factors factors[TK_WORDS_AT_ONCE];
        /* cppcheck-suppress AssignmentIntegerToAddress ; tk_factors is an integer here */
        factors[0] = table[0];
        /* cppcheck-suppress AssignmentIntegerToAddress ; as above */
        factors[TK_WORDS_AT_ONCE - 1u] = table[TK_WORDS_AT_ONCE - 1u];
        table += TK_WORDS_AT_ONCE;
        do {
            tk_fused_step(target, u, factors);
            u += TK_FUSED;
            target += TK_FUSED;
        } while (target != group);
#else
        tk_fused_step(target, u, &table);
        u += TK_FUSED;
        target += TK_FUSED;
#endif
    } while (target != end);
    tk_stages(v, 1u + TK_FUSED_STAGES, TK_HALVE_SECOND, TK_KEPT);
}

#endif
