/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of float inputs, computed with the compiler's floats or with integers: the same bits. */
#ifndef TK_FLOAT_H
#define TK_FLOAT_H

#include "tk_config.h"

/* Clang has no macro for -fassociative-math alone. */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0)
#error \
    "the float input scaler needs exact arithmetic and NaN: compile the model without -ffast-math"
#endif

/* Bits of a binary32 number. */
TK_INLINE uint32_t tk_float_bits(float number)
{
    union {
        float number;
        uint32_t bits;
    } both;
    both.number = number;
    return both.bits;
}

#if TK_INPUT_BITS == 32 /* raw values in order have no levels */
#elif TK_SOFT_FLOAT

/* word / 256, rounded to nearest even. */
TK_INLINE uint32_t tk_round_to_24_bits(uint32_t word)
{
    const uint32_t floor = word >> 8;
    return floor + ((word & 0xffu) + (floor & 1u) > 0x80u ? 1u : 0u);
}

/* a b / 2^16 rounded down, for a <= 2^24 and b < 2^24. Bit 0 is set if that is not exact. */
TK_INLINE uint32_t tk_product_by_65536(uint32_t a, uint32_t b)
{
#if TK_LONG_PRODUCT
    const uint64_t product = (uint64_t)a * b;
    const uint32_t rest = (uint32_t)product << 16;
    return (uint32_t)(product >> 16) | (rest != 0u ? 1u : 0u);
#else
    const uint32_t a_high = a >> 12, a_low = a & 0xfffu;
    const uint32_t b_high = b >> 12, b_low = b & 0xfffu;
    const uint32_t middle = a_high * b_low + a_low * b_high;
    const uint32_t low = ((middle & 0xfu) << 12) + a_low * b_low;
    const uint32_t sum = ((a_high * b_high) << 8) + (middle >> 4) + (low >> 16);
    return sum | ((low & 0xffffu) != 0u ? 1u : 0u);
#endif
}

/* Mantissa and exponent of the bits of a finite number, sign cleared. Subnormal numbers have
 * exponent 1. */
TK_INLINE uint32_t tk_mantissa(uint32_t bits, uint32_t *exponent)
{
    const uint32_t mantissa = bits & 0x007fffffu;
    *exponent = bits >> 23;
    if (*exponent == 0u) {
        *exponent = 1u;
        return mantissa;
    }
    return mantissa | 0x00800000u;
}

/* Difference of two finite numbers x > y, rounded as in binary32, times 2^(150 - *exponent), so
 * that it is in [2^23, 2^24], or 0. */
TK_INLINE uint32_t tk_difference(uint32_t x, uint32_t y, int32_t *exponent)
{
    const uint32_t opposite = (x ^ y) >> 31;
    uint32_t large = x & 0x7fffffffu, small = y & 0x7fffffffu;
    uint32_t sum, shift, first, second;
    if (large < small) {
        const uint32_t larger = small;
        small = large;
        large = larger;
    }
    /* Seven more bits are enough to round; the last one is sticky. */
    sum = tk_mantissa(large, &first) << 7;
    small = tk_mantissa(small, &second) << 7;
    shift = first - second < 31u ? first - second : 31u;
    if (shift != 0u) {
        small = (small >> shift) | ((small << (32u - shift)) != 0u ? 1u : 0u);
    }
    sum = opposite != 0u ? sum + small : sum - small;
    if (sum == 0u) {
        return 0u;
    }
    shift = tk_leading_zeros(sum);
    *exponent = (int32_t)(first + 1u) - (int32_t)shift;
    return tk_round_to_24_bits(sum << shift);
}

/* Level of a float, 0..top: (raw - offset) * multiplier, each operation rounded to nearest even as
 * in IEEE 754, then rounded down. offset is finite, multiplier is finite and not negative, top is
 * below 2^23. raw may be any number; NaN counts as minus infinity. */
TK_SHARED uint32_t tk_float_level(float raw, float offset, float multiplier, uint32_t top)
{
    const uint32_t x = tk_float_bits(raw), y = tk_float_bits(offset);
    uint32_t factor = tk_float_bits(multiplier) & 0x7fffffffu;
    uint32_t level, other;
    int32_t exponent;
    /* The bits of numbers are ordered as the numbers are; those of negative ones in reverse. */
    const int32_t x_order = (int32_t)((x >> 31) != 0u ? x ^ 0x7fffffffu : x);
    const int32_t y_order = (int32_t)((y >> 31) != 0u ? y ^ 0x7fffffffu : y);
    if (factor == 0u || x_order <= y_order || x_order > 0x7f800000) {
        return 0u;
    }
    if (x_order == 0x7f800000) {
        return top;
    }
    level = tk_difference(x, y, &exponent);
    if (level == 0u) {
        return 0u;
    }
    /* A difference of 2^128 or more is infinite. */
    if (exponent > 254 || (exponent == 254 && level > 0x00ffffffu)) {
        return top;
    }
    factor = tk_mantissa(factor, &other);
    while ((factor >> 23) == 0u) {
        factor <<= 1;
        --exponent;
    }
    /* Exponents of integer mantissas have a bias of 150; the product was shifted by 16 bits. */
    exponent += (int32_t)other - 300 + 16;
    level = tk_product_by_65536(level, factor);
    if ((level >> 31) == 0u) {
        level <<= 1;
        --exponent;
    }
    level = tk_round_to_24_bits(level);
    exponent += 8;
    if (exponent >= 0) {
        return top;
    }
    level = exponent > -32 ? level >> (uint32_t)-exponent : 0u;
    return level > top ? top : level;
}

#else

/* Level of a float, with the compiler's floats. */
TK_INLINE uint32_t tk_float_level(float raw, float offset, float multiplier, uint32_t top)
{
    const float above = raw - offset;
    float level = above * multiplier;
    if (!(level > 0.0f)) {
        level = 0.0f;
    }
    if (level > (float)top) {
        level = (float)top;
    }
    return (uint32_t)(int32_t)level;
}

#endif

#endif
