/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: sums of leaves, chosen by comparing quantized inputs with thresholds. */
#ifndef TK_TREES_H
#define TK_TREES_H

#include "tk_contract.h"

#include "tk_input.h"

/* Leaf i, -8..7 or -128..127. */
TK_INLINE int32_t tk_leaf(uint32_t i)
{
#if TK_LEAF_BITS == 4
    const uint32_t pair = tk_leaves[i / 2u];
    return (int32_t)(((i & 1u) != 0u ? pair >> 4 : pair & 15u) ^ 8u) - 8;
#else
    return tk_leaves[i];
#endif
}

/* Compute sums[TK_OUTPUTS], for each output the sum of the leaves that its trees choose; proved to
 * fit int32. A node is followed by the nodes of its "false" branch, whose number it holds. */
TK_SHARED void tk_sum_trees(const tk_quantized_t *input, int32_t *sums)
{
    const TK_FLASH uint8_t *tree = tk_trees;
    const TK_FLASH uint8_t *nodes = tk_nodes;
    uint32_t leaves = 0u;
    uint32_t output = 0u;
    do {
        uint32_t left = tk_tree_counts[output];
        int32_t sum = 0;
        while (left != 0u) {
            const TK_FLASH uint8_t *node = nodes;
            uint32_t below = tree[0];
            uint32_t leaf = leaves;
            nodes += 2u * below;
            leaves += below + 1u;
            while (below != 0u) {
                const uint32_t test = node[0];
                const uint32_t skipped = node[1] + 1u;
                if (input[tk_tree_inputs[test]] > tk_tree_thresholds[test]) {
                    node += 2u * skipped;
                    leaf += skipped;
                    below -= skipped;
                } else {
                    node += 2;
                    below = skipped - 1u;
                }
            }
            sum += tk_leaf(leaf) * ((int32_t)1 << tree[1]);
            tree += 2;
            --left;
        }
        sums[output] = sum;
    } while (++output != TK_OUTPUTS);
}

#endif
