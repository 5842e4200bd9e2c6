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
#if TK_VECTORS || TK_VOTES
    return (int32_t)leaf;
#else
    return (int32_t)(leaf ^ 8u) - 8;
#endif
#else
    return tk_leaves[i];
#endif
}

/* What thresholds are compared with: value i of the input, which is raw if `raw` is not 0. */
TK_INLINE int32_t tk_tree_value(const void *input, uint32_t i, int raw)
{
    if (raw == 0) {
        return (int32_t)((const tk_quantized_t *)input)[i] + TK_TREE_ZERO;
    }
#if TK_TREES_WHOLE
    return (int32_t)((const tk_raw_t *)input)[i];
#else
    return tk_quantize_value(((const tk_raw_t *)input)[i], i);
#endif
}

/* Whether a test is true: the input is above the threshold, or missing where that is above. */
TK_INLINE int tk_above(const void *input, uint32_t test, int raw)
{
#if TK_MISSING
    const uint32_t place = tk_tree_inputs[test];
    const int32_t value = tk_tree_value(input, place & 0x7fffu, raw);
    return value > (int32_t)tk_tree_thresholds[test] || (value == INT32_MIN && place >> 15 != 0u);
#else
    return tk_tree_value(input, tk_tree_inputs[test], raw) > (int32_t)tk_tree_thresholds[test];
#endif
}

/* Return the leaf of a tree of `below` nodes, from its first node and leaf on. A node is followed
 * by the nodes of its "false" branch, whose number it holds. */
TK_INLINE uint32_t tk_leaf_of(const void *input, uint32_t node, uint32_t leaf, uint32_t below,
                              int raw)
{
#if TK_OWN_THRESHOLDS
    while (below != 0u) {
        const uint32_t code = tk_nodes[node];
        if (tk_above(input, node, raw) != 0) {
            node += code >> 1;
            leaf += code >> 1;
            if ((code & 1u) != 0u) {
                break;
            }
        } else {
            ++node;
            if (code < 4u) {
                break;
            }
        }
    }
#else
    const TK_FLASH tk_node_t *at = tk_nodes + 2u * node;
    while (below != 0u) {
        const uint32_t test = at[0];
        const uint32_t skipped = at[1] + 1u;
        if (tk_above(input, test, raw) != 0) {
            at += 2u * skipped;
            leaf += skipped;
            below -= skipped;
        } else {
            at += 2;
            below = skipped - 1u;
        }
    }
#endif
    return leaf;
}

#if TK_VECTORS || TK_VOTES

/* Add what a leaf adds to each output. */
TK_INLINE void tk_add_leaf(uint32_t leaf, int32_t *sums)
{
#if TK_VOTES
    const TK_FLASH int32_t *vote = tk_votes + (uint32_t)tk_leaf(leaf);
    int32_t entry;
    do {
        entry = *vote;
        ++vote;
        sums[entry & 127] += entry >> 8;
    } while ((entry & 128) == 0);
#else
    uint32_t entry = (uint32_t)tk_leaf(leaf) * TK_OUTPUTS;
    uint32_t i;
    for (i = 0u; i != TK_OUTPUTS; ++i) {
        sums[i] += (int32_t)tk_vectors[entry];
        ++entry;
    }
#endif
}

#endif

/* Compute sums[TK_OUTPUTS], for each output the sum of the leaves that its trees choose, or of
 * their votes or entries of the vectors that all trees choose; proved to fit int32. */
TK_INLINE void tk_walk_trees(const void *input, int32_t *sums, int raw)
{
    const TK_FLASH tk_node_t *tree = tk_trees;
    uint32_t node = 0u;
    uint32_t leaves = 0u;
    uint32_t output = 0u;
#if TK_VECTORS || TK_VOTES
    for (; output != TK_OUTPUTS; ++output) {
        sums[output] = 0;
        TK_PLAIN_LOOP();
    }
    output = TK_OUTPUTS - 1u;
#endif
    do {
#if TK_VECTORS || TK_VOTES
        uint32_t left = TK_TREES;
#else
        uint32_t left = tk_tree_counts[output];
        int32_t sum = 0;
#endif
        while (left != 0u) {
            const uint32_t size = tree[0];
            const uint32_t leaf = tk_leaf_of(input, node, leaves, size, raw);
#if TK_VECTORS || TK_VOTES
            tk_add_leaf(leaf, sums);
#else
            sum += tk_leaf(leaf) * ((int32_t)1 << tree[1]);
#endif
            node += size;
            leaves += size + 1u;
            tree += 2;
            --left;
        }
#if !TK_VECTORS && !TK_VOTES
        sums[output] = sum;
#endif
    } while (++output != TK_OUTPUTS);
}

#define TK_GAIN(output) ((uint32_t)tk_tree_gains[output])

TK_SHARED void tk_sum_trees(const tk_quantized_t *input, int32_t *sums)
{
    tk_walk_trees(input, sums, 0);
}

TK_INLINE void tk_sums(const tk_quantized_t *input, uint32_t *scratch, int32_t *sums)
{
    (void)scratch;
    tk_sum_trees(input, sums);
}

/* Trees that take fewer steps than there are inputs read raw values. */
#if TK_TREES_RAW
#define TK_SUMS_RAW 1
TK_INLINE void tk_sums_raw(const tk_raw_t *input, int32_t *sums)
{
    tk_walk_trees(input, sums, 1);
}
#endif

#endif
