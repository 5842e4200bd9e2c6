/* SPDX-License-Identifier: Apache-2.0 */
/* Scores: for every output, count the components that agree with their weights.
 *
 * A component agrees if it has the sign of its weight. The bit of a component is 1 for -1, and the
 * bit of the sign plane is 1 for a positive weight, so bits that differ agree. The mask plane
 * excludes zero weights; tk_add_five reads both planes from fewer bits. The sum of w * z is
 * 2 * agreeing - (number of weights); its constant part is included in tk_biases. */
#ifndef TK_SCORES_H
#define TK_SCORES_H

#include "tk_dsp.h"

#if defined(__GNUC__) && (defined(__POPCNT__) || defined(__riscv_zbb))
#define TK_POPCOUNT 1
#else
#define TK_POPCOUNT 0
#endif

/* Bit counts of the nibbles of x. */
TK_INLINE uint32_t tk_nibbles(uint32_t x)
{
    x -= x >> 1 & 0x55555555u;
    return (x & 0x33333333u) + (x >> 2 & 0x33333333u);
}

/* Add the bytes of x, whose total is below 256, to sum. */
TK_INLINE uint32_t tk_add_four(uint32_t sum, uint32_t x)
{
#if TK_DSP
    return tk_add_bytes(sum, x);
#else
    return sum + ((x * 0x01010101u) >> 24);
#endif
}

/* Add the number of set bits of x to sum. */
TK_INLINE uint32_t tk_add_bits(uint32_t sum, uint32_t x)
{
#if TK_POPCOUNT
    return sum + (uint32_t)__builtin_popcount(x);
#else
    x = tk_nibbles(x);
    return tk_add_four(sum, (x + (x >> 4)) & 0x0f0f0f0fu);
#endif
}

/* Add the number of set bits in ones, twice that in twos and four times that in fours to sum. */
TK_INLINE uint32_t tk_add_planes(uint32_t sum, uint32_t ones, uint32_t twos, uint32_t fours)
{
#if TK_POPCOUNT
    return tk_add_bits(sum + 2u * tk_add_bits(2u * tk_add_bits(0u, fours), twos), ones);
#else
    const uint32_t low = tk_nibbles(ones) + 2u * tk_nibbles(twos); /* nibbles of at most 12 */
    const uint32_t high = tk_nibbles(fours);
    const uint32_t bytes = (low & 0x0f0f0f0fu) + (low >> 4 & 0x0f0f0f0fu) +
                           (((high + (high >> 4)) << 2) & 0x3c3c3c3cu); /* at most 56 */
    return tk_add_four(sum, bytes);
#endif
}

/* Carry-save adder: add three words bit by bit, into a word of sums and a word of carries. */
TK_INLINE void tk_carry_save(uint32_t *carry, uint32_t *sum, uint32_t a, uint32_t b)
{
    const uint32_t half = *sum ^ a;
    *carry = (*sum & a) | (half & b);
    *sum = half ^ b;
}

#if TK_PLANES == 8

/* Words of weights of `count` words of components: eight for five words, two for each that is left
 * over. The quotient is exact below 43691. */
#define TK_WEIGHT_WORDS(count) (2u * ((count) - ((count) * 52429u >> 18)))

/* Add the agreeing components of five words to sum. Bit k of the eight words of weights is the code
 * of weights k of the five: a byte with 243 values, whose cases are sums and products of its bits,
 * those of a trit block of ASTC textures (Khronos Data Format Specification). `zero` marks weights
 * of 0; elsewhere `sign` is 1 for a positive weight. */
TK_INLINE uint32_t tk_add_five(uint32_t sum, const uint32_t *bits, const TK_FLASH uint32_t *weights)
{
    const uint32_t three = weights[2] & weights[3] & weights[4];
    const uint32_t c2 = weights[2] & ~(three & ~weights[5]);
    const uint32_t c3 = weights[3] & ~(three & ~weights[6]);
    const uint32_t c4 = weights[4] & ~(three & ~weights[7]);
    const uint32_t two = weights[1] & weights[0];
    const uint32_t both = weights[6] & weights[5];
    uint32_t sign = weights[0] & ~(two & ~c2);
    uint32_t zero = weights[1] & ~(two & ~c3);
    uint32_t ones = (bits[0] ^ sign) & ~zero;
    uint32_t twos;
    uint32_t more;
    uint32_t word;
    sign = c2 ^ (two & (c2 ^ c4));
    zero = c3 & ~two;
    word = (bits[1] ^ sign) & ~zero;
    zero = two | (c3 & c2);
    tk_carry_save(&twos, &ones, word, (bits[2] ^ c4) & ~zero);
    sign = weights[5] & ~(both & ~weights[7]);
    zero = three | (weights[6] & ~weights[5]);
    word = (bits[3] ^ sign) & ~zero;
    zero = three | both;
    tk_carry_save(&more, &ones, word, (bits[4] ^ weights[7]) & ~zero);
    return tk_add_planes(sum, ones, twos ^ more, twos & more);
}

/* Number of agreeing components in `count` words. */
TK_INLINE uint32_t tk_count_output(const uint32_t *bits, const TK_FLASH uint32_t *weights,
                                   uint32_t count)
{
    uint32_t agreeing = 0u;
    for (; count >= 5u; count -= 5u) {
        agreeing = tk_add_five(agreeing, bits, weights);
        bits += 5;
        weights += 8;
    }
    for (; count != 0u; --count) {
        agreeing = tk_add_bits(agreeing, (bits[0] ^ weights[0]) & weights[1]);
        bits += 1;
        weights += 2;
    }
    return agreeing;
}

#else

#define TK_WEIGHT_WORDS(count) ((count) * TK_PLANES)

/* Word i, with a bit set for each component that agrees. */
TK_INLINE uint32_t tk_agreeing(const uint32_t *bits, const TK_FLASH uint32_t *weights, uint32_t i)
{
#if TK_PLANES == 2
    return (bits[i] ^ weights[2u * i]) & weights[2u * i + 1u];
#else
    return bits[i] ^ weights[i];
#endif
}

/* Add a word to the three-bit counters of its bit positions, all below seven. */
TK_INLINE void tk_add_word(uint32_t *ones, uint32_t *twos, uint32_t *fours, uint32_t word)
{
    const uint32_t carry = *ones & word;
    *ones ^= word;
    *fours ^= *twos & carry;
    *twos ^= carry;
}

#if TK_DIMENSION >= 256u

/* Number of agreeing components in `count` words. For many words: eight at a time are added to the
 * counters of bit positions, so that eight words need one population count, that of the carries. */
TK_INLINE uint32_t tk_count_output(const uint32_t *bits, const TK_FLASH uint32_t *weights,
                                   uint32_t count)
{
    uint32_t agreeing = 0u;
    uint32_t ones = 0u;
    uint32_t twos = 0u;
    uint32_t fours = 0u;
    uint32_t rest;
    for (rest = count & 7u; rest != 0u; --rest) {
        tk_add_word(&ones, &twos, &fours, tk_agreeing(bits, weights, 0));
        bits += 1;
        weights += TK_PLANES;
    }
    for (count >>= 3; count != 0u; --count) {
        uint32_t twos_a;
        uint32_t twos_b;
        uint32_t fours_a;
        uint32_t fours_b;
        uint32_t eights;
        tk_carry_save(&twos_a, &ones, tk_agreeing(bits, weights, 0), tk_agreeing(bits, weights, 1));
        tk_carry_save(&twos_b, &ones, tk_agreeing(bits, weights, 2), tk_agreeing(bits, weights, 3));
        tk_carry_save(&fours_a, &twos, twos_a, twos_b);
        tk_carry_save(&twos_a, &ones, tk_agreeing(bits, weights, 4), tk_agreeing(bits, weights, 5));
        tk_carry_save(&twos_b, &ones, tk_agreeing(bits, weights, 6), tk_agreeing(bits, weights, 7));
        tk_carry_save(&fours_b, &twos, twos_a, twos_b);
        tk_carry_save(&eights, &fours, fours_a, fours_b);
        agreeing = tk_add_bits(agreeing, eights);
        bits += 8;
        weights += 8 * TK_PLANES;
    }
    return tk_add_planes(8u * agreeing, ones, twos, fours);
}

#else

/* Number of agreeing components in `count` >= 1 words. For few words, in less code: up to seven are
 * added per bit position, as many as three bits can count. */
TK_INLINE uint32_t tk_count_output(const uint32_t *bits, const TK_FLASH uint32_t *weights,
                                   uint32_t count)
{
    const uint32_t *const end = bits + count;
    uint32_t agreeing = 0u;
    do {
        uint32_t ones = tk_agreeing(bits, weights, 0);
        uint32_t twos = 0u;
        uint32_t fours = 0u;
        if (end - bits >= 7) {
            uint32_t twos_b;
            uint32_t twos_c;
            tk_carry_save(&twos, &ones, tk_agreeing(bits, weights, 1),
                          tk_agreeing(bits, weights, 2));
            tk_carry_save(&twos_b, &ones, tk_agreeing(bits, weights, 3),
                          tk_agreeing(bits, weights, 4));
            tk_carry_save(&twos_c, &ones, tk_agreeing(bits, weights, 5),
                          tk_agreeing(bits, weights, 6));
            tk_carry_save(&fours, &twos, twos_b, twos_c);
            bits += 7;
            weights += 7 * TK_PLANES;
        } else {
            while (weights += TK_PLANES, ++bits != end) {
                tk_add_word(&ones, &twos, &fours, tk_agreeing(bits, weights, 0));
            }
        }
        agreeing = tk_add_planes(agreeing, ones, twos, fours);
    } while (bits != end);
    return agreeing;
}

#endif

#endif

/* Add the agreeing components of `count` words of bits to counts[TK_OUTPUTS]. Returns the end of
 * the weights that were read. */
TK_SHARED const TK_FLASH uint32_t *tk_count(int32_t *counts, const uint32_t *bits,
                                            const TK_FLASH uint32_t *weights, uint32_t count)
{
    int32_t *const end = counts + TK_OUTPUTS;
    do {
        *counts += (int32_t)tk_count_output(bits, weights, count);
        weights += TK_WEIGHT_WORDS(count);
    } while (++counts != end);
    return weights;
}

#endif
