"""Bounds of trees, for check_proof.py: see proof_pieces.py."""

import numpy as np
from proof_tools import need

MACRO = "TREES"


def leaves(c):
    """Return the extremes of the partial and whole sums of each output; refuse damaged trees."""
    size, shift = c.table["tk_trees"].reshape(c("TREES"), 2).T
    if c("OWN_THRESHOLDS"):
        code, test = c.table["tk_nodes"].reshape(size.sum()), np.arange(size.sum())
        need(min(code, default=2) > 1, "a node has no next one")
        left = code // 2 - 1
    else:
        test, left = c.table["tk_nodes"].reshape(size.sum(), 2).T
    inputs, four = c.table["tk_tree_inputs"], c("LEAF_BITS") == 4
    inputs = inputs & 0x7FFF if c("MISSING") else inputs
    need(len(inputs) == len(c.table["tk_tree_thresholds"]) > max(test, default=0), "a test is none")
    need(max(inputs) < c("FEATURES") and max(shift) < 16, "an input or a shift is none")
    leaf = c.fields("tk_leaves", [0, 4], 4) if four else c.table["tk_leaves"]
    need(len(leaf) >= size.sum() + len(size), "leaves are missing")
    leaf = leaf[: size.sum() + len(size)]
    ends = []  # where the parts around a node end
    for node, below in enumerate(left):
        while ends and ends[-1] <= node:
            ends.pop()
        if not ends:
            ends.append(node + size[np.searchsorted(np.cumsum(size), node, side="right")])
        need(node + 1 + below <= ends[-1], "a node skips too many others")
        is_last = node + 1 + below == ends[-1]
        need(not c("OWN_THRESHOLDS") or code[node] % 2 == is_last, "a leaf is none")
        ends.append(node + 1 + below)
    counts = c.table["tk_tree_counts"].reshape(c("OUTPUTS"))
    need(counts.sum() == len(size), "trees of no output")
    partial, sums = np.zeros((2, 2, len(counts)), dtype=np.int64)
    first = np.cumsum(size + 1) - size - 1
    for row, best in enumerate((np.minimum, np.maximum)):
        if c("VECTORS") or c("VOTES"):
            number, vectors = vectors_of(c, leaf & 15 if four else leaf, len(counts))
            need(max(number) < len(vectors) and not any(shift), "a vector is none")
            extremes = best.reduceat(vectors[number], first)
            sums[row], partial[row] = extremes.sum(axis=0), best(extremes, 0).sum(axis=0)
            continue
        extremes = best.reduceat(leaf, first) << shift
        output = np.repeat(np.arange(len(counts)), counts)
        np.add.at(sums[row], output, extremes)
        np.add.at(partial[row], output, best(extremes, 0))
    return partial, sums


def vectors_of(c, number, n):
    """Return numbers of vectors and the vectors, also of those that stand as lists of votes."""
    if c("VECTORS"):
        return number, c.table["tk_vectors"].reshape(c("VECTORS"), n)
    votes = c.table["tk_votes"]
    output, weight, is_last = votes & 127, votes >> 8, votes & 128 > 0
    need(is_last[-1] and max(output) < n, "votes have no end, or are of no output")
    ends = np.flatnonzero(is_last)
    starts = np.concatenate([[0], ends[:-1] + 1])
    need(np.isin(number, starts).all(), "a vote is none")
    vectors = np.zeros((len(ends), n), dtype=np.int64)
    np.add.at(vectors, (np.repeat(np.arange(len(ends)), ends - starts + 1), output), weight)
    return np.searchsorted(starts, number), vectors


def outputs(c, n):
    """Return the ends of the sums of leaves times their gains, and the bounds of both."""
    partial, sums = leaves(c)
    ends = np.sort(c.table["tk_tree_gains"].reshape(n) * sums, axis=0)
    return ends, [("sum of leaves", *partial), ("sum of leaves times multiplier", *ends)]
