/* SPDX-License-Identifier: Apache-2.0 */
/* The permutation P between the two transforms: target[j] = source[P(j)], int16 values.
 *
 * Both vectors are side-by-side words with their halves exchanged (value 2i high), see tk_input.h.
 * The source is not needed afterwards. */
#ifndef TK_PERMUTATION_H
#define TK_PERMUTATION_H

#include "tk_words.h"

#if TK_PERMUTATION == 1

#define TK_HALF_ORBIT 0x80000000u /* d/2, in the top bits of a word */

/* Word of two values, at an even and an odd index, which stand in the top bits of a word. */
TK_INLINE uint32_t tk_gather(const uint32_t *source, uint32_t even, uint32_t odd)
{
    const uint32_t low = tk_half_at(source, (odd >> (31 - TK_LOG2_DIMENSION)) - 2u);
    const uint32_t high = tk_half_at(source, (even >> (31 - TK_LOG2_DIMENSION)) + 2u);
    return low | high << 16;
}

/* The orbit of index -> multiplier * index + increment, which is odd and even in turn. Indices
 * stand in the top bits of a word, so that they wrap by themselves. Half an orbit later the index
 * is the same plus d/2: the orbit modulo d/2 has come round once, that modulo d has not. */
TK_INLINE void tk_permute(uint32_t *target, const uint32_t *source)
{
    const uint32_t multiplier = TK_ORBIT_MULTIPLIER;
    uint32_t increment = (uint32_t)TK_ORBIT_INCREMENT << (32 - TK_LOG2_DIMENSION);
    uint32_t *const end = target + TK_PAIRS / 2u;
    uint32_t index = 0u;
    TK_HIDE(increment); /* in a register, for a multiplication that accumulates */
    do {
        const uint32_t even = index;
        const uint32_t odd = index * multiplier + increment;
        index = odd * multiplier + increment;
        target[0] = tk_gather(source, even, odd);
        target[TK_PAIRS / 2u] = tk_gather(source, even ^ TK_HALF_ORBIT, odd ^ TK_HALF_ORBIT);
        ++target;
    } while (target != end);
}

#endif

#endif
