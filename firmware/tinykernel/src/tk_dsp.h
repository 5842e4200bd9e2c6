/* SPDX-License-Identifier: Apache-2.0 */
/* Packed 16-bit and 8-bit instructions of Armv7E-M and Armv8-M with the DSP extension.
 *
 * They are written in assembly because GCC has the intrinsics of arm_acle.h only since version 10,
 * and PlatformIO installs older compilers for many boards. A packed instruction processes the
 * halves (bits 0-15, 16-31) or the bytes of its operands separately. Two instructions of which one
 * sets flags for the other are one statement. */
#ifndef TK_DSP_H
#define TK_DSP_H

#include "tk_config.h"

#if TK_DSP

#define TK_DSP_OPERATION(name, instruction)                                 \
    TK_INLINE uint32_t name(uint32_t a, uint32_t b)                         \
    {                                                                       \
        uint32_t result;                                                    \
        __asm__(instruction " %0, %1, %2" : "=r"(result) : "r"(a), "r"(b)); \
        return result;                                                      \
    }

TK_DSP_OPERATION(tk_sadd16, "sadd16")   /* a + b in each half */
TK_DSP_OPERATION(tk_ssub16, "ssub16")   /* a - b in each half */
TK_DSP_OPERATION(tk_shadd16, "shadd16") /* (a + b) >> 1 in each half, of the exact sum */
TK_DSP_OPERATION(tk_shsub16, "shsub16") /* (a - b) >> 1 in each half */
TK_DSP_OPERATION(tk_ssax, "ssax")       /* low: a.low + b.high, high: a.high - b.low */
TK_DSP_OPERATION(tk_shsax, "shsax")     /* ssax, halved */
TK_DSP_OPERATION(tk_sasx, "sasx")       /* low: a.low - b.high, high: a.high + b.low */
TK_DSP_OPERATION(tk_shasx, "shasx")     /* sasx, halved */
TK_DSP_OPERATION(tk_uadd8, "uadd8")     /* a + b in each byte */
TK_DSP_OPERATION(tk_smulbb, "smulbb")   /* a.low * b.low */
TK_DSP_OPERATION(tk_smulbt, "smulbt")   /* a.low * b.high */
TK_DSP_OPERATION(tk_smultb, "smultb")   /* a.high * b.low */
TK_DSP_OPERATION(tk_smultt, "smultt")   /* a.high * b.high */
TK_DSP_OPERATION(tk_smulwb, "smulwb")   /* (a * b.low) >> 16, of the exact product */
TK_DSP_OPERATION(tk_smulwt, "smulwt")   /* (a * b.high) >> 16 */

/* Bytes 0 and 2 of a word as halves, unsigned and signed. */
TK_INLINE uint32_t tk_uxtb16(uint32_t a)
{
    uint32_t result;
    __asm__("uxtb16 %0, %1" : "=r"(result) : "r"(a));
    return result;
}

TK_INLINE uint32_t tk_sxtb16(uint32_t a)
{
    uint32_t result;
    __asm__("sxtb16 %0, %1" : "=r"(result) : "r"(a));
    return result;
}

/* Bytes 1 and 3 of a word as halves, unsigned and signed. */
TK_INLINE uint32_t tk_uxtb16_odd(uint32_t a)
{
    uint32_t result;
    __asm__("uxtb16 %0, %1, ror #8" : "=r"(result) : "r"(a));
    return result;
}

TK_INLINE uint32_t tk_sxtb16_odd(uint32_t a)
{
    uint32_t result;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(result) : "r"(a));
    return result;
}

/* The halves of a plus bytes 1 and 3 of b. */
TK_INLINE uint32_t tk_uxtab16_odd(uint32_t a, uint32_t b)
{
    uint32_t result;
    __asm__("uxtab16 %0, %1, %2, ror #8" : "=r"(result) : "r"(a), "r"(b));
    return result;
}

/* sum + ((a * b.low) >> 16) and sum + ((a * b.high) >> 16), of the exact product. */
TK_INLINE uint32_t tk_smlawb(uint32_t a, uint32_t b, uint32_t sum)
{
    uint32_t result;
    __asm__("smlawb %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

TK_INLINE uint32_t tk_smlawt(uint32_t a, uint32_t b, uint32_t sum)
{
    uint32_t result;
    __asm__("smlawt %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

/* smlad: sum + a.low * b.low + a.high * b.high
 * smlatb: sum + a.high * b.low
 * smlabt: sum + a.low * b.high */
#define TK_DSP_SUM(name, instruction)                                                     \
    TK_INLINE int32_t name(uint32_t a, uint32_t b, int32_t sum)                           \
    {                                                                                     \
        int32_t result;                                                                   \
        __asm__(instruction " %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum)); \
        return result;                                                                    \
    }

TK_DSP_SUM(tk_smlad, "smlad")
TK_DSP_SUM(tk_smlatb, "smlatb")
TK_DSP_SUM(tk_smlabt, "smlabt")

/* sum + a.low * b.high + a.high * b.low, modulo 2^32 */
TK_INLINE uint32_t tk_smladx(uint32_t a, uint32_t b, uint32_t sum)
{
    uint32_t result;
    __asm__("smladx %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

/* low = a.low * b.low, high = a.high * b.high. With two statements compilers load b twice. */
TK_INLINE void tk_multiply_halves(uint32_t *low, uint32_t *high, uint32_t a, uint32_t b)
{
    __asm__("smulbb %0, %2, %3\n\tsmultt %1, %2, %3" : "=&r"(*low), "=r"(*high) : "r"(a), "r"(b));
}

/* Low half: that of low; high half: that of high << shift; shift is a literal in 0..31. */
#define TK_PKHBT(result, low, high, shift) \
    __asm__("pkhbt %0, %1, %2, lsl %3" : "=r"(result) : "r"(low), "r"(high), "I"(shift))

/* Low half: that of low >> shift (arithmetic); high half: that of high; shift is a literal in
 * 1..31. */
#define TK_PKHTB(result, high, low, shift) \
    __asm__("pkhtb %0, %1, %2, asr %3" : "=r"(result) : "r"(high), "r"(low), "I"(shift))

/* Add the four bytes of a to sum. */
TK_INLINE uint32_t tk_add_bytes(uint32_t sum, uint32_t a)
{
    uint32_t result;
    __asm__("usada8 %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(0u), "r"(sum));
    return result;
}

/* 128 in each byte where a >= b (unsigned), else `zero`: 0 in a register. */
TK_INLINE uint32_t tk_not_less8(uint32_t a, uint32_t b, uint32_t zero)
{
    uint32_t result;
    __asm__("usub8 %0, %1, %2\n\tsel %0, %3, %4"
            : "=&r"(result)
            : "r"(a), "r"(b), "r"(0x80808080u), "r"(zero));
    return result;
}

/* In each half: that of `a` if the top bit of the half of *bits is set, else that of `b`. Shifts
 * both halves of *bits up by one bit. */
TK_INLINE uint32_t tk_select16(uint32_t a, uint32_t b, uint32_t *bits)
{
    uint32_t result;
    __asm__("uadd16 %0, %0, %0\n\tsel %1, %2, %3" : "+&r"(*bits), "=r"(result) : "r"(a), "r"(b));
    return result;
}

#define TK_MULTIPLY_BYTES(sum, word)      \
    "uxtb16 ip, " word "\n\t"             \
    "smladx " sum ", ip, %5, " sum "\n\t" \
    "uxtb16 ip, " word ", ror #8\n\t"     \
    "smladx " sum ", ip, %6, " sum "\n\t"

/* Add to four sums the bytes of as many words at *at times those of one: `even` and `odd`, whose
 * halves belong to the other ones of a word. Moves *at. Only one instruction loads the words. */
TK_INLINE void tk_multiply_block(uint32_t *sum0, uint32_t *sum1, uint32_t *sum2, uint32_t *sum3,
                                 uint32_t even, uint32_t odd, const uint32_t **at)
{
    __asm__("ldmia %4!, {r4, r5, r6, r8}\n\t" TK_MULTIPLY_BYTES("%0", "r4")
                TK_MULTIPLY_BYTES("%1", "r5") TK_MULTIPLY_BYTES("%2", "r6")
                    TK_MULTIPLY_BYTES("%3", "r8")
            : "+&r"(*sum0), "+&r"(*sum1), "+&r"(*sum2), "+&r"(*sum3), "+&r"(*at)
            : "r"(even), "r"(odd)
            : "r4", "r5", "r6", "r8", "ip");
}
#undef TK_MULTIPLY_BYTES

#endif

#endif
