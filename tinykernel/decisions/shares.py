"""Exact bounds of a share on new rows, by rows or by groups."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.text import count

#: Confidence of intervals and comparisons.
LEVEL = 0.95
#: Fewer groups than these say nothing in figures of new ones.
FEWEST_GROUPS = 8
#: A group counts as at most this many independent rows.
ROWS_A_GROUP = 2.0


def upper_bound(wrong: float, rows: float, risk: float) -> float:
    """Return the one-sided bound of Clopper and Pearson (1934): the share is above it with `risk`.

    >>> round(upper_bound(0, 299, 0.05), 4), round(upper_bound(3, 1000, 0.05), 4)
    (0.01, 0.0077)
    """
    from scipy.special import betaincinv

    return 1.0 if wrong >= rows else float(betaincinv(wrong + 1, rows - wrong, 1 - risk))


def rows_needed(share: float, risk: float, *, wrong: int = 0, error: float = 0.0) -> int | None:
    """Return how many rows promise an error of at most `share`; None where no number is enough.

    `wrong` of these rows are wrong, or the part `error` of them.

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


def kish(groups: ArrayLike) -> float:
    """Return the equivalent number of groups of equal size: (sum n)^2 / sum n^2 (Kish 1965).

    >>> kish([0, 0, 1, 1]), kish([0, 0, 0, 1])
    (2.0, 1.6)
    """
    return kish_of_sizes(np.unique(np.asarray(groups), return_counts=True)[1])


def kish_of_sizes(sizes: NDArray[np.integer]) -> float:
    """Return the same of the numbers of rows of the groups; 0 without rows."""
    rows = sizes.astype(np.float64)
    return float(rows.sum() ** 2 / max(rows @ rows, 1.0))


def too_few_groups(groups: ArrayLike | None) -> bool:
    """Say whether there are groups, but too few for a figure about new ones."""
    return groups is not None and len(np.unique(np.asarray(groups))) < FEWEST_GROUPS


def most_effective(groups: ArrayLike) -> float:
    """Return the most independent rows that these groups count as: two each.

    Unseen groups may be bad: if a share of 3 / K of all groups is bad, K groups hold none of them
    with a probability of 5 %. That 2 K right rows leave an error of 1.5 / K open allows for this
    if a bad group is wrong in half of its rows. Unequal groups are counted by `kish`.
    """
    return ROWS_A_GROUP * kish(groups)


def groups_needed(rows: int) -> int:
    """Return how many groups count as this many independent rows."""
    return max(FEWEST_GROUPS, math.ceil(rows / ROWS_A_GROUP))


def worth_of_groups(groups: ArrayLike, effective: float) -> str:
    """Describe the worth of rows of these groups, for an error message after their number."""
    n_groups = count(len(np.unique(np.asarray(groups))), "group")
    independent = count(max(1, int(effective)), "independent row")
    return f" of {n_groups} count as {independent} for new groups, which"


def error_bound(
    wrong: int, answered: int, risk: float, share: float, groups: ArrayLike | None
) -> float:
    """Return the bound of the error among answered rows, a `share` of which is independent.

    Their groups limit what they count as; fewer than 8 groups promise nothing.
    """
    if not answered or too_few_groups(groups):
        return 1.0
    if groups is not None:
        share = min(share, most_effective(groups) / answered)
    return upper_bound(share * wrong, share * answered, risk)


def intraclass_correlation(values: NDArray[np.float64], groups: ArrayLike) -> float:
    """Estimate the part of the variance that lies between groups, 0 to 1.

    By moments, with weights after Kleinman (1973): n / (1 + (n - 1) rho) for a group of n rows, so
    that a large group counts little more than others where groups differ. For shares see Ridout,
    Demetrio & Firth (1999), "Estimating intraclass correlation for binary data".

    >>> groups = np.array([0, 0, 1, 1])
    >>> intraclass_correlation(np.array([1.0, 1.0, 0.0, 0.0]), groups)
    1.0
    >>> intraclass_correlation(np.array([1.0, 0.0, 1.0, 0.0]), groups)
    0.0
    """
    _, index, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    means, squares = (np.bincount(index, x) / sizes for x in (values, np.square(values)))
    correlation = 0.1
    for _ in range(4):
        weights = sizes / (1 + (sizes - 1) * correlation)
        part = weights / weights.sum()
        variance = float(part @ squares - (part @ means) ** 2)
        free = part * (1 - part)
        all_between, by_chance = float(free.sum()), float((free / sizes).sum())
        if variance <= 0 or all_between - by_chance < 1e-12:
            return 0.0
        between = float(part @ np.square(means - part @ means)) / variance
        correlation = min(max((between - by_chance) / (all_between - by_chance), 0.0), 1.0)
    return correlation


def effective_rows(outcome: NDArray[np.float64], groups: ArrayLike, level: float) -> float:
    """Estimate how many independent rows hold as much information as the rows of these groups.

    After Korn and Graubard (1998), by the variance between groups and Student's t for their number;
    at most `most_effective`. Equal outcomes do not tell how alike the rows of a group are: each
    group then counts as one row.
    """
    from scipy.special import stdtrit

    n, number = outcome.size, kish(groups)
    share, error = outcome.mean(), standard_error(outcome, groups)
    if number < 1.5 or error == 0:
        return number
    factor = stdtrit(n - 1, (1 + level) / 2) / stdtrit(number - 1, (1 + level) / 2)
    effective = share * (1 - share) / error**2 * factor**2
    return float(np.clip(effective, 1, min(n, most_effective(groups))))


def standard_error(values: NDArray[np.float64], groups: ArrayLike | None) -> float:
    """Return the standard error of the mean, by rows or by groups; infinite for a single one."""
    n = values.size
    number = float(n) if groups is None else kish(groups)
    if number <= 1:
        return math.inf
    excess = values - values.mean()
    if groups is not None:
        excess = np.bincount(np.unique(np.asarray(groups), return_inverse=True)[1], excess)
    return math.sqrt(number / (number - 1) * float(excess @ excess)) / n


def is_positive(values: NDArray[np.float64], groups: ArrayLike | None) -> bool:
    """Say whether a mean is above 0 by Student's t at 5 %, by rows or 8 groups or more."""
    from scipy.special import stdtrit

    if too_few_groups(groups):
        return False
    number = float(values.size) if groups is None else kish(groups)
    error = standard_error(values, groups)
    return bool(number > 1 and values.mean() > stdtrit(number - 1, LEVEL) * error)


def conformal_levels(groups: NDArray[np.intp] | None, n: int) -> NDArray[np.float64]:
    """Return what each row adds to the probability that a new row's value is no larger.

    Split conformal prediction: each of n rows adds 1 / (n + 1). For a row of a new group, with K
    known groups, it adds 1 / ((K + 1) times the rows of its group): Lee, Barber & Willett 2023,
    "Distribution-free inference with hierarchical data".

    >>> conformal_levels(None, 3).tolist(), conformal_levels(np.array([0, 0, 1]), 3).tolist()
    ([0.25, 0.25, 0.25], [0.16666666666666666, 0.16666666666666666, 0.3333333333333333])
    """
    if groups is None:
        return np.full(n, 1 / (n + 1))
    _, index, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(1 / ((len(counts) + 1) * counts[index]))
