/* SPDX-License-Identifier: Apache-2.0 */
/* Scores from the sums of the read-out, and the label of scores. */
#ifndef TK_FINISH_H
#define TK_FINISH_H

#include "tk_contract.h"

#if defined(TK_CURVE_BITS)
#include "tk_curve.h"
#endif

/* Turn sums of a part into scores[TK_CLASSES], in place; proved to fit int32. `more` are the sums
 * of the part beside it, if there is one. */
TK_INLINE void tk_finish(int32_t *scores, const int32_t *more)
{
    uint32_t output;
    for (output = 0u; output < TK_OUTPUTS; ++output) {
        uint32_t score = (uint32_t)tk_biases[output];
#if defined(TK_MORE_GAIN)
        score += TK_MORE_GAIN(output) * (uint32_t)more[output];
#endif
        score += TK_GAIN(output) * (uint32_t)scores[output];
        scores[output] = (int32_t)score;
#if defined(TK_CURVE_BITS)
        scores[output] = tk_curve(scores[output]);
#endif
    }
    (void)more;
#if TK_CLASSES != TK_OUTPUTS
    scores[1] = scores[0];
    scores[0] = (int32_t)(0u - (uint32_t)scores[1]);
#endif
}

/* Return the index of the largest score, of equal ones the first, and store its margin: the largest
 * less the second largest. */
TK_INLINE int tk_margin(const int32_t *scores, uint32_t *margin)
{
#if TK_CLASSES == 2
    const int best = scores[1] > scores[0];
    *margin = (uint32_t)scores[best] - (uint32_t)scores[1 - best];
#else
    int32_t largest = scores[0];
    int32_t second = (int32_t)0x80000000u;
    int best = 0;
    int i;
    for (i = 1; i < TK_CLASSES; ++i) {
        const int32_t score = scores[i];
        if (score > largest) {
            second = largest;
            largest = score;
            best = i;
        } else if (score > second) {
            second = score;
        }
    }
    *margin = (uint32_t)largest - (uint32_t)second;
#endif
    return best;
}

/* Index of the largest score; of equal ones the first. As tk_margin without a margin it took 36
 * bytes more on a Cortex-M0+. */
TK_INLINE int tk_largest(const int32_t *scores)
{
    int best = 0;
    int i;
    for (i = 1; i < TK_CLASSES; ++i) {
        if (scores[i] > scores[best]) {
            best = i;
        }
    }
    return best;
}

#endif
