/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "scaled": each value times a constant, shifted and clipped. */
#ifndef TK_SCALED_H
#define TK_SCALED_H

#include "tk_stage.h"

struct tk_scaled {
    uint32_t values; /* number of inputs */
    uint32_t factor; /* 1..255 */
    uint32_t shift;  /* right shift of a product, 0..15 */
};

/* Scale values[]. Returns the results, which follow the memory of the values in whole words. */
TK_INLINE uint8_t *tk_scaled_run(const TK_FLASH struct tk_scaled *k, uint8_t *values)
{
    uint8_t *const made = values + ((k->values + 3u) & ~3u);
    uint32_t i;
    for (i = 0u; i < k->values; ++i) {
        made[i] = (uint8_t)tk_clipped((int32_t)(values[i] * k->factor), k->shift);
    }
    return made;
}

#endif
