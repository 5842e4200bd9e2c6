"""Votes of pairs of classes: a unit each, which is above 0 for the first, and a tree of one node.

A `Dense` without a shift is above 0 where its sum is, so that a threshold of it is exact.
"""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion import linear
from tinykernel.conversion.columns import ModelColumns
from tinykernel.conversion.networks.dense import IDENTITY, levels_of, units_of
from tinykernel.conversion.networks.windows import Affine
from tinykernel.model.answers import Labels
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Readout
from tinykernel.pieces.trees.spec import Trees

_MOST_CLASSES = 45  # whose pairs are units of one layer


def read(model: Any, columns: ModelColumns, bits: int = 8) -> IntegerModel:
    """Convert a fitted SVC of a linear kernel and several classes, with weights of `bits`."""
    kind, n = type(model).__name__, len(model.classes_)
    if n > _MOST_CLASSES or model.break_ties:
        raise ConvertError(
            f"convert: a {kind} of {n} classes is read of up to {_MOST_CLASSES}, and without "
            "break_ties; train it so, or a LinearSVC"
        )
    grid = Grid.table(columns.raw_dtype, columns.n_inputs)
    rows = _with_margin(columns.finite_rows(kind).astype(grid.dtype))
    coefficients = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    pairs = Affine(*linear.of_inputs(coefficients, model.intercept_, columns))
    levels, signal = levels_of(rows, grid)
    by_level = signal.of_levels(pairs).weights
    unit = (2 ** (bits - 1) - 1) / np.maximum(np.abs(by_level).max(axis=1), 1e-300)
    mean = pairs.of(signal.x).mean(axis=0) * unit
    dense = units_of(by_level * unit[:, None], mean, signal.levels, 0)
    first, second = np.array([*combinations(range(n), 2)]).T
    every, zeros = np.arange(len(unit)), np.zeros(len(unit), np.uint8)
    votes = Trees(
        every.astype(np.uint16),
        zeros.astype(np.int16) - 128,  # of the level of a unit that is 0
        zeros + 1,
        zeros,
        zeros,
        every,
        zeros,
        np.stack([second, first], axis=1).ravel(),
        np.ones(n, np.int32),
        np.eye(n, dtype=np.int32),
    )
    return IntegerModel(
        input=grid,
        stages=(levels, dense, IDENTITY),
        readout=Readout((votes,), np.zeros(n, np.int32)),
        answers=Labels(tuple(model.classes_.tolist())),
        decision_scale=1.0,
    )


def _with_margin(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows and two more, beyond all of them as far as inputs of linear models reach."""
    low, high = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    margin = linear.MARGIN * (high - low)
    ends = np.stack([low - margin, high + margin])
    if rows.dtype.kind != "f":
        ends = np.clip(np.rint(ends), np.iinfo(rows.dtype).min, np.iinfo(rows.dtype).max)
    return np.vstack([rows, ends.astype(rows.dtype)])
