/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "separable": blocks of convolutions, of an image or of an endless stream.
 *
 * A block stores the last three rows of its input, as bytes with the channels of a position side by
 * side, and computes each row as soon as it has these. Above and below an image are rows of zeros.
 * The rows of the last block are added up, and a stream subtracts those that leave its window; or
 * they are the output. The inputs of a dot product are converted to 16-bit values, padded with
 * zeros: a word holds two values of a position for a mixed layer, else one value of two positions.
 *
 * first[] has for each channel of a mixed layer 9 weights of 8 bits per input channel, those of a
 * position side by side; four of them are bytes 0, 2, 1 and 3 of a word. single[] has for each
 * channel of a block nine weights of 4 bits, the first of two in the low half of a byte. points[]
 * has for each output channel of a block 8 weights of 4 bits per word, the first one in the lowest
 * bits. units[] has for each channel of each layer bias << 12 | multiplier << 5 | shift. forms[]
 * has for each block columns and rows of the patches that become one value (4 bits each), plus 256
 * for a mixed layer, plus 512 if zeros are around its input, and at bit 12 the factor of means,
 * 2^20 / size of a patch rounded up; 0 for the largest value. */
#ifndef TK_SEPARABLE_H
#define TK_SEPARABLE_H

#include "tk_separable_products.h"
#include "tk_stage.h"

/* Input rows that a block stores. */
#define TK_BLOCK_ROWS 3u

/* Words of a tk_block_t. The code generator and the checker of proofs read this number here. */
#define TK_BLOCK_WORDS 10u

struct tk_separable {
    uint32_t rows;                 /* of the image, 2 or more; of a stream, those of a window */
    uint32_t columns;              /* of the image, 2 or more */
    uint32_t given;                /* channels of the image */
    uint32_t blocks;               /* number of blocks, 1..16 */
    uint32_t window;               /* rows of the last block that a stream adds up; 0 of images */
    uint32_t halves;               /* bytes of converted inputs and `wide`, a multiple of 4 */
    uint32_t wide;                 /* bytes of the longest row before its patches; 0: none */
    uint32_t flat;                 /* rows of the last image if that is the output, 0 for means */
    uint32_t border;               /* value around the image, 0..255 */
    uint32_t factor;               /* mean of all positions = sum * factor / 65536 */
    const TK_FLASH uint8_t *shape; /* channels less 1, and strides of columns, plus 16 of rows */
    const TK_FLASH uint32_t *first;
    const TK_FLASH uint8_t *single; /* 0 if all layers are mixed, as points */
    const TK_FLASH uint32_t *points;
    const TK_FLASH uint32_t *units;
    const TK_FLASH uint32_t *forms; /* 0: the first layer is mixed, zeros are around, no patches */
};

/* A block, or the output of the last one. */
typedef struct {
    uint32_t ring;     /* bytes from this structure to the stored input rows */
    uint32_t columns;  /* of the input */
    uint32_t channels; /* of the input */
    uint32_t across;   /* stride of columns, 1 or 2 */
    uint32_t down;     /* stride of rows, 1 or 2 */
    uint32_t at;       /* where the next input row is stored, 0..2; later the oldest row */
    uint32_t wait;     /* number of input rows until the next output row */
    uint32_t single;   /* where its data begin in single[], points[] and units[] */
    uint32_t points;   /* of a mixed layer in first[] */
    uint32_t units;
} tk_block_t;
TK_ASSERT(block_words, sizeof(tk_block_t) == 4u * TK_BLOCK_WORDS);

/* Memory: these words, a sum for each channel of the last block, for a stream the sums of each row
 * of the window (uint16_t), with forms[] the row of its patches that each block has next, the
 * converted inputs, the blocks, and their rows. */
enum {
    TK_SEPARABLE_NEXT, /* block that has a new input row; the number of blocks: a row to add up */
    TK_SEPARABLE_AT,   /* row of the window that is the oldest; of an image blocks that ended */
    TK_SEPARABLE_SUMS
};
#define TK_SEPARABLE_IDLE (~(uint32_t)0)

/* Whether a block is a mixed layer. */
TK_INLINE uint32_t tk_separable_mixes(const TK_FLASH struct tk_separable *k, uint32_t block)
{
    if (k->points == 0) {
        return 1u;
    }
    return k->forms == 0 ? (uint32_t)(block == 0u) : k->forms[block] >> 8 & 1u;
}

/* Zeros on each side of the input of a block, 0 or 1. */
TK_INLINE uint32_t tk_separable_zeros(const TK_FLASH struct tk_separable *k, uint32_t block)
{
    return k->forms == 0 ? 1u : k->forms[block] >> 9 & 1u;
}

/* Stored row 0..2 of a block; the output of the last block has only row 0. */
TK_INLINE uint8_t *tk_separable_row(tk_block_t *block, uint32_t place)
{
    return (uint8_t *)(void *)block + block->ring + place * (block->columns * block->channels);
}

/* Set the next input row of a block to one value. */
TK_INLINE void tk_separable_blank(tk_block_t *block, uint32_t value)
{
    uint8_t *const row = tk_separable_row(block, block->at);
    uint32_t i;
    for (i = 0u; i < block->columns * block->channels; ++i) {
        row[i] = (uint8_t)value;
    }
}

/* Find the three stored rows, the oldest one first. */
TK_INLINE void tk_separable_rows(tk_block_t *block, const uint8_t **rows)
{
    uint32_t place = block->at;
    uint32_t i;
    for (i = 0u; i < TK_BLOCK_ROWS; ++i) {
        rows[i] = tk_separable_row(block, place);
        place = place == TK_BLOCK_ROWS - 1u ? 0u : place + 1u;
    }
}

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

/* Columns that a layer makes of others: every `across`-th, perhaps with zeros around. */
TK_INLINE uint32_t tk_separable_columns(const tk_block_t *block, uint32_t zeros)
{
    return ((block->columns + 2u * zeros - 3u) >> (block->across - 1u)) + 1u;
}

/* Add a row to values of patches: `number` of its rows were before. */
TK_SHARED void tk_separable_pool(uint32_t form, uint32_t number, const tk_block_t *next,
                                 const uint8_t *row, uint8_t *out)
{
    const uint32_t across = form & 15u;
    const uint32_t factor = form >> 12;
    const uint32_t offset = number * across + across / 2u;
    uint32_t left = next->columns;
    do {
        uint32_t c;
        for (c = 0u; c < next->channels; ++c) {
            const uint8_t *seen = row + c;
            uint32_t value = 0u;
            uint32_t i;
            for (i = 0u; i < across; ++i) {
                value = factor != 0u ? value + *seen : *seen > value ? *seen : value;
                seen += next->channels;
            }
            if (factor != 0u) {
                value = (value + offset) * factor >> 20;
            }
            if (number != 0u) {
                value = factor != 0u ? value + out[c] : out[c] > value ? out[c] : value;
            }
            out[c] = (uint8_t)value;
        }
        row += across * next->channels;
        out += next->channels;
    } while (--left != 0u);
}

/* Compute a row of block `number` from its stored rows, as an input row of the next one, or to be
 * added to the patches of which that consists. */
TK_INLINE void tk_separable_make(const TK_FLASH struct tk_separable *k, tk_block_t *block,
                                 uint32_t number, uint32_t *halves, uint32_t pooled)
{
    tk_block_t *const next = block + 1;
    const uint32_t form = k->wide != 0u ? k->forms[number] : 0x11u;
    const uint32_t zeros = tk_separable_zeros(k, number);
    const uint32_t patches = (uint32_t)((form & 255u) != 0x11u);
    uint8_t *const out = tk_separable_row(next, next->at);
    uint8_t *const row = patches != 0u ? (uint8_t *)halves + (k->halves - k->wide) : out;
    if (tk_separable_mixes(k, number) != 0u) {
        tk_separable_first(k, block, number, next->channels, halves, row);
    } else {
        const uint32_t pitch = 8u * tk_separable_words(block->channels);
        const uint32_t n = k->wide != 0u ? tk_separable_columns(block, zeros) : next->columns;
        tk_clear(halves, (n + 3u) / 4u * (2u * pitch));
        tk_separable_single(k, block, zeros, pitch, (tk_u16 *)halves);
        tk_separable_point(k, block, halves, n, next->channels, row);
    }
    if (patches != 0u) {
        tk_separable_pool(form, pooled, next, row, out);
    }
}

/* Channels of the last block. */
TK_INLINE uint32_t tk_separable_channels(const TK_FLASH struct tk_separable *k)
{
    return k->shape[2u * k->blocks - 2u] + 1u;
}

/* The rows of the patches that each block has next. */
TK_INLINE uint32_t *tk_separable_patches(const TK_FLASH struct tk_separable *k, uint32_t *memory)
{
    const uint32_t channels = tk_separable_channels(k);
    return memory + TK_SEPARABLE_SUMS + channels + (k->window * channels + 1u) / 2u;
}

/* The converted inputs. */
TK_INLINE uint32_t *tk_separable_halves(const TK_FLASH struct tk_separable *k, uint32_t *memory)
{
    return tk_separable_patches(k, memory) + (k->forms != 0 ? k->blocks : 0u);
}

/* The blocks. */
TK_INLINE tk_block_t *tk_separable_blocks(const TK_FLASH struct tk_separable *k, uint32_t *memory)
{
    return (tk_block_t *)(void *)(tk_separable_halves(k, memory) + k->halves / 4u);
}

/* Begin an image or a stream. An image has a row of zeros above. The output goes to made[]. */
TK_INLINE void tk_separable_init(const TK_FLASH struct tk_separable *k, uint32_t *memory,
                                 const uint8_t *made)
{
    tk_block_t *block = tk_separable_blocks(k, memory);
    uint32_t place = (k->blocks + 1u) * (uint32_t)sizeof(tk_block_t);
    uint32_t single = 0u;
    uint32_t points = 0u;
    uint32_t units = 0u;
    uint32_t columns = k->columns;
    uint32_t channels = k->given;
    uint32_t first = 0u;
    uint32_t b;
    tk_clear(memory, (uint32_t)(tk_separable_halves(k, memory) - memory));
    memory[TK_SEPARABLE_NEXT] = TK_SEPARABLE_IDLE;
    for (b = 0u; b < k->blocks; ++b, ++block) {
        const uint32_t gives = k->shape[2u * b] + 1u;
        const uint32_t strides = k->shape[2u * b + 1u];
        const uint32_t zeros = tk_separable_zeros(k, b);
        block->ring = place;
        block->columns = columns;
        block->channels = channels;
        block->across = strides & 15u;
        block->down = strides >> 4;
        block->at = 0u;
        block->wait = TK_BLOCK_ROWS;
        block->single = single;
        block->points = points;
        block->units = units;
        if (k->window == 0u && zeros != 0u) {
            tk_separable_blank(block, b == 0u ? k->border : 0u);
            block->at = 1u;
            block->wait = TK_BLOCK_ROWS - 1u;
        }
        place += TK_BLOCK_ROWS * columns * channels - (uint32_t)sizeof(tk_block_t);
        if (tk_separable_mixes(k, b) != 0u) {
            if (k->forms != 0) {
                block->points = first;
                first += gives * ((9u * channels + 3u) / 4u);
            }
        } else {
            single += 5u * channels;
            points += gives * tk_separable_words(channels);
            units += channels;
        }
        units += gives;
        columns = tk_separable_columns(block, zeros);
        if (k->wide != 0u) {
            const uint32_t across = k->forms[b] & 15u;
            uint32_t pooled = 0u;
            for (; columns >= across; columns -= across) {
                ++pooled;
            }
            columns = pooled;
        }
        channels = gives;
    }
    block->ring = k->flat != 0u ? (uint32_t)(made - (const uint8_t *)(const void *)block) : place;
    block->columns = columns;
    block->channels = channels;
    block->at = 0u;
}

/* Add a row of the last block to the sums, and subtract the one that leaves the window. */
TK_INLINE void tk_separable_add(const TK_FLASH struct tk_separable *k, tk_block_t *last,
                                uint32_t *memory)
{
    uint32_t *sum = memory + TK_SEPARABLE_SUMS;
    tk_u16 *old = (tk_u16 *)(sum + last->channels) + memory[TK_SEPARABLE_AT] * last->channels;
    uint32_t c;
    for (c = 0u; c < last->channels; ++c) {
        const uint8_t *value = tk_separable_row(last, 0u) + c;
        uint32_t added = 0u;
        uint32_t x;
        for (x = 0u; x < last->columns; ++x) {
            added += *value;
            value += last->channels;
        }
        *sum += added;
        if (k->window != 0u) {
            *sum -= *old;
            *old++ = (tk_u16)added;
        }
        ++sum;
    }
    if (k->window != 0u && ++memory[TK_SEPARABLE_AT] == k->window) {
        memory[TK_SEPARABLE_AT] = 0u;
    }
}

/* Compute a row of one block, if there is an input row for it. Returns 0 if there was none. */
TK_INLINE int tk_separable_step(const TK_FLASH struct tk_separable *k, uint32_t *memory)
{
    uint32_t *const next = memory + TK_SEPARABLE_NEXT;
    tk_block_t *block = tk_separable_blocks(k, memory);
    if (*next == TK_SEPARABLE_IDLE) {
        return 0;
    }
    block += *next;
    if (*next == k->blocks) {
        if (k->flat != 0u) {
            ++block->at;
        } else {
            tk_separable_add(k, block, memory);
        }
        *next = TK_SEPARABLE_IDLE;
        return 1;
    }
    block->at = block->at == TK_BLOCK_ROWS - 1u ? 0u : block->at + 1u;
    /* Rows of patches that the last image has no row for are left out. */
    if (--block->wait != 0u ||
        (k->flat != 0u && *next + 1u == k->blocks && block[1].at == k->flat)) {
        *next = TK_SEPARABLE_IDLE;
        return 1;
    }
    block->wait = block->down;
    if (k->wide != 0u) {
        uint32_t *const pooled = tk_separable_patches(k, memory) + *next;
        tk_separable_make(k, block, *next, tk_separable_halves(k, memory), *pooled);
        if (++*pooled != (k->forms[*next] >> 4 & 15u)) {
            *next = TK_SEPARABLE_IDLE;
            return 1;
        }
        *pooled = 0u;
    } else {
        tk_separable_make(k, block, *next, tk_separable_halves(k, memory), 0u);
    }
    ++*next;
    return 1;
}

/* Take the next row. Returns where its levels are to be written, before any step. */
TK_INLINE uint8_t *tk_separable_next(const TK_FLASH struct tk_separable *k, uint32_t *memory)
{
    tk_block_t *const block = tk_separable_blocks(k, memory);
    memory[TK_SEPARABLE_NEXT] = 0u;
    return tk_separable_row(block, block->at);
}

/* Push the zeros below an image, block by block. Returns 1 if steps are to follow, 0 at last. */
TK_INLINE int tk_separable_end(const TK_FLASH struct tk_separable *k, uint32_t *memory)
{
    uint32_t *const ended = memory + TK_SEPARABLE_AT;
    while (*ended != k->blocks) {
        tk_block_t *const block = tk_separable_blocks(k, memory) + *ended;
        memory[TK_SEPARABLE_NEXT] = (*ended)++;
        if (block->wait == 1u && tk_separable_zeros(k, *ended - 1u) != 0u) {
            tk_separable_blank(block, *ended == 1u ? k->border : 0u);
            return 1;
        }
    }
    return 0;
}

/* Means of the channels of the last block, to made[], unless the last image is there. */
TK_INLINE void tk_separable_means(const TK_FLASH struct tk_separable *k, const uint32_t *memory,
                                  uint8_t *made)
{
    const uint32_t channels = k->flat != 0u ? 0u : tk_separable_channels(k);
    uint32_t c;
    for (c = 0u; c < channels; ++c) {
        made[c] = (uint8_t)(memory[TK_SEPARABLE_SUMS + c] * k->factor >> 16);
    }
}

#endif
