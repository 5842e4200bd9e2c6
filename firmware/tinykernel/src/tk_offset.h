/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "offset": the samples of a window less the mean of the channel in the same window.
 *
 * State: that of tk_whole.h, with the means of the channels, and then a row. */
#ifndef TK_OFFSET_H
#define TK_OFFSET_H

#include "tk_whole.h"

/* The means of the channels, which the row follows. */
TK_INLINE int32_t *tk_offset_means(uint32_t *state)
{
    return (int32_t *)tk_whole_found(state);
}

/* Find the means of such a window. */
TK_INLINE void tk_offset_find(const TK_FLASH struct tk_whole *given, uint32_t *state,
                              const tk_kept_t *samples, uint32_t start)
{
    int32_t *const means = tk_offset_means(state);
    uint32_t c;
    for (c = 0u; c < given->channels; ++c) {
        means[c] = tk_whole_mean(given, samples, start, c);
    }
}

/* A sample of each channel less the means. */
TK_INLINE const int32_t *tk_offset_row(const TK_FLASH struct tk_whole *given, uint32_t *state,
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
