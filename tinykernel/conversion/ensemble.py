"""Trees of any library, before their splits are those of raw inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


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


def bounds_of(categories: NDArray[Any]) -> tuple[float, ...]:
    """Return the ends of the ranges of whole numbers: `bounds` that send them left.

    >>> bounds_of(np.array([7, 2, 3]))
    (2.0, 4.0, 7.0, 8.0)
    """
    ends = np.unique(categories)
    first = np.setdiff1d(ends, ends + 1)
    last = np.setdiff1d(ends + 1, ends)
    return tuple(np.stack([first, last], axis=1).ravel().astype(float).tolist())


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
