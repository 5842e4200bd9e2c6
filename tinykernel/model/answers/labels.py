"""What the scores of a classifier mean: labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.record import Record


@dataclass(frozen=True)
class Labels(Record):
    """Answers of a classifier: one of its classes.

    With more than two classes there is one output a class and ``scores = total``. With two classes
    there is one output and ``scores = (-total_0, total_0)``. The label is the **first** index of
    the largest score, and ``classes[label]`` the prediction.

    >>> Labels(("off", "on")).scores(np.array([[-3]], dtype=np.int32)).tolist()
    [[3, -3]]
    """

    classes: tuple[Any, ...]  # at least two different str, int, float or bool

    def check(self) -> None:
        """Check that the labels differ."""
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise self.refuse("needs two or more different classes")

    @property
    def n_scores(self) -> int:
        """Number of scores: one per class."""
        return len(self.classes)

    @property
    def n_outputs(self) -> int:
        """Number of outputs: 1 for two classes, else one per class."""
        return 1 if self.n_scores == 2 else self.n_scores

    def scores(self, totals: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return one score a class, shape (n, n_scores)."""
        return np.hstack([-totals, totals]) if self.n_scores == 2 else totals

    def predict(self, scores: NDArray[np.int32]) -> NDArray[Any]:
        """Return the labels of rows of scores, shape (n,)."""
        return np.asarray(np.array(self.classes)[np.argmax(scores, axis=1)])
