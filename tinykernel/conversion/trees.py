"""Trees of any library as the part `Trees`: the same thresholds, and leaves in fixed point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.conversion.columns import ModelColumns
from tinykernel.errors import ConvertError
from tinykernel.model.answers.labels import Labels
from tinykernel.model.answers.values import LARGEST_SHIFT, Values, numbered_values
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.readouts.readout import Readout
from tinykernel.model.readouts.trees import LARGEST_THRESHOLDS, Trees

_MOST = 2**31 - 1
_VECTORS = 1 << 15  # most different vectors of leaves
_VECTOR_BITS = 16  # of an entry of a vector that is no whole number
_LARGEST_SHIFT = 15  # of the leaves of a tree


@dataclass(frozen=True)
class ForeignTree:
    """A tree of another library. Node 0 is the root; `left` is -1 of a leaf."""

    left: NDArray[np.int64]  # where the test is false: x <= threshold, or x < threshold
    right: NDArray[np.int64]
    column: NDArray[np.int64]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_] | None  # where NaN goes; None: NaN is refused
    value: NDArray[np.float64]  # (n_nodes, n_values): of the leaves
    output: int = 0  # of a single value


@dataclass(frozen=True)
class Ensemble:
    """Trees whose leaves add up, and what the sums mean."""

    trees: Sequence[ForeignTree]
    base: NDArray[np.float64]  # (n_outputs,) added to the sums
    classes: tuple[Any, ...] | None  # None: values
    # What a threshold is compared with, of what the model sees in a column.
    cast: Callable[[NDArray[Any]], NDArray[Any]] = field(default=lambda x: x.astype(np.float32))
    below: Callable[..., NDArray[np.bool_]] = np.less_equal  # goes left
    ties_up: bool = False  # whether a sum of 0 is the second of two classes
    #: What changes with fewer trees: leaves of a "mean", or the base of a "limit".
    share_of: str = ""

    @property
    def n_trees(self) -> int:
        """Trees of each output."""
        return sum(tree.output == 0 for tree in self.trees)

    def first(self, n: int) -> Ensemble:
        """Return the first trees of each output."""
        place = dict.fromkeys((tree.output for tree in self.trees), 0)
        trees = list[ForeignTree]()
        for tree in self.trees:
            place[tree.output] += 1
            if place[tree.output] <= n:
                trees.append(tree)
        share = n / self.n_trees
        if self.share_of == "mean":
            trees = [replace(tree, value=tree.value / share) for tree in trees]
        base = self.base * share if self.share_of == "limit" else self.base
        return replace(self, trees=trees, base=base)


def integer_model(ensemble: Ensemble, columns: ModelColumns, leaf_bits: int = 0) -> IntegerModel:
    """Return the model of an ensemble, with leaves of 4, 8 or 16 bits, or 0: as they are."""
    limits, missing = _limits(ensemble, columns)
    tests, shapes, leaves = _flattened(ensemble, columns, limits, missing)
    sizes, test, left = (np.concatenate(part).astype(np.int64) for part in shapes)
    n_outputs = ensemble.base.size
    is_vector = n_outputs > 1 and leaves[0].shape[1] > 1
    shift = _shift(ensemble, leaves, is_vector, leaf_bits)
    whole = np.rint(np.ldexp(np.concatenate(leaves), shift)).astype(np.int64)
    tree_shifts = np.zeros(sizes.size, dtype=np.uint8)
    if leaf_bits and not is_vector:
        whole, tree_shifts = _rounded(whole, sizes, leaf_bits)
    output = np.array([tree.output for tree in ensemble.trees])
    vectors = None
    if is_vector:
        vectors, whole = np.unique(whole, axis=0, return_inverse=True)
        if len(vectors) > _VECTORS:
            raise ConvertError(
                f"convert: the leaves have {len(vectors)} different vectors of probabilities; at "
                f"most {_VECTORS} are supported; train fewer or smaller trees"
            )
    used = np.zeros(columns.n_inputs, dtype=bool)
    feature = columns.source[tests[:, 0]]
    used[feature] = True
    low, high = _ends(feature, tests[:, 1], used)
    scale = columns.scale(low, high, used)
    half = 0 if scale.bits == 32 else (1 << (scale.bits - 1)) + columns.ends[0]
    part = Trees(
        feature.astype(np.uint16),
        tests[:, 1] - half,
        sizes,
        output,
        tree_shifts,
        test,
        left,
        whole.ravel(),
        np.ones(n_outputs, dtype=np.int32),
        vectors,
        tests[:, 2].astype(np.uint8) if np.any(tests[:, 2]) else None,
    )
    offset = np.rint(np.ldexp(ensemble.base, shift)).astype(np.int64) + int(ensemble.ties_up)
    return IntegerModel(
        input=Grid.table(columns.raw_dtype, columns.n_inputs),
        stages=(scale,),
        readout=Readout((part,), offset.astype(np.int32)),
        answers=Values(numbered_values(n_outputs), shift)
        if ensemble.classes is None
        else Labels(ensemble.classes),
        decision_scale=2.0**-shift,
    )


def _limits(
    ensemble: Ensemble, columns: ModelColumns
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.bool_]]]:
    """Return, of each node of each tree, the last raw value to the left, and where NaN goes."""
    column = np.concatenate([tree.column for tree in ensemble.trees])
    threshold = np.concatenate([tree.threshold for tree in ensemble.trees])
    inner = np.concatenate([tree.left for tree in ensemble.trees]) >= 0
    if np.any(np.isnan(threshold[inner])):
        raise ConvertError("convert: a threshold is NaN")
    pairs = np.stack([np.where(inner, column, 0), np.where(inner, threshold, 0)], axis=1)
    unique, place = np.unique(pairs, axis=0, return_inverse=True)
    chosen, value = unique[:, 0].astype(np.intp), unique[:, 1]

    def goes_left(seen: NDArray[Any]) -> NDArray[np.bool_]:
        return ensemble.below(ensemble.cast(seen), value)

    limit = columns.last_left(chosen, goes_left)[place.ravel()]
    right = np.zeros(limit.size, dtype=bool)
    takes_missing = any(tree.missing_left is not None for tree in ensemble.trees)
    if columns.raw_dtype == "float32" and (takes_missing or columns.steps):
        none = ensemble.cast(columns.of_column(chosen, np.full(chosen.size, np.nan, np.float32)))
        with np.errstate(invalid="ignore"):
            filled = ~ensemble.below(none, value)[place.ravel()]
        is_missing = np.isnan(none)[place.ravel()]
        directions = [
            np.ones(tree.left.size, dtype=bool) if tree.missing_left is None else tree.missing_left
            for tree in ensemble.trees
        ]
        right = np.where(is_missing, ~np.concatenate(directions), filled)
    ends = np.cumsum([tree.left.size for tree in ensemble.trees])[:-1]
    return np.split(limit, ends), np.split(right, ends)


def _flattened(
    ensemble: Ensemble,
    columns: ModelColumns,
    limits: list[NDArray[np.int64]],
    missing: list[NDArray[np.bool_]],
) -> tuple[NDArray[np.int64], tuple[list[Any], list[Any], list[Any]], list[NDArray[Any]]]:
    """Return the tests of all trees, their sizes and nodes in preorder, and their leaves."""
    low, high = columns.ends
    tests: list[NDArray[Any]] = []
    sizes, lefts, leaves = [], [], []
    for tree, limit, right in zip(ensemble.trees, limits, missing, strict=True):
        # A node that sends all values, NaN as well, to one side is left out.
        no_gaps = tree.missing_left is None or columns.raw_dtype != "float32"
        never, always = (limit < low) & (right | no_gaps), (limit >= high) & ~right
        child = np.where(never, tree.right, np.where(always, tree.left, -1)).tolist()
        inner, leaf, left = _preorder(tree.left.tolist(), tree.right.tolist(), child)
        tests.append(np.stack([tree.column[inner], limit[inner], right[inner]], axis=1))
        sizes.append(len(inner))
        lefts.append(left)
        leaves.append(tree.value[leaf])
    every = np.concatenate(tests)
    if not len(every):
        raise ConvertError("convert: no tree has a threshold, so all answers are the same")
    unique, place = np.unique(every, axis=0, return_inverse=True)
    if len(unique) > LARGEST_THRESHOLDS:
        raise ConvertError(
            f"convert: the trees have {len(unique)} thresholds; at most {LARGEST_THRESHOLDS} are "
            "supported; train fewer or smaller trees"
        )
    return unique, ([sizes], [place.ravel()], lefts), leaves


def _preorder(
    left: list[int], right: list[int], only: list[int]
) -> tuple[list[int], list[int], list[int]]:
    """Return the inner nodes in preorder, the leaves, and the nodes below each on the left.

    `only` is the child of a node with one side, else -1.
    """
    inner: list[int] = []
    leaves: list[int] = []
    below: list[int] = []
    # Of an inner node whose left part is complete, its place comes up again as a negative number.
    waiting = [0]
    while waiting:
        node = waiting.pop()
        if node < 0:
            place = -node - 1
            below[place] = len(inner) - place - 1
            continue
        while left[node] >= 0 and only[node] >= 0:
            node = only[node]
        if left[node] < 0:
            leaves.append(node)
            continue
        waiting += [right[node], -len(inner) - 1, left[node]]
        inner.append(node)
        below.append(0)
    return inner, leaves, below


def _rounded(
    whole: NDArray[np.int64], sizes: NDArray[np.int64], bits: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Round the leaves of each tree to so many bits, and return its shift."""
    most, shifts, parts = 2 ** (bits - 1) - 1, list[int](), list[NDArray[np.int64]]()
    for part in np.split(whole, np.cumsum(sizes + 1)[:-1]):
        top = int(np.abs(part).max())
        shift = max(0, top.bit_length() - (bits - 1))
        shift = min(shift, _LARGEST_SHIFT)
        shifts.append(shift)
        parts.append(np.clip(np.rint(part / 2.0**shift), -most, most).astype(np.int64))
    return np.concatenate(parts), np.array(shifts, dtype=np.uint8)


def _shift(ensemble: Ensemble, leaves: list[NDArray[Any]], is_vector: bool, leaf_bits: int) -> int:
    """Return the fractional bits of leaves: all that fit, or none of whole numbers."""
    everything = np.concatenate([*[leaf.ravel() for leaf in leaves], ensemble.base])
    if not np.all(np.isfinite(everything)):
        raise ConvertError("convert: a leaf is not a finite number")
    if ensemble.classes is not None and np.all(everything == np.rint(everything)):
        return 0
    largest = sum(float(np.abs(leaf).max()) for leaf in leaves) + float(np.abs(ensemble.base).max())
    largest = max(largest, 1e-30)
    shift = int(np.floor(np.log2((_MOST - len(leaves) - 2) / largest)))
    if is_vector:
        top = max(float(np.abs(leaf).max()) for leaf in leaves)
        bits = leaf_bits or _VECTOR_BITS
        shift = min(shift, int(np.floor(np.log2((2**bits - 1) / max(top, 1e-30)))))
    elif leaf_bits:
        top = max(float(np.abs(leaf).max()) for leaf in leaves)
        most = 2.0 ** (leaf_bits - 1 + _LARGEST_SHIFT) - 1
        shift = min(shift, int(np.floor(np.log2(most / max(top, 1e-30)))))
    return int(np.clip(shift, -LARGEST_SHIFT, LARGEST_SHIFT))


def _ends(
    feature: NDArray[np.intp], limit: NDArray[np.int64], used: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where values of inputs lie, in order: a little beyond their thresholds."""
    low, high = np.full(used.size, _MOST), np.full(used.size, -_MOST)
    np.minimum.at(low, feature, limit)
    np.maximum.at(high, feature, limit)
    margin = np.maximum((high - low) // 8, 1)
    return np.where(used, low - margin, 0), np.where(used, high + 1 + margin, 0)
