/* One block: v = H G u. The product with G and the first stages are one pass.
 *
 * u stands in side-by-side words with exchanged halves: value 2i high, 2i + 1 low. (The packed
 * instruction SSAX, subtract and add with exchange, then is stage 0.) v gets the usual order. */
#ifndef TK_DIAGONAL_H
#define TK_DIAGONAL_H

#include "tk_transform.h"

#define TK_HALVE_PRODUCT (TK_HALVE_SECOND & 1u)

/* Stages 1.. on the words of one step. */
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

#if TK_DIAGONAL_SIGNS

#define TK_DIAGONAL_WORDS (TK_DIMENSION / 32u) /* table words a block */

/* Word of v, after stage 0, from a word of u and the signs in bits 31 (even row) and 15 (odd row)
 * of *signs, which move up by one bit. */
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

/* d/2 words u to d/2 words v; `table` holds the signs of the block. */
TK_SHARED void tk_project(uint32_t *v, const uint32_t *u, const uint32_t *table)
{
    uint32_t *target = v;
    uint32_t *const end = v + TK_PAIRS;
    while (target != end) {
        uint32_t signs = *table++;
        uint32_t *const group = target + 16;
        while (target != group) {
            uint32_t w[TK_FUSED];
            uint32_t i;
            for (i = 0u; i < TK_FUSED; ++i) {
                w[i] = tk_signed_pair(&u[i], &signs);
            }
            tk_fused_stages(w);
            for (i = 0u; i < TK_FUSED; ++i) {
                target[i] = w[i];
            }
            u += TK_FUSED;
            target += TK_FUSED;
        }
    }
    tk_stages(v, 1u + TK_FUSED_STAGES, TK_HALVE_SECOND);
}

#else

#define TK_DIAGONAL_WORDS (TK_DIMENSION / 4u)

/* Two words of v, after stage 0, from two words of u and the four factors in a table word. */
TK_INLINE void tk_multiply(uint32_t *w, const uint32_t *u, const uint32_t *table)
{
#if TK_DSP
    const uint32_t even_factors = tk_sxtb16(*table);
    const uint32_t odd_factors = tk_sxtb16_odd(*table);
    uint32_t first;
    uint32_t second;
    TK_PKHTB(first, tk_smulbt(even_factors, u[0]) << 9, tk_smulbb(odd_factors, u[0]), 7);
    TK_PKHTB(second, tk_smultt(even_factors, u[1]) << 9, tk_smultb(odd_factors, u[1]), 7);
    w[0] = TK_HALVE_PRODUCT ? tk_shsax(first, first) : tk_ssax(first, first);
    w[1] = TK_HALVE_PRODUCT ? tk_shsax(second, second) : tk_ssax(second, second);
#else
    const int8_t *const factors = (const int8_t *)table;
    w[0] = tk_first_butterfly((tk_load_side_high(&u[0]) * factors[0]) >> 7,
                              (tk_load_low(&u[0]) * factors[1]) >> 7, TK_HALVE_PRODUCT);
    w[1] = tk_first_butterfly((tk_load_side_high(&u[1]) * factors[2]) >> 7,
                              (tk_load_low(&u[1]) * factors[3]) >> 7, TK_HALVE_PRODUCT);
#endif
}

/* d/2 words u to d/2 words v; `table` holds the int8 factors of the block. */
TK_SHARED void tk_project(uint32_t *v, const uint32_t *u, const uint32_t *table)
{
    uint32_t *target = v;
    uint32_t *const end = v + TK_PAIRS;
    while (target != end) {
        uint32_t w[TK_FUSED];
        tk_multiply(w, u, table);
#if TK_FUSED_STAGES >= 2
        tk_multiply(w + 2, u + 2, table + 1);
#endif
#if TK_FUSED_STAGES == 3
        tk_multiply(w + 4, u + 4, table + 2);
        tk_multiply(w + 6, u + 6, table + 3);
#endif
        tk_fused_stages(w);
        target[0] = w[0];
        target[1] = w[1];
#if TK_FUSED_STAGES >= 2
        target[2] = w[2];
        target[3] = w[3];
#endif
#if TK_FUSED_STAGES == 3
        target[4] = w[4];
        target[5] = w[5];
        target[6] = w[6];
        target[7] = w[7];
#endif
        u += TK_FUSED;
        table += TK_FUSED / 2u;
        target += TK_FUSED;
    }
    tk_stages(v, 1u + TK_FUSED_STAGES, TK_HALVE_SECOND);
}

#endif

#endif
