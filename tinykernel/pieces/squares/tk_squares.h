/* SPDX-License-Identifier: Apache-2.0 */
/* Squares: sums of squared distances along rows of weights, one sum a class. */
#ifndef TK_SQUARES_H
#define TK_SQUARES_H

#include "tk_contract.h"

#define TK_SQUARES_FAR  46340               /* its square has 31 bits */
#define TK_SQUARES_MOST (UINT32_C(1) << 30) /* where a sum ends */

#if TK_SQUARES_BITS == 8
typedef int8_t tk_squares_weight_t;
#else
typedef int16_t tk_squares_weight_t;
#endif

/* Compute sums[TK_OUTPUTS]: less the sum of each class, of two classes the first less the second.
 */
TK_SHARED void tk_square_sums(const tk_quantized_t *input, int32_t *sums)
{
    const TK_FLASH tk_squares_weight_t *weight = tk_squares_weights;
    const TK_FLASH int32_t *offset = tk_squares_offsets;
    const TK_FLASH uint8_t *drop = tk_squares_drops;
    uint32_t output;
    for (output = 0u; output < TK_CLASSES; ++output) {
        uint32_t sum = 0u;
        uint32_t row = 0u;
        do {
            uint32_t dot = (uint32_t)*offset++;
            int32_t distance;
            uint32_t square;
#if TK_SQUARES_WIDTH == 1
            dot += (uint32_t)((int32_t)*weight++ * input[row]);
#else
            const tk_quantized_t *value = input + row;
            uint32_t left = TK_FEATURES - row;
#if TK_SQUARES_WIDTH < TK_FEATURES
            left = left < TK_SQUARES_WIDTH ? left : TK_SQUARES_WIDTH;
#endif
            do {
                dot += (uint32_t)((int32_t)*weight++ * *value++);
            } while (--left != 0u);
#endif
            distance = (int32_t)dot >> *drop++;
            if (distance < 0) {
                distance = -distance;
            }
            if (distance > TK_SQUARES_FAR) {
                distance = TK_SQUARES_FAR;
            }
            square = (uint32_t)(distance * distance) >> TK_SQUARES_SHIFT;
            sum = square > TK_SQUARES_MOST - sum ? TK_SQUARES_MOST : sum + square;
        } while (++row != TK_SQUARES_ROWS);
#if TK_OUTPUTS == 1
        sums[0] = output == 0u ? (int32_t)sum : sums[0] - (int32_t)sum;
#else
        sums[output] = -(int32_t)sum;
#endif
    }
}

#define TK_GAIN(output) 1u

TK_INLINE void tk_sums(const tk_quantized_t *input, uint32_t *scratch, int32_t *sums)
{
    (void)scratch;
    tk_square_sums(input, sums);
}

#endif
