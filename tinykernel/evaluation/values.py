"""Predicted values against true ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tinykernel.errors import TinykernelError
from tinykernel.evaluation.comparison import Evaluation
from tinykernel.evaluation.intervals import rmse_interval


@dataclass(frozen=True, eq=False, kw_only=True)
class ValueEvaluation(Evaluation):
    """Errors of predicted values, in addition to the fields of `Evaluation`.

    Parameters
    ----------
    n_rows : int
    rmse, mae : float
        Root mean squared error and mean absolute error, in the unit of the values; of several
        quantiles those of the middle one.
    r2 : float
        Explained share of the variance; NaN for constant values.
    coverage : dict of str to float
        Share of rows below each quantile; empty where there are none.

    Examples
    --------
    >>> judged = compare_values([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 6.0])
    >>> judged.rmse, judged.mae, round(judged.r2, 2)
    (1.0, 0.5, 0.2)
    """

    n_rows: int
    rmse: float
    mae: float
    r2: float
    coverage: dict[str, float] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of compared rows."""
        return self.n_rows

    @property
    def figures(self) -> dict[str, float]:
        """RMSE, MAE and R2."""
        return {"rmse": self.rmse, "mae": self.mae, "r2": self.r2}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; every command prints these keys."""
        return super().to_dict() | {"coverage": dict(self.coverage)}


def compare_values(
    y: ArrayLike, predicted: ArrayLike, groups: ArrayLike | None = None
) -> ValueEvaluation:
    """Compare true values with predictions, both of shape (n,)."""
    true, answers = np.asarray(y, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if true.ndim != 1 or true.shape != answers.shape or not true.size:
        raise TinykernelError(
            f"values: {true.shape} of them and {answers.shape} predictions; give one each a row"
        )
    errors = answers - true
    spread = float(np.square(true - true.mean()).sum())
    r2 = 1 - float(np.square(errors).sum()) / spread if spread > 0 else float("nan")
    return ValueEvaluation(
        n_rows=true.size,
        n_groups=None if groups is None else len(np.unique(np.asarray(groups))),
        rmse=float(np.sqrt(np.mean(np.square(errors)))),
        mae=float(np.abs(errors).mean()),
        r2=r2,
        interval=rmse_interval(errors, groups),
    )
