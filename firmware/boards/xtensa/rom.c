/* What an ESP8266 has in its boot ROM and its compiler's library therefore lacks: division and
 * single-precision arithmetic. Round to nearest even, with subnormal numbers, infinities and NaN,
 * as IEEE 754 demands; tests compare every function with the host's. */
#include <stdint.h>

float __addsf3(float a, float b);
float __subsf3(float a, float b);
float __mulsf3(float a, float b);
uint32_t __fixunssfsi(float a);
float __floatsisf(int32_t a);
float __floatunsisf(uint32_t a);
uint32_t __udivsi3(uint32_t a, uint32_t b);
uint32_t __umodsi3(uint32_t a, uint32_t b);

#define SIGN          0x80000000u
#define INFINITY_BITS 0x7f800000u
#define NAN_BITS      0x7fc00000u

static uint32_t bits_of(float a)
{
    union {
        float number;
        uint32_t bits;
    } both;
    both.number = a;
    return both.bits;
}

static float number_of(uint32_t bits)
{
    union {
        float number;
        uint32_t bits;
    } both;
    both.bits = bits;
    return both.number;
}

/* The number mantissa * 2^(exponent - 127 - 31), rounded; the top bit of the mantissa is set and
 * `sticky` says that a little more was lost below it. */
static float pack(uint32_t sign, int32_t exponent, uint32_t mantissa, uint32_t sticky)
{
    uint32_t shift = 8u;
    uint32_t rest;
    uint32_t result;
    if (exponent <= 0) {
        shift = exponent < -24 ? 33u : 8u + 1u + (uint32_t)(-exponent);
    }
    if (shift > 32u) {
        return number_of(sign);
    }
    if (shift == 32u) {
        result = 0u;
        rest = mantissa;
    } else {
        result = mantissa >> shift;
        rest = mantissa << (32u - shift);
    }
    if (rest > SIGN || (rest == SIGN && (sticky != 0u || (result & 1u) != 0u))) {
        result++;
    }
    if (exponent > 0) {
        /* The hidden bit adds one to the exponent field, and so does a carry out of rounding. */
        result += (uint32_t)(exponent - 1) << 23;
    }
    return number_of(sign | (exponent >= 255 || result >= INFINITY_BITS ? INFINITY_BITS : result));
}

/* Mantissa of a finite number that is not zero, its top bit set, and its biased exponent. */
static uint32_t unpack(uint32_t bits, int32_t *exponent)
{
    uint32_t mantissa = bits << 8;
    *exponent = (int32_t)(bits >> 23 & 0xffu);
    if (*exponent != 0) {
        return mantissa | SIGN;
    }
    *exponent = 1;
    while ((mantissa & SIGN) == 0u) {
        mantissa <<= 1;
        --*exponent;
    }
    return mantissa;
}

float __addsf3(float a, float b)
{
    uint32_t x = bits_of(a);
    uint32_t y = bits_of(b);
    uint32_t large;
    uint32_t small;
    uint32_t sticky = 0u;
    int32_t exponent;
    int32_t other;
    if ((x << 1) < (y << 1)) {
        const uint32_t exchanged = x;
        x = y;
        y = exchanged;
    }
    if ((x << 1) >= INFINITY_BITS << 1) {
        const int both = (y << 1) == INFINITY_BITS << 1;
        return number_of((x << 1) > INFINITY_BITS << 1 || (both && x != y) ? NAN_BITS : x);
    }
    if ((y << 1) == 0u) {
        return number_of((x << 1) == 0u ? x & y : x);
    }
    /* Two spare bits: one for the carry of a sum, one so that halves stay exact. */
    large = unpack(x, &exponent) >> 2;
    small = unpack(y, &other) >> 2;
    if (exponent - other > 31) {
        sticky = 1u;
        small = 0u;
    } else if (exponent > other) {
        const uint32_t shift = (uint32_t)(exponent - other);
        sticky = (small << (32u - shift)) != 0u;
        small >>= shift;
    }
    if (((x ^ y) & SIGN) == 0u) {
        large += small;
    } else {
        large -= small + sticky; /* what was lost makes the difference smaller, by less than one */
        if (large == 0u) {
            return number_of(0u);
        }
    }
    exponent += 2;
    while ((large & SIGN) == 0u) {
        large <<= 1;
        exponent--;
    }
    return pack(x & SIGN, exponent, large, sticky);
}

float __subsf3(float a, float b)
{
    return __addsf3(a, number_of(bits_of(b) ^ SIGN));
}

/* Both words of a product of 32-bit numbers, from products of 16-bit ones. */
static uint32_t multiply(uint32_t a, uint32_t b, uint32_t *low)
{
    const uint32_t bottom = (a & 0xffffu) * (b & 0xffffu);
    const uint32_t first = (a >> 16) * (b & 0xffffu) + (bottom >> 16);
    const uint32_t second = (a & 0xffffu) * (b >> 16) + (first & 0xffffu);
    *low = second << 16 | (bottom & 0xffffu);
    return (a >> 16) * (b >> 16) + (first >> 16) + (second >> 16);
}

float __mulsf3(float a, float b)
{
    const uint32_t x = bits_of(a);
    const uint32_t y = bits_of(b);
    const uint32_t sign = (x ^ y) & SIGN;
    uint32_t high;
    uint32_t low;
    int32_t exponent;
    int32_t other;
    if ((x << 1) > INFINITY_BITS << 1 || (y << 1) > INFINITY_BITS << 1) {
        return number_of(NAN_BITS);
    }
    if ((x << 1) == INFINITY_BITS << 1 || (y << 1) == INFINITY_BITS << 1) {
        return number_of((x << 1) == 0u || (y << 1) == 0u ? NAN_BITS : sign | INFINITY_BITS);
    }
    if ((x << 1) == 0u || (y << 1) == 0u) {
        return number_of(sign);
    }
    high = multiply(unpack(x, &exponent), unpack(y, &other), &low);
    exponent += other - 126;
    if ((high & SIGN) == 0u) {
        high = high << 1 | low >> 31;
        low <<= 1;
        exponent--;
    }
    return pack(sign, exponent, high, low);
}

uint32_t __fixunssfsi(float a)
{
    const uint32_t bits = bits_of(a);
    const int32_t exponent = (int32_t)(bits >> 23 & 0xffu) - 127;
    const uint32_t mantissa = bits << 8 | SIGN;
    if ((bits & SIGN) != 0u || exponent < 0) {
        return 0u;
    }
    return exponent > 31 ? 0xffffffffu : mantissa >> (31 - exponent);
}

float __floatunsisf(uint32_t a)
{
    int32_t exponent = 126 + 32;
    if (a == 0u) {
        return number_of(0u);
    }
    while ((a & SIGN) == 0u) {
        a <<= 1;
        exponent--;
    }
    return pack(0u, exponent, a, 0u);
}

float __floatsisf(int32_t a)
{
    const float magnitude = __floatunsisf(a < 0 ? 0u - (uint32_t)a : (uint32_t)a);
    return number_of(bits_of(magnitude) | (a < 0 ? SIGN : 0u));
}

static uint32_t divide(uint32_t a, uint32_t b, uint32_t *rest)
{
    uint32_t quotient = 0u;
    uint32_t bit = 1u;
    while (b < a && (b & SIGN) == 0u) {
        b <<= 1;
        bit <<= 1;
    }
    for (; bit != 0u; bit >>= 1, b >>= 1) {
        if (a >= b) {
            a -= b;
            quotient |= bit;
        }
    }
    *rest = a;
    return quotient;
}

uint32_t __udivsi3(uint32_t a, uint32_t b)
{
    uint32_t rest;
    return divide(a, b, &rest);
}

uint32_t __umodsi3(uint32_t a, uint32_t b)
{
    uint32_t rest;
    (void)divide(a, b, &rest);
    return rest;
}
