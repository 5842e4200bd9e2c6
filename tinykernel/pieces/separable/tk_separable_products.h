/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products for the stage "separable": packed weights with bytes, and the level of a sum. */
#ifndef TK_SEPARABLE_PRODUCTS_H
#define TK_SEPARABLE_PRODUCTS_H

#include "tk_stage.h"

/* Number of words that hold the 4-bit weights of `channels` channels. */
TK_INLINE uint32_t tk_separable_words(uint32_t channels)
{
    return (channels + 7u) / 8u;
}

/* Apply bias, multiplier and shift of a unit to a sum. The product is proved to fit int32. */
TK_INLINE uint8_t tk_separable_unit(uint32_t unit, int32_t sum)
{
    sum = (sum + ((int32_t)unit >> 12)) * (int32_t)(unit >> 5 & 127u);
    return (uint8_t)tk_clipped(sum, unit & 31u);
}

/* Multiply weight k = 0..7 of a word by the values of four positions. */
#define TK_TAP(k)                                                                    \
    do {                                                                             \
        const uint32_t tap = (uint32_t)((int32_t)(word << (28u - 4u * (k))) >> 28u); \
        uint32_t value0 = values[2u * (k)];                                          \
        uint32_t value1 = values[2u * (k) + 1u];                                     \
        TK_HIDE(value0);                                                             \
        TK_HIDE(value1);                                                             \
        low += tap * value0;                                                         \
        high += tap * value1;                                                        \
        TK_HIDE(low);                                                                \
        TK_HIDE(high);                                                               \
    } while (0)

/* Dot products of words of 8 4-bit weights with the values of four positions. A word has the values
 * of two positions, so one multiplication computes two products. Sums of eight products fit a half,
 * since |weight * value| <= 8 * 255. */
TK_SHARED void tk_separable_dot4(const TK_FLASH uint32_t *weights, const uint32_t *values,
                                 uint32_t words, int32_t *sums)
{
    int32_t sum0 = 0;
    int32_t sum1 = 0;
    int32_t sum2 = 0;
    int32_t sum3 = 0;
    do {
        const uint32_t word = *weights++;
        uint32_t low = 0u;
        uint32_t high = 0u;
        TK_TAP(0u);
        TK_TAP(1u);
        TK_TAP(2u);
        TK_TAP(3u);
        TK_TAP(4u);
        TK_TAP(5u);
        TK_TAP(6u);
        TK_TAP(7u);
        sum0 += (int32_t)(low << 16) >> 16;
        sum1 += (int32_t)(low + 0x8000u) >> 16;
        sum2 += (int32_t)(high << 16) >> 16;
        sum3 += (int32_t)(high + 0x8000u) >> 16;
        values += 16;
    } while (--words != 0u);
    sums[0] = sum0;
    sums[1] = sum1;
    sums[2] = sum2;
    sums[3] = sum3;
}
#undef TK_TAP

/* Dot product of words of 4 8-bit weights (bytes 0, 2, 1 and 3) with as many halves. */
TK_INLINE int32_t tk_separable_dot8(const TK_FLASH uint32_t *weights, const uint32_t *values,
                                    uint32_t words)
{
    int32_t sum = 0;
#if TK_DSP
    do {
        const uint32_t word = *weights++;
        sum = tk_smlad(tk_sxtb16(word), values[0], sum);
        sum = tk_smlad(tk_sxtb16_odd(word), values[1], sum);
        values += 2;
    } while (--words != 0u);
#else
    const tk_u16 *half = (const tk_u16 *)values;
    do {
        const uint32_t word = *weights++;
        sum += ((int32_t)(word << 24) >> 24) * (int32_t)half[0];
        sum += ((int32_t)(word << 8) >> 24) * (int32_t)half[1];
        sum += ((int32_t)(word << 16) >> 24) * (int32_t)half[2];
        sum += ((int32_t)word >> 24) * (int32_t)half[3];
        half += 4;
    } while (--words != 0u);
#endif
    return sum;
}

/* 4-bit weight n at `code`. */
TK_INLINE uint32_t tk_separable_tap(const TK_FLASH uint8_t *code, uint32_t n)
{
    return (uint32_t)((int32_t)((uint32_t)code[n / 2u] << (28u - (n & 1u) * 4u)) >> 28);
}

#endif
