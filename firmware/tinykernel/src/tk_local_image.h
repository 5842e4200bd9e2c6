/* SPDX-License-Identifier: Apache-2.0 */
/* Local stage of images: small kernels on levels that stand side by side in words.
 *
 * The lanes of a word, bytes or halves, are the cells across: word j of a row holds the columns j,
 * j + s, j + 2 s, ..., where a cell is s columns wide (TK_LOCAL_STRIP). A step to the side is a
 * step to another word, and plain additions and subtractions of words work on all lanes at once.
 * A lane begins with 2^(b-1) - 1 - threshold, b its width, and ends in 0..2^b - 1, as is proved;
 * what the sums carry from lane to lane in between cancels out. Its top bit then says whether the
 * response is above the threshold, and words of such bits are added up to words of counts.
 *
 *   TK_LOCAL_COLUMNS, TK_LOCAL_STRIP  columns after averaging, and of a cell
 *   TK_LOCAL_HALO          words before and after those of a row that kernels reach
 *   TK_LOCAL_PADDING       rows of zeros above and below
 *   TK_LOCAL_LANES         4 of 8 bits or 2 of 16, cells across
 *   TK_LOCAL_TAP_ROWS, TK_LOCAL_TAP_COLUMNS   size of the kernels
 *   TK_LOCAL_CHANNEL, TK_LOCAL_DILATION       defined: those of all kernels
 *   TK_LOCAL_IMAGE_WORDS   words of packed rows and places of taps
 *   tk_kernels[]           bytes, for each kernel: channel and dilation, where they differ; the
 *                          first content of a lane; its taps row by row, five a byte: with 0, 1 and
 *                          2 for 0, 1 and -1, the number t that they are in base 3, first one
 *                          foremost, as the upper part of t * 256 / 243 */
#ifndef TK_LOCAL_IMAGE_H
#define TK_LOCAL_IMAGE_H

#include "tk_local.h"

#if TK_LOCAL_LANES == 4
typedef uint8_t tk_lane_t;
#define TK_LANE_BITS 8u
#define TK_LANE_ONES 0x01010101u
#else
typedef tk_u16 tk_lane_t;
#define TK_LANE_BITS 16u
#define TK_LANE_ONES 0x00010001u
#endif

#define TK_LOCAL_STRIDE     (TK_LOCAL_STRIP + 2u * TK_LOCAL_HALO)
#define TK_LOCAL_PLANE_ROWS (TK_LOCAL_ROWS + 2u * TK_LOCAL_PADDING)
#define TK_LOCAL_PLANE      (TK_LOCAL_PLANE_ROWS * TK_LOCAL_STRIDE)
#define TK_LOCAL_TAPS       (TK_LOCAL_TAP_ROWS * TK_LOCAL_TAP_COLUMNS)

/* Words of a row that are computed together, in registers; all of them, or equal parts. */
#if TK_RADIX == 8
#define TK_MOST_WORDS 7u
#else
#define TK_MOST_WORDS TK_RADIX
#endif
#define TK_ROW_PARTS ((TK_LOCAL_STRIP + TK_MOST_WORDS - 1u) / TK_MOST_WORDS)
#define TK_GROUP     ((TK_LOCAL_STRIP + TK_ROW_PARTS - 1u) / TK_ROW_PARTS)

/* one(i) for each of the TK_GROUP words; or two(i, i + 1) for pairs of them, then one(i). */
#if TK_GROUP == 1u
#define TK_EACH(one)          one(0)
#define TK_PAIRS_OF(two, one) one(0)
#elif TK_GROUP == 2u
#define TK_EACH(one)          one(0) one(1)
#define TK_PAIRS_OF(two, one) two(0, 1)
#elif TK_GROUP == 3u
#define TK_EACH(one)          one(0) one(1) one(2)
#define TK_PAIRS_OF(two, one) two(0, 1) one(2)
#elif TK_GROUP == 4u
#define TK_EACH(one)          one(0) one(1) one(2) one(3)
#define TK_PAIRS_OF(two, one) two(0, 1) two(2, 3)
#elif TK_GROUP == 5u
#define TK_EACH(one)          one(0) one(1) one(2) one(3) one(4)
#define TK_PAIRS_OF(two, one) two(0, 1) two(2, 3) one(4)
#elif TK_GROUP == 6u
#define TK_EACH(one)          one(0) one(1) one(2) one(3) one(4) one(5)
#define TK_PAIRS_OF(two, one) two(0, 1) two(2, 3) two(4, 5)
#else
#define TK_EACH(one)          one(0) one(1) one(2) one(3) one(4) one(5) one(6)
#define TK_PAIRS_OF(two, one) two(0, 1) two(2, 3) two(4, 5) one(6)
#endif

/* Two words at once, where there is an instruction for it that takes any two registers. */
#if TK_THUMB && defined(__thumb2__)
#define TK_LOAD_TWO(first, second, word, i) \
    __asm__("ldrd %0, %1, [%2, #4*" #i "]"  \
            : "=&r"(first), "=r"(second)    \
            : "r"(word), "m"(*(const uint32_t (*)[TK_GROUP])word))
#else
#define TK_LOAD_TWO(first, second, word, i) \
    first = word[i];                        \
    second = word[(i) + 1]
#endif

/* Of a bit in each lane those that count in word x of a row: lanes beyond the last column do not.
 */
#define TK_LANES_FULL (TK_LOCAL_COLUMNS / TK_LOCAL_STRIP)
#define TK_LANES_LAST (TK_LOCAL_COLUMNS % TK_LOCAL_STRIP) /* columns of the lane after these */
#define TK_LANE_MASK(lanes) ((UINT32_C(1) << (lanes) % TK_LOCAL_LANES * TK_LANE_BITS) - 1u)

TK_INLINE uint32_t tk_lane_mask(uint32_t x, uint32_t ones)
{
#if TK_GROUP * TK_ROW_PARTS != TK_LOCAL_STRIP
    if (x >= TK_LOCAL_STRIP) {
        return 0u;
    }
#endif
#if TK_LANES_LAST != 0u && TK_LANES_FULL + 1u != TK_LOCAL_LANES
    if (x < TK_LANES_LAST) {
        return ones & TK_LANE_MASK(TK_LANES_FULL + 1u);
    }
#elif TK_LANES_LAST != 0u
    if (x < TK_LANES_LAST) {
        return ones;
    }
#endif
    (void)x;
#if TK_LANES_FULL == TK_LOCAL_LANES
    return ones;
#else
    return ones & TK_LANE_MASK(TK_LANES_FULL);
#endif
}

/* Row of mixed channel m from its pixels; column x is in lane x / s of word x % s. */
TK_INLINE void tk_local_load_row(TK_GIVEN const tk_sensor_t *pixel, uint32_t m, uint32_t *row)
{
    tk_lane_t *lane = (tk_lane_t *)(row + TK_LOCAL_HALO);
    uint32_t word = 0u;
    uint32_t column;
    for (column = 0u; column < TK_LOCAL_COLUMNS; ++column) {
        lane[word] = (tk_lane_t)tk_mixed(TK_GIVE pixel, m);
        pixel += TK_LOCAL_AVERAGE * TK_LOCAL_CHANNELS;
        word += TK_LOCAL_LANES;
        if (word == TK_LOCAL_STRIP * TK_LOCAL_LANES) {
            word = 0u;
            ++lane;
        }
    }
#if TK_LOCAL_HALO
    /* Beside a strip lies the next one. */
    for (column = 0u; column < TK_LOCAL_HALO; ++column) {
        uint32_t *const left = row + TK_LOCAL_HALO - 1u - column;
        uint32_t *const right = row + TK_LOCAL_HALO + column;
        left[0] = left[TK_LOCAL_STRIP] << TK_LANE_BITS;
        right[TK_LOCAL_STRIP] = right[0] >> TK_LANE_BITS;
    }
#endif
}

/* All mixed channels, one after the other. */
TK_SHARED void tk_local_load(TK_GIVEN const tk_sensor_t *input, uint32_t *image)
{
    uint32_t *const end = image + TK_LOCAL_MIXED * TK_LOCAL_PLANE;
    uint32_t *word = image;
    uint32_t m;
    while (word != end) {
        *word++ = 0u;
        TK_PLAIN_LOOP();
    }
    for (m = 0u; m < TK_LOCAL_MIXED; ++m) {
        const tk_sensor_t *pixel = input;
        uint32_t *row = image + m * TK_LOCAL_PLANE + TK_LOCAL_PADDING * TK_LOCAL_STRIDE;
        uint32_t y;
        for (y = 0u; y < TK_LOCAL_ROWS; ++y) {
            tk_local_load_row(TK_GIVE pixel, m, row);
            pixel += TK_LOCAL_AVERAGE * TK_LOCAL_WIDTH * TK_LOCAL_CHANNELS;
            row += TK_LOCAL_STRIDE;
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
} tk_local_kernel_t;

/* Decode the kernel at `code`; returns where the next one is. */
TK_INLINE const TK_FLASH uint8_t *tk_local_decode(const TK_FLASH uint8_t *code,
                                                  const uint32_t *image, uint32_t *places,
                                                  tk_local_kernel_t *kernel)
{
    uint32_t *plus = places;
    uint32_t *minus = places + TK_LOCAL_TAPS;
    uint32_t dilation;
    uint32_t place;
    uint32_t digits = 0u;
    uint32_t left = 0u;
    uint32_t i;
    uint32_t j;
#ifdef TK_LOCAL_CHANNEL
    kernel->plane = image + TK_LOCAL_CHANNEL * TK_LOCAL_PLANE;
#else
    kernel->plane = image + *code++ * TK_LOCAL_PLANE;
#endif
#ifdef TK_LOCAL_DILATION
    dilation = TK_LOCAL_DILATION;
#else
    dilation = *code++;
#endif
    kernel->dilation = dilation;
    kernel->bias = *code++;
#if TK_LOCAL_LANES == 2
    kernel->bias |= (uint32_t)*code++ << 8;
#endif
    kernel->bias *= TK_LANE_ONES;
    place = TK_LOCAL_HALO - TK_LOCAL_TAP_COLUMNS / 2u * dilation;
    for (i = 0u; i < TK_LOCAL_TAP_ROWS; ++i) {
        for (j = 0u; j < TK_LOCAL_TAP_COLUMNS; ++j) {
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
        place += (TK_LOCAL_STRIDE - TK_LOCAL_TAP_COLUMNS) * dilation;
    }
    kernel->plus = plus;
    kernel->minus = minus;
    return code;
}

#define TK_BEGIN(i) uint32_t a##i = bias;
#define TK_PLUS(i)  a##i += word[i];
#define TK_MINUS(i) a##i -= word[i];
#define TK_PLUS_TWO(i, j)                    \
    {                                        \
        uint32_t first, second;              \
        TK_LOAD_TWO(first, second, word, i); \
        a##i += first;                       \
        a##j += second;                      \
    }
#define TK_MINUS_TWO(i, j)                   \
    {                                        \
        uint32_t first, second;              \
        TK_LOAD_TWO(first, second, word, i); \
        a##i -= first;                       \
        a##j -= second;                      \
    }
#define TK_COUNT(i) count += a##i >> (TK_LANE_BITS - 1u) & tk_lane_mask(x + (i), ones);

/* Positions of a row whose response is above the threshold, a count in each lane. */
TK_INLINE uint32_t tk_local_row(const uint32_t *row, const uint32_t *places,
                                const tk_local_kernel_t *kernel)
{
    const uint32_t *const end = places + TK_LOCAL_TAPS;
    const uint32_t bias = kernel->bias;
    uint32_t count = 0u;
    uint32_t x = 0u;
    do {
        const uint32_t *place = places;
        uint32_t ones = TK_LANE_ONES;
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
        row += TK_GROUP;
        x += TK_GROUP;
    } while (x < TK_LOCAL_STRIP);
    return count;
}

/* The counts of a row of cells to memory, left to right. */
TK_INLINE tk_count_t *tk_local_store(tk_count_t *counts, uint32_t even, uint32_t odd)
{
#if TK_LOCAL_LANES == 4 && TK_LOCAL_WIDE_COUNTS
    counts[0] = (tk_count_t)even;
    counts[1] = (tk_count_t)odd;
    counts[2] = (tk_count_t)(even >> 16);
    counts[3] = (tk_count_t)(odd >> 16);
#elif TK_LOCAL_LANES == 4
    *(uint32_t *)(void *)counts = even;
#else
    counts[0] = (tk_count_t)even;
    counts[1] = (tk_count_t)(even >> 16);
#endif
    (void)odd;
    return counts + TK_LOCAL_LANES;
}

/* Counts of all cells, in words that follow those of the machine; returns them. */
TK_SHARED const tk_count_t *tk_local_counts(TK_GIVEN const tk_sensor_t *input, uint32_t *image,
                                            uint32_t *counts)
{
    uint32_t *const places = image + TK_LOCAL_MIXED * TK_LOCAL_PLANE;
    const TK_FLASH uint8_t *code = tk_kernels;
    tk_count_t *out = (tk_count_t *)counts;
    uint32_t left = TK_LOCAL_KERNELS;
    tk_local_load(TK_GIVE input, image);
    do {
        tk_local_kernel_t kernel;
        const uint32_t *row;
        uint32_t positions;
        uint32_t rows;
        uint32_t phase = 0u;
        uint32_t even = 0u;
        uint32_t odd = 0u;
        code = tk_local_decode(code, image, places, &kernel);
        row = kernel.plane;
        positions = TK_LOCAL_PLANE_ROWS - (TK_LOCAL_TAP_ROWS - 1u) * kernel.dilation;
        for (rows = positions; rows != 0u; --rows) {
            const uint32_t count = tk_local_row(row, places, &kernel);
#if TK_LOCAL_LANES == 4 && TK_LOCAL_WIDE_COUNTS
            even += count & 0x00ff00ffu;
            odd += count >> 8 & 0x00ff00ffu;
#else
            even += count;
#endif
            row += TK_LOCAL_STRIDE;
            /* Row y belongs to cell y * cells / positions. */
            phase += TK_LOCAL_CELLS;
            if (phase >= positions) {
                phase -= positions;
                out = tk_local_store(out, even, odd);
                even = 0u;
                odd = 0u;
            }
        }
    } while (--left != 0u);
    return (const tk_count_t *)counts;
}

#endif
