/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "beside": numbers beside a window bypass the kernels and become counts behind its counts.
 *
 * State: the counts of the numbers, two per word, until tk_beside_keep replaces them. */
#ifndef TK_BESIDE_H
#define TK_BESIDE_H

#if TK_LEVELS_RAW_FLOAT
#include "tk_float.h"
#endif
#include "tk_stage.h"

#if TK_LEVELS_RAW_FLOAT
typedef float tk_beside_offset_t;
typedef float tk_beside_multiplier_t;
#else
typedef int32_t tk_beside_offset_t;
typedef uint32_t tk_beside_multiplier_t;
#endif

struct tk_beside {
    uint32_t counts;                 /* number of counts of a window */
    uint32_t entries;                /* number of counts of the numbers beside it */
    uint32_t factor;                 /* 2..65536: largest count of an entry, plus 1 */
    const TK_FLASH uint8_t *sources; /* for each entry the index of its number */
    /* For each entry its scaler to 8 bits; the last two for integers only, shifts 0..31. */
    const TK_FLASH tk_beside_offset_t *offsets;
    const TK_FLASH tk_beside_multiplier_t *multipliers;
    const TK_FLASH uint32_t *spans;
    const TK_FLASH uint8_t *shifts;
};

/* Level of entry i, 0..255. Any raw value is allowed; NaN counts as minus infinity. */
TK_INLINE uint32_t tk_beside_level(const TK_FLASH struct tk_beside *k, tk_sample_t raw, uint32_t i)
{
#if TK_LEVELS_RAW_FLOAT
    return tk_float_level(raw, k->offsets[i], k->multipliers[i], 255u);
#else
    const int32_t value = (int32_t)raw;
    const int32_t offset = k->offsets[i];
    uint32_t above = value > offset ? (uint32_t)value - (uint32_t)offset : 0u;
    if (above > k->spans[i]) {
        above = k->spans[i];
    }
    return ((above >> k->shifts[i]) * k->multipliers[i]) >> 16;
#endif
}

/* Store the counts of numbers[]. */
TK_INLINE void tk_beside_keep(const TK_FLASH struct tk_beside *k, uint32_t *state,
                              const tk_sample_t *numbers)
{
    tk_u16 *const stored = (tk_u16 *)state;
    uint32_t i;
    for (i = 0u; i < k->entries; ++i) {
        const uint32_t level = tk_beside_level(k, numbers[k->sources[i]], i);
        stored[i] = (tk_u16)((level * k->factor) >> 8);
    }
}

/* Write the counts of a window, then those of the numbers, to `joined`. `counts` may lie there. */
TK_INLINE const tk_count_t *tk_beside_join(const TK_FLASH struct tk_beside *k,
                                           const uint32_t *state, const tk_count_t *counts,
                                           uint32_t *joined)
{
    const tk_u16 *const stored = (const tk_u16 *)state;
    tk_count_t *const out = (tk_count_t *)joined;
    uint32_t i;
    for (i = 0u; i < k->counts; ++i) {
        out[i] = counts[i];
        TK_PLAIN_LOOP();
    }
    for (i = 0u; i < k->entries; ++i) {
        out[k->counts + i] = (tk_count_t)stored[i];
    }
    return out;
}

#endif
