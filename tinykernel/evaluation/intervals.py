"""Confidence intervals of accuracies and errors, for new rows or new groups."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions import shares


def interval_in_words(
    interval: tuple[float, float] | None, n_groups: int | None, digits: int | None = 1
) -> str:
    """Describe an interval of a share in percent; with `digits` None of a number."""
    if interval is None:
        return "too few groups for an interval"
    low, high = (f"{x:.4g}" if digits is None else f"{100 * x:.{digits}f}" for x in interval)
    about = "" if n_groups is None else "about "
    return f"with {about}95 % confidence {low} to {high}{'' if digits is None else ' %'}"


def accuracy_interval(
    right: ArrayLike, groups: ArrayLike | None = None
) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of a share, or None for fewer than 8 groups.

    Without groups it is exact (Clopper and Pearson 1934). With groups it is close to that of Korn
    and Graubard (1998): the exact one for the effective number of independent rows, by the variance
    between groups and Student's t for their number (Kish 1965). A group counts as at most two
    rows. `benchmarks/interval_coverage.py` measures the coverage.

    >>> low, high = accuracy_interval([True] * 90 + [False] * 10)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    from scipy.special import betaincinv

    if shares.too_few_groups(groups):
        return None
    outcome = np.asarray(right, dtype=np.float64)
    share = float(outcome.mean())
    n = float(outcome.size)
    if groups is not None:
        n = shares.effective_rows(
            outcome, groups, shares.LEVEL, shares.ROWS_A_GROUP * shares.groups_seen(groups)
        )
    good, tail = share * n, (1 - shares.LEVEL) / 2
    low = 0.0 if share == 0 else float(betaincinv(good, n - good + 1, tail))
    high = 1.0 if share == 1 else float(betaincinv(good + 1, n - good, 1 - tail))
    return low, high


def rmse_interval(
    errors: NDArray[np.float64], groups: ArrayLike | None
) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the RMSE on new rows or groups; None for few groups.

    By Student's t for the logarithm of the mean squared error. The mean squared errors of groups
    are assumed to vary at least like an exponential distribution, which allows for unusual groups;
    `benchmarks/interval_coverage.py` measures the coverage.
    """
    from scipy.special import stdtrit

    if shares.too_few_groups(groups):
        return None
    squares = np.square(errors)
    mean = float(squares.mean())
    number = float(errors.size) if groups is None else shares.kish(groups)
    if mean == 0:
        return 0.0, 0.0
    if number <= 1:
        return 0.0, math.inf
    error = shares.standard_error(squares, groups) / mean
    if groups is not None:
        error = max(error, 1 / math.sqrt(number))
    factor = math.exp(min(stdtrit(number - 1, 0.975) * error / 2, 700.0))
    return math.sqrt(mean) / factor, math.sqrt(mean) * factor
