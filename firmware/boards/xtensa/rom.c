/* Division, which the ESP8266 has in its boot ROM and its compiler's library therefore lacks. Tests
 * compare it with that of the host. */
#include <stdint.h>

uint32_t __udivsi3(uint32_t a, uint32_t b);
uint32_t __umodsi3(uint32_t a, uint32_t b);

#define SIGN 0x80000000u

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
