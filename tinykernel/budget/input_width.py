"""What a smaller type of the inputs would save of flash, measured with models of few weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.budget.standins import Asked
from tinykernel.data.selection import smallest_type
from tinykernel.errors import TinykernelError
from tinykernel.measure.capacity import decisive_report, some_rows
from tinykernel.training.values.valueset import strata

# So many inputs that are not whole may stand in the way before nothing is said.
_MOST_IN_THE_WAY = 3
_ROWS, _ROWS_AT_ONCE = 20000, 1000
_LARGEST = 2.0**31 - 1


@dataclass(frozen=True)
class Narrower:
    """A smaller type for the inputs."""

    kind: str  # the type.
    low: int  # range of the inputs that are whole numbers.
    high: int
    saved: int  # bytes of flash, about.
    # Inputs that are not whole numbers: the type is possible only if they were.
    in_the_way: tuple[int, ...]


def narrower_inputs(
    X: NDArray[Any],
    y: NDArray[Any],
    X_test: NDArray[Any] | None,
    target: str,
    given: Mapping[str, Any],
    shape: tuple[int, ...] | None,
) -> Narrower | None:
    """Return a smaller type where all inputs but very few are whole numbers and it saves flash.

    The rows to test on must be whole numbers, too. Where the size of such models is not known
    nothing is said.
    """
    parts = [X] if X_test is None else [X, X_test]
    broken = np.any([_not_whole(part) for part in parts], axis=0)
    if broken.sum() > min(_MOST_IN_THE_WAY, X.shape[1] // 4):
        return None
    ends = [end for part in parts for end in (part.min(axis=0), part.max(axis=0))]
    if np.abs(ends).max() > _LARGEST:
        return None
    low, high = int(np.min(ends, axis=0)[~broken].min()), int(np.max(ends, axis=0)[~broken].max())
    rows, labels = X[:_ROWS], y[:_ROWS]
    codes = strata(labels.astype(np.float64)) if labels.dtype.kind == "f" else None
    rows, labels = some_rows(rows, labels, codes)
    whole = np.rint(rows)
    kind = smallest_type(int(np.rint(np.min(ends))), int(np.rint(np.max(ends))))
    if np.dtype(kind).itemsize >= min(X.dtype.itemsize, 4):
        return None
    try:
        wide, narrow = (
            _flash(each, labels, target, given, shape) for each in (rows, whole.astype(kind))
        )
    except TinykernelError:
        return None
    if wide <= narrow:
        return None
    return Narrower(kind, low, high, wide - narrow, tuple(np.flatnonzero(broken).tolist()))


def _not_whole(X: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which inputs are not whole numbers; it ends where these are many."""
    broken = np.zeros(X.shape[1], dtype=bool)
    for first in range(0, len(X) if X.dtype.kind == "f" else 0, _ROWS_AT_ONCE):
        rows = X[first : first + _ROWS_AT_ONCE]
        broken |= (rows != np.rint(rows)).any(axis=0)
        if broken.sum() > _MOST_IN_THE_WAY:
            break
    return broken


def _flash(
    rows: NDArray[Any],
    labels: NDArray[Any],
    target: str,
    given: Mapping[str, Any],
    shape: tuple[int, ...] | None,
) -> int:
    """Return the size of a linear part, behind a few kernels where there is a shape."""
    kept = {n: given[n] for n in ("scaler_scope", "input_bits") if given.get(n) is not None}
    if labels.dtype.kind == "f":
        kept["loss"] = "absolute"
    asked = Asked(rows, labels, kept, shape=shape)
    size = {"n_components": 0, "linear": 8} if shape is None else {"n_kernels": 8, "linear": 4}
    return decisive_report(asked.integers(**size), target).flash
