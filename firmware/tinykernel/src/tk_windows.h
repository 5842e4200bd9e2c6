/* Phase windows: 32 components of v to one word of bits, bit = 1 when the component is OUTSIDE its
 * window (z = -1).
 *
 * phase = (scale * v << TK_PHASE_SHIFT) + (start << 24) mod 2^32 is compared with width << 24. The
 * low 24 bits of start and width are zero, so only the top byte of the product counts: bytes are
 * added and compared.
 *
 * Order (the same for all variants, chosen for four bytes at a time): the 32 components of a word
 * stand in 16 words of v. Group r = 0..7 of the table has the parameters of
 *   byte 0: low half of word r + 8, byte 1: low half of word r,
 *   byte 2: high half of word r + 8, byte 3: high half of word r,
 * and component (group r, byte k) becomes bit 8 k + 7 - r. */
#ifndef TK_WINDOWS_H
#define TK_WINDOWS_H

#include "tk_words.h"

#if defined(TK_SCALE)
#define TK_GROUP_WORDS 2u
#else
#define TK_GROUP_WORDS 3u
#endif
#define TK_WINDOW_WORDS (8u * TK_GROUP_WORDS) /* table words for 32 components */

#if TK_DSP

/* Two products scale * v to the top bytes of their phases in bytes 1 and 3; bytes 0 and 2 are not
 * specified. */
TK_INLINE uint32_t tk_top_bytes(uint32_t scales, uint32_t word)
{
    uint32_t low = tk_smulbb(scales, word);
    const uint32_t high = tk_smultt(scales, word);
    uint32_t phases;
#if TK_PHASE_SHIFT < 16
    low >>= 16 - TK_PHASE_SHIFT;
#else
    low <<= TK_PHASE_SHIFT - 16;
#endif
    TK_PKHBT(phases, low, high, TK_PHASE_SHIFT);
    return phases;
}

/* Four components: their bits are shifted into the four bytes of `bits`. `scale` stands in both
 * halves and counts only when the table has no scales. */
TK_INLINE uint32_t tk_outside4(uint32_t bits, uint32_t first, uint32_t second,
                               const uint32_t *table, uint32_t scale)
{
#if defined(TK_SCALE)
    const uint32_t odd = tk_top_bytes(scale, first) & 0xff00ff00u;
    const uint32_t even = tk_top_bytes(scale, second);
#else
    const uint32_t odd = tk_top_bytes(tk_uxtb16_odd(table[0]), first) & 0xff00ff00u;
    const uint32_t even = tk_top_bytes(tk_uxtb16(table[0]), second);
#endif
    const uint32_t starts = table[TK_GROUP_WORDS - 2u];
    const uint32_t widths = table[TK_GROUP_WORDS - 1u];
    const uint32_t phases = tk_uadd8(tk_uxtab16_odd(odd, even), starts);
    (void)scale;
    return tk_not_less8(phases, widths) + (bits << 1);
}

/* `count` words of bits from 16 * `count` words v; `bits` may be v itself. */
TK_SHARED void tk_compare(uint32_t *bits, const uint32_t *v, const uint32_t *table, uint32_t count,
                          uint32_t scale)
{
    uint32_t *const end = bits + count;
#if defined(TK_SCALE)
    scale |= scale << 16;
#else
    (void)scale;
#endif
    while (bits != end) {
        const uint32_t *const half = v + 8;
        uint32_t word = 0u;
        do {
            word = tk_outside4(word, v[0], v[8], table, scale);
            word = tk_outside4(word, v[1], v[9], table + TK_GROUP_WORDS, scale);
            v += 2;
            table += 2u * TK_GROUP_WORDS;
        } while (v != half);
        v += 8;
        *bits++ = word;
    }
}

#else

/* One bit more at the bottom of `bits`: (phase mod 256) >= width, or its complement, which
 * tk_outside_bits takes back. */
TK_INLINE uint32_t tk_shift_in(uint32_t bits, uint32_t phase, uint32_t width)
{
#if TK_THUMB
#if defined(__thumb2__)
#define TK_REGISTER "r"
#else
#define TK_REGISTER "l"
#endif
    /* The comparison leaves its result in the carry flag, which the addition takes in. */
    __asm__(".syntax unified\n\tuxtb %1, %1\n\tcmp %1, %2\n\tadcs %0, %0"
            : "+" TK_REGISTER(bits), "+" TK_REGISTER(phase)
            : TK_REGISTER(width)
            : "cc");
    return bits;
#else
    return bits + bits + ((phase & 255u) < width ? 1u : 0u);
#endif
}

TK_INLINE uint32_t tk_outside_bits(uint32_t low, uint32_t high)
{
    const uint32_t bits = low | high << 16;
    return TK_THUMB ? bits : ~bits;
}

/* Top byte of the phase before the start is added; what stands above is not specified. */
TK_INLINE uint32_t tk_phase(int32_t v, uint32_t scale)
{
    const uint32_t product = (uint32_t)(v * (int32_t)scale);
#if TK_PHASE_SHIFT <= 24
    return product >> (24 - TK_PHASE_SHIFT);
#else
    return product << (TK_PHASE_SHIFT - 24);
#endif
}

#if TK_THUMB && !defined(__thumb2__) && !defined(TK_SCALE) && TK_PHASE_SHIFT < 24

#define TK_OUTSIDE_HALF(value, bits, scale, start, width) \
    "ldrb %[byte], [%[p], #" scale "]\n\t"                \
    "muls %[" value "], %[byte]\n\t"                      \
    "lsrs %[" value "], %[" value "], %[shift]\n\t"       \
    "ldrb %[byte], [%[p], #" start "]\n\t"                \
    "adds %[" value "], %[byte]\n\t"                      \
    "uxtb %[" value "], %[" value "]\n\t"                 \
    "ldrb %[byte], [%[p], #" width "]\n\t"                \
    "cmp %[" value "], %[byte]\n\t"                       \
    "adcs %[" bits "], %[" bits "]\n\t"

/* One bit more of the low and of the high half of the word at *v, with the parameters at *p; both
 * move on to the next. In assembly, because the eight low registers of Thumb-1 are just enough and
 * compilers do not see it. */
TK_INLINE void tk_outside_pair(uint32_t *low, uint32_t *high, const uint32_t **v, const uint8_t **p,
                               uint32_t scale)
{
    uint32_t word;
    uint32_t other;
    uint32_t byte;
    (void)scale;
    __asm__(".syntax unified\n\t"
            "ldmia %[v]!, {%[word]}\n\t"
            "sxth %[other], %[word]\n\t"
            "subs %[word], %[word], %[other]\n\t"
            "asrs %[word], %[word], #16\n\t" /* clang-format off */
            TK_OUTSIDE_HALF("other", "low", "0", "4", "8")
            TK_OUTSIDE_HALF("word", "high", "2", "6", "10")
            "adds %[p], #12" /* clang-format on */
            : [low] "+l"(*low), [high] "+l"(*high), [v] "+l"(*v), [p] "+l"(*p), [word] "=&l"(word),
              [other] "=&l"(other), [byte] "=&l"(byte)
            : [shift] "I"(24 - TK_PHASE_SHIFT)
            : "cc", "memory");
}

#else

/* One bit more of the low and of the high half of the word at *v, with the parameters at *p; both
 * move on to the next. */
TK_INLINE void tk_outside_pair(uint32_t *low, uint32_t *high, const uint32_t **v, const uint8_t **p,
                               uint32_t scale)
{
    const uint8_t *const group = *p;
    const uint8_t *const starts = group + 4u * (TK_GROUP_WORDS - 2u);
    const uint8_t *const widths = starts + 4;
    const int32_t low_v = tk_load_low(*v);
    const int32_t high_v = tk_high_beside(**v, low_v);
#if defined(TK_SCALE)
    const uint32_t low_phase = tk_phase(low_v, scale);
    const uint32_t high_phase = tk_phase(high_v, scale);
#else
    const uint32_t low_phase = tk_phase(low_v, group[0]);
    const uint32_t high_phase = tk_phase(high_v, group[2]);
    (void)scale;
#endif
    *low = tk_shift_in(*low, low_phase + starts[0], widths[0]);
    *high = tk_shift_in(*high, high_phase + starts[2], widths[2]);
    *v += 1;
    *p += 4u * TK_GROUP_WORDS;
}

#endif

/* `count` words of bits from 16 * `count` words v; `bits` may be v itself. */
TK_SHARED void tk_compare(uint32_t *bits, const uint32_t *v, const uint32_t *table, uint32_t count,
                          uint32_t scale)
{
    uint32_t *const end = bits + count;
    while (bits != end) {
        uint32_t low = 0u;
        uint32_t high = 0u;
        uint32_t odd = 2u;
        do {
            const uint32_t *const half = v + 8;
            const uint8_t *p = (const uint8_t *)table;
            --odd;
            p += odd;
            do {
                tk_outside_pair(&low, &high, &v, &p, scale);
                tk_outside_pair(&low, &high, &v, &p, scale);
            } while (v != half);
        } while (odd != 0u);
        table += TK_WINDOW_WORDS;
        *bits++ = tk_outside_bits(low, high);
    }
}

#endif

#endif
