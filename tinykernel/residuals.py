"""How good a regressor is, beside the mean and a linear model on the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.bounds import is_positive, kish, standard_error, too_few_groups
from tinykernel.errors import TinykernelError

_PENALTIES = np.logspace(-3, 4, 15)
_LINEAR_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class ValueBaseline:
    """A model that costs next to nothing, on the same rows.

    Parameters
    ----------
    name : str
        What it is, in words.
    n_bytes : int
        Of its table, as int8.
    rmse, mae : float
    as_good : bool
        Whether the test rows leave it open that it is as good as the model.
    better : bool
        Whether they say that it is better than the model.
    """

    name: str
    n_bytes: int
    rmse: float
    mae: float
    as_good: bool
    better: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class ValueEvaluation:
    """How far values are from the true ones.

    Parameters
    ----------
    rows : int
    n_groups : int or None
        How many people, records or batches the rows come from, where that is known.
    rmse, mae : float
        Root of the mean squared error, and mean absolute error, in the unit of the values; of
        quantiles those of the one in the middle.
    r2 : float
        Share of the variance that is explained; NaN where the values do not vary.
    interval : tuple of float or None
        In which the RMSE of new rows (or of new groups) lies, with about 95 % confidence; None of
        fewer than 8 groups.
    coverage : dict of str to float
        Share of rows below each quantile; empty where there are none.
    baselines : dict of str to ValueBaseline
        "mean" and "linear"; empty where the training rows were not at hand.

    Examples
    --------
    >>> found = compare_values([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 6.0])
    >>> found.rmse, found.mae, round(found.r2, 2)
    (1.0, 0.5, 0.2)
    """

    rows: int
    n_groups: int | None
    rmse: float
    mae: float
    r2: float
    interval: tuple[float, float] | None
    coverage: dict[str, float] = field(default_factory=dict)
    baselines: dict[str, ValueBaseline] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; every command prints these keys."""
        return {
            "rows": self.rows,
            "groups": self.n_groups,
            "rmse": self.rmse,
            "mae": self.mae,
            "r2": self.r2,
            "interval": None if self.interval is None else list(self.interval),
            "coverage": dict(self.coverage),
            "baselines": {name: found.to_dict() for name, found in self.baselines.items()},
        }


def evaluate_values(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
) -> ValueEvaluation:
    """Judge a regressor of one value in the arithmetic of the firmware.

    Parameters
    ----------
    model : IntegerModel
        Of one value, or of quantiles of one.
    X, y : array-like
        Rows that the model was not trained on, and their values, shape (n,).
    groups : array-like, shape (n,), optional
    train : (X, y), optional
        The training rows, for the baselines.

    Returns
    -------
    ValueEvaluation

    Raises
    ------
    TinykernelError
        If the rows are not of the model's width, or there are none.
    """
    true = np.asarray(y, dtype=np.float64)
    outputs = np.asarray(model.predict(X)).reshape(len(true), -1)
    middle = outputs[:, outputs.shape[1] // 2]
    found = compare_values(true, middle, groups)
    if outputs.shape[1] > 1:
        below = {
            name: float(np.mean(true <= column))
            for name, column in zip(model.values.names, outputs.T, strict=True)
        }
        found = replace(found, coverage=below)
    if train is None:
        return found
    rows, values = np.asarray(train[0]), np.asarray(train[1], dtype=np.float64)
    flat, test = rows.reshape(len(rows), -1), np.asarray(X).reshape(len(true), -1)
    linear, n_bytes = _linear_values(flat, values, test), flat.shape[1]
    mean = np.full(len(true), values.mean())
    return replace(
        found,
        baselines={
            "mean": _baseline("the mean", 0, true, middle, mean, groups),
            "linear": _baseline("a linear model", n_bytes, true, middle, linear, groups),
        },
    )


def compare_values(
    y: ArrayLike, predicted: ArrayLike, groups: ArrayLike | None = None
) -> ValueEvaluation:
    """Compare true values with predictions.

    The interval is that of Student's t for the logarithm of the mean squared error. The mean
    squared errors of groups are taken to differ at least as an exponential distribution does, so
    that a group unlike those that were seen is allowed for; `benchmarks/interval_coverage.py` says
    how often it holds.

    Parameters
    ----------
    y, predicted : array-like, shape (n,)
    groups : array-like, shape (n,), optional

    Returns
    -------
    ValueEvaluation

    Raises
    ------
    TinykernelError
        If there are no rows or the lengths differ.
    """
    true, got = np.asarray(y, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if true.ndim != 1 or true.shape != got.shape or not true.size:
        raise TinykernelError(f"to compare: {true.shape} values and {got.shape} predictions")
    errors = got - true
    spread = float(np.square(true - true.mean()).sum())
    r2 = 1 - float(np.square(errors).sum()) / spread if spread > 0 else float("nan")
    n_groups = None if groups is None else len(np.unique(np.asarray(groups)))
    return ValueEvaluation(
        true.size,
        n_groups,
        float(np.sqrt(np.mean(np.square(errors)))),
        float(np.abs(errors).mean()),
        r2,
        rmse_interval(errors, groups),
    )


def rmse_interval(
    errors: NDArray[np.float64], groups: ArrayLike | None
) -> tuple[float, float] | None:
    """Return which RMSE the errors leave open with about 95 % confidence; see `compare_values`."""
    from scipy.stats import t

    if too_few_groups(groups):
        return None
    squares = np.square(errors)
    mean, number = float(squares.mean()), float(errors.size) if groups is None else kish(groups)
    if mean == 0:
        return 0.0, 0.0
    if number <= 1:
        return 0.0, math.inf
    error = standard_error(squares, groups) / mean
    if groups is not None:
        error = max(error, 1 / math.sqrt(number))
    factor = math.exp(min(t.ppf(0.975, number - 1) * error / 2, 700.0))
    return math.sqrt(mean) / factor, math.sqrt(mean) * factor


def _baseline(
    name: str,
    n_bytes: int,
    true: NDArray[np.float64],
    model: NDArray[np.float64],
    other: NDArray[np.float64],
    groups: ArrayLike | None,
) -> ValueBaseline:
    """Compare with another prediction: what is better is so by a t test at the level of 5 %."""
    gain = np.square(other - true) - np.square(model - true)
    error = other - true
    return ValueBaseline(
        name,
        n_bytes,
        float(np.sqrt(np.mean(np.square(error)))),
        float(np.abs(error).mean()),
        not is_positive(gain, groups, 0.95),
        is_positive(-gain, groups, 0.95),
    )


def _linear_values(
    X: NDArray[Any], y: NDArray[np.float64], X_test: NDArray[Any]
) -> NDArray[np.float64]:
    """Return what a ridge regression gives, its weights rounded to int8."""
    from sklearn.linear_model import RidgeCV
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    some = np.random.default_rng(0).permutation(len(y))[:_LINEAR_ROWS]
    scaler = StandardScaler().fit(np.asarray(X[some], dtype=np.float64))
    with threadpool_limits(1):
        model = RidgeCV(_PENALTIES).fit(scaler.transform(X[some].astype(np.float64)), y[some])
    unit = np.abs(model.coef_).max() / 127
    model.coef_ = np.rint(model.coef_ / (unit or 1)) * unit
    return np.asarray(model.predict(scaler.transform(X_test.astype(np.float64))))
