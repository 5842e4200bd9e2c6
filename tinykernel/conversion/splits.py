"""Splits of foreign trees as comparisons of raw inputs, and trees as lists in preorder.

A split by categories, or one on a column of an encoder, is a chain of comparisons with its two
parts below several of them. What the comparisons above have decided is left out.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.columns import ModelColumns
from tinykernel.conversion.ensemble import Ensemble, ForeignTree

_MOST_NODES = 1 << 20
_Chain = tuple[list[int], bool, bool]  # limits, whether the first part is the left one, NaN as well


class RawSplits:
    """The comparisons of the nodes of an ensemble: ``x <= limit`` in the order of raw values."""

    def __init__(self, ensemble: Ensemble, columns: ModelColumns) -> None:
        self.ensemble, self.columns = ensemble, columns
        self.takes_gaps = columns.raw_dtype == "float32" and (
            bool(columns.steps) or any(tree.missing_left is not None for tree in ensemble.trees)
        )
        self._points: dict[int, tuple[NDArray[np.int64], NDArray[Any], Any]] = {}
        self._chains: dict[Any, _Chain] = {}
        self.limits, self.gaps_right = self._compared()
        self.left = [tree.left.tolist() for tree in ensemble.trees]
        self.right = [tree.right.tolist() for tree in ensemble.trees]
        self.source = [columns.source[tree.column].tolist() for tree in ensemble.trees]
        for at, tree in enumerate(ensemble.trees):
            for node in np.flatnonzero(tree.left >= 0).tolist():
                if self._is_special(tree, node):
                    self._put_chain(at, node, self._chain(tree, node, self.limits[at][node]))

    def _is_special(self, tree: ForeignTree, node: int) -> bool:
        column = self.columns.columns[int(tree.column[node])]
        return node in tree.bounds or column.points is not None or bool(column.holes)

    def _compared(self) -> tuple[list[list[int]], list[list[bool]]]:
        """Return the limit of each node, and whether NaN goes right, where its column rises."""
        trees, columns = self.ensemble.trees, self.columns
        column = np.concatenate([tree.column for tree in trees])
        rises = np.array([each.points is None for each in columns.columns])[column]
        inner = rises & (np.concatenate([tree.left for tree in trees]) >= 0)
        threshold = np.concatenate([tree.threshold for tree in trees])
        if np.any(np.isnan(threshold[inner])):
            raise ConvertError("convert: a threshold is NaN")
        unique, place = np.unique(
            np.stack([column[inner], threshold[inner]], axis=1), axis=0, return_inverse=True
        )
        chosen, value, place = unique[:, 0].astype(np.intp), unique[:, 1], place.ravel()
        limit, right = np.zeros(column.size, dtype=np.int64), np.zeros(column.size, dtype=bool)
        last = columns.last_left(chosen, lambda values: self._below(values, value))
        limit[inner] = self._between_rows(chosen, value, last)[place]
        if self.takes_gaps:
            gap = columns.of_gaps(chosen)
            lefts = [
                np.ones(tree.left.size, bool) if tree.missing_left is None else tree.missing_left
                for tree in trees
            ]
            is_gap = np.isnan(self.ensemble.cast(gap))[place]
            filled = ~self._below(gap, value)[place]
            right[inner] = np.where(is_gap, ~np.concatenate(lefts)[inner], filled)
        ends = np.cumsum([tree.left.size for tree in trees])[:-1]
        limits, gaps_right = np.split(limit, ends), np.split(right, ends)
        return [part.tolist() for part in limits], [part.tolist() for part in gaps_right]

    def _between_rows(
        self, column: NDArray[np.intp], value: NDArray[Any], limit: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return limits that part the known rows in float64, which float32 can move across them.

        A threshold is often the value of a row, and its float32 then lies above: it goes left, too.
        """
        rows = self.columns.rows
        if rows is None or self.columns.in_order is None:
            return limit
        limit, is_open = limit.copy(), self.ensemble.below is np.less
        low, high = self.columns.ends
        order, view = self.columns.in_order
        view = self.ensemble.cast(view)
        if not self.columns.steps and view.dtype == np.float64:
            with np.errstate(over="ignore"):
                limit = np.maximum(limit, self.columns.order(value.astype(np.float32)))
        for number in np.unique(column):
            about = self.columns.columns[number]
            raw = rows[:, about.source]
            present = ~(np.isnan(raw) | np.isnan(view[:, number]) | np.isin(raw, about.holes))
            places, values = order[present, about.source], view[present, number]
            rising = np.lexsort((places, values))
            places = np.concatenate([[low - 1], places[rising], [high + 1]])
            nodes = column == number
            n_left = np.searchsorted(values[rising], value[nodes], "left" if is_open else "right")
            most, least = places[n_left], places[n_left + 1]
            between = np.clip(limit[nodes], most, least - 1)
            limit[nodes] = np.where(most < least, between, limit[nodes])
        return limit

    def _below(self, values: NDArray[Any], value: Any) -> NDArray[np.bool_]:
        with np.errstate(invalid="ignore"):
            return self.ensemble.below(self.ensemble.cast(values), value)

    def _chain(self, tree: ForeignTree, node: int, limit: int) -> _Chain:
        """Return the limits between which the parts of a node alternate.

        `limit` is the one of a column that rises, but for its holes.
        """
        column, bounds = int(tree.column[node]), tree.bounds.get(node)
        missing = True if tree.missing_left is None else bool(tree.missing_left[node])
        key = column, tree.threshold[node] if bounds is None else tuple(bounds), missing
        if key not in self._chains:
            self._chains[key] = self._found_chain(column, key[1], missing, limit)
        return self._chains[key]

    def _found_chain(self, column: int, split: Any, missing: bool, limit: int) -> _Chain:
        of_sets = isinstance(split, tuple)

        def is_left(values: Any) -> NDArray[np.bool_]:
            v = self.ensemble.cast(np.asarray(values)).astype(np.float64)
            left = np.searchsorted(split, v, "right") % 2 == 1 if of_sets else self._below(v, split)
            return np.where(np.isnan(v), missing, left)

        columns, gap = self.columns, np.full(1, np.nan)
        if columns.columns[column].points is None:
            ends, sides = np.array([limit]), [True, False]
            if of_sets:
                of, bounds = np.full(len(split), column), np.array(split)
                cast = self.ensemble.cast
                ends = columns.last_left(of, lambda x: cast(x).astype(np.float64) < bounds)
                sides = [i % 2 == 1 for i in range(len(split) + 1)]
            ends, sides = self._around_holes(column, ends, sides, is_left)
            gap = columns.of_gaps(np.full(1, column)) if self.takes_gaps else gap
        else:
            if column not in self._points:
                self._points[column] = self._values_at_points(column)
            ends, values, gap = self._points[column]
            sides = is_left(values).tolist()
        limits: list[int] = []
        first = last = sides[0]
        least, most = columns.ends
        for end, side in zip(ends.tolist(), sides[1:], strict=True):
            if end < least:  # nothing is below
                first = last = side
            elif side != last and end < most:
                if limits and limits[-1] == end:  # nothing is between
                    limits.pop()
                else:
                    limits.append(end)
                last = side
        return limits, first, first if gap is None else bool(is_left(gap)[0])

    def _around_holes(
        self, column: int, ends: NDArray[np.int64], sides: list[bool], is_left: Callable[..., Any]
    ) -> tuple[NDArray[np.int64], list[bool]]:
        """Return ends of ranges and the side of each, with ranges of their own for holes."""
        holes = np.array(self.columns.holes_of(column), dtype=np.int64)
        if not holes.size:
            return ends, sides
        values = self.columns.of_column(np.full(holes.size, column), self.columns.raw(holes))
        at_hole = dict(zip(holes.tolist(), is_left(values).tolist(), strict=True))
        every = np.unique([*ends, *holes, *(holes - 1)])
        before = [sides[place] for place in np.searchsorted(ends, every)]
        new = [at_hole.get(end, side) for end, side in zip(every.tolist(), before, strict=True)]
        return every, [*new, sides[-1]]

    def _values_at_points(self, column: int) -> tuple[NDArray[np.int64], NDArray[Any], Any]:
        """Return ends of ranges of raw values, what the model sees in each range, and of NaN."""
        about, columns = self.columns.columns[column], self.columns
        points = np.array(about.points)
        whole = points == np.rint(points)
        if columns.raw_dtype != "float32" and whole.any():  # others do not occur
            points = points[whole]
        of = np.full(points.size + 1, column)
        at = columns.order(points)
        values = columns.of_column(of[1:], points)
        if about.is_closed:
            ends, pieces = at[:-1], values
        else:
            other = columns.of_column(of[:1], points[-1:] + 1.5)
            pieces = np.repeat(other, 2 * points.size + 1)
            pieces[1::2] = values
            ends = np.stack([at - 1, at], axis=1).ravel()
        try:
            return ends, pieces, columns.of_column(of[:1], np.full(1, np.nan))
        except ValueError:  # the steps refuse it
            return ends, pieces, None

    def _put_chain(self, at: int, node: int, chain: _Chain) -> None:
        """Replace a node by comparisons, the first in its place."""
        limits, side, gap_left = chain
        if not limits:
            limits = [self.columns.ends[1] if side else self.columns.ends[0] - 1]
            side = True
        left, right, source = self.left[at], self.right[at], self.source[at]
        parts = {True: left[node], False: right[node]}
        for number, limit in enumerate(limits):
            is_last = number == len(limits) - 1
            following = parts[not side] if is_last else len(left)
            left[node], right[node] = parts[side], following
            self.limits[at][node] = limit
            self.gaps_right[at][node] = self.takes_gaps and gap_left != side
            if not is_last:
                rows: tuple[list[Any], ...] = (left, right, source)
                for row in (*rows, self.limits[at], self.gaps_right[at]):
                    row.append(row[node])
                node = following
            side = not side

    def flattened(self, at: int) -> tuple[list[tuple[int, int, bool]], list[int], list[int]]:
        """Return the tests of a tree in preorder, its leaves, and the tests below each on the left.

        A test is an input, its limit, and whether NaN goes right.
        """
        left, right, source = self.left[at], self.right[at], self.source[at]
        limits, gaps_right, (low, high) = self.limits[at], self.gaps_right[at], self.columns.ends
        inner: list[tuple[int, int, bool]] = []
        leaves: list[int] = []
        below: list[int] = []
        start, is_shared = (low, high, self.takes_gaps), len(self._chains) > 0
        # Of an inner node whose left part is complete, its place comes up as a negative number.
        waiting: list[tuple[int, dict[int, tuple[int, int, bool]]]] = [(0, {})]
        while waiting:
            node, ranges = waiting.pop()
            if node < 0:
                place = -node - 1
                below[place] = len(inner) - place - 1
                continue
            if left[node] < 0:
                leaves.append(node)
                continue
            limit, to_right, key = limits[node], gaps_right[node], source[node]
            least, most, gaps = ranges.get(key, start)
            if most <= limit and not (gaps and to_right):
                waiting.append((left[node], ranges))
                continue
            if least > limit and (to_right or not gaps):
                waiting.append((right[node], ranges))
                continue
            ways = ranges, ranges
            if is_shared:
                ways = (
                    ranges | {key: (least, min(most, limit), gaps and not to_right)},
                    ranges | {key: (max(least, limit + 1), most, gaps and to_right)},
                )
            waiting += [(right[node], ways[1]), (-len(inner) - 1, {}), (left[node], ways[0])]
            inner.append((key, limit, to_right))
            below.append(0)
            if len(inner) > _MOST_NODES:
                raise ConvertError("convert: splits by categories make a tree too large; code them")
        return inner, leaves, below
