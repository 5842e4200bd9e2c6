/* The permutation P between the two transforms: target[j] = source[P(j)], int16 values.
 *
 * Both vectors are side-by-side words with their halves exchanged (value 2i high), see tk_input.h.
 * The source is not needed afterwards. */
#ifndef TK_PERMUTATION_H
#define TK_PERMUTATION_H

#include "tk_words.h"

/* Value `index` of side-by-side words with exchanged halves, in the low 16 bits; what stands above
 * is not specified. */
TK_INLINE uint32_t tk_value(const uint32_t *words, uint32_t index)
{
    return words[index >> 1] >> ((~index & 1u) << 4);
}

#if TK_PERMUTATION == 1

TK_INLINE void tk_permute(uint32_t *target, const uint32_t *source)
{
    uint32_t index = 0u;
    uint32_t i;
    for (i = 0u; i < TK_PAIRS; ++i) {
        const uint32_t even = tk_value(source, index);
        index = (index * TK_ORBIT_MULTIPLIER + TK_ORBIT_INCREMENT) & (TK_DIMENSION - 1u);
        target[i] = tk_side_by_side((int32_t)tk_value(source, index), (int32_t)even);
        index = (index * TK_ORBIT_MULTIPLIER + TK_ORBIT_INCREMENT) & (TK_DIMENSION - 1u);
    }
}

#elif TK_PERMUTATION == 2

TK_INLINE void tk_permute(uint32_t *target, const uint32_t *source)
{
    uint32_t i;
    for (i = 0u; i < TK_PAIRS; ++i) {
        const uint32_t even = tk_value(source, tk_permutation[2u * i]);
        const uint32_t odd = tk_value(source, tk_permutation[2u * i + 1u]);
        target[i] = tk_side_by_side((int32_t)odd, (int32_t)even);
    }
}

#endif

#endif
