/* The whole inference, put together from the kernels. Included by a generated model source after
 * it has defined the macros and tables that tk_config.h lists.
 *
 * Scratch: two vectors of d int16 values, u and v (d/2 words each), then TK_CLASSES words that
 * only tk_predict uses. Nothing in it has to be kept between calls or set before one. */
#ifndef TK_PREDICT_H
#define TK_PREDICT_H

#include "tk_config.h"
#include "tk_words.h"

#include "tk_input.h"
#include "tk_transform.h"

#include "tk_permutation.h"

#include "tk_diagonal.h"

#include "tk_kept.h"
#include "tk_scores.h"
#include "tk_windows.h"

/* The first transform, except its stage 0, and P: what the blocks share. */
TK_SHARED void tk_mix(uint32_t *scratch)
{
#if TK_PERMUTATION
    uint32_t *const loaded = scratch + TK_PAIRS;
#else
    uint32_t *const loaded = scratch;
#endif
    tk_stages(loaded, 1u, TK_HALVE_FIRST, 1u);
#if TK_PERMUTATION
    tk_permute(scratch, loaded);
#endif
}

/* Where the inputs are loaded to. */
TK_INLINE uint32_t *tk_loaded(uint32_t *scratch)
{
    return TK_PERMUTATION ? scratch + TK_PAIRS : scratch;
}

/* scores[TK_CLASSES] from the loaded inputs. */
TK_SHARED void tk_run(uint32_t *scratch, int32_t *scores)
{
    uint32_t *const v = scratch + TK_PAIRS;
#if TK_GROUP_WORDS
    const uint32_t *windows = tk_windows;
#else
    const uint32_t *const windows = tk_weights; /* is not read */
#endif
    const uint32_t *weights = tk_weights;
    uint32_t block;
    uint32_t output;
    tk_mix(scratch);
    for (output = 0u; output < TK_OUTPUTS; ++output) {
        scores[output] = 0;
        TK_PLAIN_LOOP();
    }
    for (block = 0u; block < TK_BLOCKS; ++block) {
        const uint32_t count = TK_WORDS(block);
        tk_project(v, scratch, tk_diagonal + block * TK_DIAGONAL_WORDS);
#if TK_KEPT
        tk_keep(v, tk_kept + block * (TK_DIMENSION / 32u));
#endif
#if defined(TK_SCALE)
        tk_compare(v, v, windows, count, TK_SCALE(block) << TK_PHASE_SHIFT);
#else
        tk_compare(v, v, windows, count, 0u);
#endif
#if TK_GROUP_WORDS
        windows += count * TK_WINDOW_WORDS;
#endif
#if defined(TK_TAIL)
        v[count - 1u] |= TK_TAIL(block);
#endif
        weights = tk_count(scores, v, weights, count);
    }
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
    int32_t *const scores = (int32_t *)(scratch + TK_DIMENSION);
    tk_scores(input, scratch, scores);
    return tk_largest(scores);
}

TK_INLINE int tk_predict_quantized(const tk_quantized_t *input, uint32_t *scratch)
{
    int32_t *const scores = (int32_t *)(scratch + TK_DIMENSION);
    tk_scores_quantized(input, scratch, scores);
    return tk_largest(scores);
}

#endif
