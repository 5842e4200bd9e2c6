/* Compile-time configuration of the tinykernel runtime.
 *
 * The runtime is a set of kernels, one a file, specialised at compile time. A generated model
 * source defines the macros and tables below, then includes tk_predict.h, which includes the rest.
 * Everything here is `static`, so any number of models links into one image; two model sources
 * cannot be included into one translation unit.
 *
 * Shape
 *   TK_FEATURES            n, inputs, 1..65536
 *   TK_LOG2_DIMENSION      log2 d, 5..16; d = n padded to a power of two, at least 32
 *   TK_BLOCKS              blocks that take part, at least 1
 *   TK_CLASSES             classes, at least 2
 *   TK_OUTPUTS             1 for two classes, else TK_CLASSES
 * Arithmetic
 *   TK_INPUT_BITS          8 or 16: width of quantized inputs
 *   TK_HALVE_FIRST         bit k set: stage k of the first transform halves (floor)
 *   TK_HALVE_SECOND        the same for the transform in each block
 *   TK_PHASE_SHIFT         0..31: left shift of scale * v; one turn is 2^32
 * Input scaler: types tk_raw_t and tk_quantized_t, and for feature i
 *   TK_RAW_FLOAT           1: float32 inputs; 0: integers
 *   TK_RAW_WIDE            integers only, 1: differences of raw values may need more than 32 bits
 *   TK_OFFSET(i)           float or int32_t
 *   TK_MULTIPLIER(i)       float or uint32_t
 *   TK_SPAN(i), TK_PRE_SHIFT(i)     integers only, uint32_t
 * Formats (a table is a constant array of the name given; a literal macro replaces equal values)
 *   TK_SIGNS               1: tk_signs[] has a bit for each input, set where it changes its sign;
 *                          32 a word, of inputs 2i, 2i + 1 (i = 0..15) in bits 15 - i and 31 - i
 *   TK_CONSTANTS           1: tk_constants[] has the same for inputs that are ignored (constant)
 *   TK_PERMUTATION         0: none; 1: orbit s -> TK_ORBIT_MULTIPLIER * s + TK_ORBIT_INCREMENT
 *                          (mod d) from 0; 2: table tk_permutation[d]
 *   TK_DIAGONAL_BITS       8: tk_diagonal[] holds int8, four a word, row j in byte j % 4
 *                          4: -7..7 in two's complement, eight a word: of rows 2i, 2i + 1
 *                          (i = 0..3) from bits 28 - 4i and 12 - 4i up
 *                          1: one bit a row, 32 rows a word, 1 = negative: of rows 2i, 2i + 1
 *                          (i = 0..15) in bits 31 - i and 15 - i
 *   TK_KEPT                1: bit j % 32 of tk_kept[b * d / 32 + j / 32] set: row j of block b
 *                          is a component; 0: the first components of a block are
 *   TK_WORDS(b)            words of 32 components that block b has, 1..d/32
 *   TK_SCALE(b)            defined: one scale (1..255) for all rows of block b
 *   TK_EVEN_START, TK_ODD_START     defined: one start (0..255) for components in the low halves of
 *                          words of v, one for those in the high halves
 *   TK_WIDTH               defined: one width (1..255) for all
 *   TK_TAIL(b)             defined: bits of the last word of block b that are no components, where
 *                          neither a width 0 nor a mask word says so
 *   TK_PLANES              2: a sign and a mask word; 1: a sign word (no weight is zero)
 * Tables
 *   tk_windows[]           for each word of 32 components eight groups of 4: scales, starts,
 *                          widths, one word each, without those that a macro above replaces; no
 *                          table if all are replaced; see tk_windows.h
 *   tk_weights[]           for each block, output and word of 32 components: sign word, mask word
 *   tk_gains[], tk_biases[]  int32_t: score = gain * (number of agreeing components) + bias
 *
 * Switches that a user may set (-D...)
 *   TK_PREFER_SIZE         1: about 1 KB less code, half the speed; default 0: speed
 *   TK_FORCE_PORTABLE      1: plain C even where the core has packed 16-bit instructions
 *   TK_FORCE_RADIX         2, 4 or 8: words held in registers by a pass of the transform
 * All variants compute the same bits.
 */
#ifndef TK_CONFIG_H
#define TK_CONFIG_H

#include <stdint.h>

#ifndef TK_PREFER_SIZE
#define TK_PREFER_SIZE 0
#endif
#ifndef TK_FORCE_PORTABLE
#define TK_FORCE_PORTABLE 0
#endif

/* Packed 16-bit arithmetic of Cortex-M4, M7, M33 and larger cores. */
#if !TK_FORCE_PORTABLE && defined(__GNUC__) && defined(__ARM_FEATURE_SIMD32) && \
    defined(__ARM_FEATURE_DSP)
#define TK_DSP 1
#else
#define TK_DSP 0
#endif

/* Thumb instructions may stand in assembly. */
#if defined(__GNUC__) && defined(__thumb__) && !TK_FORCE_PORTABLE
#define TK_THUMB 1
#else
#define TK_THUMB 0
#endif

/* Words that fit into registers beside pointers and constants: Thumb-1 has eight low registers. */
#if defined(TK_FORCE_RADIX)
#define TK_RADIX TK_FORCE_RADIX
#elif TK_PREFER_SIZE
#define TK_RADIX 2
#elif defined(__thumb__) && !defined(__thumb2__)
#define TK_RADIX 4
#else
#define TK_RADIX 8
#endif

/* Words and stages that the pass with the diagonal G takes at a time, after stage 0. With eight low
 * registers, as few as leave an even number of stages. */
#if TK_RADIX == 8
#define TK_FUSED        8u
#define TK_FUSED_STAGES 3u
#elif TK_RADIX == 4 && TK_LOG2_DIMENSION % 2
#define TK_FUSED        4u
#define TK_FUSED_STAGES 2u
#else
#define TK_FUSED        2u
#define TK_FUSED_STAGES 1u
#endif

#define TK_DIMENSION (1u << TK_LOG2_DIMENSION)
#define TK_PAIRS     (TK_DIMENSION / 2u) /* words of two int16 */

/* The kernels are called once each with literal arguments: inlining makes strides immediates. */
#if defined(__GNUC__)
#define TK_INLINE static inline __attribute__((always_inline))
#define TK_SHARED static __attribute__((noinline))
#else
#define TK_INLINE static inline
#define TK_SHARED static
#endif

/* In the body of a loop that only clears memory: keeps the compiler from replacing the loop by a
 * call of memset, a library routine that may be longer than the whole loop. */
#if defined(__GNUC__)
#define TK_PLAIN_LOOP() __asm__ volatile("")
#else
#define TK_PLAIN_LOOP() ((void)0)
#endif

/* Whether the compiler knows the value of an expression. */
#if defined(__GNUC__)
#define TK_IS_LITERAL(expression) __builtin_constant_p(expression)
#else
#define TK_IS_LITERAL(expression) 0
#endif

/* Hides the value of a variable from the compiler, which then keeps it in a register rather than
 * build it anew for each use. */
#if defined(__GNUC__)
#define TK_HIDE(variable) __asm__("" : "+r"(variable))
#else
#define TK_HIDE(variable) (void)(variable)
#endif

/* C99 leaves two things to the implementation that the arithmetic needs: a right shift of a
 * negative number rounds down, and a conversion to a signed type wraps. Every compiler for the
 * supported cores does both; another one stops here. Tables are read as bytes and as words, hence
 * little-endian cores only. */
#define TK_ASSERT(name, condition) typedef char tk_assert_##name[(condition) ? 1 : -1]
TK_ASSERT(right_shift_rounds_down, (-3 >> 1) == -2);
TK_ASSERT(conversion_wraps, (int32_t)0xffffffffu == -1);
#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)
TK_ASSERT(little_endian, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
#endif

#endif
