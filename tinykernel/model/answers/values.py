"""What the scores of a regressor mean: values in fixed point."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.record import Record, limits

LARGEST_SHIFT = 200


def numbered_values(n: int) -> tuple[str, ...]:
    """Name values that have no names: "value", or of several "value0", "value1" and so on."""
    return ("value",) if n == 1 else tuple(f"value{i}" for i in range(n))


@dataclass(frozen=True)
class Values(Record):
    """Answers of a regressor: there is one output a value, and a value is ``score / 2**shift``.

    >>> Values(("hours",), 8).unit
    0.00390625
    """

    names: tuple[str, ...]  # of each score
    shift: int = field(metadata=limits(-LARGEST_SHIFT, LARGEST_SHIFT))  # the same for all

    def check(self) -> None:
        """Check the names."""
        if not self.names or len(set(self.names)) != len(self.names):
            raise self.refuse("needs one or more values of different names")

    @property
    def n_scores(self) -> int:
        """Number of scores: one a value."""
        return len(self.names)

    @property
    def n_outputs(self) -> int:
        """Number of outputs: one a value."""
        return len(self.names)

    def scores(self, totals: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the totals: they are the scores."""
        return totals

    def predict(self, scores: NDArray[np.int32]) -> NDArray[Any]:
        """Return float64 values, shape (n,), or (n, n_scores) of several."""
        values = np.asarray(scores * self.unit, dtype=np.float64)
        return values[:, 0] if self.n_scores == 1 else values

    @property
    def unit(self) -> float:
        """Value of a score of 1."""
        return 2.0**-self.shift
