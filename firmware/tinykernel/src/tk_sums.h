/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "sums": five numbers of each channel of a window, which is handed on as it is; and stage
 * "summed", which makes counts of them. What the numbers are, and why 32 bits hold every sum, is in
 * tinykernel/model/stages/sums.py.
 *
 * State: that of tk_whole.h, with the numbers, a byte each. */
#ifndef TK_SUMS_H
#define TK_SUMS_H

#include "tk_whole.h"

/* What becomes of the numbers. */
struct tk_summed {
    uint32_t counts;                 /* before those of the numbers */
    uint32_t entries;                /* 1..256 */
    uint32_t factor;                 /* 2..65536: the largest count of a number, and 1 */
    const TK_FLASH uint8_t *sources; /* for each entry the number that it looks at, ... */
    const TK_FLASH uint8_t *lows;    /* ... the largest one that counts for nothing, ... */
    const TK_FLASH uint8_t *factors; /* ... and sixteenths of a level for each one above */
};

/* The numbers of the window that was found last. */
TK_INLINE uint8_t *tk_sums_numbers(uint32_t *state)
{
    return (uint8_t *)tk_whole_found(state);
}

/* floor(64 log2(value)), 0..2047; value is not 0. */
TK_SHARED int32_t tk_sums_log(uint32_t value)
{
    return (int32_t)tk_log2(value, 6u);
}

/* The magnitude of a sample less a mean, which is of the same type: 0..65535. */
TK_INLINE uint16_t tk_sums_size(tk_kept_t sample, tk_kept_t mean)
{
    const uint16_t less = (uint16_t)((uint16_t)sample - (uint16_t)mean);
    return sample > mean ? less : (uint16_t)-less;
}

/* Five numbers of channel c, whose mean it is; the oldest sample of a channel is number `start`.
 * Crossings are counted around the ring, without that from the newest sample to the oldest. */
TK_INLINE void tk_sums_channel(const TK_FLASH struct tk_whole *given, const tk_kept_t *samples,
                               uint32_t start, uint32_t c, tk_kept_t mean, uint8_t *numbers)
{
    const uint32_t size = given->rows * given->channels;
    const uint32_t oldest = start * given->channels + c;
    const uint32_t newest = (start == 0u ? size : oldest - c) + c - given->channels;
    uint16_t peak = 0u;
    uint32_t crossings = (samples[oldest] > mean) == (samples[newest] > mean) ? 1u : 0u;
    uint32_t magnitudes = 0u;
    uint32_t squares = 0u;
    uint32_t fourths = 0u;
    int above = samples[size + c - given->channels] > mean;
    uint32_t at;
    int32_t zeros;
    int32_t rows;
    for (at = c; at < size; at += given->channels) {
        const uint16_t less = tk_sums_size(samples[at], mean);
        if ((samples[at] > mean) != above) {
            above = !above;
            ++crossings;
        }
        if (less > peak) {
            peak = less;
        }
    }
    for (rows = 0; rows < 5; ++rows) {
        numbers[rows] = 0u;
        TK_PLAIN_LOOP();
    }
    if (peak == 0u) {
        return;
    }
    zeros = (int32_t)tk_leading_zeros(peak) - 16;
    for (at = c; at < size; at += given->channels) {
        const uint16_t less = (uint16_t)(tk_sums_size(samples[at], mean) << zeros);
        const uint16_t square = (uint16_t)((uint32_t)less * less >> 16);
        magnitudes += less;
        squares += square;
        fourths += (uint32_t)square * square >> 16;
    }
    rows = tk_sums_log(given->rows);
    numbers[3] = (uint8_t)tk_clipped(tk_sums_log((uint32_t)peak << zeros) - 64 * zeros, 2u);
    zeros *= 64;
    numbers[0] = (uint8_t)tk_clipped(tk_sums_log(squares) - rows + 1024 - 2 * zeros, 3u);
    numbers[1] = (uint8_t)tk_clipped(tk_sums_log(magnitudes) - rows - zeros, 2u);
    numbers[2] = (uint8_t)tk_clipped(tk_sums_log(fourths) - rows + 3072 - 4 * zeros, 4u);
    numbers[4] = (uint8_t)tk_clipped(tk_sums_log(crossings), 2u);
}

/* Find the numbers of a window whose oldest sample is number `start` of those at `samples`. */
TK_SHARED void tk_sums_find(const TK_FLASH struct tk_whole *given, uint32_t *state,
                            const tk_kept_t *samples, uint32_t start)
{
    uint8_t *numbers = tk_sums_numbers(state);
    uint32_t c;
    for (c = 0u; c < given->channels; ++c) {
        const int32_t mean = tk_whole_mean(given, samples, start, c);
        tk_sums_channel(given, samples, start, c, (tk_kept_t)mean, numbers);
        numbers += 5;
    }
}

/* The counts of a window, then those of its numbers, in `joined`, where the former may be. */
TK_INLINE const tk_count_t *tk_sums_join(const TK_FLASH struct tk_summed *k, const uint8_t *numbers,
                                         const tk_count_t *counts, uint32_t *joined)
{
    tk_count_t *const out = tk_copied_counts(counts, k->counts, joined);
    uint32_t i;
    for (i = 0u; i < k->entries; ++i) {
        const uint32_t number = numbers[k->sources[i]];
        const uint32_t low = k->lows[i];
        const uint32_t above = number > low ? number - low : 0u;
        const uint32_t level = tk_clipped((int32_t)(above * k->factors[i]), 4u);
        out[k->counts + i] = (tk_count_t)((level * k->factor) >> 8);
    }
    return out;
}

#endif
