/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/* The macros and tables that a generated model defines before it includes tk_predict.h, which
 * includes the rest of the runtime. They specialise the runtime at compile time; it has one routine
 * per file. Everything is `static`, so any number of models can be linked into one image. Two models
 * cannot share a translation unit.
 *
 *   TK_FORMAT              version of this contract; a model of another version does not compile
 * Shape
 *   TK_FEATURES            n, number of inputs, 1..65536
 *   TK_LOG2_DIMENSION      log2 d, 5..16; d = n padded to a power of two, at least 32
 *   TK_BLOCKS              number of stored blocks. 0: no components, but a linear part, trees or
 *                          prototypes; the macros and tables of transforms, windows and weights
 *                          are then undefined
 *   TK_CLASSES             number of classes, 2 or more; of a regressor, of values, 1 or more
 *   TK_OUTPUTS             1 for two classes, else TK_CLASSES
 * Arithmetic
 *   TK_INPUT_BITS          8 or 16: width of quantized inputs; 32: raw values in order
 *   TK_HALVE_FIRST         bit k = 0..15 set: stage k of the first transform halves (floor)
 *   TK_HALVE_SECOND        the same for the second transform, that of each block
 *   TK_PHASE_SHIFT         0..31: left shift of scale * v; one turn is 2^32
 * Input scaler: types tk_raw_t and tk_quantized_t, and for input i
 *   TK_RAW_FLOAT           1: float32 inputs; 0: integers
 *   TK_RAW_WIDE            integers only, 1: differences of raw values may need more than 32 bits
 *   TK_OFFSET(i)           float, finite; or int32_t
 *   TK_MULTIPLIER(i)       float, finite, 0 or more; or uint32_t, with
 *                          (span >> pre-shift) * multiplier < 2^(16 + TK_INPUT_BITS)
 *   TK_SPAN(i)             integers only, uint32_t
 *   TK_PRE_SHIFT(i)        integers only, 0..31
 * Formats (tables are constant arrays; where all values of a table are equal, a macro replaces it)
 *   TK_SIGNS               1: tk_signs[] has a bit for each input, set where B negates the input;
 *                          32 per word, of inputs 2i, 2i + 1 (i = 0..15) in bits 15 - i and 31 - i
 *   TK_CONSTANTS           1: tk_constants[] has a bit for each input in the same order, set where
 *                          the input is ignored, as it was constant in training
 *   TK_PERMUTATION         0: none; 1: orbit s -> TK_ORBIT_MULTIPLIER * s + TK_ORBIT_INCREMENT
 *                          (mod d) from 0
 *   TK_DIAGONAL_BITS       8: tk_diagonal[] holds int8, four a word, row j in byte j % 4
 *                          4: -7..7 in two's complement, eight a word: rows 2i, 2i + 1
 *                          (i = 0..3) begin at bits 28 - 4i and 12 - 4i
 *                          1: one bit per row, 32 rows per word, 1 = negative: of rows 2i, 2i + 1
 *                          (i = 0..15) in bits 31 - i and 15 - i
 *   TK_KEPT                1: row j of block b is a component if bit j % 32 of
 *                          tk_kept[b * d / 32 + j / 32] is set; 0: the first rows of a block are
 *   TK_WORDS(b)            number of words of 32 components in block b, 1..d/32
 *   TK_BITS_WORDS          0..28, words of scratch that collect the bits of several blocks, which
 *                          are then counted together; 0: each block is counted by itself
 *   TK_BITS_FULL           bits are counted as soon as there are more words than this, and after
 *                          the last block
 *   TK_SCALE(b)            defined: one scale (1..255) for all rows of block b
 *   TK_EVEN_START, TK_ODD_START
 *                          defined: one start (0..255) for components in the low halves of words
 *                          of v, one for those in the high halves
 *   TK_WIDTH               defined: one width (1..255) for all components
 *   TK_WINDOW_BITS         defined as 4: start and width of a component share a byte of the table,
 *                          the start in its high half, in units of 16; without widths and scales,
 *                          so do the starts of groups 2i and 2i + 1
 *   TK_TAIL(b)             defined: unused bits of the last word of block b, where neither a width
 *                          of 0 nor a mask word marks them
 *   TK_PLANES              2: a sign word and a mask word; 1: a sign word only, no weight is zero;
 *                          8: eight words for five words of components, see tk_add_five, and a sign
 *                          and a mask word for each that is left over when words are counted
 * Tables
 *   tk_windows[]           for each word of 32 components eight groups of 4: scales, starts and
 *                          widths, one word each, except those that a macro above replaces; see
 *                          tk_windows.h. No table if macros replace all of them
 *   tk_weights[]           sign word and mask word, by blocks that are counted together, then by
 *                          output, then by word of 32 components
 *   tk_gains[], tk_biases[]  int32_t: score = gain * (number of agreeing components) + bias
 * Linear part, if there is one
 *   TK_LINEAR_BITS         1, 2, 4 or 8: width of a weight; in one bit 0 is 1 and 1 is -1
 *   tk_linear[]            the weights of each output, the first one at the top of a word; each
 *                          output begins a new word
 *   tk_linear_gains[]      int32_t: score per unit of the dot product with the quantized inputs
 * Trees, if there are any; then there are no components
 *   TK_TREES               number of trees; output o has tk_tree_counts[o], those of output 0 first
 *   TK_LEAF_BITS           4, 8, 16 or 32: width of a leaf; of two in a byte the first is the low half
 *   tk_trees[]             for each tree the number of its nodes, 0..255, and the left shift of its
 *                          leaves, 0..15
 *   tk_nodes[]             for each node the number of its threshold, and how many of the next
 *                          nodes are in its "false" branch
 *   tk_leaves[]            leaves of all trees; a tree has one more than it has nodes
 *   tk_tree_inputs[], tk_tree_thresholds[]
 *                          for each threshold its input and value; true if the input is above
 *                          With TK_MISSING 2^15 is added to the input of a threshold that missing
 *                          values, -2^31, exceed, too.
 *   TK_OWN_THRESHOLDS      1: node i has threshold i, and in tk_nodes the number of nodes to skip
 *                          plus 1, times 2, plus 1 if its "true" branch is a leaf
 *   TK_TREES_RAW           1: raw inputs are read, and quantized if TK_TREES_WHOLE is 0
 *   TK_TREES_WHOLE         1: thresholds are those of raw inputs, TK_TREE_ZERO above quantized ones
 *   TK_WIDE_NODES          1: numbers of nodes and thresholds have 16 bits
 *   TK_VECTORS             number of vectors: leaves are unsigned numbers of them, all trees are
 *                          those of every output, and shifts are 0
 *   tk_vectors[]           what a leaf adds to each output, vector by vector
 *   tk_votes[]             TK_VOTES: in place of vectors, lists of which leaves name the first
 *                          entry: what it adds, times 256, plus its output, plus 128 in the last
 *   tk_tree_gains[]        int32_t: score per unit of the sum of the leaves
 * Curve, if scores are no totals; see tk_curve.h
 *   TK_CURVE_BITS          fractional bits of a total; TK_CURVE_SQUARE is 1 for squares
 *   TK_CURVE_DOWN          30 less the fractional bits of a score
 *   tk_powers[]            powers of 2, of i/64: 2^15 times each, less 2^15
 * Squares, if there are any; then there are no components, linear part or trees
 *   TK_SQUARES_ROWS, TK_SQUARES_WIDTH, TK_SQUARES_SHIFT, TK_SQUARES_BITS
 *                          rows a class, most weights of a row, shift of squares, width of a weight
 *   tk_squares_weights[], tk_squares_offsets[], tk_squares_drops[]
 *                          of each row its weights, offset and shift, class by class
 * Prototypes of a model of one class, or of a decision part
 *   TK_ONE_CLASS           1: the score is the distance to the nearest prototype plus tk_biases[0];
 *                          there are neither components nor a linear part
 *   TK_PROTOTYPES          number of prototypes
 *   tk_prototypes[]        the inputs of each prototype, -8..7 in 4 bits, the first one at the top
 *                          of a word; each prototype begins a new word
 * Stages before the read-out, if there are any. The raw inputs are then images or signals, and the
 * "inputs" above are the counts of type tk_raw_t that the stages compute. tk_stage.h describes a
 * stage. The generated source holds the structures of the stages and the functions that call them:
 * tk_counts; for signals tk_window_init, tk_stream_push and tk_stream_counts; for frames
 * tk_frame_counts
 *   TK_STAGES              1: images; 2: signals; 3: frames of a camera
 *   tk_sample_t            type of raw values
 *   tk_sensor_t            type of the input of the levels: raw values, or output of a stage
 *   TK_LEVELS_RAW_FLOAT, TK_LEVELS_RAW_WIDE, TK_LEVELS_OFFSET(c), TK_LEVELS_MULTIPLIER(c),
 *   TK_LEVELS_SPAN(c), TK_LEVELS_PRE_SHIFT(c)
 *                          scaler of channel c, as above
 * Scratch
 *   TK_FIRST_WORDS         words of the first region of scratch, see tk_predict.h
 */
/* clang-format on */
#ifndef TK_CONTRACT_H
#define TK_CONTRACT_H

#include "tk_config.h"

#define TK_RUNTIME_FORMAT 9

#if !defined(TK_FORMAT)
#error "this model was generated for an older runtime: export it again"
#elif TK_FORMAT != TK_RUNTIME_FORMAT
#error \
    "model and runtime are of different formats: export the model again, and take both from there"
#endif

#ifndef TK_LINEAR_BITS
#define TK_LINEAR_BITS 0
#endif
#ifndef TK_WINDOW_BITS
#define TK_WINDOW_BITS 8
#endif
#ifndef TK_TREES
#define TK_TREES 0
#endif
#ifndef TK_OWN_THRESHOLDS
#define TK_OWN_THRESHOLDS 0
#endif
#ifndef TK_TREES_RAW
#define TK_TREES_RAW 0
#endif
#ifndef TK_TREES_WHOLE
#define TK_TREES_WHOLE 0
#endif
#ifndef TK_TREE_ZERO
#define TK_TREE_ZERO 0
#endif
#ifndef TK_VOTES
#define TK_VOTES 0
#endif
#ifndef TK_ONE_CLASS
#define TK_ONE_CLASS 0
#endif
#ifndef TK_CURVE_SQUARE
#define TK_CURVE_SQUARE 0
#endif
#ifndef TK_STAGES
#define TK_STAGES 0
#endif

#if TK_BLOCKS
#define TK_DIMENSION (UINT32_C(1) << TK_LOG2_DIMENSION)
#define TK_PAIRS     (TK_DIMENSION / 2u) /* words of two int16 */
#endif

#endif
