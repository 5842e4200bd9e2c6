/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "plane": the rows of a window as an image, for separable convolutions.
 *
 * State: the words TK_PLANE_*, then the rows of levels of the newest window, one byte per level. */
#ifndef TK_PLANE_H
#define TK_PLANE_H

#include "tk_separable.h"

struct tk_plane {
    uint32_t rows;  /* rows of a window, 2 or more */
    uint32_t bands; /* levels of a row, 2 or more */
    uint32_t hop;   /* rows from one window to the next, 1 or more */
};

enum {
    TK_PLANE_AT,   /* index of the oldest row */
    TK_PLANE_LEFT, /* rows until the next window ends */
    TK_PLANE_ROWS
};

/* Initialise the state. */
TK_INLINE void tk_plane_init(const TK_FLASH struct tk_plane *plane, uint32_t *state)
{
    state[TK_PLANE_AT] = 0u;
    state[TK_PLANE_LEFT] = plane->rows;
}

/* Store the next row. Returns 1 if a window ends with it; the window begins at TK_PLANE_AT. */
TK_INLINE int tk_plane_push(const TK_FLASH struct tk_plane *plane, uint32_t *state,
                            const uint8_t *row)
{
    uint8_t *const stored = (uint8_t *)(state + TK_PLANE_ROWS) + state[TK_PLANE_AT] * plane->bands;
    uint32_t b;
    for (b = 0u; b < plane->bands; ++b) {
        stored[b] = row[b];
    }
    if (++state[TK_PLANE_AT] == plane->rows) {
        state[TK_PLANE_AT] = 0u;
    }
    if (--state[TK_PLANE_LEFT] != 0u) {
        return 0;
    }
    state[TK_PLANE_LEFT] = plane->hop;
    return 1;
}

/* Run convolutions on that window: made[] gets the mean of each channel; memory is scratch. */
TK_INLINE void tk_plane_run(const TK_FLASH struct tk_separable *k,
                            const TK_FLASH struct tk_plane *plane, const uint32_t *state,
                            uint32_t *memory, uint8_t *made)
{
    const uint8_t *const rows = (const uint8_t *)(state + TK_PLANE_ROWS);
    uint32_t at = state[TK_PLANE_AT];
    uint32_t left = plane->rows;
    tk_separable_init(k, memory);
    do {
        const uint8_t *const row = rows + at * plane->bands;
        uint8_t *const out = tk_separable_next(k, memory);
        uint32_t b;
        for (b = 0u; b < plane->bands; ++b) {
            out[b] = row[b];
        }
        tk_separable_push(k, memory);
        at = at + 1u == plane->rows ? 0u : at + 1u;
    } while (--left != 0u);
    tk_separable_means(k, memory, made);
}

#endif
