/* SPDX-License-Identifier: Apache-2.0 */
/* Phase windows in C, with assembly for Thumb: see tk_windows.h. */
#ifndef TK_WINDOWS_PORTABLE_H
#define TK_WINDOWS_PORTABLE_H

/* Low registers: most instructions of Thumb-1 take no others. */
#if defined(__thumb2__)
#define TK_REGISTER "r"
#else
#define TK_REGISTER "l"
#endif

/* Any register. For "r" Clang uses low registers only, and there are too few of these. */
#if defined(__clang__)
#define TK_ANY_REGISTER "h"
#else
#define TK_ANY_REGISTER "r"
#endif

/* High half of the word at v, whose low half is known. The word is a sum; if tk_keep moved rows, it
 * is side by side. */
TK_INLINE int32_t tk_high_of(const uint32_t *v, int32_t low)
{
#if TK_KEPT
    (void)low;
    return tk_load_side_high(v);
#else
    return tk_high_beside(*v, low);
#endif
}
#if TK_KEPT
#define TK_WITHOUT_LOW
#else
#define TK_WITHOUT_LOW "subs %[word], %[word], %[other]\n\t"
#endif

/* Whether the complements of bits are shifted in. */
#define TK_COMPLEMENTS (!TK_THUMB && !TK_HALF_TURN)

TK_INLINE uint32_t tk_outside_bits(uint32_t low, uint32_t high)
{
    const uint32_t bits = low | high << 16;
    return TK_COMPLEMENTS ? ~bits : bits;
}

#if TK_TOP_BITS

#if TK_THUMB && !defined(__thumb2__)

/* Shift the top bits of the phases of the two halves of the word at *v into the bottom of *low and
 * *high, and advance *v. In assembly, because the eight low registers of Thumb-1 just suffice, and
 * compilers spill some. */
TK_INLINE void tk_outside_pair(uint32_t *low, uint32_t *high, const uint32_t **v, uint32_t scale)
{
    uint32_t word;
    uint32_t other;
    __asm__(".syntax unified\n\t"
            "ldmia %[v]!, {%[word]}\n\t"
            "sxth %[other], %[word]\n\t" TK_WITHOUT_LOW "asrs %[word], %[word], #16\n\t"
            "muls %[other], %[scale]\n\t"
            "muls %[word], %[scale]\n\t"
            "add %[other], %[even]\n\t"
            "add %[word], %[odd]\n\t"
            "adds %[other], %[other], %[other]\n\t"
            "adcs %[low], %[low]\n\t"
            "adds %[word], %[word], %[word]\n\t"
            "adcs %[high], %[high]"
            : [low] "+l"(*low), [high] "+l"(*high), [v] "+l"(*v), [word] "=&l"(word),
              [other] "=&l"(other)
            : [scale] "l"(scale), [even] TK_ANY_REGISTER((uint32_t)TK_EVEN_START << 24),
              [odd] TK_ANY_REGISTER((uint32_t)TK_ODD_START << 24)
            : "cc", "memory");
}

#else

/* Shift the top bit of the phase into the bottom of `bits`. */
TK_INLINE uint32_t tk_shift_in_top(uint32_t bits, uint32_t phase)
{
#if TK_THUMB
    __asm__(".syntax unified\n\tadds %1, %1, %1\n\tadcs %0, %0, %0"
            : "+r"(bits), "+r"(phase)
            :
            : "cc");
    return bits;
#else
    return bits + bits + (phase >> 31);
#endif
}

/* Shift one bit into the bottom of *low and *high, from the two halves of the word at *v, and
 * advance *v. */
TK_INLINE void tk_outside_pair(uint32_t *low, uint32_t *high, const uint32_t **v, uint32_t scale)
{
    const int32_t low_v = tk_load_low(*v);
    const int32_t high_v = tk_high_of(*v, low_v);
    *low = tk_shift_in_top(*low, (uint32_t)low_v * scale + ((uint32_t)TK_EVEN_START << 24));
    *high = tk_shift_in_top(*high, (uint32_t)high_v * scale + ((uint32_t)TK_ODD_START << 24));
    *v += 1;
}

#endif

TK_SHARED void tk_compare(uint32_t *bits, const uint32_t *v, const TK_FLASH uint32_t *table,
                          uint32_t count, uint32_t scale)
{
    uint32_t *const end = bits + count;
    (void)table;
    do {
        const uint32_t *const next = v + 16;
        uint32_t low = 0u;
        uint32_t high = 0u;
        do {
            tk_outside_pair(&low, &high, &v, scale);
            tk_outside_pair(&low, &high, &v, scale);
            tk_outside_pair(&low, &high, &v, scale);
            tk_outside_pair(&low, &high, &v, scale);
        } while (v != next);
        *bits++ = tk_outside_bits(low, high);
    } while (bits != end);
}

#else

/* Shift (phase mod 256) >= width, or its complement, into the bottom of `bits`. */
TK_INLINE uint32_t tk_shift_in(uint32_t bits, uint32_t phase, uint32_t width)
{
#if TK_THUMB && TK_HALF_TURN
    (void)width;
    __asm__(".syntax unified\n\tlsls %1, %1, #25\n\tadcs %0, %0"
            : "+" TK_REGISTER(bits), "+" TK_REGISTER(phase)
            :
            : "cc");
    return bits;
#elif TK_THUMB
    /* The comparison sets the carry flag, which the addition shifts in. */
    __asm__(".syntax unified\n\tuxtb %1, %1\n\tcmp %1, %2\n\tadcs %0, %0"
            : "+" TK_REGISTER(bits), "+" TK_REGISTER(phase)
            : TK_REGISTER(width)
            : "cc");
    return bits;
#elif TK_HALF_TURN
    (void)width;
    return bits + bits + (phase >> 7 & 1u);
#else
    return bits + bits + ((phase & 255u) < width ? 1u : 0u);
#endif
}

/* Top byte of the phase before the start is added; the bits above it are unspecified. */
TK_INLINE uint32_t tk_phase(int32_t v, uint32_t scale)
{
    const uint32_t product = (uint32_t)v * scale;
#if defined(TK_SCALE)
    return product >> 24; /* the scale is already shifted */
#elif TK_PHASE_SHIFT <= 24
    return product >> (24 - TK_PHASE_SHIFT);
#else
    return product << (TK_PHASE_SHIFT - 24);
#endif
}

#if TK_THUMB && !defined(__thumb2__) && TK_GROUP_WORDS == 3 && TK_PHASE_SHIFT < 24

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

/* Shift one bit into *low and *high, from the halves of the word at *v with the parameters at *p,
 * and advance both. In assembly, because the eight low registers of Thumb-1 just suffice, and
 * compilers spill some. */
TK_INLINE void tk_outside_pair(uint32_t *low, uint32_t *high, const uint32_t **v,
                               const TK_FLASH uint8_t **p, uint32_t odd, uint32_t scale)
{
    uint32_t word;
    uint32_t other;
    uint32_t byte;
    (void)odd;
    (void)scale;
    __asm__(".syntax unified\n\t"
            "ldmia %[v]!, {%[word]}\n\t"
            "sxth %[other], %[word]\n\t" TK_WITHOUT_LOW
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

#if defined(TK_SCALE)
#define TK_SCALE_OF(half) scale
#else
#define TK_SCALE_OF(half) group[2 * (half)]
#endif
#if defined(TK_EVEN_START)
#define TK_START_OF(half) ((half) != 0 ? TK_ODD_START : TK_EVEN_START)
#elif TK_WINDOW_BITS == 4 && defined(TK_WIDTH)
#define TK_START_OF(half) \
    (odd != 0u ? TK_LOW_HALVES(group[2 * (half)]) : TK_HIGH_HALVES(group[2 * (half)]))
#elif TK_WINDOW_BITS == 4
#define TK_START_OF(half) TK_HIGH_HALVES(group[4u * TK_START_WORD + 2u * (half)])
#else
#define TK_START_OF(half) group[4u * TK_START_WORD + 2u * (half)]
#endif
#if defined(TK_WIDTH)
#define TK_WIDTH_OF(half) TK_WIDTH
#elif TK_WINDOW_BITS == 4
#define TK_WIDTH_OF(half) (TK_LOW_HALVES(group[4u * TK_WIDTH_WORD + 2u * (half)]) & 255u)
#else
#define TK_WIDTH_OF(half) group[4u * TK_WIDTH_WORD + 2u * (half)]
#endif

/* Shift one bit into *low and *high, from the halves of the word at *v with the parameters at *p,
 * and advance both. `odd` is 1 for every other group. */
TK_INLINE void tk_outside_pair(uint32_t *low, uint32_t *high, const uint32_t **v,
                               const TK_FLASH uint8_t **p, uint32_t odd, uint32_t scale)
{
    const TK_FLASH uint8_t *const group = *p;
    const int32_t low_v = tk_load_low(*v);
    const int32_t high_v = tk_high_of(*v, low_v);
    const uint32_t low_phase = tk_phase(low_v, TK_SCALE_OF(0));
    const uint32_t high_phase = tk_phase(high_v, TK_SCALE_OF(1));
    (void)group;
    (void)odd;
    (void)scale;
    *low = tk_shift_in(*low, low_phase + TK_START_OF(0), TK_WIDTH_OF(0));
    *high = tk_shift_in(*high, high_phase + TK_START_OF(1), TK_WIDTH_OF(1));
    *v += 1;
    *p += 4u * (TK_NEXT_WORDS + odd * (TK_GROUP_WORDS - TK_NEXT_WORDS));
}

#endif

TK_SHARED void tk_compare(uint32_t *bits, const uint32_t *v, const TK_FLASH uint32_t *table,
                          uint32_t count, uint32_t scale)
{
    uint32_t *const end = bits + count;
    do {
        uint32_t low = 0u;
        uint32_t high = 0u;
        uint32_t odd = 2u;
        do {
            const uint32_t *const half = v + 8;
            const TK_FLASH uint8_t *p = (const TK_FLASH uint8_t *)table;
            --odd;
            p += odd;
            do {
                tk_outside_pair(&low, &high, &v, &p, 0u, scale);
                tk_outside_pair(&low, &high, &v, &p, 1u, scale);
            } while (v != half);
        } while (odd != 0u);
        table += TK_WINDOW_WORDS;
        *bits++ = tk_outside_bits(low, high);
    } while (bits != end);
}

#endif

#endif
