/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "levels" of images and signals: raw value -> level -> average -> mixed channel.
 *
 * State of a stream: a word that is 1 after the first of two samples that are averaged, then the
 * levels of the channels, two per word. */
#ifndef TK_LEVELS_H
#define TK_LEVELS_H

#if TK_LEVELS_RAW_FLOAT
#include "tk_float.h"
#endif
#include "tk_stage.h"

struct tk_levels {
    uint32_t width;              /* raw pixels of a row; 1 for signals */
    uint32_t channels;           /* raw values of a pixel */
    uint32_t bits;               /* bits of the output of the scaler */
    uint32_t shift;              /* number of its low bits that are dropped, 0..bits - 1 */
    uint32_t top;                /* largest level */
    uint32_t average;            /* 1; or 2: average 2 samples, or 2 x 2 pixels */
    uint32_t mixed;              /* number of mixed channels */
    uint32_t terms;              /* channels in a mixed one, 1 or 2; 0: no channels are mixed */
    const TK_FLASH uint8_t *mix; /* terms of the mixed channels; plus 64: use top - level */
};

/* Level of a raw value of channel c, 0..top. Any raw value is allowed; NaN counts as minus
 * infinity. */
TK_INLINE uint32_t tk_level(const TK_FLASH struct tk_levels *levels, tk_sensor_t raw, uint32_t c)
{
#if TK_LEVELS_RAW_FLOAT
    const uint32_t top = (UINT32_C(1) << levels->bits) - 1u;
    (void)c;
    return tk_float_level(raw, TK_LEVELS_OFFSET(c), TK_LEVELS_MULTIPLIER(c), top) >> levels->shift;
#else
    const int32_t value = (int32_t)raw;
    const int32_t offset = TK_LEVELS_OFFSET(c);
#if TK_LEVELS_RAW_WIDE
    uint32_t above = value > offset ? (uint32_t)value - (uint32_t)offset : 0u;
#else
    uint32_t above = tk_positive_part((int32_t)((uint32_t)value - (uint32_t)offset),
                                      TK_IS_LITERAL(TK_LEVELS_OFFSET(c)));
#endif
    (void)c;
    if (above > TK_LEVELS_SPAN(c)) {
        above = TK_LEVELS_SPAN(c);
    }
    return ((above >> TK_LEVELS_PRE_SHIFT(c)) * TK_LEVELS_MULTIPLIER(c)) >> (16u + levels->shift);
#endif
}

/* Averaged level of channel c of an image; `pixel` is the top left one of those averaged. */
TK_INLINE uint32_t tk_levels_average(const TK_FLASH struct tk_levels *levels,
                                     const tk_sensor_t *pixel, uint32_t c)
{
    const uint32_t first = tk_level(levels, pixel[c], c);
    if (levels->average == 2u) {
        const tk_sensor_t *const right = pixel + levels->channels;
        const tk_sensor_t *const below = pixel + levels->width * levels->channels;
        const tk_sensor_t *const last = below + levels->channels;
        return (first + tk_level(levels, right[c], c) + tk_level(levels, below[c], c) +
                tk_level(levels, last[c], c)) >>
               2;
    }
    return first;
}

/* The level of a channel, or its complement, depending on its code in the mix. */
TK_INLINE uint32_t tk_levels_term(const TK_FLASH struct tk_levels *levels, uint32_t code,
                                  uint32_t level)
{
    return (code & 64u) != 0u ? levels->top - level : level;
}

/* Codes of the terms of mixed channel m, or m itself if no channels are mixed. */
TK_INLINE uint32_t tk_levels_codes(const TK_FLASH struct tk_levels *levels, uint32_t m)
{
    if (levels->terms == 0u) {
        return m;
    }
    if (levels->terms == 1u) {
        return levels->mix[m];
    }
    return levels->mix[2u * m] | (uint32_t)levels->mix[2u * m + 1u] << 8;
}

/* A pixel of the mixed channel with these codes. */
TK_INLINE uint32_t tk_levels_pixel(const TK_FLASH struct tk_levels *levels,
                                   const tk_sensor_t *pixel, uint32_t codes)
{
    uint32_t first;
    uint32_t second;
    if (levels->terms == 0u) {
        return tk_levels_average(levels, pixel, codes);
    }
    first = tk_levels_average(levels, pixel, codes & 63u);
    first = tk_levels_term(levels, codes, first);
    if (levels->terms == 1u) {
        return first;
    }
    second = tk_levels_average(levels, pixel, codes >> 8 & 63u);
    return (first + tk_levels_term(levels, codes >> 8, second)) >> 1;
}

/* A line of an image, which begins at `input`, as bytes, with the mixed channels of a pixel side by
 * side. */
TK_INLINE void tk_levels_line(const TK_FLASH struct tk_levels *levels, const tk_sensor_t *input,
                              uint32_t columns, uint8_t *out)
{
    const uint32_t size = columns * levels->mixed;
    uint32_t m;
    for (m = 0u; m < levels->mixed; ++m) {
        const uint32_t codes = tk_levels_codes(levels, m);
        const tk_sensor_t *pixel = input;
        uint32_t i;
        for (i = m; i < size; i += levels->mixed) {
            out[i] = (uint8_t)tk_levels_pixel(levels, pixel, codes);
            pixel += levels->average * levels->channels;
        }
    }
}

/* Take the next sample of a signal. Returns 1 if this completes a row. */
TK_INLINE int tk_levels_push(const TK_FLASH struct tk_levels *levels, uint32_t *state,
                             const tk_sensor_t *sample)
{
    tk_u16 *const stored = (tk_u16 *)(state + 1);
    uint32_t c;
    for (c = 0u; c < levels->channels; ++c) {
        const uint32_t level = tk_level(levels, sample[c], c);
        stored[c] =
            (tk_u16)(levels->average == 2u && state[0] != 0u ? (stored[c] + level) >> 1 : level);
    }
    if (levels->average == 1u) {
        return 1;
    }
    state[0] ^= 1u;
    return state[0] == 0u;
}

/* Write the mixed channels of that row. */
TK_INLINE void tk_levels_row(const TK_FLASH struct tk_levels *levels, const uint32_t *state,
                             tk_u16 *row)
{
    const tk_u16 *const stored = (const tk_u16 *)(state + 1);
    const TK_FLASH uint8_t *code = levels->mix;
    uint32_t m;
    for (m = 0u; m < levels->mixed; ++m) {
        if (levels->terms == 0u) {
            row[m] = stored[m];
        } else {
            uint32_t level = tk_levels_term(levels, code[0], stored[code[0] & 63u]);
            if (levels->terms == 2u) {
                level = (level + tk_levels_term(levels, code[1], stored[code[1] & 63u])) >> 1;
            }
            row[m] = (tk_u16)level;
            code += levels->terms;
        }
    }
}

#endif
