/* SPDX-License-Identifier: Apache-2.0 */
/* What the stages before the machine share.
 *
 * A stage has a constant structure: its shape, and pointers to its tables. All its functions take
 * that structure and are inlined, so that members become literals in the code; one header serves
 * any number of stages. The generated source holds the structures, tk_levels_0 of the first stage,
 * and calls the stages in their order. In a stream each stage gives
 *
 *   init(state)         makes its part of the state an empty stream
 *   push(state, row)    takes a row; not 0 if one comes out
 *   row(state)          gives the row that came out
 *
 * and says beside it where a row comes from, or goes to, so that none is copied. */
#ifndef TK_STAGE_H
#define TK_STAGE_H

#include "tk_words.h"

typedef uint16_t TK_ALIAS tk_u16;

/* A count, in memory of words: what the machine takes. */
typedef tk_raw_t tk_count_t;

/* Number i of a table of uint8_t or uint16_t, as `bytes` says. */
TK_INLINE uint32_t tk_item(const TK_FLASH void *table, uint32_t bytes, uint32_t i)
{
    return bytes == 1u ? ((const TK_FLASH uint8_t *)table)[i]
                       : ((const TK_FLASH uint16_t *)table)[i];
}

/* A sum shifted by 0..30 and clipped to 0..255. */
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

/* Words of 0. */
TK_INLINE void tk_clear(uint32_t *word, uint32_t words)
{
    uint32_t *const end = word + words;
    while (word != end) {
        *word++ = 0u;
        TK_PLAIN_LOOP();
    }
}

#endif
