/* SPDX-License-Identifier: Apache-2.0 */
/* Local stage of signals: kernels of nine taps on each sample as it arrives.
 *
 * Kernels with the same dilation and mixed channel look at the same nine values v, so that a kernel
 * with three 2 and six -1 is 3 (v_a + v_b + v_c) - sum of v. Every kernel has one running count of
 * the responses above its threshold, which wraps around; what a cell of a window counted is the
 * difference of two of them, at its end and at its begin. Windows that overlap share all the rest.
 *
 *   TK_LOCAL_HOP           rows from the begin of a window to that of the next one
 *   TK_LOCAL_WINDOWS       windows that are under way at a time
 *   TK_LOCAL_RING          rows that are kept, those that the longest kernel looks at
 *   TK_LOCAL_DILATIONS     different dilations
 *   TK_LOCAL_KINDS         1: there are kernels of nine 1, or of a 1 for the newest value
 *   TK_LOCAL_ORDER         1: count i of the model is tk_order[i] of those here, which are sorted
 *                          by dilation, then mixed channel; 0: it is count i
 *   tk_dilations[]         for each one: the dilation, its kernels, and how many rows of a window
 *                          there are when each of its cells begins, and the one before ends
 *   tk_groups[]            for each dilation and mixed channel: kernels
 *   tk_kernels[]           a word a kernel: a, b, c of 4 bits from the bottom; above 16 bits the
 *                          threshold. (9, 11, 11) is the sum of all, (10, 11, 11) the newest value
 *
 * State, words: the TK_STATE ones, then rows of the windows, levels, ring, running counts, and the
 * counts of the windows. */
#ifndef TK_LOCAL_SIGNAL_H
#define TK_LOCAL_SIGNAL_H

#include "tk_local.h"

enum {
    TK_STATE_AT,       /* newest row in the ring */
    TK_STATE_FILLED,   /* rows in the ring */
    TK_STATE_WAIT,     /* rows before the next window begins */
    TK_STATE_NEXT,     /* where that one will be */
    TK_STATE_FINISHED, /* window that is done */
    TK_STATE_PENDING,  /* whether its last cells are still to be ended */
    TK_STATE_LATER,    /* whether the later dilations of the newest row are still to be counted */
    TK_STATE_ODD,      /* whether a level waits for the other one of its average */
    TK_STATE_AGES      /* of the windows: rows so far */
};

#define TK_STATE_LEVELS  (TK_STATE_AGES + TK_LOCAL_WINDOWS)
#define TK_STATE_RING    (TK_STATE_LEVELS + (TK_LOCAL_CHANNELS + 1u) / 2u)
#define TK_STATE_RUNNING (TK_STATE_RING + (TK_LOCAL_RING * TK_LOCAL_MIXED + 1u) / 2u)
#define TK_STATE_COUNTS  (TK_STATE_RUNNING + (TK_LOCAL_KERNELS * TK_LOCAL_COUNT_BYTES + 3u) / 4u)
#define TK_STATE_WINDOW  ((TK_LOCAL_KERNELS * TK_LOCAL_CELLS * TK_LOCAL_COUNT_BYTES + 3u) / 4u)
#define TK_STATE_WORDS   (TK_STATE_COUNTS + TK_LOCAL_WINDOWS * TK_STATE_WINDOW)
#define TK_DILATION_ROW  (TK_LOCAL_CELLS + 2u)

/* An empty stream. */
TK_INLINE void tk_local_init(uint32_t *state)
{
    uint32_t *const end = state + TK_STATE_WORDS;
    uint32_t *word = state;
    uint32_t i;
    while (word != end) {
        *word++ = 0u;
        TK_PLAIN_LOOP();
    }
    for (i = 0u; i < TK_LOCAL_WINDOWS; ++i) {
        state[TK_STATE_AGES + i] = TK_LOCAL_ROWS; /* none has begun */
    }
}

/* Counts of a window. */
TK_INLINE tk_count_t *tk_local_window_counts(uint32_t *state, uint32_t window)
{
    return (tk_count_t *)(state + TK_STATE_COUNTS + window * TK_STATE_WINDOW);
}

/* The nine values of a kernel that end with the newest row, as 3 v, then what gives the sum and the
 * newest one, and 0; returns their sum. */
TK_INLINE int32_t tk_local_values(int32_t *values, const tk_u16 *ring, const uint32_t *rows)
{
    int32_t sum = 0;
    int32_t value = 0;
    uint32_t i;
    for (i = 0u; i < 9u; i += 3u) {
        const int32_t first = ring[rows[i]];
        const int32_t second = ring[rows[i + 1u]];
        value = ring[rows[i + 2u]];
        sum += first + second + value;
        values[i] = 3 * first;
        values[i + 1u] = 3 * second;
        values[i + 2u] = 3 * value;
    }
#if TK_LOCAL_KINDS
    values[9] = 2 * sum;
    values[10] = sum + value;
    values[11] = 0;
#endif
    return sum;
}

/* Where the rows of a dilation are in the ring, oldest first. */
TK_INLINE void tk_local_rows(uint32_t *rows, uint32_t at, uint32_t dilation)
{
    uint32_t i = 9u;
    do {
        --i;
        rows[i] = at * TK_LOCAL_MIXED;
        at = at >= dilation ? at - dilation : at + TK_LOCAL_RING - dilation;
    } while (i != 0u);
}

/* Count the newest responses of the kernels of a dilation; returns the end of these. */
TK_SHARED const TK_FLASH uint32_t *tk_local_respond(TK_GIVEN const TK_FLASH uint32_t *kernel,
                                                    tk_count_t *running, const uint32_t *state,
                                                    uint32_t d)
{
    const tk_u16 *ring = (const tk_u16 *)(state + TK_STATE_RING);
    const uint32_t group = d * TK_LOCAL_MIXED;
    uint32_t rows[9];
    int32_t values[12];
    const uint32_t dilation = tk_dilations[d * TK_DILATION_ROW];
    uint32_t m;
    if (state[TK_STATE_FILLED] <= 8u * dilation) {
        return kernel + tk_dilations[d * TK_DILATION_ROW + 1u]; /* no window needs these */
    }
    tk_local_rows(rows, state[TK_STATE_AT], dilation);
    for (m = 0u; m < TK_LOCAL_MIXED; ++m) {
        const TK_FLASH uint32_t *const end = kernel + tk_groups[group + m];
        if (kernel != end) {
            const int32_t sum = tk_local_values(values, ring, rows);
            const int32_t *from = values;
            TK_HIDE(from); /* an address in a register, not one on the stack built for each use */
            do {
                const uint32_t code = *kernel++;
                const int32_t least = sum + ((int32_t)code >> 16);
                const int32_t found =
                    from[code & 15u] + from[code >> 4 & 15u] + from[code >> 8 & 15u];
                *running = (tk_count_t)(*running + ((uint32_t)(least - found) >> 31));
                ++running;
            } while (kernel != end);
        }
        ++ring;
    }
    return kernel;
}

/* Begin cells of a window that has `age` rows now, and end those before them; for kernels
 * running[0] to end[-1], of which the first has counts[0]. The last cells end when they are asked
 * for, so that no sample takes that long. */
TK_INLINE void tk_local_cells(TK_GIVEN uint32_t d, uint32_t age, const tk_count_t *running,
                              const tk_count_t *end, tk_count_t *counts)
{
    uint32_t cell;
    for (cell = 0u; cell < TK_LOCAL_CELLS; ++cell) {
        if (tk_dilations[d * TK_DILATION_ROW + 2u + cell] == age) {
            const tk_count_t *count;
            tk_count_t *place = counts + cell;
            for (count = running; count != end; ++count) {
#if TK_LOCAL_CELLS > 1u
                if (cell != 0u) {
                    place[-1] = (tk_count_t)(*count - place[-1]);
                }
#endif
                *place = *count;
                place += TK_LOCAL_CELLS;
            }
        }
    }
}

/* End the last cells of a window. */
TK_INLINE void tk_local_end(const uint32_t *state, tk_count_t *counts)
{
    const tk_count_t *running = (const tk_count_t *)(state + TK_STATE_RUNNING);
    const tk_count_t *const end = running + TK_LOCAL_KERNELS;
    tk_count_t *place = counts + (TK_LOCAL_CELLS - 1u);
    while (running != end) {
        *place = (tk_count_t)(*running++ - *place);
        place += TK_LOCAL_CELLS;
    }
}

/* The newest row of all windows: the responses that end with it, and the cells that begin or end.
 * Where two samples make a row, the second one counts the dilations before TK_LOCAL_SPLIT and the
 * first one of the next row, or the decision, the others: no call takes twice as long as another.
 */
#if TK_LOCAL_AVERAGE == 2
#define TK_LOCAL_SPLIT ((TK_LOCAL_DILATIONS + 1u) / 2u)
#else
#define TK_LOCAL_SPLIT TK_LOCAL_DILATIONS
#endif
TK_SHARED void tk_local_count(TK_GIVEN uint32_t *state, uint32_t later)
{
    tk_count_t *running = (tk_count_t *)(state + TK_STATE_RUNNING);
    const TK_FLASH uint32_t *kernel = tk_kernels;
    uint32_t d;
    for (d = 0u; d < TK_LOCAL_DILATIONS; ++d) {
        const TK_FLASH uint32_t *const first = kernel;
        tk_count_t *const end = running;
        uint32_t window;
        if ((uint32_t)(d >= TK_LOCAL_SPLIT) != later) {
            kernel += tk_dilations[d * TK_DILATION_ROW + 1u];
            running += kernel - first;
            continue;
        }
        kernel = tk_local_respond(TK_GIVE kernel, running, state, d);
        running += kernel - first;
        for (window = 0u; window < TK_LOCAL_WINDOWS; ++window) {
            tk_count_t *const counts = tk_local_window_counts(state, window);
            tk_local_cells(TK_GIVE d, state[TK_STATE_AGES + window], end, running,
                           counts + (uint32_t)(first - tk_kernels) * TK_LOCAL_CELLS);
        }
    }
    state[TK_STATE_LATER] = later ^ 1u;
}

/* The dilations that are still to be counted. */
TK_INLINE void tk_local_rest(TK_GIVEN uint32_t *state)
{
#if TK_LOCAL_AVERAGE == 2
    if (state[TK_STATE_LATER] != 0u) {
        tk_local_count(TK_GIVE state, 1u);
    }
#else
    (void)state;
#endif
}

/* The next sample; 1: a window ends with it. */
TK_SHARED int tk_local_push(TK_GIVEN uint32_t *state, const tk_sensor_t *sample)
{
    tk_u16 *const levels = (tk_u16 *)(state + TK_STATE_LEVELS);
    tk_u16 *row = (tk_u16 *)(state + TK_STATE_RING);
    int finished = 0;
    uint32_t i;
    for (i = 0u; i < TK_LOCAL_CHANNELS; ++i) {
        const uint32_t level = tk_level(TK_GIVE sample[i], i);
        levels[i] = (tk_u16)(state[TK_STATE_ODD] != 0u ? (levels[i] + level) >> 1 : level);
    }
#if TK_LOCAL_AVERAGE == 2
    state[TK_STATE_ODD] ^= 1u;
    if (state[TK_STATE_ODD] != 0u) {
        tk_local_rest(TK_GIVE state);
        return 0;
    }
#endif
    if (++state[TK_STATE_AT] >= TK_LOCAL_RING) {
        state[TK_STATE_AT] = 0u;
    }
    if (state[TK_STATE_FILLED] < TK_LOCAL_RING) {
        ++state[TK_STATE_FILLED];
    }
    row += state[TK_STATE_AT] * TK_LOCAL_MIXED;
    for (i = 0u; i < TK_LOCAL_MIXED; ++i) {
        row[i] = (tk_u16)tk_mixed(TK_GIVE levels, i);
    }
    if (state[TK_STATE_WAIT] == 0u) {
        state[TK_STATE_WAIT] = TK_LOCAL_HOP;
        state[TK_STATE_AGES + state[TK_STATE_NEXT]] = 0u;
        state[TK_STATE_NEXT] =
            state[TK_STATE_NEXT] + 1u == TK_LOCAL_WINDOWS ? 0u : state[TK_STATE_NEXT] + 1u;
    }
    --state[TK_STATE_WAIT];
    for (i = 0u; i < TK_LOCAL_WINDOWS; ++i) {
        uint32_t *const age = state + TK_STATE_AGES + i;
        if (*age != TK_LOCAL_ROWS && ++*age == TK_LOCAL_ROWS) {
            state[TK_STATE_FINISHED] = i;
            state[TK_STATE_PENDING] = 1u;
            finished = 1;
        }
    }
    tk_local_count(TK_GIVE state, 0u);
    return finished;
}

/* The counts of the window that is done, in the order of the model; `ordered` may take them. */
TK_INLINE const tk_count_t *tk_local_finished(TK_GIVEN uint32_t *state, uint32_t *ordered)
{
    tk_count_t *const counts = tk_local_window_counts(state, state[TK_STATE_FINISHED]);
#if TK_LOCAL_ORDER
    tk_count_t *const out = (tk_count_t *)ordered;
    uint32_t i;
#endif
    if (state[TK_STATE_PENDING] != 0u) {
        state[TK_STATE_PENDING] = 0u;
        tk_local_rest(TK_GIVE state);
        tk_local_end(state, counts);
    }
#if TK_LOCAL_ORDER
    for (i = 0u; i < TK_FEATURES; ++i) {
        out[i] = counts[tk_order[i]];
    }
    return out;
#else
    (void)ordered;
    return counts;
#endif
}

/* Counts of a window: a stream of that length. */
TK_INLINE const tk_count_t *tk_local_counts(TK_GIVEN const tk_sensor_t *input, uint32_t *first,
                                            uint32_t *state)
{
    uint32_t left = TK_LOCAL_HEIGHT;
    (void)first;
    tk_local_init(state);
    do {
        (void)tk_local_push(TK_GIVE state, input);
        input += TK_LOCAL_CHANNELS;
    } while (--left != 0u);
    return tk_local_finished(TK_GIVE state, state + TK_STATE_WORDS);
}

#endif
