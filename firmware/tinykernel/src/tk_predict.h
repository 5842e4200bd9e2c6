/* SPDX-License-Identifier: Apache-2.0 */
/* The whole inference, put together from the kernels. Included by a generated model source after
 * it has defined the macros and tables that tk_contract.h lists.
 *
 * Scratch: two vectors of d int16 values, u and v (d/2 words each), then TK_BITS_WORDS words of
 * bits, then TK_CLASSES words that only tk_predict uses. Nothing in it has to be kept between calls
 * or set before one. */
#ifndef TK_PREDICT_H
#define TK_PREDICT_H

#include "tk_contract.h"
#include "tk_words.h"

#include "tk_input.h"
#include "tk_transform.h"

#include "tk_permutation.h"

#include "tk_diagonal.h"

#include "tk_kept.h"
#include "tk_scores.h"
#include "tk_windows.h"

/* Stages: load -> mix -> blocks -> scores -> finish. Each of the first three leaves its result in
 * scratch for the next one. */

/* Load: where the inputs go, before the first transform. */
TK_INLINE uint32_t *tk_loaded(uint32_t *scratch)
{
    return TK_PERMUTATION ? scratch + TK_PAIRS : scratch;
}

/* Mix: the first transform, except its stage 0, and P. What the blocks share. */
TK_SHARED void tk_mix(uint32_t *scratch)
{
    uint32_t *const loaded = tk_loaded(scratch);
    tk_stages(loaded, 1u, TK_HALVE_FIRST, 1u);
#if TK_PERMUTATION
    tk_permute(scratch, loaded);
#endif
}

/* Blocks: project, compare, and count[TK_OUTPUTS] the components that agree with their weights.
 * Where blocks are short, the bits of several wait to be counted together. */
TK_INLINE void tk_blocks(uint32_t *scratch, int32_t *counts)
{
    uint32_t *const v = scratch + TK_PAIRS;
    uint32_t *const bits = TK_BITS_WORDS != 0u ? scratch + TK_DIMENSION : v;
#if TK_GROUP_WORDS
    const uint32_t *windows = tk_windows;
#else
    const uint32_t *const windows = tk_weights; /* is not read */
#endif
    const uint32_t *weights = tk_weights;
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

/* scores[TK_CLASSES] from the loaded inputs. */
TK_SHARED void tk_run(uint32_t *scratch, int32_t *scores)
{
    uint32_t output;
    tk_mix(scratch);
    for (output = 0u; output < TK_OUTPUTS; ++output) {
        scores[output] = 0;
        TK_PLAIN_LOOP();
    }
    tk_blocks(scratch, scores);
    tk_finish(scores);
}

/* The functions of the interface; the fifth, tk_quantize, is in tk_input.h. */

TK_INLINE void tk_scores(const tk_raw_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_load(input, tk_loaded(scratch), 1);
    tk_run(scratch, scores);
}

TK_INLINE void tk_scores_quantized(const tk_quantized_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_load(input, tk_loaded(scratch), 0);
    tk_run(scratch, scores);
}

TK_INLINE int tk_predict(const tk_raw_t *input, uint32_t *scratch)
{
    int32_t *const scores = (int32_t *)(scratch + TK_DIMENSION + TK_BITS_WORDS);
    tk_scores(input, scratch, scores);
    return tk_largest(scores);
}

TK_INLINE int tk_predict_quantized(const tk_quantized_t *input, uint32_t *scratch)
{
    int32_t *const scores = (int32_t *)(scratch + TK_DIMENSION + TK_BITS_WORDS);
    tk_scores_quantized(input, scratch, scores);
    return tk_largest(scores);
}

#endif
