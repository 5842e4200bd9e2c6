/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of signals: of nine taps, on each row of levels as it arrives.
 *
 * Kernels with the same dilation and channel look at the same nine values v, so that a kernel with
 * three 2 and six -1 is 3 (v_a + v_b + v_c) - sum of v. Every kernel has one running count of the
 * responses above its threshold, which wraps around; what a cell of a window counted is the
 * difference of two of them, at its end and at its begin. Windows that overlap share all the rest.
 *
 * State, words: the TK_STATE ones, rows of the windows, ring of levels, running counts, counts of
 * the windows. */
#ifndef TK_KERNELS_SIGNAL_H
#define TK_KERNELS_SIGNAL_H

#include "tk_stage.h"

struct tk_signal {
    uint32_t rows;           /* of a window */
    uint32_t channels;       /* of the levels */
    uint32_t kernels;        /* how many, sorted by dilation, then channel */
    uint32_t cells;          /* one after the other */
    uint32_t hop;            /* rows from the begin of a window to that of the next one */
    uint32_t windows;        /* windows that are under way at a time */
    uint32_t kept;           /* rows in the ring, those that the longest kernel looks at */
    uint32_t distances;      /* different dilations */
    uint32_t turns;          /* 1, 2, 4, ...: parts of the channels, which take turns */
    uint32_t split;          /* dilations that one call counts; of one a part, where there are */
    uint32_t kinds;          /* 1: there are kernels of nine 1, or of a 1 for the newest value */
    uint32_t ring;           /* words of the state before the ring */
    uint32_t running;        /* before the running counts */
    uint32_t counts;         /* before the counts of the windows */
    uint32_t window;         /* words of the counts of a window */
    uint32_t dilation_bytes; /* of a number in dilations[], 1 or 2 */
    uint32_t group_bytes;    /* in groups[] */
    uint32_t order_bytes;    /* in order[]; 0: there is none, count i of the model is count i */
    /* For each one: the dilation, its kernels, and how many rows of a window there are when each
     * of its cells begins, and the one before ends. */
    const TK_FLASH void *dilations;
    const TK_FLASH void *groups; /* kernels of each dilation and channel */
    /* One word per kernel: a, b, c of 4 bits from the bottom; above 16 bits the threshold.
     * (9, 11, 11) is the sum of all, (10, 11, 11) the newest value. */
    const TK_FLASH uint32_t *codes;
    const TK_FLASH void *order; /* count i of the model is count order[i] */
};

enum {
    TK_STATE_AT,       /* newest row in the ring */
    TK_STATE_FILLED,   /* rows in the ring */
    TK_STATE_WAIT,     /* rows before the next window begins */
    TK_STATE_NEXT,     /* where that one will be */
    TK_STATE_FINISHED, /* window that is done */
    TK_STATE_PENDING,  /* whether its last cells, or all, are still to be counted */
    TK_STATE_LATER,    /* last parts of the newest row that are still to be counted */
    TK_STATE_AGES      /* of the windows: rows so far */
};

/* A stream in which none of the windows of so many rows has begun, from words of 0. */
TK_INLINE void tk_signal_init(uint32_t rows, uint32_t windows, uint32_t *state)
{
    uint32_t i;
    for (i = 0u; i < windows; ++i) {
        state[TK_STATE_AGES + i] = rows;
    }
}

/* Number i of the row of a dilation. */
TK_INLINE uint32_t tk_signal_dilation(const TK_FLASH struct tk_signal *k, uint32_t d, uint32_t i)
{
    return tk_item(k->dilations, k->dilation_bytes, d * (k->cells + 2u) + i);
}

/* Counts of a window. */
TK_INLINE tk_count_t *tk_signal_window(const TK_FLASH struct tk_signal *k, uint32_t *state,
                                       uint32_t window)
{
    return (tk_count_t *)(state + k->counts + window * k->window);
}

/* The nine values of a kernel that end with the newest row, as 3 v, then what gives the sum and the
 * newest one, and 0; returns their sum. */
TK_INLINE int32_t tk_signal_values(const TK_FLASH struct tk_signal *k, int32_t *values,
                                   const tk_u16 *ring, const uint32_t *rows)
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
    if (k->kinds != 0u) {
        values[9] = 2 * sum;
        values[10] = sum + value;
        values[11] = 0;
    }
    return sum;
}

/* Where the rows of a dilation are in the ring, oldest first. */
TK_INLINE void tk_signal_rows(const TK_FLASH struct tk_signal *k, uint32_t *rows, uint32_t at,
                              uint32_t dilation)
{
    uint32_t i = 9u;
    do {
        --i;
        rows[i] = at * k->channels;
        at = at >= dilation ? at - dilation : at + k->kept - dilation;
    } while (i != 0u);
}

/* First channel of a part of the channels. */
TK_INLINE uint32_t tk_signal_channel(const TK_FLASH struct tk_signal *k, uint32_t turn)
{
    return turn * k->channels / k->turns;
}

/* Count the newest responses of the kernels of a part; returns the end of these. */
TK_INLINE const TK_FLASH uint32_t *tk_signal_respond(const TK_FLASH struct tk_signal *k,
                                                     const TK_FLASH uint32_t *kernel,
                                                     tk_count_t *running, const uint32_t *state,
                                                     uint32_t part)
{
    const uint32_t d = part / k->turns;
    const uint32_t begin = tk_signal_channel(k, part % k->turns);
    const uint32_t last = tk_signal_channel(k, part % k->turns + 1u);
    const tk_u16 *ring = (const tk_u16 *)(state + k->ring) + begin;
    const uint32_t dilation = tk_signal_dilation(k, d, 0u);
    const uint32_t group = d * k->channels;
    uint32_t rows[9];
    int32_t values[12];
    uint32_t m;
    if (k->turns == 1u && state[TK_STATE_FILLED] <= 8u * dilation) {
        return kernel + tk_signal_dilation(k, d, 1u); /* no window needs these */
    }
    tk_signal_rows(k, rows, state[TK_STATE_AT], dilation);
    for (m = begin; m < last; ++m) {
        const TK_FLASH uint32_t *const end = kernel + tk_item(k->groups, k->group_bytes, group + m);
        if (kernel != end) {
            const int32_t sum = tk_signal_values(k, values, ring, rows);
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
TK_INLINE void tk_signal_cells(const TK_FLASH struct tk_signal *k, uint32_t d, uint32_t age,
                               const tk_count_t *running, const tk_count_t *end, tk_count_t *counts)
{
    uint32_t cell;
    for (cell = 0u; cell < k->cells; ++cell) {
        if (tk_signal_dilation(k, d, 2u + cell) == age) {
            const tk_count_t *count;
            tk_count_t *place = counts + cell;
            for (count = running; count != end; ++count) {
                if (k->cells > 1u && cell != 0u) {
                    place[-1] = (tk_count_t)(*count - place[-1]);
                }
                *place = *count;
                place += k->cells;
            }
        }
    }
}

/* Where the levels of the next row go. */
TK_INLINE tk_u16 *tk_signal_next(const TK_FLASH struct tk_signal *k, uint32_t *state)
{
    tk_u16 *const ring = (tk_u16 *)(state + k->ring);
    if (++state[TK_STATE_AT] >= k->kept) {
        state[TK_STATE_AT] = 0u;
    }
    if (state[TK_STATE_FILLED] < k->kept) {
        ++state[TK_STATE_FILLED];
    }
    return ring + state[TK_STATE_AT] * k->channels;
}

/* That row is there, and still to be counted; 1: a window ends with it. */
TK_INLINE int tk_signal_push(const TK_FLASH struct tk_signal *k, uint32_t *state)
{
    int finished = 0;
    uint32_t i;
    if (state[TK_STATE_WAIT] == 0u) {
        state[TK_STATE_WAIT] = k->hop;
        state[TK_STATE_PENDING] = 0u; /* it begins where the window was that is done */
        state[TK_STATE_AGES + state[TK_STATE_NEXT]] = 0u;
        state[TK_STATE_NEXT] =
            state[TK_STATE_NEXT] + 1u == k->windows ? 0u : state[TK_STATE_NEXT] + 1u;
    }
    --state[TK_STATE_WAIT];
    for (i = 0u; i < k->windows; ++i) {
        uint32_t *const age = state + TK_STATE_AGES + i;
        if (*age != k->rows && ++*age == k->rows) {
            state[TK_STATE_FINISHED] = i;
            state[TK_STATE_PENDING] = 1u;
            finished = 1;
        }
    }
    return finished;
}

/* tk_signal_respond with the structure of the stage: not inlined, so that the registers are those
 * of its loops. */
typedef const TK_FLASH uint32_t *tk_signal_respond_t(const TK_FLASH uint32_t *kernel,
                                                     tk_count_t *running, const uint32_t *state,
                                                     uint32_t part);

/* Count the newest row in all windows: the responses that end with it, and the cells that begin or
 * end. A call does `split` of the last `left` parts; those of the next samples, or the decision, do
 * the others: no call takes much longer than another. */
TK_INLINE void tk_signal_count(const TK_FLASH struct tk_signal *k, tk_signal_respond_t *respond,
                               uint32_t *state, uint32_t left)
{
    const uint32_t begin = k->distances * k->turns - left;
    tk_count_t *running = (tk_count_t *)(state + k->running);
    const TK_FLASH uint32_t *kernel = k->codes;
    uint32_t d;
    for (d = 0u; d < k->distances; ++d) {
        const TK_FLASH uint32_t *first = kernel;
        tk_count_t *end = running;
        uint32_t window = 0u;
        if (d - begin / k->turns >= k->split) {
            kernel += tk_signal_dilation(k, d, 1u);
            running += kernel - first;
            continue;
        }
        if (k->turns != 1u) {
            uint32_t m = tk_signal_channel(k, begin % k->turns);
            while (m != 0u) {
                kernel += tk_item(k->groups, k->group_bytes, d * k->channels + --m);
            }
            running += kernel - first;
            first = kernel;
            end = running;
        }
        kernel = respond(kernel, running, state, k->turns == 1u ? d : begin);
        running += kernel - first;
        TK_HIDE(window); /* so that the loop is not unrolled */
        for (; window < k->windows; ++window) {
            tk_signal_cells(k, d, state[TK_STATE_AGES + window], end, running,
                            tk_signal_window(k, state, window) +
                                (uint32_t)(first - k->codes) * k->cells);
        }
    }
    state[TK_STATE_LATER] = left > k->split ? left - k->split : 0u;
}

/* Whether parts are still to be counted. */
TK_INLINE int tk_signal_later(const TK_FLASH struct tk_signal *k, const uint32_t *state)
{
    return k->split != k->distances * k->turns && state[TK_STATE_LATER] != 0u;
}

/* Whether the last cells of the window that is done are still to be ended. */
TK_INLINE int tk_signal_pending(const uint32_t *state)
{
    return state[TK_STATE_PENDING] != 0u;
}

/* End them. */
TK_INLINE void tk_signal_end(const TK_FLASH struct tk_signal *k, uint32_t *state)
{
    const tk_count_t *running = (const tk_count_t *)(state + k->running);
    const tk_count_t *const end = running + k->kernels;
    tk_count_t *place = tk_signal_window(k, state, state[TK_STATE_FINISHED]) + (k->cells - 1u);
    state[TK_STATE_PENDING] = 0u;
    while (running != end) {
        *place = (tk_count_t)(*running++ - *place);
        place += k->cells;
    }
}

/* The counts of that window, in the order of the model; `ordered` may take them. */
TK_INLINE const tk_count_t *tk_signal_counts(const TK_FLASH struct tk_signal *k, uint32_t *state,
                                             uint32_t *ordered)
{
    const tk_count_t *const counts = tk_signal_window(k, state, state[TK_STATE_FINISHED]);
    tk_count_t *const out = (tk_count_t *)ordered;
    uint32_t i;
    if (k->order_bytes == 0u) {
        return counts;
    }
    for (i = 0u; i < k->kernels * k->cells; ++i) {
        out[i] = counts[tk_item(k->order, k->order_bytes, i)];
    }
    return out;
}

#endif
