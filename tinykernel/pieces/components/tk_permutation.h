/* SPDX-License-Identifier: Apache-2.0 */
/* The permutation P between the two transforms: target[j] = source[P(j)], int16 values.
 *
 * Both vectors are side-by-side words with exchanged halves (value 2i high), see tk_words.h. */
#ifndef TK_PERMUTATION_H
#define TK_PERMUTATION_H

#include "tk_words.h"

#if TK_PERMUTATION == 1

#define TK_HALF_ORBIT 0x80000000u /* d/2, in the top bits of a word */

/* Word of two values, at an even and an odd index. The top bits of `even` and `odd` hold the
 * indices. */
TK_INLINE uint32_t tk_gather(const uint32_t *source, uint32_t even, uint32_t odd)
{
    const uint32_t low = tk_half_at(source, (odd >> (31 - TK_LOG2_DIMENSION)) - 2u);
    const uint32_t high = tk_half_at(source, (even >> (31 - TK_LOG2_DIMENSION)) + 2u);
    return low | high << 16;
}

/* P is the orbit of index -> multiplier * index + increment, which alternates between even and odd.
 * Indices are in the top bits of a word, so that they wrap around. Half an orbit adds d/2 to an
 * index: modulo d/2 the orbit is then complete, modulo d it is not. */
TK_INLINE void tk_permute(uint32_t *target, const uint32_t *source)
{
    const uint32_t multiplier = TK_ORBIT_MULTIPLIER;
    uint32_t increment = (uint32_t)TK_ORBIT_INCREMENT << (32 - TK_LOG2_DIMENSION);
    uint32_t *const end = target + TK_PAIRS / 2u;
    uint32_t index = 0u;
    TK_HIDE(increment); /* in a register, for a multiply-accumulate instruction */
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
