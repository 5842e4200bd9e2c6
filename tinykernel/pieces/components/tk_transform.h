/* SPDX-License-Identifier: Apache-2.0 */
/* The fast Walsh-Hadamard transform of d/2 words of two int16 values, in place.
 *
 * Value j is in word j / 2. So stage 0 works inside a word, and is done by the code that writes the
 * words (tk_input.h, tk_diagonal.h). Stage k >= 1 has a stride of 2^(k-1) words. A pass computes up
 * to three stages with eight words in registers: one load and one store for three stages. After
 * inlining, strides and halvings are literals, and offsets are immediates. A stage then takes two
 * operations for four values, or eight if it halves; with packed instructions always two.
 *
 * `halve`: bit k is set if stage k halves. `beside` not 0: the last stage stores side-by-side
 * words, see tk_words.h. */
#ifndef TK_TRANSFORM_H
#define TK_TRANSFORM_H

#include "tk_words.h"

/* Stages k, k + 1 on w[0..3], which are 2^(k-1) words apart; bit 0 of `halve` belongs to stage k.
 */
TK_INLINE void tk_stages4(uint32_t *w, uint32_t halve)
{
    tk_butterfly(&w[0], &w[1], halve & 1u);
    tk_butterfly(&w[2], &w[3], halve & 1u);
    tk_butterfly(&w[0], &w[2], halve & 2u);
    tk_butterfly(&w[1], &w[3], halve & 2u);
}

/* Stages k, k + 1, k + 2 on w[0..7]. */
TK_INLINE void tk_stages8(uint32_t *w, uint32_t halve)
{
    tk_stages4(w, halve);
    tk_stages4(w + 4, halve);
    tk_butterfly(&w[0], &w[4], halve & 4u);
    tk_butterfly(&w[1], &w[5], halve & 4u);
    tk_butterfly(&w[2], &w[6], halve & 4u);
    tk_butterfly(&w[3], &w[7], halve & 4u);
}

/* Thumb-1 has immediate offsets of up to 31 words. For longer strides, this keeps an offset in a
 * register; the compiler would otherwise compute it for each access. */
#if defined(__thumb__) && !defined(__thumb2__)
#define TK_IN_REGISTER(variable, stride) \
    do {                                 \
        if ((stride) > 10u) {            \
            TK_HIDE(variable);           \
        }                                \
    } while (0)
#else
#define TK_IN_REGISTER(variable, stride) (void)(variable)
#endif

/* The form in which a pass stores a word. */
TK_INLINE uint32_t tk_stored(uint32_t word, uint32_t beside)
{
    return beside != 0u ? tk_as_side_by_side(word) : word;
}

/* Stage `stage` of all words. */
TK_INLINE void tk_pass2(uint32_t *words, uint32_t stage, uint32_t halve, uint32_t beside)
{
    const uint32_t stride = 1u << (stage - 1u);
    const uint32_t last = beside != 0u && stage + 1u == TK_LOG2_DIMENSION;
    uint32_t *const end = words + TK_PAIRS;
    do {
        uint32_t *const group = words + stride;
        do {
            uint32_t a = words[0];
            uint32_t b = words[stride];
            tk_butterfly(&a, &b, halve >> stage & 1u);
            words[0] = tk_stored(a, last);
            words[stride] = tk_stored(b, last);
        } while (++words != group);
        words += stride;
    } while (words != end);
}

/* Stages `stage` and `stage` + 1 of all words. */
TK_INLINE void tk_pass4(uint32_t *words, uint32_t stage, uint32_t halve, uint32_t beside)
{
    const uint32_t stride = 1u << (stage - 1u);
    const uint32_t last = beside != 0u && stage + 2u == TK_LOG2_DIMENSION;
    uint32_t *const end = words + TK_PAIRS;
    do {
        uint32_t *const group = words + stride;
        uint32_t *far = words + 2u * stride;
        uint32_t step = stride;
        TK_IN_REGISTER(far, stride);
        TK_IN_REGISTER(step, stride);
        do {
            uint32_t w[4];
            w[0] = words[0];
            w[1] = words[step];
            w[2] = far[0];
            w[3] = far[step];
            tk_stages4(w, halve >> stage);
            words[0] = tk_stored(w[0], last);
            words[step] = tk_stored(w[1], last);
            far[0] = tk_stored(w[2], last);
            far[step] = tk_stored(w[3], last);
            ++far;
        } while (++words != group);
        words += 3u * stride;
    } while (words != end);
}

/* Stages `stage` to `stage` + 2 of all words. */
TK_INLINE void tk_pass8(uint32_t *words, uint32_t stage, uint32_t halve, uint32_t beside)
{
    const uint32_t stride = 1u << (stage - 1u);
    const uint32_t last = beside != 0u && stage + 3u == TK_LOG2_DIMENSION;
    uint32_t *const end = words + TK_PAIRS;
    do {
        uint32_t *const group = words + stride;
        do {
            uint32_t w[8];
            w[0] = words[0];
            w[1] = words[stride];
            w[2] = words[2u * stride];
            w[3] = words[3u * stride];
            w[4] = words[4u * stride];
            w[5] = words[5u * stride];
            w[6] = words[6u * stride];
            w[7] = words[7u * stride];
            tk_stages8(w, halve >> stage);
            words[0] = tk_stored(w[0], last);
            words[stride] = tk_stored(w[1], last);
            words[2u * stride] = tk_stored(w[2], last);
            words[3u * stride] = tk_stored(w[3], last);
            words[4u * stride] = tk_stored(w[4], last);
            words[5u * stride] = tk_stored(w[5], last);
            words[6u * stride] = tk_stored(w[6], last);
            words[7u * stride] = tk_stored(w[7], last);
        } while (++words != group);
        words += 7u * stride;
    } while (words != end);
}

#if TK_RADIX == 8

/* Stages `stage`..log2 d - 1, at most three per pass. */
TK_INLINE void tk_stages(uint32_t *words, uint32_t stage, uint32_t halve, uint32_t beside)
{
    const uint32_t rest = (TK_LOG2_DIMENSION - stage) % 3u;
    if (TK_LOG2_DIMENSION - stage == 1u) {
        tk_pass2(words, stage, halve, beside);
        return;
    }
    if (rest == 1u) {
        tk_pass4(words, stage, halve, beside);
        stage += 2u;
    }
    if (rest != 0u) {
        tk_pass4(words, stage, halve, beside);
        stage += 2u;
    }
    if (stage < TK_LOG2_DIMENSION) {
        tk_pass8(words, stage, halve, beside);
    }
    if (stage + 3u < TK_LOG2_DIMENSION) {
        tk_pass8(words, stage + 3u, halve, beside);
    }
    if (stage + 6u < TK_LOG2_DIMENSION) {
        tk_pass8(words, stage + 6u, halve, beside);
    }
    if (stage + 9u < TK_LOG2_DIMENSION) {
        tk_pass8(words, stage + 9u, halve, beside);
    }
    if (stage + 12u < TK_LOG2_DIMENSION) {
        tk_pass8(words, stage + 12u, halve, beside);
    }
}

#elif TK_RADIX == 4

/* Stages `stage`..log2 d - 1, at most two per pass. */
TK_INLINE void tk_stages(uint32_t *words, uint32_t stage, uint32_t halve, uint32_t beside)
{
    if ((TK_LOG2_DIMENSION - stage) % 2u != 0u) {
        tk_pass2(words, stage, halve, beside);
        stage += 1u;
    }
    if (stage < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage, halve, beside);
    }
    if (stage + 2u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 2u, halve, beside);
    }
    if (stage + 4u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 4u, halve, beside);
    }
    if (stage + 6u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 6u, halve, beside);
    }
    if (stage + 8u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 8u, halve, beside);
    }
    if (stage + 10u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 10u, halve, beside);
    }
    if (stage + 12u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 12u, halve, beside);
    }
}

#else

/* Stages `stage`..log2 d - 1, one per pass, in one shared loop: the smallest code. */
TK_SHARED void tk_stages(uint32_t *words, uint32_t stage, uint32_t halve, uint32_t beside)
{
    for (; stage < TK_LOG2_DIMENSION; ++stage) {
        tk_pass2(words, stage, halve, beside);
    }
}

#endif

#endif
