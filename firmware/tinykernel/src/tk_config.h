/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the build, set with -D. None of them changes a result.
 *
 *   TK_FORCE_RADIX=2|4|8      Number of words that a pass of the transform holds in registers. The
 *                             default suits the core; 2 saves up to 1 KB of code and takes up to
 *                             twice the time.
 *   TK_FORCE_PORTABLE=1       Plain C instead of packed 16-bit instructions and assembly, for a
 *                             compiler or core that does not support them, and for comparison.
 *   TK_FORCE_SOFT_FLOAT=0|1   Scale float inputs with integer arithmetic (1) or with the compiler's
 *                             floats (0). Default: 1 on Cortex-M, RISC-V and Xtensa cores without
 *                             an FPU. A program that uses floats anyway may be smaller with 0.
 *   TK_TABLE=...              Attribute of every constant table, which places it in memory, such as
 *                             __attribute__((section(".ccm"))). Empty by default.
 *   TK_ALIAS=                 For compilers other than GCC, Clang and those derived from them: says
 *                             that type-based alias analysis is switched off.
 *   TK_ASSERT_ARG(c)=...      Checks the arguments of each function, such as assert(c); -include
 *                             assert.h declares what it calls. Empty by default.
 *   TK_CODE=...               Attribute of every function of the model, such as IRAM_ATTR on the
 *                             ESP chips. Empty by default.
 *
 * Without optimisation (-O0) functions are not inlined and the radix is 2. Otherwise each inlined
 * copy would take stack of its own.
 *
 * The rest of this file adapts the code to compiler and core. */
#ifndef TK_CONFIG_H
#define TK_CONFIG_H

#include <limits.h>
#include <stdint.h>

#ifndef TK_FORCE_PORTABLE
#define TK_FORCE_PORTABLE 0
#endif
#ifndef TK_TABLE
#define TK_TABLE
#endif
#ifndef TK_CODE
#define TK_CODE
#endif
#ifndef TK_ASSERT_ARG
#define TK_ASSERT_ARG(condition) ((void)0)
#endif

/* Packed 16-bit arithmetic of Cortex-M4, M7, M33 and larger cores. */
#if !TK_FORCE_PORTABLE && defined(__GNUC__) && defined(__ARM_FEATURE_SIMD32) && \
    defined(__ARM_FEATURE_DSP)
#define TK_DSP 1
#else
#define TK_DSP 0
#endif

/* Inline assembly may contain Thumb instructions. */
#if defined(__GNUC__) && defined(__thumb__) && !TK_FORCE_PORTABLE
#define TK_THUMB 1
#else
#define TK_THUMB 0
#endif

/* Cores without an FPU: integer arithmetic is smaller and faster than the compiler's float
 * routines, except on AVR. */
#if defined(TK_FORCE_SOFT_FLOAT)
#define TK_SOFT_FLOAT TK_FORCE_SOFT_FLOAT
#elif (defined(__thumb__) && !(defined(__ARM_FP) && (__ARM_FP & 4))) ||        \
    (defined(__riscv) && !defined(__riscv_flen) && !defined(__riscv_zfinx)) || \
    defined(__XTENSA_SOFT_FLOAT__)
#define TK_SOFT_FLOAT 1
#else
#define TK_SOFT_FLOAT 0
#endif

/* Whether one or two instructions compute the 64-bit product of two words. */
#if !defined(TK_LONG_PRODUCT)
#if (defined(__thumb__) && !defined(__thumb2__)) || defined(__XTENSA_SOFT_FLOAT__) || \
    (defined(__riscv) && !defined(__riscv_mul))
#define TK_LONG_PRODUCT 0
#else
#define TK_LONG_PRODUCT 1
#endif
#endif

/* Number of words that fit in registers, next to pointers and constants. Thumb-1 has only eight
 * low registers. */
#if defined(TK_FORCE_RADIX)
#if TK_FORCE_RADIX != 2 && TK_FORCE_RADIX != 4 && TK_FORCE_RADIX != 8
#error "TK_FORCE_RADIX must be 2, 4 or 8"
#endif
#define TK_RADIX TK_FORCE_RADIX
#elif (defined(__GNUC__) && !defined(__OPTIMIZE__)) || defined(__AVR__)
#define TK_RADIX 2
#elif defined(__thumb__) && !defined(__thumb2__)
#define TK_RADIX 4
#else
#define TK_RADIX 8
#endif

/* Most routines are called once, with literal arguments: inlining turns strides into immediates.
 * `unused` because a model need not call all of them, and Clang would warn. */
#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define TK_INLINE static inline __attribute__((always_inline, unused))
#elif defined(__GNUC__)
#define TK_INLINE TK_CODE static inline __attribute__((unused))
#else
#define TK_INLINE TK_CODE static inline
#endif
#if defined(__GNUC__)
#define TK_SHARED TK_CODE static __attribute__((noinline))
#else
#define TK_SHARED TK_CODE static
#endif

/* For the body of a loop that only fills or copies memory: keeps the compiler from replacing the
 * loop by a call of memset or memcpy, which may be larger than the loop. */
#if defined(__GNUC__)
#define TK_PLAIN_LOOP() __asm__ volatile("")
#else
#define TK_PLAIN_LOOP() ((void)0)
#endif

/* Attribute of a type: the same memory may also be accessed as words. A compiler without such an
 * attribute must not take types for a promise that this never happens; Microsoft's never does. */
#if defined(TK_ALIAS)
#elif defined(__GNUC__)
#define TK_ALIAS __attribute__((__may_alias__))
#elif defined(_MSC_VER)
#define TK_ALIAS
#else
#error \
    "switch off type-based alias analysis (of IAR: --no_tbaa), and say so by -DTK_ALIAS= (nothing)"
#endif

/* Whether an expression is a compile-time constant. */
#if defined(__GNUC__)
#define TK_IS_LITERAL(expression) __builtin_constant_p(expression)
#else
#define TK_IS_LITERAL(expression) 0
#endif

/* Hides the value of a variable from the compiler, which then keeps it in a register instead of
 * computing it again for each use. */
#if defined(__GNUC__)
#define TK_HIDE(variable) __asm__("" : "+r"(variable))
#else
#define TK_HIDE(variable) (void)(variable)
#endif

/* Qualifies the type of every constant table, and of pointers to it. On AVR, constants lie in RAM
 * unless their type has the address space __flash. */
#if defined(__FLASH)
#define TK_FLASH __flash
#elif defined(__AVR__)
#error "compile the model as GNU C, not as C++ or strict ISO C: its tables go to flash by __flash"
#else
#define TK_FLASH
#endif

/* The arithmetic relies on two behaviours that C99 leaves to the implementation: a right shift of a
 * negative number rounds down, and a conversion to a signed type wraps. All compilers for the
 * supported cores do both. Tables are read both as bytes and as words, so the core must be
 * little-endian. */
#define TK_ASSERT(name, condition) typedef char tk_assert_##name[(condition) ? 1 : -1]
TK_ASSERT(right_shift_rounds_down, (-3 >> 1) == -2);
TK_ASSERT(conversion_wraps, (int32_t)0xffffffffu == -1);
#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)
TK_ASSERT(little_endian, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
#endif

/* Number of leading zero bits of a word that is not 0; at most ten steps. */
TK_INLINE uint32_t tk_leading_zeros(uint32_t word)
{
#if defined(__GNUC__) && defined(__thumb2__)
    return (uint32_t)__builtin_clz(word);
#else
    uint32_t zeros = 0u;
    while ((word >> 24) == 0u) {
        word <<= 8;
        zeros += 8u;
    }
    while ((word >> 31) == 0u) {
        word <<= 1;
        ++zeros;
    }
    return zeros;
#endif
}

/* floor(2^digits log2(value)) for a value that is not 0; digits is 0..16. */
TK_INLINE uint32_t tk_log2(uint32_t value, uint32_t digits)
{
    uint32_t level = tk_leading_zeros(value);
    value <<= level;
    level = 31u - level;
    for (; digits != 0u; --digits) {
        value >>= 16;
        value *= value;
        level *= 2u;
        if (value >> 31 != 0u) {
            ++level;
        } else {
            value <<= 1;
        }
    }
    return level;
}

#endif
