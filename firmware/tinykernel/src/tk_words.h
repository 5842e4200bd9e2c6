/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/* Arithmetic on words that hold two int16 values, low and high.
 *
 * Forms of a word:
 *   sum           the number high * 65536 + low, with low signed. Adding or subtracting such words
 *                 processes both halves at once and needs no masks, provided that the true result
 *                 of each half fits int16; this is proved for every model. (A borrow from the low
 *                 half is part of the number, not an error.)
 *   side by side  low in bits 0..15 and high in bits 16..31, each in two's complement: for packed
 *                 instructions, and for access to single halves in memory.
 *   exchanged     side by side, but the value of the even index is high: u, see tk_diagonal.h.
 * With packed instructions all words are side by side; otherwise the transform computes sums. The
 * low halves of both forms are equal. The high halves differ if the low half is negative.
 *
 *   function             form          result
 *   tk_pack              sum (*)       the word of two halves
 *   tk_low               any           low half
 *   tk_load_low          any           low half of a word in memory
 *   tk_high_beside       sum (*)       high half, if the low one is known
 *   tk_load_side_high    side by side  high half of a word in memory
 *   tk_half_at           side by side  the half at an offset in memory, as 16 bits
 *   tk_as_side_by_side   sum (*)       the same two halves side by side
 * (*) side by side with packed instructions. */
/* clang-format on */
#ifndef TK_WORDS_H
#define TK_WORDS_H

#include "tk_contract.h"
#include "tk_dsp.h"

#define TK_HALVES 0x80008000u /* 32768 in both halves */

/* Mask whose bits all equal the top bit of `bits`. */
TK_INLINE uint32_t tk_top_mask(uint32_t bits)
{
    return 0u - (bits >> 31);
}

/* The larger of x and 0. With `plain` no assembly is used, so that the compiler can simplify it. */
TK_INLINE uint32_t tk_positive_part(int32_t x, int plain)
{
    uint32_t result = (uint32_t)x & ~tk_top_mask((uint32_t)x);
#if TK_THUMB && defined(__thumb2__)
    if (plain == 0) {
        __asm__("usat %0, #31, %1" : "=r"(result) : "r"(x));
    }
#endif
    (void)plain;
    return result;
}

/* Low half of any word. */
TK_INLINE int32_t tk_low(uint32_t word)
{
    return (int32_t)(int16_t)(word & 0xffffu);
}

/* Low half of any word in memory, and high half of a side-by-side one. A signed 16-bit load saves
 * the shifts, except in Thumb-1, where it needs an index register. */
#if defined(__GNUC__) && !(defined(__thumb__) && !defined(__thumb2__))
typedef int16_t __attribute__((__may_alias__)) tk_half;

TK_INLINE int32_t tk_load_low(const uint32_t *word)
{
    return ((const tk_half *)word)[0];
}

TK_INLINE int32_t tk_load_side_high(const uint32_t *word)
{
    return ((const tk_half *)word)[1];
}
#else
TK_INLINE int32_t tk_load_low(const uint32_t *word)
{
    return tk_low(*word);
}

TK_INLINE int32_t tk_load_side_high(const uint32_t *word)
{
    return (int32_t)*word >> 16;
}
#endif

/* The 16 bits at `offset` bytes from `words`, offset even. */
TK_INLINE uint32_t tk_half_at(const uint32_t *words, uint32_t offset)
{
#if defined(__GNUC__)
    typedef uint16_t __attribute__((__may_alias__)) tk_bits16;
    return *(const tk_bits16 *)(const void *)((const char *)words + offset);
#else
    return words[offset >> 2] >> ((offset & 2u) << 3) & 0xffffu;
#endif
}

/* Write the 16 bits at `offset` bytes from `words`. */
TK_INLINE void tk_set_half(uint32_t *words, uint32_t offset, uint32_t half)
{
#if defined(__GNUC__)
    typedef uint16_t __attribute__((__may_alias__)) tk_bits16;
    *(tk_bits16 *)(void *)((char *)words + offset) = (uint16_t)half;
#else
    const uint32_t shift = (offset & 2u) << 3;
    uint32_t *const word = words + (offset >> 2);
    *word = (*word & ~((uint32_t)0xffffu << shift)) | half << shift;
#endif
}

#if TK_DSP

TK_INLINE uint32_t tk_pack(int32_t low, int32_t high)
{
    uint32_t word;
    TK_PKHBT(word, low, high, 16);
    return word;
}

TK_INLINE uint32_t tk_as_side_by_side(uint32_t word)
{
    return word;
}

/* (a, b) = (a + b, a - b) in both halves; halved, rounding down, where `halve` is not 0. */
TK_INLINE void tk_butterfly(uint32_t *a, uint32_t *b, uint32_t halve)
{
    const uint32_t sum = halve != 0u ? tk_shadd16(*a, *b) : tk_sadd16(*a, *b);
    const uint32_t difference = halve != 0u ? tk_shsub16(*a, *b) : tk_ssub16(*a, *b);
    *a = sum;
    *b = difference;
}

#else

TK_INLINE uint32_t tk_pack(int32_t low, int32_t high)
{
    return (uint32_t)low + ((uint32_t)high << 16);
}

/* From sum to side by side. Adding 32768 to the low half makes it an unsigned 16-bit field. */
TK_INLINE uint32_t tk_as_side_by_side(uint32_t word)
{
    return (word + 0x8000u) ^ 0x8000u;
}

/* (a, b) = (a + b, a - b) in both halves; halved, rounding down, where `halve` is not 0.
 *
 * Biased by 32768, the halves are unsigned 16-bit fields x and y, and
 * x - y = (x ^ y) - 2 * (~x & y), so that (x - y) >> 1 = ((x ^ y) >> 1) - (y & (x ^ y)) exactly,
 * without the 17th bit; and (a + b) >> 1 = ((a - b) >> 1) + b. */
TK_INLINE void tk_butterfly(uint32_t *a, uint32_t *b, uint32_t halve)
{
    const uint32_t second = *b;
    if (halve != 0u) {
        const uint32_t y = second + TK_HALVES;
        const uint32_t changed = (*a + TK_HALVES) ^ y;
        const uint32_t difference = ((changed >> 1) & ~TK_HALVES) - (y & changed);
        *a = difference + second;
        *b = difference;
    } else {
        *b = *a - second;
        *a += second;
    }
}

#endif

/* High half of a word of tk_butterfly whose low half is known. */
TK_INLINE int32_t tk_high_beside(uint32_t word, int32_t low)
{
#if TK_DSP
    (void)low;
    return (int32_t)word >> 16;
#else
    /* The word less its low half is the high half times 65536. */
    return (int32_t)(word - (uint32_t)low) >> 16;
#endif
}

/* The first butterfly of a transform: low = a + b, high = a - b. */
TK_INLINE uint32_t tk_first_butterfly(int32_t a, int32_t b, uint32_t halve)
{
    int32_t sum = a + b;
    int32_t difference = a - b;
    if (halve != 0u) {
        sum >>= 1;
        difference >>= 1;
    }
    return tk_pack(sum, difference);
}

#endif
