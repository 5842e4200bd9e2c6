/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "kernels" of signals: kernels of nine taps, applied to each row of levels as it arrives.
 *
 * Kernels with the same dilation and channel share nine values v. The response of a kernel with
 * three taps of 2, at a, b and c, and six of -1 is 3 (v_a + v_b + v_c) - sum of v. Each kernel has
 * a running count of the responses above its threshold, which wraps around. The count of a cell of
 * a window is the running count at the end of the cell less that at its beginning. So overlapping
 * windows share the computation of responses.
 *
 * State: the words TK_STATE_*, the ages of the windows, the ring of levels, the running counts, the
 * counts of the windows. */
#ifndef TK_KERNELS_SIGNAL_H
#define TK_KERNELS_SIGNAL_H

#include "tk_stage.h"

struct tk_signal {
    uint32_t rows;      /* rows of a window */
    uint32_t channels;  /* channels of the levels */
    uint32_t kernels;   /* number of kernels, sorted by dilation, then channel */
    uint32_t cells;     /* number of cells of a window */
    uint32_t hop;       /* rows from the beginning of a window to that of the next one */
    uint32_t windows;   /* largest number of windows that overlap */
    uint32_t ring_rows; /* rows in the ring, the length of the longest kernel */
    uint32_t distances; /* number of different dilations */
    uint32_t turns;     /* number of parts of the channels: 1, 2, 4, ... */
    uint32_t split;     /* parts of the work on a row that one call does */
    uint32_t kinds;     /* 1: some kernels have nine taps of 1, or 1 for the newest value only */
    uint32_t ring;      /* word of the state where the ring begins */
    uint32_t running;   /* word where the running counts begin */
    uint32_t counts;    /* word where the counts of the windows begin */
    uint32_t window;    /* words of the counts of a window */
    uint32_t dilation_bytes; /* size of an element of dilations[], 1 or 2 */
    uint32_t group_bytes;    /* size of an element of groups[], 1 or 2 */
    uint32_t order_bytes;    /* size of an element of order[], 1 or 2; 0: no table */
    /* For each dilation: the dilation, the number of its kernels, and for each cell the age of a
     * window, in rows, at which it begins and the cell before ends. */
    const TK_FLASH void *dilations;
    const TK_FLASH void *groups; /* number of kernels of each dilation and channel */
    /* A word for each kernel: a, b and c, of 4 bits from the bottom; the upper 16 bits are the
     * threshold. (9, 11, 11) is the sum of all values, (10, 11, 11) the newest value. */
    const TK_FLASH uint32_t *codes;
    const TK_FLASH void *order; /* count i of the model is count order[i] */
};

/* Words of the state before the ages of the windows. The code generator and the checker of proofs
 * read this number here. */
#define TK_AGES_AT 7u

enum {
    TK_STATE_AT,       /* index of the newest row in the ring */
    TK_STATE_FILLED,   /* number of rows in the ring */
    TK_STATE_WAIT,     /* rows until the next window begins */
    TK_STATE_NEXT,     /* index of that window */
    TK_STATE_FINISHED, /* index of the finished window */
    TK_STATE_PENDING,  /* 1: its last cells, or all of them, are not yet counted */
    TK_STATE_LATER,    /* parts of the work on the newest row that are left */
    TK_STATE_AGES      /* for each window the number of its rows so far */
};
TK_ASSERT(ages_at, TK_STATE_AGES == TK_AGES_AT);

/* Initialise the state, which is cleared: no window has begun. */
TK_INLINE void tk_signal_init(uint32_t rows, uint32_t windows, uint32_t *state)
{
    uint32_t i;
    for (i = 0u; i < windows; ++i) {
        state[TK_STATE_AGES + i] = rows;
    }
}

/* Element i of dilations[] for dilation d. */
TK_INLINE uint32_t tk_signal_dilation(const TK_FLASH struct tk_signal *k, uint32_t d, uint32_t i)
{
    return tk_item(k->dilations, k->dilation_bytes, d * (k->cells + 2u) + i);
}

/* Where the counts of a window are. */
TK_INLINE tk_count_t *tk_signal_window(const TK_FLASH struct tk_signal *k, uint32_t *state,
                                       uint32_t window)
{
    return (tk_count_t *)(state + k->counts + window * k->window);
}

/* Store 3 v for each of the nine values v of a kernel, the newest last. Three more values serve
 * kernels without taps of 2, see `codes`. Returns the sum of the nine values. */
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

/* Positions in the ring of the nine rows of a dilation, oldest first. */
TK_INLINE void tk_signal_rows(const TK_FLASH struct tk_signal *k, uint32_t *rows, uint32_t at,
                              uint32_t dilation)
{
    uint32_t i = 9u;
    do {
        --i;
        rows[i] = at * k->channels;
        at = at >= dilation ? at - dilation : at + k->ring_rows - dilation;
    } while (i != 0u);
}

/* First channel of a part. */
TK_INLINE uint32_t tk_signal_channel(const TK_FLASH struct tk_signal *k, uint32_t turn)
{
    return turn * k->channels / k->turns;
}

/* Add the newest responses of the kernels of a part to their running counts. Returns the end of the
 * kernels. */
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
        /* The kernels are longer than the stream so far. */
        return kernel + tk_signal_dilation(k, d, 1u);
    }
    tk_signal_rows(k, rows, state[TK_STATE_AT], dilation);
    for (m = begin; m < last; ++m) {
        const TK_FLASH uint32_t *const end = kernel + tk_item(k->groups, k->group_bytes, group + m);
        if (kernel != end) {
            const int32_t sum = tk_signal_values(k, values, ring, rows);
            const int32_t *from = values;
            TK_HIDE(from); /* keeps the address in a register */
            do {
                const uint32_t code = *kernel++;
                const int32_t least = sum + ((int32_t)code >> 16);
                const int32_t taken =
                    from[code & 15u] + from[code >> 4 & 15u] + from[code >> 8 & 15u];
                *running = (tk_count_t)(*running + ((uint32_t)(least - taken) >> 31));
                ++running;
            } while (kernel != end);
        }
        ++ring;
    }
    return kernel;
}

/* Begin the cells of a window that are due at `age` rows, and end the cells before them. The
 * kernels have the running counts from `running` to `end`; `counts` are those of the first one in
 * the window. tk_signal_end ends the last cells, to shorten the work of a sample. */
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

/* Where the levels of the next row are to be written. */
TK_INLINE tk_u16 *tk_signal_next(const TK_FLASH struct tk_signal *k, uint32_t *state)
{
    tk_u16 *const ring = (tk_u16 *)(state + k->ring);
    if (++state[TK_STATE_AT] >= k->ring_rows) {
        state[TK_STATE_AT] = 0u;
    }
    if (state[TK_STATE_FILLED] < k->ring_rows) {
        ++state[TK_STATE_FILLED];
    }
    return ring + state[TK_STATE_AT] * k->channels;
}

/* The next row has been written. Returns 1 if a window ends with it. The row is not counted yet. */
TK_INLINE int tk_signal_push(const TK_FLASH struct tk_signal *k, uint32_t *state)
{
    int finished = 0;
    uint32_t i;
    if (state[TK_STATE_WAIT] == 0u) {
        state[TK_STATE_WAIT] = k->hop;
        state[TK_STATE_PENDING] = 0u; /* the new window replaces the finished one */
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

/* Type of a function that calls tk_signal_respond for a stage. It is not inlined, so that all
 * registers are free for its loops. */
typedef const TK_FLASH uint32_t *tk_signal_respond_t(const TK_FLASH uint32_t *kernel,
                                                     tk_count_t *running, const uint32_t *state,
                                                     uint32_t part);

/* Count the newest row: compute the responses that end with it, and begin and end cells of all
 * windows. `left` parts of this work remain; a call does `split` of them, and the next samples or
 * the decision do the others. So no call takes much longer than another. */
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
        TK_HIDE(window); /* keeps the loop from being unrolled */
        for (; window < k->windows; ++window) {
            tk_signal_cells(k, d, state[TK_STATE_AGES + window], end, running,
                            tk_signal_window(k, state, window) +
                                (uint32_t)(first - k->codes) * k->cells);
        }
    }
    state[TK_STATE_LATER] = left > k->split ? left - k->split : 0u;
}

/* Whether parts of the newest row are not yet counted. */
TK_INLINE int tk_signal_later(const TK_FLASH struct tk_signal *k, const uint32_t *state)
{
    return k->split != k->distances * k->turns && state[TK_STATE_LATER] != 0u;
}

/* Whether tk_signal_end must still end the last cells of the finished window. */
TK_INLINE int tk_signal_pending(const uint32_t *state)
{
    return state[TK_STATE_PENDING] != 0u;
}

/* End the last cells of the finished window. */
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

/* The counts of the finished window in the order of the model; `ordered` is scratch for them. */
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
