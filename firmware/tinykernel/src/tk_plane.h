/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "plane": the rows of a window as an image, for separable convolutions.
 *
 * State, words: the TK_PLANE ones, then the newest rows of levels, a byte each. */
#ifndef TK_PLANE_H
#define TK_PLANE_H

#include "tk_separable.h"

struct tk_plane {
    uint32_t rows;  /* 2 or more: of a window */
    uint32_t bands; /* 2 or more: levels of a row */
    uint32_t hop;   /* 1 or more: rows from one window to the next */
};

enum {
    TK_PLANE_AT,   /* the oldest row */
    TK_PLANE_LEFT, /* rows before a window ends */
    TK_PLANE_ROWS
};

/* No row is there. */
TK_INLINE void tk_plane_init(const TK_FLASH struct tk_plane *plane, uint32_t *state)
{
    state[TK_PLANE_AT] = 0u;
    state[TK_PLANE_LEFT] = plane->rows;
}

/* Keep the next row; 1: a window ends with it, and begins at TK_PLANE_AT. */
TK_INLINE int tk_plane_push(const TK_FLASH struct tk_plane *plane, uint32_t *state,
                            const uint8_t *row)
{
    uint8_t *const kept = (uint8_t *)(state + TK_PLANE_ROWS) + state[TK_PLANE_AT] * plane->bands;
    uint32_t b;
    for (b = 0u; b < plane->bands; ++b) {
        kept[b] = row[b];
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

/* What convolutions make of that window: made[] has a mean a channel; memory is their scratch. */
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
