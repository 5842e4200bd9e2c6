/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the stages share. A stage turns samples, rows or images into others; the last one
 * computes the counts that the read-out takes.
 *
 * A stage has a constant structure that holds its shape and pointers to its tables. All functions
 * of a stage take this structure and are inlined, so its members become literals, and one header
 * serves any number of stages. The generated source defines the structures (the first one is
 * tk_levels_0, for instance) and calls the stages in order. For streams a stage has functions of
 * these kinds:
 *
 *   init(state)         initialises the stage's part of the state
 *   push(state, row)    takes a row; returns 1 if the stage has computed a row
 *   row(state)          returns the computed row
 *
 * Others return where the next row is to be written, so that no row is copied. */
#ifndef TK_STAGE_H
#define TK_STAGE_H

#include "tk_words.h"

typedef uint16_t TK_ALIAS tk_u16;

/* A count: an input of the read-out. The memory is also accessed as words. */
typedef tk_raw_t tk_count_t;

/* Element i of a table of uint8_t (bytes 1) or uint16_t (bytes 2). */
TK_INLINE uint32_t tk_item(const TK_FLASH void *table, uint32_t bytes, uint32_t i)
{
    return bytes == 1u ? ((const TK_FLASH uint8_t *)table)[i]
                       : ((const TK_FLASH uint16_t *)table)[i];
}

/* Shift a sum right by 0..30 and clip it to 0..255. */
TK_INLINE uint32_t tk_clipped(int32_t sum, uint32_t shift)
{
    uint32_t value;
#if TK_THUMB && defined(__thumb2__)
    __asm__("usat %0, #8, %1" : "=r"(value) : "r"(sum >> shift));
#else
    value = tk_positive_part(sum >> shift, 1);
    if (value > 255u) {
        value = 255u;
    }
#endif
    return value;
}

/* Set `words` words to 0. */
TK_INLINE void tk_clear(uint32_t *word, uint32_t words)
{
    uint32_t *const end = word + words;
    while (word != end) {
        *word++ = 0u;
        TK_PLAIN_LOOP();
    }
}

#endif
