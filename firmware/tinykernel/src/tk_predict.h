/* SPDX-License-Identifier: Apache-2.0 */
/* Inference. A generated model source includes this file after it has defined the macros and tables
 * listed in tk_contract.h, and included the headers of its read-out. The first of them defines
 *   TK_GAIN(output)                 score per unit of a sum
 *   tk_sums(input, scratch, sums)   computes sums[TK_OUTPUTS] from quantized inputs
 *   TK_INPUTS_AT                    words of scratch before these inputs; undefined: 0
 *   TK_SUMS_RAW                     1: tk_sums_raw(input, sums) takes raw inputs, too
 *   TK_LOADS                        1: tk_load_inputs and tk_sums_loaded take raw inputs, too
 * and a second one TK_MORE_GAIN(output) and tk_more(input, more), whose sums are added.
 *
 * Regions of scratch, in order. It needs no initial content, and none is kept between calls:
 *   TK_FIRST_WORDS  first, working memory of the image stages. Then, with components, two vectors
 *                   of d int16 values, u and v (d/2 words each), and TK_BITS_WORDS words of bits;
 *                   without components the quantized inputs
 *   TK_MORE_WORDS   sums of the part beside the first one, if there are two
 *   TK_CLASSES      scores, in functions that return a label
 *   the rest        for an image its counts; for a window the state of a stream of that length
 */
#ifndef TK_PREDICT_H
#define TK_PREDICT_H

#include "tk_contract.h"
#include "tk_words.h"

#include "tk_input.h"

#if !defined(TK_GAIN)
#error "this model was generated for an older runtime: export it again"
#endif

#include "tk_finish.h"

#if defined(TK_MORE_GAIN)
#define TK_MORE_WORDS TK_OUTPUTS
#else
#define TK_MORE_WORDS 0u
#endif
#ifndef TK_INPUTS_AT
#define TK_INPUTS_AT 0u
#endif
#ifndef TK_LOADS
#define TK_LOADS 0
#endif
#ifndef TK_SUMS_RAW
#define TK_SUMS_RAW 0
#endif

#if TK_LOADS && !defined(TK_MORE_GAIN)

/* Compute scores[TK_CLASSES] from loaded inputs. */
TK_SHARED void tk_run(uint32_t *scratch, int32_t *scores)
{
    tk_sums_loaded(scratch, scores);
    tk_finish(scores, scores);
}

TK_INLINE void tk_scores_raw(const tk_raw_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_load_inputs(input, scratch, 1);
    tk_run(scratch, scores);
}

TK_INLINE void tk_scores_quantized(const tk_quantized_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_load_inputs(input, scratch, 0);
    tk_run(scratch, scores);
}

#else

/* Compute scores[TK_CLASSES] from quantized inputs. */
TK_SHARED void tk_run(const tk_quantized_t *input, uint32_t *scratch, int32_t *scores)
{
    int32_t *const more = (int32_t *)(scratch + TK_FIRST_WORDS);
#if defined(TK_MORE_GAIN)
    tk_more(input, more);
#endif
    tk_sums(input, scratch, scores);
    tk_finish(scores, more);
}

#if TK_SUMS_RAW && !defined(TK_MORE_GAIN)

/* Compute scores from raw inputs, of which the read-out reads few. */
TK_SHARED void tk_scores_raw(const tk_raw_t *input, uint32_t *scratch, int32_t *scores)
{
    (void)scratch;
    tk_sums_raw(input, scores);
    tk_finish(scores, scores);
}

#else

/* Compute scores from raw inputs. */
TK_INLINE void tk_scores_raw(const tk_raw_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_quantized_t *const quantized = (tk_quantized_t *)(scratch + TK_INPUTS_AT);
    tk_quantize(input, quantized);
    tk_run(quantized, scratch, scores);
}

#endif

TK_INLINE void tk_scores_quantized(const tk_quantized_t *input, uint32_t *scratch, int32_t *scores)
{
    tk_run(input, scratch, scores);
}

#endif

/* The functions that the generated source calls. For tables it also calls tk_quantize. */

/* Memory of the scores, in functions that return a label. */
TK_INLINE int32_t *tk_score_words(uint32_t *scratch)
{
    return (int32_t *)(scratch + TK_FIRST_WORDS + TK_MORE_WORDS);
}

#if TK_STAGES

/* Memory of the stages. */
TK_INLINE uint32_t *tk_stage_words(uint32_t *scratch)
{
    return scratch + TK_FIRST_WORDS + TK_MORE_WORDS + TK_CLASSES;
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
