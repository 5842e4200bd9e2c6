/* SPDX-License-Identifier: Apache-2.0 */
/* What stages share that need a whole window: "offset" and "sums".
 *
 * A stream keeps the newest window, and its decision goes through all of it.
 * State, words: the TK_WHOLE ones, two a channel for what is found of it, and of a stream the
 * window. */
#ifndef TK_WHOLE_H
#define TK_WHOLE_H

#include "tk_stage.h"

struct tk_whole {
    uint32_t rows;     /* 2..65535: samples of a window */
    uint32_t channels; /* of the input, 1..64 */
    uint32_t hop;      /* 1..rows: samples from one window to the next */
    uint32_t shift;    /* 2^shift samples make the mean, as many as there are at most */
};

enum {
    TK_WHOLE_AT,    /* the oldest sample in the window */
    TK_WHOLE_FILLED /* samples since a window ended, and those that the next one shares with it */
};

/* A sample, in memory of words, too. */
typedef tk_sample_t TK_ALIAS tk_kept_t;

/* What is found of a window. */
TK_INLINE uint32_t *tk_whole_found(uint32_t *state)
{
    return state + 2;
}

/* The window that a stream keeps. */
TK_INLINE tk_kept_t *tk_whole_kept(const TK_FLASH struct tk_whole *given, uint32_t *state)
{
    return (tk_kept_t *)(state + 2u + 2u * given->channels);
}

/* Keep a sample of each channel; 1: a window ends with it, and begins at TK_WHOLE_AT. */
TK_INLINE int tk_whole_keep(const TK_FLASH struct tk_whole *given, uint32_t *state,
                            const tk_sample_t *sample)
{
    tk_kept_t *const kept = tk_whole_kept(given, state) + state[TK_WHOLE_AT] * given->channels;
    uint32_t c;
    for (c = 0u; c < given->channels; ++c) {
        kept[c] = sample[c];
    }
    if (++state[TK_WHOLE_AT] == given->rows) {
        state[TK_WHOLE_AT] = 0u;
    }
    if (++state[TK_WHOLE_FILLED] < given->rows) {
        return 0;
    }
    state[TK_WHOLE_FILLED] = given->rows - given->hop;
    return 1;
}

/* The mean of channel c of a window whose oldest sample is number `start` of those at `samples`. */
TK_INLINE int32_t tk_whole_mean(const TK_FLASH struct tk_whole *given, const tk_kept_t *samples,
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

#endif
