/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "offset": subtract from each sample of a window the mean of its channel in that window.
 *
 * A stream stores the newest window; a decision processes all of it.
 * State: the words TK_OFFSET_*, the means of the channels, a row, and for streams the window. */
#ifndef TK_OFFSET_H
#define TK_OFFSET_H

#include "tk_stage.h"

struct tk_offset {
    uint32_t rows;     /* samples of a window, 2..65535 */
    uint32_t channels; /* channels of the input, 1..64 */
    uint32_t hop;      /* samples from one window to the next, 1..rows */
    uint32_t shift;    /* the mean is that of 2^shift <= rows samples */
};

enum {
    TK_OFFSET_AT,    /* index of the oldest sample in the window */
    TK_OFFSET_FILLED /* number of samples of the next window that are stored */
};

/* A stored sample. The memory is also accessed as words. */
typedef tk_sample_t TK_ALIAS tk_stored_t;

/* The window of a stream. */
TK_INLINE tk_stored_t *tk_offset_window(const TK_FLASH struct tk_offset *offset, uint32_t *state)
{
    return (tk_stored_t *)(state + 2u + 2u * offset->channels);
}

/* Store a sample of each channel. Returns 1 if a window ends with it; the window begins at
 * TK_OFFSET_AT. */
TK_INLINE int tk_offset_keep(const TK_FLASH struct tk_offset *offset, uint32_t *state,
                             const tk_sample_t *sample)
{
    tk_stored_t *const stored =
        tk_offset_window(offset, state) + state[TK_OFFSET_AT] * offset->channels;
    uint32_t c;
    for (c = 0u; c < offset->channels; ++c) {
        stored[c] = sample[c];
    }
    if (++state[TK_OFFSET_AT] == offset->rows) {
        state[TK_OFFSET_AT] = 0u;
    }
    if (++state[TK_OFFSET_FILLED] < offset->rows) {
        return 0;
    }
    state[TK_OFFSET_FILLED] = offset->rows - offset->hop;
    return 1;
}

/* Mean of channel c of a window at `samples`, whose oldest sample has the index `start`. */
TK_INLINE int32_t tk_offset_mean(const TK_FLASH struct tk_offset *offset,
                                 const tk_stored_t *samples, uint32_t start, uint32_t c)
{
    int32_t sum = 0;
    uint32_t i;
    for (i = 0u; i < UINT32_C(1) << offset->shift; ++i) {
        uint32_t at = start + (i * offset->rows >> offset->shift);
        if (at >= offset->rows) {
            at -= offset->rows;
        }
        sum += (int32_t)samples[at * offset->channels + c];
    }
    return sum >> offset->shift;
}

/* The means of the channels; a row follows them. */
TK_INLINE int32_t *tk_offset_means(uint32_t *state)
{
    return (int32_t *)(state + 2);
}

/* Compute the means of a window. */
TK_INLINE void tk_offset_find(const TK_FLASH struct tk_offset *offset, uint32_t *state,
                              const tk_stored_t *samples, uint32_t start)
{
    int32_t *const means = tk_offset_means(state);
    uint32_t c;
    for (c = 0u; c < offset->channels; ++c) {
        means[c] = tk_offset_mean(offset, samples, start, c);
    }
}

/* A row: a sample of each channel less the mean. */
TK_INLINE const int32_t *tk_offset_row(const TK_FLASH struct tk_offset *offset, uint32_t *state,
                                       const tk_stored_t *sample)
{
    const int32_t *const means = tk_offset_means(state);
    int32_t *const row = tk_offset_means(state) + offset->channels;
    uint32_t c;
    for (c = 0u; c < offset->channels; ++c) {
        row[c] = (int32_t)sample[c] - means[c];
    }
    return row;
}

#endif
