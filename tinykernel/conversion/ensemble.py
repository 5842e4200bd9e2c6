"""Trees of any library, before their splits are those of raw inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.checks import damaged


def as_single(seen: NDArray[Any]) -> NDArray[Any]:
    """Return values as float32, which most libraries compare."""
    return seen.astype(np.float32)


def as_double(seen: NDArray[Any]) -> NDArray[Any]:
    """Return values as float64."""
    return seen.astype(np.float64)


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
    #: Of a node, in place of its threshold, the ends of ranges in order: what is at the first end
    #: or above goes left, what is at the second or above right, and so on.
    bounds: Mapping[int, tuple[float, ...]] = field(default_factory=dict)

    def check(self, n_columns: int) -> None:
        """Refuse a damaged tree: one with other lengths, columns or children than a tree has."""
        parts: list[NDArray[Any]] = [self.left, self.right, self.column, self.threshold, self.value]
        parts += [] if self.missing_left is None else [self.missing_left]
        n = self.left.size
        is_tree = n > 0 and all(part.shape[:1] == (n,) for part in parts)
        if is_tree:
            inner = self.left >= 0
            children = np.concatenate([self.left[inner], self.right[inner]])
            is_tree = np.unique(children[children > 0]).size == children.size
            is_tree = is_tree and not np.any(children >= n)
            is_tree = is_tree and not np.any((self.column < 0) | (self.column >= n_columns))
        if not is_tree:
            raise damaged("convert: a tree")


def bounds_of(categories: NDArray[Any]) -> tuple[float, ...]:
    """Return the ends of the ranges of whole numbers: `bounds` that send them left.

    >>> bounds_of(np.array([7, 2, 3]))
    (2.0, 4.0, 7.0, 8.0)
    """
    ends = np.unique(categories)
    first = np.setdiff1d(ends, ends + 1)
    last = np.setdiff1d(ends + 1, ends)
    return tuple(np.stack([first, last], axis=1).ravel().astype(float).tolist())


def redirected(ends: tuple[float, ...], low: float, high: float, left: bool) -> tuple[float, ...]:
    """Return bounds by which also values from `low` up to below `high` go to one side.

    >>> redirected((2.0, 4.0), 4.0, 6.0, True), redirected((-np.inf, 4.0), 0.0, 1.0, False)
    ((2.0, 6.0), (-inf, 0.0, 1.0, 4.0))
    """
    before, behind = [end for end in ends if end < low], [end for end in ends if end > high]
    goes_on = (len(ends) - len(behind)) % 2 == 1  # left, at the high end
    low_end = [low] if (len(before) % 2 == 1) != left else []
    high_end = [high] if goes_on != left and high > low else []  # nothing is behind infinity
    return (*before, *low_end, *high_end, *behind)


def votes_of(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 for the first largest share; of the difference of two classes, 1 or -1.

    >>> votes_of(np.array([[0.2, 0.4, 0.4]])).tolist(), votes_of(np.array([[0.0]])).tolist()
    ([[0.0, 1.0, 0.0]], [[-1.0]])
    """
    if shares.shape[1] == 1:
        return np.where(shares > 0, 1.0, -1.0)
    return np.asarray(np.eye(shares.shape[1])[np.argmax(shares, axis=1)])


@dataclass(frozen=True)
class Ensemble:
    """Trees whose leaves add up, and what the sums mean."""

    trees: Sequence[ForeignTree]
    base: NDArray[np.float64]  # (n_outputs,) added to the sums
    classes: tuple[Any, ...] | None  # None: values
    # What a threshold is compared with, of what the model sees in a column.
    cast: Callable[[NDArray[Any]], NDArray[Any]] = as_single
    below: Callable[..., NDArray[np.bool_]] = np.less_equal  # goes left
    ties_up: bool = False  # whether a sum of 0 is the second of two classes
    #: What changes with fewer trees: leaves of a "mean", or the base of a "limit".
    share_of: str = ""
    #: How many shares of leaves, of 1 each, a sum has; 0 if it is no sum of shares.
    size: float = 0.0
    curve: str = ""  # "power": values are exp of the sums; "square": sums times their sizes

    def with_one_sum(self) -> Ensemble:
        """Return the difference of two sums, if the larger one of these is the class."""
        if self.classes is None or len(self.classes) != 2 or self.base.size != 2:
            return self
        trees = [
            replace(tree, output=0, value=np.diff(tree.value))
            if tree.value.shape[1] == 2
            else replace(tree, output=0, value=tree.value if tree.output else -tree.value)
            for tree in self.trees
        ]
        return replace(self, trees=trees, base=np.diff(self.base))

    def hard(self) -> Ensemble:
        """Return trees that each vote for their class alone."""
        if self.classes is None or not self.size:
            raise ConvertError(
                "convert: votes='hard' is for trees whose leaves have shares of classes, such as "
                "those of a RandomForestClassifier"
            )
        trees = [replace(tree, value=votes_of(tree.value)) for tree in self.trees]
        return replace(self, trees=trees, size=float(self.n_trees))

    def times(self, factor: float) -> Ensemble:
        """Return it with all sums multiplied."""
        trees = [replace(tree, value=factor * tree.value) for tree in self.trees]
        return replace(self, trees=trees, base=factor * self.base)

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
