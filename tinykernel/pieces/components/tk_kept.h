/* SPDX-License-Identifier: Apache-2.0 */
/* Move the rows of v that are components to its front, in order and in place; v has d/2 words.
 *
 * Used if the unused rows of a block are not the last ones. Leaving them out saves their parameters
 * and weights. */
#ifndef TK_KEPT_H
#define TK_KEPT_H

#include "tk_words.h"

/* Whether an instruction finds the lowest set bit of a word. */
#if defined(__GNUC__) && (defined(__ARM_FEATURE_CLZ) || defined(__riscv_zbb))
#define TK_COUNTS_ZEROS 1
#else
#define TK_COUNTS_ZEROS 0
#endif

/* Rows are moved as halves, so the transform must store words side by side. */
TK_INLINE void tk_keep(uint32_t *v, const TK_FLASH uint32_t *kept)
{
    uint32_t from = 0u; /* offsets in bytes */
    uint32_t to = 0u;
    do {
        uint32_t rows = *kept++;
#if TK_COUNTS_ZEROS
        while (rows != 0u) {
            const uint32_t row = (uint32_t)__builtin_ctz(rows);
            tk_set_half(v, to, tk_half_at(v, from + 2u * row));
            to += 2u;
            rows &= rows - 1u;
        }
        from += 64u;
#else
        uint32_t row = from;
        from += 64u;
        do {
            if ((rows & 1u) != 0u) {
                tk_set_half(v, to, tk_half_at(v, row));
                to += 2u;
            }
            row += 2u;
            rows >>= 1;
        } while (rows != 0u);
#endif
    } while (from != 2u * TK_DIMENSION);
}

#endif
