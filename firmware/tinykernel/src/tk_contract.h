/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/* What a generated model defines before it includes tk_predict.h, which includes the rest. The
 * runtime is a set of kernels, one a file, specialised at compile time by these macros and tables.
 * Everything is `static`, so that any number of models links into one image; two model sources
 * cannot be included into one translation unit.
 *
 *   TK_FORMAT              number of this contract; a model of another one does not compile
 * Shape
 *   TK_FEATURES            n, inputs, 1..65536
 *   TK_LOG2_DIMENSION      log2 d, 5..16; d = n padded to a power of two, at least 32
 *   TK_BLOCKS              blocks that take part; 0: no components, only a linear part, or only
 *                          prototypes. Then what transforms, windows and weights need is not
 *                          defined
 *   TK_CLASSES             classes, 2 or more; of a regressor its values, 1 or more
 *   TK_OUTPUTS             1 for two classes, else TK_CLASSES
 * Arithmetic
 *   TK_INPUT_BITS          8 or 16: width of quantized inputs
 *   TK_HALVE_FIRST         bit k = 0..15 set: stage k of the first transform halves (floor)
 *   TK_HALVE_SECOND        the same for the transform in each block
 *   TK_PHASE_SHIFT         0..31: left shift of scale * v; one turn is 2^32
 * Input scaler: types tk_raw_t and tk_quantized_t, and for input i
 *   TK_RAW_FLOAT           1: float32 inputs; 0: integers
 *   TK_RAW_WIDE            integers only, 1: differences of raw values may need more than 32 bits
 *   TK_OFFSET(i)           float, finite; or int32_t, any
 *   TK_MULTIPLIER(i)       float, finite, 0 or more; or uint32_t, such that span >> pre-shift times
 *                          it is below 2^(16 + TK_INPUT_BITS)
 *   TK_SPAN(i)             integers only, uint32_t, any
 *   TK_PRE_SHIFT(i)        integers only, 0..31
 * Formats (a table is a constant array of the name given; a literal macro replaces equal values)
 *   TK_SIGNS               1: tk_signs[] has a bit for each input, set where it changes its sign;
 *                          32 per word, of inputs 2i, 2i + 1 (i = 0..15) in bits 15 - i and 31 - i
 *   TK_CONSTANTS           1: tk_constants[] has the same for inputs that are ignored (constant)
 *   TK_PERMUTATION         0: none; 1: orbit s -> TK_ORBIT_MULTIPLIER * s + TK_ORBIT_INCREMENT
 *                          (mod d) from 0
 *   TK_DIAGONAL_BITS       8: tk_diagonal[] holds int8, four a word, row j in byte j % 4
 *                          4: -7..7 in two's complement, eight a word: of rows 2i, 2i + 1
 *                          (i = 0..3) from bits 28 - 4i and 12 - 4i up
 *                          1: one bit per row, 32 rows per word, 1 = negative: of rows 2i, 2i + 1
 *                          (i = 0..15) in bits 31 - i and 15 - i
 *   TK_KEPT                1: bit j % 32 of tk_kept[b * d / 32 + j / 32] set: row j of block b
 *                          is a component; 0: the first components of a block are
 *   TK_WORDS(b)            words of 32 components that block b has, 1..d/32
 *   TK_BITS_WORDS          0..28, words of scratch in which bits of blocks wait to be counted
 *                          together; 0: each block is counted by itself
 *   TK_BITS_FULL           they are counted when there are more, and after the last block
 *   TK_SCALE(b)            defined: one scale (1..255) for all rows of block b
 *   TK_EVEN_START, TK_ODD_START
 *                          defined: one start (0..255) for components in the low halves of words
 *                          of v, one for those in the high halves
 *   TK_WIDTH               defined: one width (1..255) for all
 *   TK_TAIL(b)             defined: bits of the last word of block b that are no components,
 *                          where neither a width 0 nor a mask word says so
 *   TK_PLANES              2: a sign and a mask word; 1: a sign word (no weight is zero)
 * Tables
 *   tk_windows[]           for each word of 32 components eight groups of 4: scales, starts,
 *                          widths, one word each, without those that a macro above replaces; no
 *                          table if all are replaced; see tk_windows.h
 *   tk_weights[]           for blocks that are counted together, each output, each word of 32
 *                          components: sign word, mask word
 *   tk_gains[], tk_biases[]  int32_t: score = gain * (number of agreeing components) + bias
 * Linear part, if there is one
 *   TK_LINEAR_BITS         1, 2, 4 or 8: width of a weight; one bit: 0 is 1 and 1 is -1
 *   tk_linear[]            for each output its weights, the first one at the top of a word; rows
 *                          begin with a word
 *   tk_linear_gains[]      int32_t: score per unit of the dot product with the quantized inputs
 * Trees, if there are some; then there are no components
 *   TK_TREES               1 or more; of output o tk_tree_counts[o], those of output 0 first
 *   TK_LEAF_BITS           4 or 8: width of a leaf; two in a byte, the first one in its low half
 *   tk_trees[]             for each its number of nodes, 0..255, and the shift of its leaf, 0..15
 *   tk_nodes[]             for each node the number of its threshold, and how many of the nodes
 *                          after it are below it where its test is false
 *   tk_leaves[]            of all trees, one more of a tree than nodes
 *   tk_tree_inputs[], tk_tree_thresholds[]
 *                          of each threshold the input that is above it where the test is true
 *   tk_tree_gains[]        int32_t: score per unit of the sum of the leaves
 * Prototypes, of a model of one class, and of one that tells by them what is new
 *   TK_ONE_CLASS           1: the score is the distance to the nearest prototype plus tk_biases[0],
 *                          and there is neither a component nor a linear part
 *   TK_PROTOTYPES          number of prototypes
 *   tk_prototypes[]        for each its inputs, -8..7 in 4 bits, the first one at the top of a word;
 *                          it begins with a word
 * Stages before, if there are any: inputs are images or signals, and the counts of type tk_raw_t
 * that these stages make of them are what is called inputs above. tk_stage.h says what a stage is;
 * their structures are in the generated source, and the functions tk_counts, and of signals
 * tk_window_init, tk_stream_push, tk_stream_counts, of frames tk_frame_counts, which call them
 *   TK_STAGES              1: images; 2: signals; 3: frames of a camera
 *   tk_sample_t            type of raw values
 *   tk_sensor_t            type of what the levels take: raw values, or what a stage before gives
 *   TK_LEVELS_RAW_FLOAT, TK_LEVELS_RAW_WIDE, TK_LEVELS_OFFSET(c), TK_LEVELS_MULTIPLIER(c),
 *   TK_LEVELS_SPAN(c), TK_LEVELS_PRE_SHIFT(c)
 *                          scaler of channel c, as above
 * Scratch
 *   TK_FIRST_WORDS         words of the machine and of what comes before it, see tk_predict.h
 */
/* clang-format on */
#ifndef TK_CONTRACT_H
#define TK_CONTRACT_H

#include "tk_config.h"

#define TK_RUNTIME_FORMAT 4

#if !defined(TK_FORMAT)
#error "this model was generated for an older runtime: generate it again"
#elif TK_FORMAT != TK_RUNTIME_FORMAT
#error \
    "model and runtime are of different formats: export the model again, and take both from there"
#endif

#ifndef TK_LINEAR_BITS
#define TK_LINEAR_BITS 0
#endif
#ifndef TK_TREES
#define TK_TREES 0
#endif
#ifndef TK_ONE_CLASS
#define TK_ONE_CLASS 0
#endif
#ifndef TK_STAGES
#define TK_STAGES 0
#endif

#if TK_BLOCKS
#define TK_DIMENSION (UINT32_C(1) << TK_LOG2_DIMENSION)
#define TK_PAIRS     (TK_DIMENSION / 2u) /* words of two int16 */
#endif

#endif
