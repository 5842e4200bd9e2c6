/* SPDX-License-Identifier: Apache-2.0 */
/* Inference. A generated model source includes this file after it has defined the macros and tables
 * listed in tk_contract.h.
 *
 * Regions of scratch, in order. It needs no initial content, and none is kept between calls:
 *   TK_FIRST_WORDS  first, working memory of the image stages. Then, with components, two vectors
 *                   of d int16 values, u and v (d/2 words each), and TK_BITS_WORDS words of bits;
 *                   without components the quantized inputs
 *   TK_DOT_WORDS    dot products of the linear part, if there are also components or trees
 *   TK_CLASSES      scores, in functions that return a label
 *   the rest        for an image its counts; for a window the state of a stream of that length
 */
#ifndef TK_PREDICT_H
#define TK_PREDICT_H

#include "tk_contract.h"
#include "tk_words.h"

#include "tk_input.h"
#if TK_BLOCKS
#include "tk_transform.h"

#include "tk_permutation.h"

#include "tk_diagonal.h"

#include "tk_kept.h"
#endif
#include "tk_scores.h"
#if TK_BLOCKS
#include "tk_windows.h"
#endif
#if TK_LINEAR_BITS
#include "tk_linear.h"
#endif
#if TK_TREES
#include "tk_trees.h"
#endif
#if TK_ONE_CLASS
#include "tk_prototypes.h"
#endif

#if (TK_BLOCKS || TK_TREES) && TK_LINEAR_BITS
#define TK_DOT_WORDS TK_OUTPUTS
#else
#define TK_DOT_WORDS 0u
#endif

#if TK_BLOCKS

/* Steps: load, mix, blocks, scores, finish. Load, mix and blocks pass their results on in scratch.
 */

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

#endif

#if TK_LINEAR_BITS || TK_TREES || TK_ONE_CLASS

/* Compute scores[TK_CLASSES] from quantized inputs. */
TK_SHARED void tk_run(const tk_quantized_t *input, uint32_t *scratch, int32_t *scores)
{
#if TK_ONE_CLASS
    (void)scratch;
    scores[1] = (int32_t)((uint32_t)tk_distance(input) + (uint32_t)tk_biases[0]);
    scores[0] = (int32_t)(0u - (uint32_t)scores[1]);
#elif TK_BLOCKS
    int32_t *const dots = (int32_t *)(scratch + TK_FIRST_WORDS);
    tk_dots(input, dots);
    tk_load(input, tk_loaded(scratch), 0);
    tk_components(scratch, scores);
    tk_finish(scores, dots);
#elif TK_TREES
    int32_t *const dots = (int32_t *)(scratch + TK_FIRST_WORDS);
#if TK_LINEAR_BITS
    tk_dots(input, dots);
#endif
    tk_sum_trees(input, scores);
    tk_finish(scores, dots);
#else
    (void)scratch;
    tk_dots(input, scores);
    tk_finish(scores, scores);
#endif
}

/* Compute scores from raw inputs. The quantized ones are stored where tk_load does not write. */
TK_INLINE void tk_scores_raw(const tk_raw_t *input, uint32_t *scratch, int32_t *scores)
{
#if TK_BLOCKS
    tk_quantized_t *const quantized =
        (tk_quantized_t *)(TK_PERMUTATION ? scratch : scratch + TK_PAIRS);
#else
    tk_quantized_t *const quantized = (tk_quantized_t *)scratch;
#endif
    tk_quantize(input, quantized);
    tk_run(quantized, scratch, scores);
}

TK_INLINE void tk_scores_quantized(const tk_quantized_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_run(input, scratch, scores);
}

#else

/* Compute scores[TK_CLASSES] from loaded inputs. */
TK_SHARED void tk_run(uint32_t *scratch, int32_t *scores)
{
    tk_components(scratch, scores);
    tk_finish(scores, scores);
}

TK_INLINE void tk_scores_raw(const tk_raw_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_load(input, tk_loaded(scratch), 1);
    tk_run(scratch, scores);
}

TK_INLINE void tk_scores_quantized(const tk_quantized_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_load(input, tk_loaded(scratch), 0);
    tk_run(scratch, scores);
}

#endif

/* The functions that the generated source calls. For tables it also calls tk_quantize. */

/* Memory of the scores, in functions that return a label. */
TK_INLINE int32_t *tk_score_words(uint32_t *scratch)
{
    return (int32_t *)(scratch + TK_FIRST_WORDS + TK_DOT_WORDS);
}

#if TK_STAGES

/* Memory of the stages. */
TK_INLINE uint32_t *tk_stage_words(uint32_t *scratch)
{
    return scratch + TK_FIRST_WORDS + TK_DOT_WORDS + TK_CLASSES;
}

TK_INLINE void tk_scores(const tk_sample_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_scores_raw(tk_counts(input, scratch, tk_stage_words(scratch)), scratch, scores);
}

TK_INLINE int tk_predict(const tk_sample_t *input, uint32_t *scratch)
{
    tk_scores(input, scratch, tk_score_words(scratch));
    return tk_largest(tk_score_words(scratch));
}

#if TK_STAGES >= 2

/* Counts of the finished window of a stream, or of the finished frame. */
TK_INLINE const tk_count_t *tk_done_counts(uint32_t *state, uint32_t *scratch)
{
#if TK_STAGES == 3
    return tk_frame_counts(state, scratch, tk_stage_words(scratch));
#else
    return tk_stream_counts(state, tk_stage_words(scratch));
#endif
}

TK_INLINE void tk_stream_scores(uint32_t *state, uint32_t *scratch, int32_t *scores)
{
    tk_scores_raw(tk_done_counts(state, scratch), scratch, scores);
}

TK_INLINE int tk_stream_predict(uint32_t *state, uint32_t *scratch)
{
    tk_stream_scores(state, scratch, tk_score_words(scratch));
    return tk_largest(tk_score_words(scratch));
}

#endif

#else

TK_INLINE void tk_scores(const tk_raw_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_scores_raw(input, scratch, scores);
}

TK_INLINE int tk_predict(const tk_raw_t *input, uint32_t *scratch)
{
    tk_scores(input, scratch, tk_score_words(scratch));
    return tk_largest(tk_score_words(scratch));
}

TK_INLINE int tk_predict_quantized(const tk_quantized_t *input, uint32_t *scratch)
{
    tk_scores_quantized(input, scratch, tk_score_words(scratch));
    return tk_largest(tk_score_words(scratch));
}

#endif

#endif
