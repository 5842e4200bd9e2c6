/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: sums of leaves, chosen by comparing quantized inputs with thresholds. */
#ifndef TK_TREES_H
#define TK_TREES_H

#include "tk_contract.h"

#include "tk_input.h"

/* Sizes of trees, and nodes. */
#if TK_WIDE_NODES
typedef uint16_t tk_node_t;
#else
typedef uint8_t tk_node_t;
#endif

/* Leaf i: a number of TK_LEAF_BITS bits, signed unless it is the number of a vector. */
TK_INLINE int32_t tk_leaf(uint32_t i)
{
#if TK_LEAF_BITS == 4
    const uint32_t pair = tk_leaves[i / 2u];
    const uint32_t leaf = (i & 1u) != 0u ? pair >> 4 : pair & 15u;
#if TK_VECTORS
    return (int32_t)leaf;
#else
    return (int32_t)(leaf ^ 8u) - 8;
#endif
#else
    return tk_leaves[i];
#endif
}

/* Whether a test is true: the input is above the threshold, or missing where that is above. */
TK_INLINE int tk_above(const tk_quantized_t *input, uint32_t test)
{
#if TK_MISSING
    const uint32_t place = tk_tree_inputs[test];
    const int32_t value = input[place & 0x7fffu];
    return value > tk_tree_thresholds[test] || (value == INT32_MIN && place >> 15 != 0u);
#else
    return input[tk_tree_inputs[test]] > tk_tree_thresholds[test];
#endif
}

/* Compute sums[TK_OUTPUTS], for each output the sum of the leaves that its trees choose, or of
 * their entries of the vectors that all trees choose; proved to fit int32. A node is followed by
 * the nodes of its "false" branch, whose number it holds. */
TK_SHARED void tk_sum_trees(const tk_quantized_t *input, int32_t *sums)
{
    const TK_FLASH tk_node_t *tree = tk_trees;
    const TK_FLASH tk_node_t *nodes = tk_nodes;
    uint32_t leaves = 0u;
    uint32_t output = 0u;
#if TK_VECTORS
    for (; output != TK_OUTPUTS; ++output) {
        sums[output] = 0;
        TK_PLAIN_LOOP();
    }
    output = TK_OUTPUTS - 1u;
#endif
    do {
#if TK_VECTORS
        uint32_t left = TK_TREES;
#else
        uint32_t left = tk_tree_counts[output];
        int32_t sum = 0;
#endif
        while (left != 0u) {
            const TK_FLASH tk_node_t *node = nodes;
            uint32_t below = tree[0];
            uint32_t leaf = leaves;
            nodes += 2u * below;
            leaves += below + 1u;
            while (below != 0u) {
                const uint32_t test = node[0];
                const uint32_t skipped = node[1] + 1u;
                if (tk_above(input, test) != 0) {
                    node += 2u * skipped;
                    leaf += skipped;
                    below -= skipped;
                } else {
                    node += 2;
                    below = skipped - 1u;
                }
            }
#if TK_VECTORS
            {
                uint32_t entry = (uint32_t)tk_leaf(leaf) * TK_OUTPUTS;
                uint32_t i;
                for (i = 0u; i != TK_OUTPUTS; ++i) {
                    sums[i] += (int32_t)tk_vectors[entry];
                    ++entry;
                }
            }
#else
            sum += tk_leaf(leaf) * ((int32_t)1 << tree[1]);
#endif
            tree += 2;
            --left;
        }
#if !TK_VECTORS
        sums[output] = sum;
#endif
    } while (++output != TK_OUTPUTS);
}

#define TK_GAIN(output) ((uint32_t)tk_tree_gains[output])

TK_INLINE void tk_sums(const tk_quantized_t *input, uint32_t *scratch, int32_t *sums)
{
    (void)scratch;
    tk_sum_trees(input, sums);
}

#endif
