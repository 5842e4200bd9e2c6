"""How sure a model is: probabilities, exact bounds of shares, and margins for an answer."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.elementary import exp, exps, log, logs
from tinykernel.base.text import count
from tinykernel.model.answers import CONFIDENCES

_BINS = 15
#: Rows that the logistic curve counts as, in each part of the table.
_PRIOR_ROWS = 8.0


def fit_temperature(decisions: NDArray[np.float64], labels: NDArray[np.intp]) -> float:
    """Return the temperature of the likeliest probabilities: decisions (n, n_classes), labels (n,).

    Guo et al. 2017, "On calibration of modern neural networks", section 4.2. One row more of each
    class for every label keeps it finite where no row is wrong.

    >>> decisions = np.array([[2.0, -2.0]] * 9 + [[-2.0, 2.0]])
    >>> 1.5 < fit_temperature(decisions, np.zeros(10, dtype=np.intp)) < 3
    True
    """
    from scipy.optimize import minimize_scalar

    n, n_classes = decisions.shape
    spread = float(np.mean(decisions.max(axis=1) - decisions.mean(axis=1)))
    if spread == 0:
        return 1.0
    blur = n_classes / (n + n_classes)

    def loss(logarithm: float) -> float:
        powers = decisions / exp(logarithm)
        powers = powers - powers.max(axis=1, keepdims=True)
        likely = powers - logs(exps(powers).sum(axis=1, keepdims=True))
        true = likely[np.arange(n), labels].mean()
        return float(-(1 - blur) * true - blur * likely.mean())

    centre = log(spread)
    minimum = minimize_scalar(
        loss, bounds=(centre - 8, centre + 8), method="bounded", options={"xatol": 1e-4}
    )
    return float(exp(minimum.x))


def confidence_table(
    margin: NDArray[np.uint32], right: NDArray[np.bool_]
) -> tuple[NDArray[np.uint8], int]:
    """Return the table of confidences by margin, and by how much margins are shifted for it.

    Isotonic regression of right answers in 64 steps of the margin. In each step the logistic curve
    (Platt 1999) counts as eight rows more, so that steps of few rows say something sensible.

    >>> margin = np.arange(1000, dtype=np.uint32)
    >>> table, shift = confidence_table(margin, margin >= 500)
    >>> shift, int(table[0]) < 10, int(table[-1]) > 245
    (4, True, True)
    """
    from sklearn.isotonic import isotonic_regression

    start, slope = _logistic(margin.astype(np.float64), right)
    end = float(margin.max())
    if slope > 0:  # where 255 of 256 are right, or the largest margin
        end = min(end, (log(255.0) - start) / slope)
    shift = 0
    while shift < 31 and (CONFIDENCES << shift) <= end:
        shift += 1
    step = np.minimum(margin >> shift, CONFIDENCES - 1).astype(np.intp)
    rows = np.bincount(step, minlength=CONFIDENCES).astype(np.float64)
    good = np.bincount(step, right, minlength=CONFIDENCES)
    middles = (np.arange(CONFIDENCES) + 0.5) * 2.0**shift
    curve = _sigmoid(start + slope * middles)
    shares = (good + _PRIOR_ROWS * curve) / (rows + _PRIOR_ROWS)
    rising = isotonic_regression(shares, sample_weight=rows + _PRIOR_ROWS)
    return np.clip(np.floor(256 * rising), 0, 255).astype(np.uint8), shift


def _logistic(values: NDArray[np.float64], right: NDArray[np.bool_]) -> tuple[float, float]:
    """Return start and slope (0 or more) of the likeliest logistic curve, by Newton's method."""
    unit = max(float(values.mean()), 1.0)
    x = values / unit
    good = int(right.sum())
    bad = right.size - good
    target = np.where(right, (good + 1) / (good + 2), 1 / (bad + 2))
    start, slope = float(log((good + 1) / (bad + 1))), 0.0
    for _ in range(50):
        p = _sigmoid(start + slope * x)
        w = np.maximum(p * (1 - p), 1e-9)
        error = target - p
        a, b, c = w.sum() + 1e-6, (w * x).sum(), (w * x * x).sum() + 1e-3
        g, h = error.sum(), (error * x).sum() - 1e-3 * slope
        determinant = a * c - b * b
        more = np.clip([(c * g - b * h) / determinant, (a * h - b * g) / determinant], -2, 2)
        start, slope = start + float(more[0]), slope + float(more[1])
        if np.abs(more).max() < 1e-8:
            break
    if slope <= 0:
        return float(log((good + 1) / (bad + 1))), 0.0
    return start, slope / unit


def _sigmoid(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return 1 / (1 + e^-v), the same bits on every processor."""
    power = exps(-np.abs(values))
    return np.asarray(np.where(values >= 0, 1.0, power) / (1 + power), dtype=np.float64)


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Return the expected calibration error: by how much confidence and truth differ on average.

    15 bins of equal width, weighted by their rows (Naeini et al. 2015; Guo et al. 2017, (3)).

    >>> round(calibration_error(np.full(10, 0.9), np.arange(10) < 7), 6)
    0.2
    """
    bins = np.minimum((confidence * _BINS).astype(np.intp), _BINS - 1)
    excess = np.bincount(bins, confidence - right, minlength=_BINS)
    return float(np.abs(excess).sum() / len(right))


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


_STARTS = 4
_STEPS = 400


@dataclass(frozen=True)
class Threshold:
    """A threshold, and what the rows say about it."""

    threshold: int
    answered: int  # rows that reach the threshold, and how many of them have another label
    wrong: int
    bound: float  # upper bound of the error among the answers


class Ranking:
    """Rows in the order of falling margins.

    A `share` of them, above 0 and at most 1, counts as independent; groups limit answered rows
    further.
    """

    def __init__(
        self,
        margin: NDArray[np.uint32],
        right: NDArray[np.bool_],
        share: float = 1.0,
        groups: NDArray[Any] | None = None,
    ) -> None:
        self.order = np.argsort(-margin.astype(np.int64), kind="stable")
        self.margin, self.share = margin[self.order], share
        self.wrong = np.cumsum((~right[self.order]).astype(np.intp))
        self.groups = None if groups is None else groups[self.order]

    def above(self, limit: int, risk: float) -> Threshold:
        """Return the threshold one above a margin, which answers the rows of larger margins."""
        answered = int(np.searchsorted(-self.margin.astype(np.int64), -limit))
        errors = int(self.wrong[answered - 1]) if answered else 0
        groups = None if self.groups is None else self.groups[:answered]
        bound = error_bound(errors, answered, risk, self.share, groups)
        return Threshold(limit + 1, answered, errors, bound)

    def by_error(self, most: float, risk: float) -> tuple[Threshold | None, Threshold]:
        """Return the lowest threshold whose error among the answers is at most `most`.

        The promise may be broken with probability `risk`. Many thresholds are tried on the same
        rows, and the promise holds for the chosen one (Learn then Test: Angelopoulos, Bates,
        Candes, Jordan & Lei 2021, arXiv:2110.01052, section 2.3). They are tested from the highest
        down, each by the exact bound of Clopper and Pearson. A test that fails hands no risk down.
        Four thresholds, fixed before any label is used, start with a quarter of the risk each: the
        fallback procedure of Wiens & Dmitrienko 2005, which keeps the risk of one wrong claim among
        all. A threshold is one above the margin of a row, and only larger margins count, so that
        the other rows are independent of it.

        Returned are the choice, None where no threshold is good enough, and the threshold with the
        lowest bound, to explain a failure.
        """
        n = len(self.margin)
        starts = _starts(n, most, risk, self.share)
        places = np.unique(np.concatenate([starts, np.linspace(starts[0], n, _STEPS).astype(int)]))
        chosen: Threshold | None = None
        best: Threshold | None = None
        carried = 0.0
        for place in places.tolist():
            level = carried + (risk / len(starts) if place in starts else 0.0)
            if level == 0:
                continue
            # The threshold of the last row answers all.
            trial = self.above(int(self.margin[place - 1]) if place < n else -1, level)
            carried = level if trial.bound <= most else 0.0
            if trial.bound <= most:
                chosen = trial
            if best is None or trial.bound < best.bound:
                best = trial
        assert best is not None
        return chosen, best

    def by_coverage(
        self, coverage: float, risk: float, levels: NDArray[np.float64]
    ) -> Threshold | None:
        """Return the threshold that a new row's margin reaches with at least this probability.

        Split conformal prediction (Papadopoulos et al. 2002), with `levels` of `conformal_levels`.
        The margin of a row would do; the threshold is one above the next lower margin, so that the
        rows that are answered are those by which the error is bounded, also where margins are
        equal. The bound holds for this one threshold, which was chosen without labels. None where
        the rows are too few.
        """
        at = int(np.searchsorted(np.cumsum(levels[self.order]), coverage - 1e-12))
        if at == len(self.margin):
            return None
        lower = self.margin[self.margin < self.margin[at]]
        limit = int(lower.max()) if lower.size else -1
        return self.above(limit, risk)


def _starts(n: int, most: float, risk: float, share: float) -> list[int]:
    """Return after how many rows tests begin: one position, or more if there are enough rows.

    The first place allows a wrong row where that leaves rows to go on.
    """
    least = (rows_needed(most, risk) or n) / share
    count = int(np.clip(n // (2 * least), 1, _STARTS))
    for wrong in (1, 0):
        needed = int(np.ceil((rows_needed(most, risk / count, wrong=wrong) or n) / share)) + 1
        if needed <= n:
            return sorted({int(at) for at in np.rint(np.geomspace(needed, n, count))})
    return [n]
