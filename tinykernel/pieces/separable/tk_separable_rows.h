/* SPDX-License-Identifier: Apache-2.0 */
/* What the stage "separable" has in flash and in scratch: blocks, and the rows that they store.
 *
 * first[] has for each channel of a mixed layer 9 weights of 8 bits per input channel, those of a
 * position side by side; four of them are bytes 0, 2, 1 and 3 of a word. single[] has for each
 * channel of a block nine weights of 4 bits, the first of two in the low half of a byte. points[]
 * has for each output channel of a block 8 weights of 4 bits per word, the first one in the lowest
 * bits. units[] has for each channel of each layer bias << 12 | multiplier << 5 | shift. forms[]
 * has for each block columns and rows of the patches that become one value (4 bits each), plus 256
 * for a mixed layer, plus 512 if zeros are around its input, and at bit 12 the factor of means,
 * 2^20 / size of a patch rounded up; 0 for the largest value. */
#ifndef TK_SEPARABLE_ROWS_H
#define TK_SEPARABLE_ROWS_H

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

/* Columns that a layer makes of others: every `across`-th, perhaps with zeros around. */
TK_INLINE uint32_t tk_separable_columns(const tk_block_t *block, uint32_t zeros)
{
    return ((block->columns + 2u * zeros - 3u) >> (block->across - 1u)) + 1u;
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

#endif
