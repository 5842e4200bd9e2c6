/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions from scores: a label or a refusal, its confidence, novelty, and events of a stream.
 *
 * Models with a decision part or with events include this file. It includes tk_predict.h, and uses
 * these macros and tables of the model:
 *   TK_THRESHOLD(i)        uint32_t: label i is refused if its margin is below; undefined if no
 *                          label is ever refused
 *   TK_CONFIDENCE_SHIFT    0..31: margin >> shift is an index of tk_confidence; undefined if the
 *                          model has events only
 *   tk_confidence[64]      uint8_t, ascending
 *   TK_NOVELTY_THRESHOLD   int32_t: an input is novel if its novelty is above; undefined if the
 *                          model computes no novelty
 *   TK_PROTOTYPES          see tk_contract.h; undefined if novelty is computed from the scores
 *   TK_NOVELTY_BIAS        with prototypes: int32_t, the distance that stands for a margin of 0
 *   TK_NOVELTY_GAIN        1..2^31 - 1: decrease of that distance per step of the margin
 *   TK_NOVELTY_STEPS       0..31: a step is 2 to this power
 *   TK_NOVELTY_TOP         (2^31 - 1) / gain: largest number of steps
 *   TK_EVENT_SHIFT         0..15: a sum decays over 2 to this power decisions; undefined if the
 *                          model has no events
 *   TK_EVENT_PAUSE         0..65535: number of decisions without events after an event
 *   TK_EVENT_BACKGROUND    1: some labels are background, which makes no events; 0: none is
 *   tk_event_thresholds[]  uint32_t, below 2^31: least sum of an event by label; 0: background
 *
 * The margin is the largest score less the second largest, 0 to 2^32 - 1. */
#ifndef TK_DECIDE_H
#define TK_DECIDE_H

#include "tk_predict.h"

#if defined(TK_PROTOTYPES)
#include "tk_prototypes.h"
#endif

#define TK_UNKNOWN  (-1)
#define TK_NO_EVENT (-2)

#if defined(TK_EVENT_SHIFT)

/* By how much a score exceeds another; 0 if it does not. */
TK_INLINE uint32_t tk_above(int32_t score, int32_t other)
{
    return score > other ? (uint32_t)score - (uint32_t)other : 0u;
}

/* Add the scores of the next decision to the sums of a stream. Returns the label of an event, or
 * TK_NO_EVENT. The low half of state[0] is the number of decisions to wait, the high half the label
 * of the event that has not ended, plus one. A sum for each class follows. All words begin as 0. */
TK_SHARED int tk_event(uint32_t *state, const int32_t *scores)
{
    const uint32_t limit = UINT32_C(0x7fffffff) >> TK_EVENT_SHIFT;
    uint32_t *const sums = state + 1;
    uint32_t wait = state[0] & 0xffffu;
    uint32_t held = state[0] >> 16;
    int event = TK_NO_EVENT;
    uint32_t margin;
    uint32_t least;
    const int label = tk_margin(scores, &margin);
    const int32_t second = (int32_t)((uint32_t)scores[label] - margin);
    int32_t rest = second;
    int i;
    if (TK_EVENT_BACKGROUND) {
        rest = INT32_MIN;
        for (i = 0; i < TK_CLASSES; ++i) {
            rest = tk_event_thresholds[i] == 0u && scores[i] > rest ? scores[i] : rest;
        }
    }
    for (i = 0; i < TK_CLASSES; ++i) {
        const uint32_t part = tk_above(i == label ? second : scores[label], rest) >> 2;
        const uint32_t gap = tk_above(scores[i], rest);
        const uint32_t taken = gap > part ? gap - part : 0u;
        sums[i] -= sums[i] >> TK_EVENT_SHIFT;
        sums[i] += taken < limit ? taken : limit;
    }
    if (held != 0u && sums[held - 1u] < tk_event_thresholds[held - 1u] >> 1) {
        held = 0u;
    }
    least = tk_event_thresholds[label];
    if (wait != 0u) {
        --wait;
    } else if (least != 0u && sums[label] >= least && held != (uint32_t)label + 1u) {
        event = label;
        held = (uint32_t)label + 1u;
        wait = TK_EVENT_PAUSE;
    }
    state[0] = held << 16 | wait;
    return event;
}

TK_INLINE int tk_stream_event(uint32_t *state, uint32_t *events, uint32_t *scratch)
{
    tk_stream_scores(state, scratch, tk_score_words(scratch));
    return tk_event(events, tk_score_words(scratch));
}

#endif

#if defined(TK_CONFIDENCE_SHIFT)

/* Return the label, or TK_UNKNOWN if its margin is below the threshold. */
TK_SHARED int tk_decide_scores(const int32_t *scores, uint32_t *margin)
{
    const int best = tk_margin(scores, margin);
#if defined(TK_THRESHOLD)
    if (*margin < TK_THRESHOLD(best)) {
        return TK_UNKNOWN;
    }
#endif
    return best;
}

TK_INLINE uint8_t tk_confidence_of(const int32_t *scores)
{
    uint32_t margin;
    (void)tk_margin(scores, &margin);
    margin >>= TK_CONFIDENCE_SHIFT;
    return tk_confidence[margin < 63u ? margin : 63u];
}

#if defined(TK_NOVELTY_THRESHOLD) && !defined(TK_PROTOTYPES)

/* Novelty of the scores: -1 less the largest one, which cannot overflow. */
TK_INLINE int32_t tk_novelty_of(const int32_t *scores)
{
    return -1 - scores[tk_largest(scores)];
}

TK_INLINE int tk_is_novel(const int32_t *scores)
{
    return tk_novelty_of(scores) > TK_NOVELTY_THRESHOLD;
}

#endif

#if TK_STAGES
typedef tk_sample_t tk_input_t;
#else
typedef tk_raw_t tk_input_t;
#endif

#if defined(TK_PROTOTYPES)

/* Novelty: the distance to the nearest prototype, or the distance that stands for the margin if
 * that is larger. */
TK_INLINE int32_t tk_novelty(int32_t distance, uint32_t margin)
{
    const uint32_t steps = margin >> TK_NOVELTY_STEPS;
    const uint32_t clipped = steps < TK_NOVELTY_TOP ? steps : TK_NOVELTY_TOP;
    const int32_t other = (int32_t)((uint32_t)TK_NOVELTY_BIAS - clipped * TK_NOVELTY_GAIN);
    return distance > other ? distance : other;
}

TK_INLINE int32_t tk_novelty_quantized(const tk_quantized_t *input, const int32_t *scores)
{
    uint32_t margin;
    (void)tk_margin(scores, &margin);
    return tk_novelty(tk_distance(input), margin);
}

/* Decision and novelty. The distance comes first: tk_scores_raw overwrites the quantized inputs. */
TK_SHARED int tk_judge(const tk_raw_t *input, uint32_t *scratch, uint32_t *margin, int32_t *novelty)
{
    tk_quantized_t *const quantized = (tk_quantized_t *)scratch;
    int32_t distance;
    int label;
    tk_quantize(input, quantized);
    distance = tk_distance(quantized);
    tk_scores_raw(input, scratch, tk_score_words(scratch));
    label = tk_decide_scores(tk_score_words(scratch), margin);
    *novelty = tk_novelty(distance, *margin);
    return label;
}

TK_INLINE int tk_decide_novelty(const tk_input_t *input, uint32_t *scratch, uint32_t *margin,
                                int32_t *novelty)
{
#if TK_STAGES
    return tk_judge(tk_counts(input, scratch, tk_stage_words(scratch)), scratch, margin, novelty);
#else
    return tk_judge(input, scratch, margin, novelty);
#endif
}

#if TK_STAGES >= 2
TK_INLINE int tk_stream_decide_novelty(uint32_t *state, uint32_t *scratch, uint32_t *margin,
                                       int32_t *novelty)
{
    return tk_judge(tk_done_counts(state, scratch), scratch, margin, novelty);
}
#endif

#endif

TK_INLINE int tk_decide(const tk_input_t *input, uint32_t *scratch, uint32_t *margin)
{
    tk_scores(input, scratch, tk_score_words(scratch));
    return tk_decide_scores(tk_score_words(scratch), margin);
}

#if TK_STAGES >= 2
TK_INLINE int tk_stream_decide(uint32_t *state, uint32_t *scratch, uint32_t *margin)
{
    tk_stream_scores(state, scratch, tk_score_words(scratch));
    return tk_decide_scores(tk_score_words(scratch), margin);
}
#endif

#endif

#endif
