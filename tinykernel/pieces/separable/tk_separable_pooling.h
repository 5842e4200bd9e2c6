/* SPDX-License-Identifier: Apache-2.0 */
/* Many values of the stage "separable" as one: patches of a layer, channels of the last block. */
#ifndef TK_SEPARABLE_POOLING_H
#define TK_SEPARABLE_POOLING_H

#include "tk_separable_rows.h"

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
