/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "separable": blocks of convolutions, of an image or of an endless stream.
 *
 * A block stores the last three rows of its input, as bytes with the channels of a position side by
 * side, and computes each row as soon as it has these. Above and below an image are rows of zeros.
 * The rows of the last block are added up, and a stream subtracts those that leave its window; or
 * they are the output. */
#ifndef TK_SEPARABLE_H
#define TK_SEPARABLE_H

#include "tk_separable_layers.h"
#include "tk_separable_pooling.h"
#include "tk_separable_rows.h"

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

#endif
