"""Which columns of a table are inputs, and how missing values are treated."""

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
    """Columns to take from a table, and the treatment of missing values."""

    inputs: tuple[str, ...] | None = None  # columns in this order; else all but label and groups
    drop: tuple[str, ...] = ()  # columns to ignore
    # Missing values: "keep" codes them, "drop" drops rows, "median" fills in that of the training
    # rows, "error" refuses them; None is "keep" for tables and "error" otherwise.
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
        """Whether it names columns, which needs a table."""
        return self.inputs is not None or bool(self.drop)

    def positions(self, file: object, columns: Sequence[str], others: Sequence[int]) -> list[int]:
        """Return the positions of the inputs of a table; `others` are those of label and groups."""
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
    """Return the lower median of each column; NaN for an empty one."""
    with np.errstate(all="ignore"):
        ordered = np.sort(X, axis=0)  # NaN at the end
    count = np.sum(~np.isnan(X), axis=0)
    return np.asarray(ordered[np.maximum(count - 1, 0) // 2, np.arange(X.shape[1])], np.float64)
