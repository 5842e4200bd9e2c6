"""Confidence intervals of accuracies and errors, for new rows or new groups."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions import shares

_TAIL = (1 + shares.LEVEL) / 2


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

    Without groups it is exact (Clopper and Pearson 1934). With K groups it is the exact one for
    n / deff (t(n - 1) / t(K - 1))^2 independent rows, t being quantiles of Student (Korn and
    Graubard 1998), deff the design effect (`_design_effect`). It holds for groups like these: a
    kind of group of which none is among them is not allowed for, while the promises of `calibrate`
    allow for it. `benchmarks/interval_coverage.py` measures the coverage and the width.

    >>> low, high = accuracy_interval([True] * 90 + [False] * 10)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    if shares.too_few_groups(groups):
        return None
    number = None if groups is None else float(len(np.unique(np.asarray(groups))))
    return _share_interval(np.asarray(right, dtype=np.float64), groups, number)


def balanced_interval(
    labels: NDArray[Any], right: NDArray[np.bool_], groups: ArrayLike | None
) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the mean recall, or None for fewer than 8 groups.

    Each recall p_c has an interval (l_c, u_c) as in `accuracy_interval`, but K is the number of
    groups of equal size (`shares.kish`) that hold as much of the label: one of which two groups of
    20 have nearly all rows is as uncertain as two groups are. The mean of C recalls lies
    ``sqrt(sum_cd r_cd (p_c - l_c) (p_d - l_d)) / C`` above its lower end, likewise below its upper
    one (Zou 2007, "Toward using confidence intervals to compare correlations"); r is the
    correlation of the recalls by group. The sum is at least that of independent recalls.

    >>> labels, groups = np.repeat(["N", "S"], 200), np.arange(400) % 20
    >>> right, few = np.arange(400) % 7 > 0, np.where(labels == "S", groups % 2, groups)
    >>> [np.round(balanced_interval(labels, right, each), 2).tolist() for each in (groups, few)]
    [[0.81, 0.89], [0.54, 0.93]]
    """
    if shares.too_few_groups(groups):
        return None
    place = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    recalls, ends, excess = list[float](), list[tuple[float, float]](), list[NDArray[np.float64]]()
    for label in np.unique(labels):
        rows = labels == label
        outcome, part = right[rows].astype(np.float64), None if place is None else place[rows]
        recalls.append(float(outcome.mean()))
        ends.append(_share_interval(outcome, part, None if part is None else shares.kish(part)))
        if place is not None:
            sums = np.bincount(place[rows], outcome - recalls[-1], place.max() + 1)
            excess.append(np.asarray(sums / max(float(np.sqrt(sums @ sums)), 1e-12)))
    away = np.abs(np.array(ends) - np.array(recalls)[:, None])
    squares = np.square(away).sum(axis=0)
    if place is not None:
        squares = np.maximum(squares, np.square(away.T @ np.array(excess)).sum(axis=1))
    below, above = np.sqrt(squares) / len(recalls)
    mean = float(np.mean(recalls))
    return max(0.0, mean - float(below)), min(1.0, mean + float(above))


def _share_interval(
    outcome: NDArray[np.float64], groups: ArrayLike | None, number: float | None
) -> tuple[float, float]:
    """Return the interval of `accuracy_interval` for groups that count as so many."""
    from scipy.special import betaincinv, stdtrit

    share, n = float(outcome.mean()), float(outcome.size)
    if groups is not None and number is not None:
        if number <= 1:
            return 0.0, 1.0
        ratio = stdtrit(n - 1, _TAIL) / stdtrit(number - 1, _TAIL)
        n = max(1.0, n / _design_effect(outcome, groups) * ratio**2)
    good, tail = share * n, 1 - _TAIL
    low = 0.0 if share == 0 else float(betaincinv(good, n - good + 1, tail))
    high = 1.0 if share == 1 else float(betaincinv(good + 1, n - good, 1 - tail))
    return low, high


def _design_effect(outcome: NDArray[np.float64], groups: ArrayLike) -> float:
    """Return how many rows of these groups count as one: 1 + (m - 1) rho (Kish 1965).

    m is the size of the group of a row, on average; rho is the correlation of the rows of a group.
    Few wrong answers cannot show that rho is small: with w wrong or w right ones, whichever are
    fewer, a rho of 1 / (1 + 8 w) is assumed of groups of average size; with none each group is one.
    """
    n, fewer = outcome.size, min(outcome.sum(), outcome.size - outcome.sum())
    size = n / shares.kish(groups)
    if not fewer:
        return size
    mean_size = n / len(np.unique(np.asarray(groups)))
    least = 1 + (mean_size - 1) / (1 + 8 * fewer)
    return max(float(least), 1 + (size - 1) * shares.intraclass_correlation(outcome, groups))


def rmse_interval(
    errors: NDArray[np.float64], groups: ArrayLike | None
) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the RMSE on new rows or groups; None for few groups.

    By Student's t for the logarithm of the mean squared error, whose variance by groups is that of
    independent rows times a design effect (Kish 1965).
    `benchmarks/interval_coverage.py` measures the coverage and the width.
    """
    from scipy.special import stdtrit

    if shares.too_few_groups(groups):
        return None
    squares, n = np.square(errors), errors.size
    mean = float(squares.mean())
    number, effect = n, 1.0
    if groups is not None:
        number = len(np.unique(np.asarray(groups)))
        size = n / shares.kish(groups)
        # Squares are skew: what their correlation seems to be is mostly too small.
        effect += (size - 1) * min(1.5 * shares.intraclass_correlation(squares, groups), 1.0)
    if mean == 0:
        return 0.0, 0.0
    if number <= 1:
        return 0.0, math.inf
    error = shares.standard_error(squares, None) / mean * math.sqrt(effect)
    factor = math.exp(min(stdtrit(number - 1, _TAIL) * error / 2, 700.0))
    return math.sqrt(mean) / factor, math.sqrt(mean) * factor
