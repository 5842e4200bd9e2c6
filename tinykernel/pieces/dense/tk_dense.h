/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "dense": a hidden layer of units, each a weighted sum of values, shifted and clipped.
 *
 * A weight of 2, 4 or 8 bits is stored as a code from 0 up: the weight plus 2^(bits - 1); of 1 bit,
 * 1 is 1 and 0 is -1. Each half of a word has 16 / bits codes, the first one at the bottom. Codes
 * 2n and 2n + 1 of the upper half belong to values 0 and 1 of the n-th four, those of the lower
 * half to values 2 and 3. Four units after another share a block, which has word 0 of each, then
 * word 1 of each; up to three units that remain have their words for themselves. */
#ifndef TK_DENSE_H
#define TK_DENSE_H

#include "tk_stage.h"

struct tk_dense {
    uint32_t values;                  /* number of inputs; their memory has a multiple of 32 */
    uint32_t units;                   /* number of units */
    uint32_t bits;                    /* width of a code: 1, 2, 4 or 8 */
    uint32_t shift;                   /* right shift of a sum, 0..30 */
    const TK_FLASH uint32_t *weights; /* codes, by blocks of units */
    const TK_FLASH int32_t *biases;   /* by unit */
};

/* Thumb-1 has so few registers that compilers must not change the order of products, and that four
 * units are computed at once with 8 bits only. An AVR has too little flash for that. */
#if TK_THUMB && !defined(__thumb2__)
#define TK_DENSE_THUMB1      1
#define TK_DENSE_ORDER(a, b) __asm__("" : "+r"(a), "+r"(b))
#else
#define TK_DENSE_THUMB1      0
#define TK_DENSE_ORDER(a, b) ((void)0)
#endif
#if defined(__AVR__)
#define TK_DENSE_AT_ONCE(bits) 0
#else
#define TK_DENSE_AT_ONCE(bits) ((bits) == 8u || TK_DSP)
#endif

/* The loop over a block needs most registers of a Cortex-M, so that it is a function there. */
#if defined(__thumb__)
#define TK_DENSE_BLOCK TK_SHARED
#define TK_DENSE_WAITS volatile /* in memory */
#else
#define TK_DENSE_BLOCK TK_INLINE
#define TK_DENSE_WAITS
#endif

/* The upper half of a product of halves is a.low * b.high + a.high * b.low, and what is below never
 * reaches it in a sum of four: no code is above 15. */
#if TK_DSP
#define TK_DENSE_SUM(sum, products) (products)
#define TK_DENSE_EVEN(word)         tk_uxtb16(word)
#define TK_DENSE_ODD(word)          tk_uxtb16_odd(word)
#else
#define TK_DENSE_SUM(sum, products) ((sum) + ((products) >> 16))
#define TK_DENSE_EVEN(word)         ((word) & 0x00ff00ffu)
#define TK_DENSE_ODD(word)          ((word) >> 8 & 0x00ff00ffu)
#endif

/* Write four values as halves, for codes of 1 bit doubled: these are 2 apart. */
TK_INLINE void tk_dense_halves(uint32_t *halves, const uint8_t *values, uint32_t bits)
{
    const uint32_t word = *(const uint32_t *)(const void *)values;
    halves[0] = TK_DENSE_EVEN(word) << (bits == 1u ? 1u : 0u);
    halves[1] = TK_DENSE_ODD(word) << (bits == 1u ? 1u : 0u);
}

/* Add two products of halves, which have been exchanged. */
TK_INLINE void tk_dense_add(uint32_t *sum, uint32_t codes, uint32_t values)
{
#if TK_DSP
    *sum = tk_smladx(codes, values, *sum);
#elif TK_DENSE_THUMB1
    if (TK_IS_LITERAL(*sum)) { /* the first one */
        *sum = codes * values;
        return;
    }
    __asm__(".syntax unified\n\tmuls %1, %2\n\tadds %0, %0, %1"
            : "+l"(*sum), "+l"(codes)
            : "l"(values)
            : "cc");
#else
    *sum += codes * values;
#if defined(__XTENSA__)
    TK_HIDE(*sum);
#endif
#endif
}

/* Add the products of a value and the codes of 8 bits of two units, of words in a row. */
TK_INLINE void tk_dense_add8(uint32_t *sum0, uint32_t *sum1, const TK_FLASH uint8_t *code,
                             uint32_t value)
{
#if TK_DENSE_THUMB1
    uint32_t product;
    __asm__(".syntax unified\n\tldrb %2, %4\n\tmuls %2, %3\n\tadds %0, %0, %2\n\t"
            "ldrb %2, %5\n\tmuls %2, %3\n\tadds %1, %1, %2"
            : "+l"(*sum0), "+l"(*sum1), "=&l"(product)
            : "l"(value), "m"(code[0]), "m"(code[4])
            : "cc");
#else
    *sum0 += code[0] * value;
    *sum1 += code[4] * value;
#if defined(__XTENSA__)
    TK_HIDE(*sum0);
    TK_HIDE(*sum1);
#endif
#endif
}

/* Add the products of four values and the lowest four codes of a word, of at most 4 bits; `mask`
 * has the bits of a code in each half. */
TK_INLINE void tk_dense_dot4(uint32_t *sum, uint32_t word, const uint32_t *halves, uint32_t bits,
                             uint32_t mask)
{
    tk_dense_add(sum, word & mask, halves[0]);
    tk_dense_add(sum, word >> bits & mask, halves[1]);
}

/* Add the products of eight values and as many codes. */
TK_INLINE void tk_dense_dot8(uint32_t *sum, uint32_t word, const uint32_t *halves, uint32_t bits,
                             uint32_t mask)
{
    uint32_t products = TK_DSP ? *sum : 0u;
    tk_dense_dot4(&products, word, halves, bits, mask);
    tk_dense_dot4(&products, word >> 2u * bits, halves + 2, bits, mask);
    *sum = TK_DENSE_SUM(*sum, products);
}

/* Add the products of four values and a word of codes of 8 bits. */
TK_INLINE void tk_dense_word8(uint32_t *sum, const TK_FLASH uint32_t *weights,
                              const uint8_t *values)
{
#if TK_DSP
    const uint32_t four = *(const uint32_t *)(const void *)values;
    *sum = tk_smladx(tk_uxtb16(*weights), tk_uxtb16(four), *sum);
    *sum = tk_smladx(tk_uxtb16_odd(*weights), tk_uxtb16_odd(four), *sum);
#else
    const TK_FLASH uint8_t *const codes = (const TK_FLASH uint8_t *)weights;
    *sum += (uint32_t)codes[2] * values[0];
    *sum += (uint32_t)codes[3] * values[1];
    *sum += (uint32_t)codes[0] * values[2];
    *sum += (uint32_t)codes[1] * values[3];
#endif
}

/* Add the products of a value and byte n of the words of four units. */
#define TK_DENSE_COLUMN(each, n)                             \
    do {                                                     \
        const uint32_t value = (each);                       \
        tk_dense_add8(&sum0, &sum1, codes + (n), value);     \
        tk_dense_add8(&sum2, &sum3, codes + (n) + 8, value); \
    } while (0)

/* Compute the sums of four units with codes of 8 bits. Not inline, for all registers. */
TK_DENSE_BLOCK void tk_dense_block8(uint32_t *sums, const TK_FLASH uint32_t *weights,
                                    const uint8_t *values, const uint8_t *end)
{
    uint32_t *TK_DENSE_WAITS to = sums;
    uint32_t sum0 = sums[0];
    uint32_t sum1 = sum0;
    uint32_t sum2 = sum0;
    uint32_t sum3 = sum0;
    do {
#if TK_DSP
        const uint32_t four = *(const uint32_t *)(const void *)values;
        tk_multiply_block(&sum0, &sum1, &sum2, &sum3, tk_uxtb16(four), tk_uxtb16_odd(four),
                          &weights);
#else
        const TK_FLASH uint8_t *const codes = (const TK_FLASH uint8_t *)weights;
        TK_DENSE_COLUMN(values[0], 2);
        TK_DENSE_COLUMN(values[1], 3);
        TK_DENSE_COLUMN(values[2], 0);
        TK_DENSE_COLUMN(values[3], 1);
        weights += 4;
#endif
        values += 4;
    } while (values != end);
    sums = to;
    sums[0] = sum0;
    sums[1] = sum1;
    sums[2] = sum2;
    sums[3] = sum3;
}

/* Compute the sums of four units with codes of at most 4 bits. */
TK_INLINE void tk_dense_block(uint32_t *sums, const TK_FLASH uint32_t *weights,
                              const uint8_t *values, const uint8_t *end, uint32_t bits)
{
    uint32_t mask = ((1u << bits) - 1u) * 0x00010001u;
    uint32_t place = 0u;
    uint32_t sum0 = sums[0];
    uint32_t sum1 = sum0;
    uint32_t sum2 = sum0;
    uint32_t sum3 = sum0;
    TK_HIDE(mask);
    do {
        uint32_t halves[4];
        tk_dense_halves(halves, values, bits);
        tk_dense_halves(halves + 2, values + 4, bits);
        tk_dense_dot8(&sum0, weights[0] >> place, halves, bits, mask);
        tk_dense_dot8(&sum1, weights[1] >> place, halves, bits, mask);
        tk_dense_dot8(&sum2, weights[2] >> place, halves, bits, mask);
        tk_dense_dot8(&sum3, weights[3] >> place, halves, bits, mask);
        place = (place + 4u * bits) & 15u;
        if (place == 0u) {
            weights += 4;
        }
        values += 8;
    } while (values != end);
    sums[0] = sum0;
    sums[1] = sum1;
    sums[2] = sum2;
    sums[3] = sum3;
}

/* For all registers, these are not inline. */
TK_DENSE_BLOCK void tk_dense_block1(uint32_t *sums, const TK_FLASH uint32_t *weights,
                                    const uint8_t *values, const uint8_t *end)
{
    tk_dense_block(sums, weights, values, end, 1u);
}

TK_DENSE_BLOCK void tk_dense_block2(uint32_t *sums, const TK_FLASH uint32_t *weights,
                                    const uint8_t *values, const uint8_t *end)
{
    tk_dense_block(sums, weights, values, end, 2u);
}

TK_DENSE_BLOCK void tk_dense_block4(uint32_t *sums, const TK_FLASH uint32_t *weights,
                                    const uint8_t *values, const uint8_t *end)
{
    tk_dense_block(sums, weights, values, end, 4u);
}

typedef void tk_dense_block_t(uint32_t *sums, const TK_FLASH uint32_t *weights,
                              const uint8_t *values, const uint8_t *end);

/* Return the sum of one unit, whose words are `stride` apart. */
TK_INLINE uint32_t tk_dense_unit(uint32_t sum, const TK_FLASH uint32_t *weights, uint32_t stride,
                                 const uint8_t *values, const uint8_t *end, uint32_t bits)
{
    uint32_t mask = ((1u << bits) - 1u) * 0x00010001u;
    uint32_t place = 0u;
    TK_HIDE(mask);
    do {
        if (bits == 8u) {
            tk_dense_word8(&sum, weights, values);
            values += 4;
        } else {
            uint32_t products = TK_DSP ? sum : 0u;
            uint32_t halves[2];
            tk_dense_halves(halves, values, bits);
            tk_dense_dot4(&products, *weights >> place, halves, bits, mask);
            TK_DENSE_ORDER(products, values);
            tk_dense_halves(halves, values + 4, bits);
            tk_dense_dot4(&products, *weights >> place >> 2u * bits, halves, bits, mask);
            sum = TK_DENSE_SUM(sum, products);
            place = (place + 4u * bits) & 15u;
            values += 8;
        }
        if (place == 0u) {
            weights += stride;
        }
    } while (values != end);
    return sum;
}

/* Return what the codes add to each sum, negated: 2^(bits - 1) times the sum of the values. Pads
 * these with zeros to whole words of codes. */
TK_INLINE uint32_t tk_dense_start(uint8_t *values, uint32_t size, uint32_t bits)
{
    uint32_t sum = 0u;
    uint32_t i;
    for (i = size; (i & (32u / bits - 1u)) != 0u; ++i) {
        values[i] = 0u;
        TK_PLAIN_LOOP();
    }
    for (i = 0u; i < size; ++i) {
        sum += values[i];
    }
    return 0u - (sum << (bits - 1u));
}

/* Compute the units. */
TK_INLINE void tk_dense_layer(const TK_FLASH struct tk_dense *k, uint8_t *values, uint8_t *units,
                              uint32_t bits, tk_dense_block_t *block)
{
    const uint32_t words = (k->values + 32u / bits - 1u) / (32u / bits);
    const uint8_t *const end = values + words * (32u / bits);
    const uint32_t start = tk_dense_start(values, k->values, bits);
    const uint32_t blocks = k->units & ~3u;
    uint32_t sums[4];
    uint32_t i;
    for (i = 0u; i != k->units; ++i) {
        uint32_t sum;
        if (TK_DENSE_AT_ONCE(bits) && i < blocks) {
            if ((i & 3u) == 0u) {
                sums[0] = start;
                block(sums, k->weights + i * words, values, end);
            }
            sum = sums[i & 3u];
        } else if (TK_DENSE_AT_ONCE(bits)) {
            sum = tk_dense_unit(start, k->weights + i * words, 1u, values, end, bits);
        } else {
            const uint32_t first = i < blocks ? (i & ~3u) * words + (i & 3u) : i * words;
            sum = tk_dense_unit(start, k->weights + first, i < blocks ? 4u : 1u, values, end, bits);
        }
        units[i] = (uint8_t)tk_clipped((int32_t)((uint32_t)k->biases[i] + sum), k->shift);
    }
}

/* Layers of the same width of codes share a function. */
TK_SHARED void tk_dense_layer1(const TK_FLASH struct tk_dense *k, uint8_t *values, uint8_t *unit)
{
    tk_dense_layer(k, values, unit, 1u, tk_dense_block1);
}

TK_SHARED void tk_dense_layer2(const TK_FLASH struct tk_dense *k, uint8_t *values, uint8_t *unit)
{
    tk_dense_layer(k, values, unit, 2u, tk_dense_block2);
}

TK_SHARED void tk_dense_layer4(const TK_FLASH struct tk_dense *k, uint8_t *values, uint8_t *unit)
{
    tk_dense_layer(k, values, unit, 4u, tk_dense_block4);
}

TK_SHARED void tk_dense_layer8(const TK_FLASH struct tk_dense *k, uint8_t *values, uint8_t *unit)
{
    tk_dense_layer(k, values, unit, 8u, tk_dense_block8);
}

/* Compute the units from values[]. Returns the units, which follow the memory of the values. */
TK_INLINE uint8_t *tk_dense_run(const TK_FLASH struct tk_dense *k, uint8_t *values)
{
    uint8_t *const units = values + ((k->values + 31u) & ~31u);
    if (k->bits == 1u) {
        tk_dense_layer1(k, values, units);
    } else if (k->bits == 2u) {
        tk_dense_layer2(k, values, units);
    } else if (k->bits == 4u) {
        tk_dense_layer4(k, values, units);
    } else {
        tk_dense_layer8(k, values, units);
    }
    return units;
}

#endif
