/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of images: small ones, on levels that stand side by side in words.
 *
 * The lanes of a word, bytes or halves, are the cells across: word j of a row holds the columns j,
 * j + s, j + 2 s, ..., where a cell is s columns wide (strip). A step to the side is a step to
 * another word, and plain additions and subtractions of words work on all lanes at once. A lane
 * begins with 2^(b-1) - 1 - threshold, b its width, and ends in 0..2^b - 1, as is proved; what the
 * sums carry from lane to lane in between cancels out. Its top bit then says whether the response
 * is above the threshold, and words of such bits are added up to words of counts.
 *
 * codes[] has bytes, for each kernel: channel and dilation, where they differ; the first content of
 * a lane; its taps row by row, five a byte: with 0, 1 and 2 for 0, 1 and -1, the number t that they
 * are in base 3, first one foremost, as the upper part of t * 256 / 243. */
#ifndef TK_KERNELS_IMAGE_H
#define TK_KERNELS_IMAGE_H

#include "tk_levels.h"

struct tk_image {
    uint32_t rows;        /* of the levels */
    uint32_t columns;     /* of the levels */
    uint32_t channels;    /* of the levels */
    uint32_t padding;     /* rows of zeros above and below */
    uint32_t halo;        /* words before and after those of a row that kernels reach */
    uint32_t lanes;       /* 4 of 8 bits or 2 of 16: cells across */
    uint32_t strip;       /* columns of a cell, words of a row */
    uint32_t full;        /* lanes of which all columns are in the image */
    uint32_t rest;        /* columns of the lane after these */
    uint32_t groups[3];   /* words of a row computed together, where 2, 4 and 7 are the most */
    uint32_t parts[3];    /* and how often that is */
    uint32_t tap_rows;    /* of the kernels */
    uint32_t tap_columns; /* of the kernels */
    uint32_t kernels;     /* how many */
    uint32_t channel;     /* of all kernels; TK_OWN: it is in their codes */
    uint32_t dilation;    /* of all kernels; TK_OWN: it is in their codes */
    uint32_t cells;       /* one above the other */
    const TK_FLASH uint8_t *codes;
};

#define TK_OWN 0xffffu

/* Words of a row that are computed together, in registers; all of them, or equal parts. Macros
 * give one(i) for each; or two(i, i + 1) for pairs of them, then one(i). */
#if TK_RADIX == 8
#define TK_GROUP     2
#define TK_ROW_WORDS uint32_t a0, a1 = 0u, a2 = 0u, a3 = 0u, a4 = 0u, a5 = 0u, a6 = 0u
#define TK_EACH(one)  \
    one(0);           \
    if (group > 1u) { \
        one(1);       \
    }                 \
    if (group > 2u) { \
        one(2);       \
    }                 \
    if (group > 3u) { \
        one(3);       \
    }                 \
    if (group > 4u) { \
        one(4);       \
    }                 \
    if (group > 5u) { \
        one(5);       \
    }                 \
    if (group > 6u) { \
        one(6);       \
    }
#define TK_PAIRS_OF(two, one)   \
    TK_PAIR(two, one, 0, 1, 0u) \
    TK_PAIR(two, one, 2, 3, 2u) \
    TK_PAIR(two, one, 4, 5, 4u) \
    if (group > 6u) {           \
        one(6);                 \
    }
#elif TK_RADIX == 4
#define TK_GROUP     1
#define TK_ROW_WORDS uint32_t a0, a1 = 0u, a2 = 0u, a3 = 0u
#define TK_EACH(one)  \
    one(0);           \
    if (group > 1u) { \
        one(1);       \
    }                 \
    if (group > 2u) { \
        one(2);       \
    }                 \
    if (group > 3u) { \
        one(3);       \
    }
#define TK_PAIRS_OF(two, one)   \
    TK_PAIR(two, one, 0, 1, 0u) \
    TK_PAIR(two, one, 2, 3, 2u)
#else
#define TK_GROUP     0
#define TK_ROW_WORDS uint32_t a0, a1 = 0u
#define TK_EACH(one)  \
    one(0);           \
    if (group > 1u) { \
        one(1);       \
    }
#define TK_PAIRS_OF(two, one) TK_PAIR(two, one, 0, 1, 0u)
#endif
#define TK_PAIR(two, one, i, j, before) \
    if (group > (before) + 1u) {        \
        two(i, j);                      \
    } else if (group > (before)) {      \
        one(i);                         \
    }

/* Two words at once, where there is an instruction for it that takes any two registers. */
#if TK_THUMB && defined(__thumb2__)
#define TK_LOAD_TWO(first, second, word, i) \
    __asm__("ldrd %0, %1, [%2, #4*" #i "]"  \
            : "=&r"(first), "=r"(second)    \
            : "r"(word), "m"((word)[i]), "m"((word)[(i) + 1]))
#else
#define TK_LOAD_TWO(first, second, word, i) \
    first = (word)[i];                      \
    second = (word)[(i) + 1]
#endif

TK_INLINE uint32_t tk_image_stride(const TK_FLASH struct tk_image *k)
{
    return k->strip + 2u * k->halo;
}

/* Words of the rows of a channel, those of zeros included. */
TK_INLINE uint32_t tk_image_plane(const TK_FLASH struct tk_image *k)
{
    return (k->rows + 2u * k->padding) * tk_image_stride(k);
}

TK_INLINE uint32_t tk_lane_bits(const TK_FLASH struct tk_image *k)
{
    return k->lanes == 4u ? 8u : 16u;
}

/* 1 in each lane. */
TK_INLINE uint32_t tk_lane_ones(const TK_FLASH struct tk_image *k)
{
    return k->lanes == 4u ? 0x01010101u : 0x00010001u;
}

/* Of a bit in each lane those of the first lanes. */
TK_INLINE uint32_t tk_first_lanes(const TK_FLASH struct tk_image *k, uint32_t lanes, uint32_t ones)
{
    return lanes == k->lanes ? ones : ones & ((UINT32_C(1) << lanes * tk_lane_bits(k)) - 1u);
}

/* Those that count in word x of a row: lanes beyond the last column do not. */
TK_INLINE uint32_t tk_lane_mask(const TK_FLASH struct tk_image *k, uint32_t x, uint32_t ones)
{
    if (k->groups[TK_GROUP] * k->parts[TK_GROUP] != k->strip && x >= k->strip) {
        return 0u;
    }
    if (k->rest != 0u && x < k->rest) {
        return tk_first_lanes(k, k->full + 1u, ones);
    }
    return tk_first_lanes(k, k->full, ones);
}

/* Fill the words before and after those of a row: beside a strip lies the next one. */
TK_INLINE void tk_image_halo(const TK_FLASH struct tk_image *k, uint32_t *row)
{
    uint32_t column;
    for (column = 0u; column < k->halo; ++column) {
        uint32_t *const left = row + k->halo - 1u - column;
        uint32_t *const right = row + k->halo + column;
        left[0] = left[k->strip] << tk_lane_bits(k);
        right[k->strip] = right[0] >> tk_lane_bits(k);
    }
}

/* Column x of a row of levels is in lane x / strip of word x % strip. */
TK_INLINE void tk_image_load_row(const TK_FLASH struct tk_image *k,
                                 const TK_FLASH struct tk_levels *levels, const tk_sensor_t *pixel,
                                 uint32_t codes, uint32_t *row)
{
    uint8_t *const bytes = (uint8_t *)(row + k->halo);
    tk_u16 *const halves = (tk_u16 *)(row + k->halo);
    uint32_t lane = 0u;
    uint32_t place = 0u;
    uint32_t column;
    for (column = 0u; column < k->columns; ++column) {
        const uint32_t level = tk_levels_pixel(levels, pixel, codes);
        if (k->lanes == 4u) {
            bytes[place] = (uint8_t)level;
        } else {
            halves[place] = (tk_u16)level;
        }
        pixel += levels->average * levels->channels;
        place += k->lanes;
        if (place >= k->strip * k->lanes) {
            ++lane;
            place = lane;
        }
    }
    tk_image_halo(k, row);
}

/* All channels of levels, one after the other. */
TK_INLINE void tk_image_load(const TK_FLASH struct tk_image *k,
                             const TK_FLASH struct tk_levels *levels, const tk_sensor_t *input,
                             uint32_t *image)
{
    uint32_t m;
    tk_clear(image, k->channels * tk_image_plane(k));
    for (m = 0u; m < k->channels; ++m) {
        const uint32_t codes = tk_levels_codes(levels, m);
        const tk_sensor_t *pixel = input;
        uint32_t *row = image + m * tk_image_plane(k) + k->padding * tk_image_stride(k);
        uint32_t y;
        for (y = 0u; y < k->rows; ++y) {
            tk_image_load_row(k, levels, pixel, codes, row);
            pixel += levels->average * levels->width * levels->channels;
            row += tk_image_stride(k);
        }
    }
}

/* A kernel. Positive taps are the words places[0] to plus[-1], from the top row of a position,
 * negative ones minus[0] to the end of `places`. */
typedef struct {
    const uint32_t *plane;
    const uint32_t *plus;
    const uint32_t *minus;
    uint32_t dilation;
    uint32_t bias;
    tk_count_t *out; /* where its counts go */
} tk_image_kernel_t;

/* Decode the kernel at `code`; returns where the next one is. */
TK_INLINE const TK_FLASH uint8_t *tk_image_decode(const TK_FLASH struct tk_image *k,
                                                  const TK_FLASH uint8_t *code,
                                                  const uint32_t *image, uint32_t *places,
                                                  tk_image_kernel_t *kernel)
{
    uint32_t *plus = places;
    uint32_t *minus = places + k->tap_rows * k->tap_columns;
    const uint32_t channel = k->channel == TK_OWN ? *code++ : k->channel;
    const uint32_t dilation = k->dilation == TK_OWN ? *code++ : k->dilation;
    uint32_t place = k->halo - k->tap_columns / 2u * dilation;
    uint32_t digits = 0u;
    uint32_t left = 0u;
    uint32_t i;
    uint32_t j;
    kernel->plane = image + channel * tk_image_plane(k);
    kernel->dilation = dilation;
    kernel->bias = *code++;
    if (k->lanes == 2u) {
        kernel->bias |= (uint32_t)*code++ << 8;
    }
    kernel->bias *= tk_lane_ones(k);
    for (i = 0u; i < k->tap_rows; ++i) {
        for (j = 0u; j < k->tap_columns; ++j) {
            if (left == 0u) {
                digits = *code++;
                left = 5u;
            }
            --left;
            digits *= 3u;
            if (digits >= 512u) {
                *--minus = place;
            } else if (digits >= 256u) {
                *plus++ = place;
            }
            digits &= 255u;
            place += dilation;
        }
        place += (tk_image_stride(k) - k->tap_columns) * dilation;
    }
    kernel->plus = plus;
    kernel->minus = minus;
    return code;
}

#define TK_BEGIN(i) a##i = bias
#define TK_PLUS(i)  a##i += word[i]
#define TK_MINUS(i) a##i -= word[i]
#define TK_PLUS_TWO(i, j)                \
    uint32_t first, second;              \
    TK_LOAD_TWO(first, second, word, i); \
    a##i += first;                       \
    a##j += second
#define TK_MINUS_TWO(i, j)               \
    uint32_t first, second;              \
    TK_LOAD_TWO(first, second, word, i); \
    a##i -= first;                       \
    a##j -= second
#define TK_COUNT(i) count += a##i >> (tk_lane_bits(k) - 1u) & tk_lane_mask(k, x + (i), ones)

/* Positions of a row whose response is above the threshold, a count in each lane. */
TK_INLINE uint32_t tk_image_row(const TK_FLASH struct tk_image *k, const uint32_t *row,
                                const uint32_t *places, const tk_image_kernel_t *kernel)
{
    const uint32_t *const end = places + k->tap_rows * k->tap_columns;
    const uint32_t group = k->groups[TK_GROUP];
    const uint32_t bias = kernel->bias;
    uint32_t count = 0u;
    uint32_t x = 0u;
    do {
        const uint32_t *place = places;
        TK_ROW_WORDS;
        uint32_t ones = tk_lane_ones(k);
        TK_EACH(TK_BEGIN)
        if (place != kernel->plus) {
            do {
                const uint32_t *const word = row + *place++;
                TK_PAIRS_OF(TK_PLUS_TWO, TK_PLUS)
            } while (place != kernel->plus);
        }
        place = kernel->minus;
        if (place != end) {
            do {
                const uint32_t *const word = row + *place++;
                TK_PAIRS_OF(TK_MINUS_TWO, TK_MINUS)
            } while (place != end);
        }
        TK_HIDE(ones);
        TK_EACH(TK_COUNT)
        row += group;
        x += group;
    } while (x < k->strip);
    return count;
}

/* The counts of a row of cells to memory, left to right. */
TK_INLINE tk_count_t *tk_image_store(const TK_FLASH struct tk_image *k, tk_count_t *counts,
                                     uint32_t even, uint32_t odd)
{
    if (k->lanes == 4u && sizeof(tk_count_t) == 1u) {
        *(uint32_t *)(void *)counts = even;
    } else if (k->lanes == 4u) {
        counts[0] = (tk_count_t)even;
        counts[1] = (tk_count_t)odd;
        counts[2] = (tk_count_t)(even >> 16);
        counts[3] = (tk_count_t)(odd >> 16);
    } else {
        counts[0] = (tk_count_t)even;
        counts[1] = (tk_count_t)(even >> 16);
    }
    return counts + k->lanes;
}

/* Counts of a kernel in all cells, in the order of these. */
TK_INLINE void tk_image_respond(const TK_FLASH struct tk_image *k, const uint32_t *places,
                                tk_image_kernel_t *kernel)
{
    const uint32_t positions = k->rows + 2u * k->padding - (k->tap_rows - 1u) * kernel->dilation;
    const uint32_t *row = kernel->plane;
    uint32_t phase = 0u;
    uint32_t cells = k->cells;
    do {
        uint32_t even = 0u;
        uint32_t odd = 0u;
        /* Row y belongs to cell y * cells / positions. */
        do {
            const uint32_t count = tk_image_row(k, row, places, kernel);
            if (k->lanes == 4u && sizeof(tk_count_t) == 2u) {
                even += count & 0x00ff00ffu;
                odd += count >> 8 & 0x00ff00ffu;
            } else {
                even += count;
            }
            row += tk_image_stride(k);
            phase += k->cells;
        } while (phase < positions);
        phase -= positions;
        kernel->out = tk_image_store(k, kernel->out, even, odd);
    } while (--cells != 0u);
}

/* tk_image_respond with the structure of the stage: not inlined, so that the registers are those of
 * its loops. */
typedef void tk_image_respond_t(const uint32_t *places, tk_image_kernel_t *kernel);

/* Counts of all cells of a loaded image; returns them. */
TK_INLINE const tk_count_t *tk_image_counts(const TK_FLASH struct tk_image *k,
                                            tk_image_respond_t *respond, uint32_t *image,
                                            uint32_t *counts)
{
    uint32_t *const places = image + k->channels * tk_image_plane(k);
    const TK_FLASH uint8_t *code = k->codes;
    uint32_t left = k->kernels;
    tk_image_kernel_t kernel;
    kernel.out = (tk_count_t *)counts;
    do {
        code = tk_image_decode(k, code, image, places, &kernel);
        respond(places, &kernel);
    } while (--left != 0u);
    return (const tk_count_t *)counts;
}

#endif
