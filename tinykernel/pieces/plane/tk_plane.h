/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "plane": the rows of a window as an image, for separable convolutions.
 *
 * State: the words TK_PLANE_*, then the rows of levels of the newest window, one byte per level.
 * Convolutions of a stream store what they need themselves; the state is then TK_PLANE_LEFT. */
#ifndef TK_PLANE_H
#define TK_PLANE_H

#include "tk_separable.h"

struct tk_plane {
    uint32_t rows;  /* rows of a window, 2 or more */
    uint32_t bands; /* levels of a row, 2 or more */
    uint32_t hop;   /* rows from one window to the next, 1 or more */
};

enum {
    TK_PLANE_LEFT, /* rows until the next window ends */
    TK_PLANE_AT,   /* index of the oldest row */
    TK_PLANE_ROWS
};

/* Count a row. Returns 1 if a window ends with it. */
TK_INLINE int tk_plane_ends(const TK_FLASH struct tk_plane *plane, uint32_t *state)
{
    if (--state[TK_PLANE_LEFT] != 0u) {
        return 0;
    }
    state[TK_PLANE_LEFT] = plane->hop;
    return 1;
}

/* Copy a row of levels. */
TK_INLINE void tk_plane_copy(const TK_FLASH struct tk_plane *plane, const uint8_t *row,
                             uint8_t *out)
{
    uint32_t b;
    for (b = 0u; b < plane->bands; ++b) {
        out[b] = row[b];
    }
}

/* Store the next row. */
TK_INLINE void tk_plane_push(const TK_FLASH struct tk_plane *plane, uint32_t *state,
                             const uint8_t *row)
{
    tk_plane_copy(plane, row,
                  (uint8_t *)(state + TK_PLANE_ROWS) + state[TK_PLANE_AT] * plane->bands);
    if (++state[TK_PLANE_AT] == plane->rows) {
        state[TK_PLANE_AT] = 0u;
    }
}

/* Run convolutions on that window: made[] gets the mean of each channel; memory is scratch. */
TK_INLINE void tk_plane_run(const TK_FLASH struct tk_separable *k,
                            const TK_FLASH struct tk_plane *plane, const uint32_t *state,
                            uint32_t *memory, uint8_t *made)
{
    const uint8_t *const rows = (const uint8_t *)(state + TK_PLANE_ROWS);
    uint32_t at = state[TK_PLANE_AT];
    uint32_t left = plane->rows;
    tk_separable_init(k, memory, made);
    while (left != 0u || tk_separable_end(k, memory) != 0) {
        if (left != 0u) {
            tk_plane_copy(plane, rows + at * plane->bands, tk_separable_next(k, memory));
            at = at + 1u == plane->rows ? 0u : at + 1u;
            --left;
        }
        while (tk_separable_step(k, memory) != 0) {
        }
    }
    tk_separable_means(k, memory, made);
}

#endif
