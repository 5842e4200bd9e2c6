/* SPDX-License-Identifier: Apache-2.0 */
/* Scores that are a function of their totals: powers of 2, or squares. */
#ifndef TK_CURVE_H
#define TK_CURVE_H

#include "tk_contract.h"

#if TK_CURVE_SQUARE

/* The square of a total with its sign, over 2^TK_CURVE_BITS; at most 2^31 - 1 in size. */
TK_SHARED int32_t tk_curve(int32_t total)
{
    const uint32_t size = total < 0 ? 0u - (uint32_t)total : (uint32_t)total;
    const uint64_t square = (uint64_t)size * size >> TK_CURVE_BITS;
    const int32_t score = square > INT32_MAX ? INT32_MAX : (int32_t)square;
    return total < 0 ? -score : score;
}

#else

/* 2 to the power of a total with TK_CURVE_BITS fractional bits, by straight lines between the
 * entries of tk_powers; at most 2^31 - 1. The power of the fraction is within 2^30..2^31 - 1. */
TK_SHARED int32_t tk_curve(int32_t total)
{
    const int32_t down = TK_CURVE_DOWN - (total >> TK_CURVE_BITS);
    const uint32_t fraction = (uint32_t)total << (32 - TK_CURVE_BITS);
    const TK_FLASH uint16_t *const powers = tk_powers + (fraction >> 26);
    const uint32_t low = powers[0];
    const uint32_t rest = (powers[1] - low) * (fraction >> 10 & 0xffffu) >> 1;
    const uint32_t power = ((low + 0x8000u) << 15) + rest;
    if (down < 0) {
        return INT32_MAX;
    }
    if (down > 31) {
        return 0;
    }
    return (int32_t)((power + ((uint32_t)1 << down >> 1)) >> down);
}

#endif

#endif
