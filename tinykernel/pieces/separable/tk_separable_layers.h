/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of the stage "separable": a row of each from the stored rows of its block.
 *
 * The inputs of a dot product are converted to 16-bit values, padded with zeros: a word holds two
 * values of a position for a mixed layer, else one value of two positions. */
#ifndef TK_SEPARABLE_LAYERS_H
#define TK_SEPARABLE_LAYERS_H

#include "tk_separable_products.h"
#include "tk_separable_rows.h"

/* Convert the 3 x 3 positions around a column, with all channels, to halves. */
TK_INLINE void tk_separable_patch(const tk_block_t *block, const uint8_t *const *rows,
                                  uint32_t column, uint32_t border, tk_u16 *halves)
{
    uint32_t i;
    for (i = 0u; i < 3u; ++i) {
        uint32_t j;
        for (j = 0u; j < 3u; ++j) {
            const uint32_t x = column + j - 1u; /* wraps around before the first column */
            const uint32_t inside = x < block->columns ? 255u : 0u;
            const uint8_t *const seen = rows[i] + (inside != 0u ? x : 0u) * block->channels;
            uint32_t c;
            for (c = 0u; c < block->channels; ++c) {
                *halves++ = (tk_u16)((seen[c] & inside) | (border & ~inside));
            }
        }
    }
}

/* Compute a mixed layer at a position, from its converted inputs. */
TK_SHARED void tk_separable_mixed(const TK_FLASH uint32_t *weights, const TK_FLASH uint32_t *units,
                                  const uint32_t *halves, uint32_t words, uint32_t channels,
                                  uint8_t *out)
{
    do {
        *out++ = tk_separable_unit(*units++, tk_separable_dot8(weights, halves, words));
        weights += words;
    } while (--channels != 0u);
}

/* Compute a row of a mixed layer. */
TK_INLINE void tk_separable_first(const TK_FLASH struct tk_separable *k, tk_block_t *block,
                                  uint32_t number, uint32_t channels, uint32_t *halves,
                                  uint8_t *out)
{
    const uint32_t inputs = k->forms != 0 ? block->channels : k->given;
    const uint32_t words = (9u * inputs + 3u) / 4u;
    const uint32_t inside = 1u - tk_separable_zeros(k, number);
    const uint32_t border = number == 0u ? k->border : 0u;
    const TK_FLASH uint32_t *weights = k->first;
    const TK_FLASH uint32_t *units = k->units;
    const uint8_t *rows[TK_BLOCK_ROWS];
    uint32_t column;
    if (k->forms != 0) {
        weights += block->points;
        units += block->units;
    }
    tk_separable_rows(block, rows);
    for (column = inside; column + inside < block->columns; column += block->across) {
        halves[2u * words - 1u] = 0u;
        halves[2u * words - 2u] = 0u;
        tk_separable_patch(block, rows, column, border, (tk_u16 *)halves);
        tk_separable_mixed(weights, units, halves, words, channels, out);
        out += channels;
    }
}

/* Compute a row of one channel of a single layer. taps[2 i] has the first weight of kernel row i in
 * its low half and the second one in its high half; taps[2 i + 1] is the third weight. `next`
 * halves lie between the outputs of four positions and those of the next four. `zeros` is 1 if
 * there are zeros before the first column and behind the last one, else 0.
 *
 * An input column adds to the sums of three positions, and completes that of the position before
 * it. One multiplication computes the products of two weights. Sums of three products fit a half,
 * since |weight * value| <= 8 * 255. */
TK_SHARED void tk_separable_line(const tk_block_t *block, const uint8_t *const *rows,
                                 const uint32_t *taps, uint32_t unit, uint32_t next, uint32_t zeros,
                                 tk_u16 *out)
{
    const uint32_t end = block->columns * block->channels;
    uint32_t at = 0u;
    uint32_t wait = 2u - zeros; /* columns until the next output is complete */
    uint32_t left = 4u;         /* outputs left of four */
    int32_t before = 0;         /* contribution of the last column to this position */
    int32_t sum = 0;            /* sum of the position before */
    for (;;) {
        uint32_t pair = 0u;
        uint32_t third = 0u; /* stays 0 beyond the last column */
        if (at == end && zeros == 0u) {
            return;
        }
        if (at != end) {
            const uint32_t value0 = rows[0][at];
            const uint32_t value1 = rows[1][at];
            const uint32_t value2 = rows[2][at];
            pair = taps[0] * value0 + taps[2] * value1 + taps[4] * value2;
            third = taps[1] * value0 + taps[3] * value1 + taps[5] * value2;
        }
        if (wait == 0u) {
            *out++ = tk_separable_unit(unit, sum + (int32_t)third);
            if (--left == 0u) {
                left = 4u;
                out += next;
            }
            wait = block->across;
        }
        if (at == end) {
            return;
        }
        --wait;
        sum = before + ((int32_t)(pair + 0x8000u) >> 16);
        before = (int32_t)(pair << 16) >> 16;
        at += block->channels;
    }
}

/* Compute a row of the single layer of a block, as halves: four positions of a channel, then of the
 * next channel (`pitch` channels in all), then the next four positions. */
TK_INLINE void tk_separable_single(const TK_FLASH struct tk_separable *k, tk_block_t *block,
                                   uint32_t zeros, uint32_t pitch, tk_u16 *halves)
{
    const TK_FLASH uint8_t *code = k->single + block->single;
    const TK_FLASH uint32_t *const units = k->units + block->units;
    const uint8_t *rows[TK_BLOCK_ROWS];
    uint32_t c;
    tk_separable_rows(block, rows);
    for (c = 0u; c < block->channels; ++c) {
        uint32_t taps[6];
        taps[0] = tk_separable_tap(code, 0u) + (tk_separable_tap(code, 1u) << 16);
        taps[1] = tk_separable_tap(code, 2u);
        taps[2] = tk_separable_tap(code, 3u) + (tk_separable_tap(code, 4u) << 16);
        taps[3] = tk_separable_tap(code, 5u);
        taps[4] = tk_separable_tap(code, 6u) + (tk_separable_tap(code, 7u) << 16);
        taps[5] = tk_separable_tap(code, 8u);
        code += 5;
        tk_separable_line(block, rows, taps, units[c], 4u * (pitch - 1u), zeros, halves);
        halves += 4;
        ++rows[0];
        ++rows[1];
        ++rows[2];
    }
}

/* Compute a row of the point layer of a block, of n positions, from `halves`. */
TK_INLINE void tk_separable_point(const TK_FLASH struct tk_separable *k, const tk_block_t *block,
                                  const uint32_t *halves, uint32_t n, uint32_t channels,
                                  uint8_t *out)
{
    const uint32_t words = tk_separable_words(block->channels);
    const TK_FLASH uint32_t *const units = k->units + block->units + block->channels;
    uint32_t x;
    for (x = 0u; x < n; x += 4u) {
        const TK_FLASH uint32_t *weights = k->points + block->points;
        uint32_t c;
        for (c = 0u; c < channels; ++c) {
            const uint32_t unit = units[c];
            int32_t sums[4];
            uint32_t i;
            tk_separable_dot4(weights, halves, words, sums);
            for (i = 0u; i < 4u && x + i < n; ++i) {
                out[i * channels + c] = tk_separable_unit(unit, sums[i]);
            }
            weights += words;
        }
        halves += 16u * words;
        out += 4u * channels;
    }
}

#endif
