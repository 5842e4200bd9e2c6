/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "frame": resize the lines of a camera to a small image, whose pixels are means of areas.
 * tinykernel/pieces/frame/spec.py specifies the steps, and says why nothing overflows.
 *
 * State: the words TK_FRAME_*, the sums of a row of the image, the sums of a line, the image. */
#ifndef TK_FRAME_H
#define TK_FRAME_H

#include "tk_stage.h"

struct tk_frame {
    uint32_t width;    /* pixels of a line, 1..4096; even for TK_FRAME_YUYV */
    uint32_t height;   /* lines of a frame, 1..4096 */
    uint32_t format;   /* TK_FRAME_GREY8 to TK_FRAME_YUYV */
    uint32_t top;      /* first line of the crop */
    uint32_t left;     /* first pixel of a line of the crop */
    uint32_t high;     /* lines of the crop */
    uint32_t wide;     /* pixels of a line of the crop; high * wide is at most 2^22 */
    uint32_t rows;     /* of the image, 1..1024 */
    uint32_t columns;  /* of the image, 1..1024 */
    uint32_t channels; /* of the image: 1 (grey) or 3 (red, green, blue) */
};

enum { TK_FRAME_GREY8, TK_FRAME_RGB888, TK_FRAME_RGB565, TK_FRAME_RGB565LE, TK_FRAME_YUYV };

enum {
    TK_FRAME_LINE, /* index of the next line */
    TK_FRAME_ROW,  /* index of the row of the image that is being summed */
    TK_FRAME_REST, /* height of that row that is not yet summed, in units of 1 / rows of a line */
    TK_FRAME_SUMS
};

/* Number of values of a row of the image. */
TK_INLINE uint32_t tk_frame_values(const TK_FLASH struct tk_frame *k)
{
    return k->columns * k->channels;
}

/* The image of the last frame. */
TK_INLINE uint8_t *tk_frame_image(const TK_FLASH struct tk_frame *k, uint32_t *state)
{
    return (uint8_t *)(state + TK_FRAME_SUMS + 2u * tk_frame_values(k));
}

/* Initialise the state. */
TK_INLINE void tk_frame_init(const TK_FLASH struct tk_frame *k, uint32_t *state)
{
    tk_clear(state, TK_FRAME_SUMS + tk_frame_values(k));
    state[TK_FRAME_REST] = k->high;
}

/* Clip a value to 0..255. */
TK_INLINE uint32_t tk_frame_clipped(int32_t value)
{
    return value < 0 ? 0u : value > 255 ? 255u : (uint32_t)value;
}

/* Grey, or red, green and blue, of a pixel of YUYV, where two pixels share u and v. `bytes` points
 * to the luma of the pixel; `odd` is 1 for the second of the two. */
TK_INLINE void tk_frame_yuyv(const TK_FLASH struct tk_frame *k, const tk_sample_t *bytes,
                             uint32_t odd, uint32_t *values)
{
    const int32_t luma = (int32_t)bytes[0];
    const int32_t u = (int32_t)(odd != 0u ? bytes[-1] : bytes[1]) - 128;
    const int32_t v = (int32_t)(odd != 0u ? bytes[1] : bytes[3]) - 128;
    values[0] = (uint32_t)luma;
    if (k->channels == 3u) {
        values[0] = tk_frame_clipped(luma + ((91881 * v + 32768) >> 16));
        values[1] = tk_frame_clipped(luma - ((22554 * u + 46802 * v + 32768) >> 16));
        values[2] = tk_frame_clipped(luma + ((116130 * u + 32768) >> 16));
    }
}

/* Pixel x of a line: values[channels], each 0..255. */
TK_INLINE void tk_frame_pixel(const TK_FLASH struct tk_frame *k, const tk_sample_t *line,
                              uint32_t x, uint32_t *values)
{
    if (k->format == TK_FRAME_GREY8) {
        values[0] = line[x];
        return;
    }
    if (k->format == TK_FRAME_YUYV) {
        tk_frame_yuyv(k, line + 2u * x, x & 1u, values);
        return;
    }
    if (k->format == TK_FRAME_RGB888) {
        values[0] = line[3u * x];
        values[1] = line[3u * x + 1u];
        values[2] = line[3u * x + 2u];
    } else {
        const uint32_t first = line[2u * x];
        const uint32_t second = line[2u * x + 1u];
        const uint32_t word =
            k->format == TK_FRAME_RGB565 ? first << 8 | second : second << 8 | first;
        values[0] = word >> 11 << 3 | word >> 13;
        values[1] = (word >> 5 & 63u) << 2 | (word >> 9 & 3u);
        values[2] = (word & 31u) << 3 | (word >> 2 & 7u);
    }
    if (k->channels == 1u) {
        values[0] = (UINT32_C(19595) * values[0] + UINT32_C(38470) * values[1] +
                     UINT32_C(7471) * values[2] + 32768u) >>
                    16;
    }
}

/* Sum a line for each value of a row of the image. Units are 1 / columns of a pixel. */
TK_INLINE void tk_frame_sum_line(const TK_FLASH struct tk_frame *k, const tk_sample_t *line,
                                 uint32_t *sum)
{
    uint32_t missing = k->wide; /* width of the column that is not yet summed */
    uint32_t x;
    tk_clear(sum, tk_frame_values(k));
    for (x = k->left; x < k->left + k->wide; ++x) {
        uint32_t values[3];
        uint32_t rest = k->columns;
        tk_frame_pixel(k, line, x, values);
        do {
            const uint32_t part = rest < missing ? rest : missing;
            sum[0] += part * values[0];
            if (k->channels == 3u) {
                sum[1] += part * values[1];
                sum[2] += part * values[2];
            }
            rest -= part;
            missing -= part;
            if (missing == 0u) {
                missing = k->wide;
                sum += k->channels;
            }
        } while (rest != 0u);
    }
}

/* (2 sum + area) / (2 area), 0..255. Bit by bit, as not every core has a divide instruction. */
TK_INLINE uint8_t tk_frame_mean(uint32_t sum, uint32_t area)
{
    uint32_t rest = 2u * sum + area;
    uint32_t mean = 0u;
    uint32_t bit = 128u;
    do {
        if (rest >= 2u * area * bit) {
            rest -= 2u * area * bit;
            mean |= bit;
        }
        bit >>= 1;
        TK_PLAIN_LOOP();
    } while (bit != 0u);
    return (uint8_t)mean;
}

/* Write the means of a complete row of the image, and clear the sums for the next one. */
TK_INLINE void tk_frame_finish_row(const TK_FLASH struct tk_frame *k, uint32_t *state)
{
    uint32_t *const sums = state + TK_FRAME_SUMS;
    uint8_t *const row = tk_frame_image(k, state) + state[TK_FRAME_ROW] * tk_frame_values(k);
    uint32_t i;
    for (i = 0u; i < tk_frame_values(k); ++i) {
        row[i] = tk_frame_mean(sums[i], k->high * k->wide);
        sums[i] = 0u;
    }
    state[TK_FRAME_REST] = k->high;
    state[TK_FRAME_ROW] = state[TK_FRAME_ROW] + 1u == k->rows ? 0u : state[TK_FRAME_ROW] + 1u;
}

/* Add the sums of a line to the rows of the image that it covers. */
TK_INLINE void tk_frame_add_line(const TK_FLASH struct tk_frame *k, uint32_t *state)
{
    uint32_t *const sums = state + TK_FRAME_SUMS;
    const uint32_t *const line = sums + tk_frame_values(k);
    uint32_t rest = k->rows;
    do {
        const uint32_t missing = state[TK_FRAME_REST];
        const uint32_t part = rest < missing ? rest : missing;
        uint32_t i;
        for (i = 0u; i < tk_frame_values(k); ++i) {
            sums[i] += part * line[i];
        }
        rest -= part;
        state[TK_FRAME_REST] = missing - part;
        if (missing == part) {
            tk_frame_finish_row(k, state);
        }
    } while (rest != 0u);
}

/* Take the next line of a frame, width pixels. Returns 1 if the frame is complete. */
TK_INLINE int tk_frame_push(const TK_FLASH struct tk_frame *k, uint32_t *state,
                            const tk_sample_t *line)
{
    const uint32_t y = state[TK_FRAME_LINE];
    if (y - k->top < k->high) {
        tk_frame_sum_line(k, line, state + TK_FRAME_SUMS + tk_frame_values(k));
        tk_frame_add_line(k, state);
    }
    state[TK_FRAME_LINE] = y + 1u == k->height ? 0u : y + 1u;
    return state[TK_FRAME_LINE] == 0u;
}

#endif
