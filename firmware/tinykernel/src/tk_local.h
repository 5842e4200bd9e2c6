/* SPDX-License-Identifier: Apache-2.0 */
/* Local stage, what images and signals share: raw value -> level -> mixed channel. */
#ifndef TK_LOCAL_H
#define TK_LOCAL_H

#if TK_LOCAL_RAW_FLOAT
#include "tk_float.h"
#endif
#include "tk_words.h"

typedef uint16_t TK_ALIAS tk_u16;

/* A count, in memory of words. */
#if TK_LOCAL_WIDE_COUNTS
typedef tk_u16 tk_count_t;
#define TK_LOCAL_COUNT_BYTES 2u
#else
typedef uint8_t tk_count_t;
#define TK_LOCAL_COUNT_BYTES 1u
#endif

/* Level of a raw value of channel c, 0..TK_LOCAL_TOP; any raw value is allowed, NaN counts as minus
 * infinity. */
TK_INLINE uint32_t tk_level(TK_GIVEN tk_sensor_t raw, uint32_t c)
{
#if TK_LOCAL_RAW_FLOAT
    const uint32_t top = (UINT32_C(1) << TK_LOCAL_BITS) - 1u;
    (void)c;
    return tk_float_level(raw, TK_LOCAL_OFFSET(c), TK_LOCAL_MULTIPLIER(c), top) >> TK_LOCAL_SHIFT;
#else
    const int32_t value = (int32_t)raw;
    const int32_t offset = TK_LOCAL_OFFSET(c);
#if TK_LOCAL_RAW_WIDE
    uint32_t above = value > offset ? (uint32_t)value - (uint32_t)offset : 0u;
#else
    uint32_t above = tk_positive_part(value - offset, TK_IS_LITERAL(TK_LOCAL_OFFSET(c)));
#endif
    (void)c;
    if (above > TK_LOCAL_SPAN(c)) {
        above = TK_LOCAL_SPAN(c);
    }
    return ((above >> TK_LOCAL_PRE_SHIFT(c)) * TK_LOCAL_MULTIPLIER(c)) >> (16 + TK_LOCAL_SHIFT);
#endif
}

/* Level of channel c, averaged: of an image from its top left pixel, of a signal as it is kept. */
#if TK_LOCAL == 1
typedef tk_sensor_t tk_source_t;

TK_INLINE uint32_t tk_averaged(TK_GIVEN const tk_source_t *pixel, uint32_t c)
{
#if TK_LOCAL_AVERAGE == 2
    const tk_source_t *const below = pixel + TK_LOCAL_WIDTH * TK_LOCAL_CHANNELS;
    return (tk_level(TK_GIVE pixel[c], c) + tk_level(TK_GIVE pixel[c + TK_LOCAL_CHANNELS], c) +
            tk_level(TK_GIVE below[c], c) + tk_level(TK_GIVE below[c + TK_LOCAL_CHANNELS], c)) >>
           2;
#else
    return tk_level(TK_GIVE pixel[c], c);
#endif
}
#else
typedef tk_u16 tk_source_t;

TK_INLINE uint32_t tk_averaged(TK_GIVEN const tk_source_t *levels, uint32_t c)
{
    return levels[c];
}
#endif

/* A channel or its complement, as a byte of tk_channels says. */
TK_INLINE uint32_t tk_term(TK_GIVEN const tk_source_t *source, uint32_t code)
{
    const uint32_t level = tk_averaged(TK_GIVE source, code & 63u);
    return (code & 64u) != 0u ? TK_LOCAL_TOP - level : level;
}

/* Mixed channel m. */
TK_INLINE uint32_t tk_mixed(TK_GIVEN const tk_source_t *source, uint32_t m)
{
#if TK_LOCAL_TERMS == 0
    return tk_averaged(TK_GIVE source, m);
#elif TK_LOCAL_TERMS == 1
    return tk_term(TK_GIVE source, tk_channels[m]);
#else
    return (tk_term(TK_GIVE source, tk_channels[2u * m]) +
            tk_term(TK_GIVE source, tk_channels[2u * m + 1u])) >>
           1;
#endif
}

#endif
