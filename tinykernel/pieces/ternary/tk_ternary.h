/* SPDX-License-Identifier: Apache-2.0 */
/* Ternary part: for every output, the number of components that agree with their weights.
 *
 * Steps: load, mix, blocks. They pass their results on in scratch. */
#ifndef TK_TERNARY_H
#define TK_TERNARY_H

#include "tk_input.h"
#include "tk_transform.h"

#include "tk_permutation.h"

#include "tk_diagonal.h"

#include "tk_kept.h"
#include "tk_scores.h"
#include "tk_windows.h"

#define TK_GAIN(output) ((uint32_t)tk_gains[output])
#define TK_INPUTS_AT    (TK_PERMUTATION ? 0u : TK_PAIRS) /* where tk_load does not write */
#define TK_LOADS        1

/* Where tk_load writes the inputs of the first transform. */
TK_INLINE uint32_t *tk_loaded(uint32_t *scratch)
{
    return TK_PERMUTATION ? scratch + TK_PAIRS : scratch;
}

/* Mix: the first transform except stage 0, then P. All blocks share the result. */
TK_SHARED void tk_mix(uint32_t *scratch)
{
    uint32_t *const loaded = tk_loaded(scratch);
    tk_stages(loaded, 1u, TK_HALVE_FIRST, 1u);
#if TK_PERMUTATION
    tk_permute(scratch, loaded);
#endif
}

/* Blocks: compute projections, compare their phases with the windows, and count the components that
 * agree with their weights, in counts[TK_OUTPUTS]. The bits of several short blocks are collected
 * and counted together. */
TK_INLINE void tk_blocks(uint32_t *scratch, int32_t *counts)
{
    uint32_t *const v = scratch + TK_PAIRS;
    uint32_t *const bits = TK_BITS_WORDS != 0u ? scratch + TK_DIMENSION : v;
#if TK_GROUP_WORDS
    const TK_FLASH uint32_t *windows = tk_windows;
#else
    const TK_FLASH uint32_t *const windows = tk_weights; /* never read */
#endif
    const TK_FLASH uint32_t *weights = tk_weights;
    uint32_t waiting = 0u;
    uint32_t block = 0u;
    do {
        const uint32_t count = TK_WORDS(block);
        tk_project(v, scratch, tk_diagonal + block * TK_DIAGONAL_WORDS);
#if TK_KEPT
        tk_keep(v, tk_kept + block * (TK_DIMENSION / 32u));
#endif
#if defined(TK_SCALE)
        tk_compare(bits + waiting, v, windows, count, TK_SCALE(block) << TK_PHASE_SHIFT);
#else
        tk_compare(bits + waiting, v, windows, count, 0u);
#endif
#if TK_GROUP_WORDS
        windows += count * TK_WINDOW_WORDS;
#endif
        waiting += count;
#if defined(TK_TAIL)
        bits[waiting - 1u] |= TK_TAIL(block);
#endif
        ++block;
        if (TK_BITS_WORDS == 0u || waiting > TK_BITS_FULL || block == TK_BLOCKS) {
            weights = tk_count(counts, bits, weights, waiting);
            waiting = 0u;
        }
    } while (block != TK_BLOCKS);
}

/* Count the components that agree, from inputs that tk_load has written. */
TK_INLINE void tk_components(uint32_t *scratch, int32_t *counts)
{
    uint32_t output;
    tk_mix(scratch);
    for (output = 0u; output < TK_OUTPUTS; ++output) {
        counts[output] = 0;
        TK_PLAIN_LOOP();
    }
    tk_blocks(scratch, counts);
}

/* Load inputs, raw or quantized ones, and count. */
TK_INLINE void tk_load_inputs(const void *input, uint32_t *scratch, int raw)
{
    tk_load(input, tk_loaded(scratch), raw);
}

/* Compute sums[TK_OUTPUTS] from inputs that are loaded. */
TK_INLINE void tk_sums_loaded(uint32_t *scratch, int32_t *sums)
{
    tk_components(scratch, sums);
}

TK_INLINE void tk_sums(const tk_quantized_t *input, uint32_t *scratch, int32_t *sums)
{
    tk_load_inputs(input, scratch, 0);
    tk_sums_loaded(scratch, sums);
}

#endif
