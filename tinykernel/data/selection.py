"""Which columns of a table are inputs, and what becomes of the values that it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.checks import check_choice
from tinykernel.coding.codes import Coding
from tinykernel.errors import TinykernelError


@dataclass(frozen=True)
class Selection:
    """What is taken of a table."""

    inputs: tuple[str, ...] | None = None  # columns in this order; else all but label and groups
    drop: tuple[str, ...] = ()  # columns to ignore
    # What becomes of missing values: "keep" has a number of their own, "drop" leaves out rows,
    # "median" is that of the training rows, "error" refuses; None keeps those of tables only.
    missing: str | None = None
    medians: tuple[float, ...] | None = None  # of an earlier training, one an input
    coding: Coding | None = None  # of an earlier training

    def __post_init__(self) -> None:
        """Check the choice."""
        check_choice("missing", self.missing, (None, "keep", "drop", "median", "error"))

    @property
    def may_lack(self) -> bool:
        """Whether values may be missing in the file."""
        return self.missing != "error"

    @property
    def names_columns(self) -> bool:
        """Whether it needs a table."""
        return self.inputs is not None or bool(self.drop)

    def positions(self, file: object, columns: Sequence[str], others: Sequence[int]) -> list[int]:
        """Return the positions of the inputs among the columns of a table, without `others`.

        Those are the positions of label and groups; the file is for messages.
        """
        for name in [*(self.inputs or ()), *self.drop]:
            if name not in columns:
                raise TinykernelError(f"{file}: has no column called {name!r}")
            if columns.index(name) in others:
                raise TinykernelError(f"{file}: column {name!r} is the label or the group")
        if self.inputs is not None and len(set(self.inputs)) < len(self.inputs):
            raise TinykernelError(f"{file}: inputs names a column twice")
        names = columns if self.inputs is None else self.inputs
        places = [columns.index(name) for name in names if name not in self.drop]
        places = [place for place in places if place not in others]
        if not places and self.names_columns:
            raise TinykernelError(f"{file}: no column is left as input")
        return places


def medians_of(X: NDArray[Any]) -> NDArray[np.float64]:
    """Return the lower median of each column, a value that it has; NaN where it has none."""
    with np.errstate(all="ignore"):
        ordered = np.sort(X, axis=0)  # NaN at the end
    count = np.sum(~np.isnan(X), axis=0)
    return np.asarray(ordered[np.maximum(count - 1, 0) // 2, np.arange(X.shape[1])], np.float64)
