/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "dense": a hidden layer of units, each a weighted sum of values, shifted and clipped. */
#ifndef TK_DENSE_H
#define TK_DENSE_H

#include "tk_stage.h"

struct tk_dense {
    uint32_t values;                  /* number of inputs; their memory has a multiple of 32 */
    uint32_t units;                   /* number of units */
    uint32_t bits;                    /* width of a weight: 1 (0 is 1, 1 is -1), 2, 4 or 8 */
    uint32_t shift;                   /* right shift of a sum, 0..30 */
    const TK_FLASH uint32_t *weights; /* by unit, the first weight at the top of a word */
    const TK_FLASH int32_t *biases;   /* by unit */
};

/* Product of the weight at the top of a word and a value. */
TK_INLINE uint32_t tk_dense_product(const TK_FLASH struct tk_dense *k, uint32_t word, uint8_t value)
{
    const int32_t weight =
        k->bits == 1u ? (int32_t)(1u | tk_top_mask(word)) : (int32_t)word >> (32u - k->bits);
    return (uint32_t)(weight * (int32_t)value);
}

/* Dot product of a word of weights and as many values. */
TK_INLINE uint32_t tk_dense_word(const TK_FLASH struct tk_dense *k, uint32_t word,
                                 const uint8_t *values)
{
    uint32_t sum = 0u;
    uint32_t left = 32u / k->bits;
    do {
        sum += tk_dense_product(k, word, values[0]);
        sum += tk_dense_product(k, word << k->bits, values[1]);
        sum += tk_dense_product(k, word << 2u * k->bits, values[2]);
        sum += tk_dense_product(k, word << 3u * k->bits, values[3]);
        values += 4;
        left -= 4u;
        if (left != 0u) {
            word <<= 4u * k->bits & 31u;
        }
    } while (left != 0u);
    return sum;
}

/* Compute the units from values[], which are padded with zeros to whole words of weights. Returns
 * the units, which follow the memory of the values. */
TK_INLINE uint8_t *tk_dense_run(const TK_FLASH struct tk_dense *k, uint8_t *values)
{
    uint8_t *const units = values + ((k->values + 31u) & ~31u);
    const TK_FLASH uint32_t *weights = k->weights;
    const uint32_t each = 32u / k->bits;
    uint32_t i;
    for (i = k->values; (i & (each - 1u)) != 0u; ++i) {
        values[i] = 0u;
        TK_PLAIN_LOOP();
    }
    for (i = 0u; i < k->units; ++i) {
        const uint8_t *value = values;
        uint32_t sum = (uint32_t)k->biases[i];
        do {
            sum += tk_dense_word(k, *weights++, value);
            value += each;
        } while (value < values + k->values);
        units[i] = (uint8_t)tk_clipped((int32_t)sum, k->shift);
    }
    return units;
}

#endif
