"""What some rows can promise of others: exact bounds of a share, by rows or by groups."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def upper_bound(wrong: float, rows: float, risk: float) -> float:
    """Return the one-sided bound of Clopper and Pearson (1934): the share is above it with `risk`.

    Examples
    --------
    >>> round(upper_bound(0, 299, 0.05), 4), round(upper_bound(3, 1000, 0.05), 4)
    (0.01, 0.0077)
    """
    from scipy.stats import beta

    return 1.0 if wrong >= rows else float(beta.ppf(1 - risk, wrong + 1, rows - wrong))


def rows_needed(share: float, risk: float, *, wrong: int = 0, error: float = 0.0) -> int | None:
    """Return how many rows promise a share of at most `share`, of which some are wrong.

    `wrong` rows, or the part `error` of them. None where no number is enough.

    Examples
    --------
    >>> rows_needed(0.01, 0.05), rows_needed(0.01, 0.05, wrong=1)
    (299, 473)
    >>> rows_needed(0.01, 0.05, error=0.005), rows_needed(0.01, 0.05, error=0.01)
    (1146, None)
    """
    if error >= share:
        return None

    def fits(rows: int) -> bool:
        return upper_bound(wrong + error * rows, rows, risk) <= share

    low = math.ceil(math.log(risk) / math.log1p(-share) - 1e-9) - 1
    high = low + 1
    while not fits(high):
        if high > 10**9:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def effective_rows(outcome: NDArray[np.float64], groups: ArrayLike, level: float) -> float:
    """Return how many independent rows tell as much as the rows of these groups.

    After Korn and Graubard (1998), by the variance between groups and Student's t for their number.
    Where all outcomes are equal, the groups do not tell how alike their rows are: each then counts
    as one row.
    """
    from scipy.stats import t

    n, share = outcome.size, outcome.mean()
    excess, count = by_group(outcome - share, groups), len(np.unique(np.asarray(groups)))
    variance = 0.0 if count < 2 else count / (count - 1) * float(excess @ excess) / n**2
    if variance == 0:
        return float(count)
    factor = t.ppf((1 + level) / 2, n - 1) / t.ppf((1 + level) / 2, count - 1)
    return float(np.clip(share * (1 - share) / variance * factor**2, 1, n))


def by_group(values: NDArray[np.float64], groups: ArrayLike) -> NDArray[np.float64]:
    """Return the sum of each group."""
    _, index = np.unique(np.asarray(groups), return_inverse=True)
    return np.asarray(np.bincount(index, values), dtype=np.float64)


def conformal_levels(groups: NDArray[np.intp] | None, n: int) -> NDArray[np.float64]:
    """Return what each row adds to the probability that a new row's value is no larger.

    Split conformal prediction: with n rows each adds 1 / (n + 1). Of a new group, with K groups
    known, a row adds 1 / ((K + 1) times the rows of its group): Lee, Barber & Willett 2023,
    "Distribution-free inference with hierarchical data".

    Examples
    --------
    >>> conformal_levels(None, 3).tolist(), conformal_levels(np.array([0, 0, 1]), 3).tolist()
    ([0.25, 0.25, 0.25], [0.16666666666666666, 0.16666666666666666, 0.3333333333333333])
    """
    if groups is None:
        return np.full(n, 1 / (n + 1))
    _, index, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(1 / ((len(counts) + 1) * counts[index]))
