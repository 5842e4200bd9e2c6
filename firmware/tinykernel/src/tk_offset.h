/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "offset": the samples of a window less the mean of the channel in the same window.
 *
 * A stream keeps the newest window, and its decision goes through all of it.
 * State, words: the TK_OFFSET ones, the means of the channels, a row, and of a stream the window.
 */
#ifndef TK_OFFSET_H
#define TK_OFFSET_H

#include "tk_stage.h"

struct tk_offset {
    uint32_t rows;     /* 2..65535: samples of a window */
    uint32_t channels; /* of the input, 1..64 */
    uint32_t hop;      /* 1..rows: samples from one window to the next */
    uint32_t shift;    /* 2^shift samples make the mean, as many as there are at most */
};

enum {
    TK_OFFSET_AT,    /* the oldest sample in the window */
    TK_OFFSET_FILLED /* samples since a window ended, and those that the next one shares with it */
};

/* A sample, in memory of words, too. */
typedef tk_sample_t TK_ALIAS tk_kept_t;

/* The window that a stream keeps. */
TK_INLINE tk_kept_t *tk_offset_window(const TK_FLASH struct tk_offset *given, uint32_t *state)
{
    return (tk_kept_t *)(state + 2u + 2u * given->channels);
}

/* Keep a sample of each channel; 1: a window ends with it, and begins at TK_OFFSET_AT. */
TK_INLINE int tk_offset_keep(const TK_FLASH struct tk_offset *given, uint32_t *state,
                             const tk_sample_t *sample)
{
    tk_kept_t *const kept = tk_offset_window(given, state) + state[TK_OFFSET_AT] * given->channels;
    uint32_t c;
    for (c = 0u; c < given->channels; ++c) {
        kept[c] = sample[c];
    }
    if (++state[TK_OFFSET_AT] == given->rows) {
        state[TK_OFFSET_AT] = 0u;
    }
    if (++state[TK_OFFSET_FILLED] < given->rows) {
        return 0;
    }
    state[TK_OFFSET_FILLED] = given->rows - given->hop;
    return 1;
}

/* The mean of channel c of a window whose oldest sample is number `start` of those at `samples`. */
TK_INLINE int32_t tk_offset_mean(const TK_FLASH struct tk_offset *given, const tk_kept_t *samples,
                                 uint32_t start, uint32_t c)
{
    int32_t sum = 0;
    uint32_t i;
    for (i = 0u; i < UINT32_C(1) << given->shift; ++i) {
        uint32_t at = start + (i * given->rows >> given->shift);
        if (at >= given->rows) {
            at -= given->rows;
        }
        sum += (int32_t)samples[at * given->channels + c];
    }
    return sum >> given->shift;
}

/* The means of the channels, which the row follows. */
TK_INLINE int32_t *tk_offset_means(uint32_t *state)
{
    return (int32_t *)(state + 2);
}

/* Find the means of such a window. */
TK_INLINE void tk_offset_find(const TK_FLASH struct tk_offset *given, uint32_t *state,
                              const tk_kept_t *samples, uint32_t start)
{
    int32_t *const means = tk_offset_means(state);
    uint32_t c;
    for (c = 0u; c < given->channels; ++c) {
        means[c] = tk_offset_mean(given, samples, start, c);
    }
}

/* A sample of each channel less the means. */
TK_INLINE const int32_t *tk_offset_row(const TK_FLASH struct tk_offset *given, uint32_t *state,
                                       const tk_kept_t *sample)
{
    const int32_t *const means = tk_offset_means(state);
    int32_t *const row = tk_offset_means(state) + given->channels;
    uint32_t c;
    for (c = 0u; c < given->channels; ++c) {
        row[c] = (int32_t)sample[c] - means[c];
    }
    return row;
}

#endif
