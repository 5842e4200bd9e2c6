/* The fast Walsh-Hadamard transform on d/2 words of two int16 values, in place.
 *
 * Value j stands in word j / 2, so that stage 0 works inside a word and is merged into whatever
 * fills the words (tk_input.h, tk_diagonal.h); stage k >= 1 has a stride of 2^(k-1) words. A pass
 * does up to three stages in one go, holding eight words in registers: one load and one store for
 * three stages. Strides and schedule are literals after inlining, so that the offsets become
 * immediates and a stage costs two or (halving) eight operations for four values, two with packed
 * instructions. `halve`: bit k set when stage k halves. */
#ifndef TK_TRANSFORM_H
#define TK_TRANSFORM_H

#include "tk_words.h"

/* Stages k, k + 1 on w[0..3], where w[i] are 2^(k-1) words apart; `halve` is shifted so that its
 * bit 0 belongs to stage k. */
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

/* Thumb-1 has immediate offsets of up to 31 words only. Where a stride is longer, this hides the
 * value of a variable from the compiler, which would build the offset anew for each access. */
#if defined(__GNUC__) && defined(__thumb__) && !defined(__thumb2__)
#define TK_IN_REGISTER(variable, stride)  \
    do {                                  \
        if ((stride) > 10u) {             \
            __asm__("" : "+r"(variable)); \
        }                                 \
    } while (0)
#else
#define TK_IN_REGISTER(variable, stride) (void)(variable)
#endif

/* Stage `stage` of all words. */
TK_INLINE void tk_pass2(uint32_t *words, uint32_t stage, uint32_t halve)
{
    const uint32_t stride = 1u << (stage - 1u);
    uint32_t *const end = words + TK_PAIRS;
    for (; words != end; words += stride) {
        uint32_t *const group = words + stride;
        for (; words != group; ++words) {
            tk_butterfly(words, words + stride, halve >> stage & 1u);
        }
    }
}

/* Stages `stage` and `stage` + 1 of all words. */
TK_INLINE void tk_pass4(uint32_t *words, uint32_t stage, uint32_t halve)
{
    const uint32_t stride = 1u << (stage - 1u);
    uint32_t *const end = words + TK_PAIRS;
    for (; words != end; words += 3u * stride) {
        uint32_t *const group = words + stride;
        uint32_t *far = words + 2u * stride;
        uint32_t step = stride;
        TK_IN_REGISTER(far, stride);
        TK_IN_REGISTER(step, stride);
        for (; words != group; ++words) {
            uint32_t w[4];
            w[0] = words[0];
            w[1] = words[step];
            w[2] = far[0];
            w[3] = far[step];
            tk_stages4(w, halve >> stage);
            words[0] = w[0];
            words[step] = w[1];
            far[0] = w[2];
            far[step] = w[3];
            ++far;
        }
    }
}

/* Stages `stage` to `stage` + 2 of all words. */
TK_INLINE void tk_pass8(uint32_t *words, uint32_t stage, uint32_t halve)
{
    const uint32_t stride = 1u << (stage - 1u);
    uint32_t *const end = words + TK_PAIRS;
    for (; words != end; words += 7u * stride) {
        uint32_t *const group = words + stride;
        for (; words != group; ++words) {
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
            words[0] = w[0];
            words[stride] = w[1];
            words[2u * stride] = w[2];
            words[3u * stride] = w[3];
            words[4u * stride] = w[4];
            words[5u * stride] = w[5];
            words[6u * stride] = w[6];
            words[7u * stride] = w[7];
        }
    }
}

#if TK_RADIX == 8

/* Stages `stage`..log2 d - 1, at most three a pass. */
TK_INLINE void tk_stages(uint32_t *words, uint32_t stage, uint32_t halve)
{
    const uint32_t rest = (TK_LOG2_DIMENSION - stage) % 3u;
    if (TK_LOG2_DIMENSION - stage == 1u) {
        tk_pass2(words, stage, halve);
        return;
    }
    if (rest == 1u) {
        tk_pass4(words, stage, halve);
        stage += 2u;
    }
    if (rest != 0u) {
        tk_pass4(words, stage, halve);
        stage += 2u;
    }
    if (stage < TK_LOG2_DIMENSION) {
        tk_pass8(words, stage, halve);
    }
    if (stage + 3u < TK_LOG2_DIMENSION) {
        tk_pass8(words, stage + 3u, halve);
    }
    if (stage + 6u < TK_LOG2_DIMENSION) {
        tk_pass8(words, stage + 6u, halve);
    }
    if (stage + 9u < TK_LOG2_DIMENSION) {
        tk_pass8(words, stage + 9u, halve);
    }
    if (stage + 12u < TK_LOG2_DIMENSION) {
        tk_pass8(words, stage + 12u, halve);
    }
}

#elif TK_RADIX == 4

/* Stages `stage`..log2 d - 1, at most two a pass. */
TK_INLINE void tk_stages(uint32_t *words, uint32_t stage, uint32_t halve)
{
    if ((TK_LOG2_DIMENSION - stage) % 2u != 0u) {
        tk_pass2(words, stage, halve);
        stage += 1u;
    }
    if (stage < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage, halve);
    }
    if (stage + 2u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 2u, halve);
    }
    if (stage + 4u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 4u, halve);
    }
    if (stage + 6u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 6u, halve);
    }
    if (stage + 8u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 8u, halve);
    }
    if (stage + 10u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 10u, halve);
    }
    if (stage + 12u < TK_LOG2_DIMENSION) {
        tk_pass4(words, stage + 12u, halve);
    }
}

#else

/* Stages `stage`..log2 d - 1, one a pass, by one shared loop: the smallest code. */
TK_SHARED void tk_stages(uint32_t *words, uint32_t stage, uint32_t halve)
{
    for (; stage < TK_LOG2_DIMENSION; ++stage) {
        tk_pass2(words, stage, halve);
    }
}

#endif

#endif
