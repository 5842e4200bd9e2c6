"""From scores to probabilities, and how far those are from the truth."""

import numpy as np
from numpy.typing import NDArray

from tinykernel.elementary import exp, exps, log, logs
from tinykernel.model.answers.decision import CONFIDENCES

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
