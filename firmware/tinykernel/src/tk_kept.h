/* Rows that are components move to the front of v, in order, in place; d/2 words.
 *
 * Only for models that drop rows here and there: dropping saves their parameters and weights. */
#ifndef TK_KEPT_H
#define TK_KEPT_H

#include "tk_words.h"

TK_INLINE void tk_keep(uint32_t *v, const uint32_t *kept)
{
    uint32_t *target = v;
    int32_t low = 0;
    uint32_t full = 0u; /* 1: `low` waits for its other half */
    uint32_t j;
    for (j = 0u; j < TK_DIMENSION; ++j) {
        if ((kept[j >> 5] >> (j & 31u) & 1u) != 0u) {
            const uint32_t word = v[j >> 1];
            const int32_t first = tk_low(word);
            const int32_t value = (j & 1u) != 0u ? tk_high_beside(word, first) : first;
            if (full != 0u) {
                *target++ = tk_pack(low, value);
            }
            low = value;
            full ^= 1u;
        }
    }
    /* At the end of an odd number; elsewhere the word holds nothing that is used. */
    if (full != 0u) {
        *target = tk_pack(low, 0);
    }
}

#endif
