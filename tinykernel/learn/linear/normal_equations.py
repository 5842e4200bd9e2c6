"""Linear parts of many rows by normal equations, with weights rounded to few bits.

With Z the inputs, w the weights of rows and Y the targets, all centred, those of ridge regression
are ``(G + penalty)^-1 Z' w Y``, where ``G = Z' w Z``. Their
penalty has the least squared error on held-out folds. Steps to maximum likelihood solve the same
equations (`likeliest`). With ``G + penalty = L L'`` the loss of levels Q of a step s is
``|L' (W - s Q)|^2``: the last input is rounded first, and each before it makes up for the errors
behind it (the nearest plane of Babai, Combinatorica 1986).

Products of integers of few bits are exact. All else is added up in the order of the source, so
that every processor gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinykernel.base import progress
from tinykernel.base.compiled import njit
from tinykernel.base.elementary import exp, logs
from tinykernel.learn.choice import Fold
from tinykernel.learn.linear import ridge
from tinykernel.learn.sums import PANEL, eliminate, product, substitute

#: Penalties that are tried, in shares of the mean of the diagonal of G.
PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
#: The penalty without folds, and those of the likelihood, which needs less than squared errors.
UNKNOWN, LIKELY = 0.1, 0.003
LIKELY_PENALTIES = (LIKELY, 0.03, 0.3)
#: Of more inputs the matrix takes gigabytes, and minutes.
MOST_INPUTS = 9216
# Most inputs that the penalty is chosen with.
_TRIED_INPUTS = 2048
_ROWS_AT_ONCE, _INPUTS_AT_ONCE = 4096, 1024
# Penalty for ranking kernels.
_RANKING = 0.3
# Row weights are multiples of the first, targets of the second.
_SHARE, _SHADE = 2.0**-12, np.float32(2.0**-8)

_Inputs = NDArray[np.int16]
_Floats = NDArray[np.float32]
_Doubles = NDArray[np.float64]
#: Weights (n_outputs, n_inputs) of few bits, their unit, and offsets.
RoundedWeights: TypeAlias = tuple[NDArray[np.int8], float, _Doubles]
#: 100 steps classify held-out beats and movements no better.
LIKELIHOOD_STEPS = 30


class LevelFit(NamedTuple):
    """Weights of few bits."""

    stored: RoundedWeights
    error: float  # mean squared error on held-out rows, NaN without folds.
    interrupted: bool = False  # whether Ctrl-C ended the fit; these are the best so far.


def fit_levels(
    inputs: _Inputs,
    targets: NDArray[np.float32],
    weight: NDArray[np.float32],
    folds: Sequence[Fold],
    bits: int,
    *,
    likely: float | None = None,
    n_learned: int | None = None,
) -> LevelFit:
    """Fit ridge regression to many rows, with weights of few bits.

    Inputs (n, n_inputs) are integers, targets (n, n_outputs) in -1..1 are rounded to 1/256; weights
    (n,) have a mean of 1. Rows from `n_learned` on are for folds alone, which choose the penalty.
    With a penalty `likely` the fit goes on to maximum likelihood (`likeliest`).
    """
    targets = np.rint(targets / _SHADE) * _SHADE
    share = _shares(inputs, weight)
    stride = -(-inputs.shape[1] // _TRIED_INPUTS)
    tried = np.arange(0, inputs.shape[1], stride)
    # One of each `stride`, drawn: counts of the cells of a kernel follow each other.
    tried += np.random.default_rng(0).integers(0, stride, tried.size)
    tried = np.minimum(tried, inputs.shape[1] - 1)
    # One chosen with every `stride`-th input is a share of so much less.
    penalty, error = UNKNOWN * stride if likely is None else likely, float("nan")
    if folds:
        penalty, error = _choose(inputs[:, tried], targets, share, folds)
        penalty *= stride
    inputs, targets, share = inputs[:n_learned], targets[:n_learned], share[:n_learned]
    system = _System(_products(inputs, targets, share), inputs.shape[1])
    solved, standard = system.standard(penalty, "solving")
    offset, ended = system.mean[inputs.shape[1] :], False
    if likely is not None:
        solved, offset, ended = likeliest(inputs, targets, share, standard)
    levels, step, stopped = _round(standard.upper, solved, standard.unit, bits, "rounding")
    offset = offset - ridge.combine(standard.mean[:, None], step * levels)[0]
    return LevelFit((levels.T.astype(np.int8), step, offset), error, ended or stopped)


def decide(stored: RoundedWeights, inputs: NDArray[Any]) -> _Floats:
    """Return the decision values (n, n_outputs) of weights of few bits."""
    levels, unit, offset = stored
    columns = np.ascontiguousarray(inputs.T, np.float64)
    return np.asarray(ridge.combine(columns, unit * levels.T) + offset, np.float32)


def standard_of(inputs: _Inputs, weight: NDArray[np.floating], penalty: float) -> Standard:
    """Return how a fit to few rows (`closed_form.fit_ridge`) with this penalty is rounded."""
    system = _weighed_system(inputs, np.zeros((len(inputs), 1), np.float32), weight)
    return system.standard(penalty / (len(inputs) * ridge.DEVIATION**2))[1]


def round_to_plane(fit: ridge.Fit, standard: Standard, bits: int) -> tuple[RoundedWeights, bool]:
    """Round a fit as `fit_levels` does: later inputs make up for errors.

    The second value says whether Ctrl-C ended the search for the step; it is the best so far.
    """
    unit = standard.unit
    levels, step, ended = _round(standard.upper, fit.weights * unit[:, None], unit, bits)
    moved = ridge.combine(standard.mean[:, None], fit.weights - step * levels)[0]
    return (levels.T.astype(np.int8), step, fit.offset + moved), ended


def fit_discriminants(
    inputs: _Inputs, codes: NDArray[np.integer], targets: _Floats, weight: _Doubles
) -> tuple[ridge.Fit, Standard]:
    """Fit discriminants (`discriminants`) of what ridge regression says of many rows.

    Inputs (n, n_inputs) are integers, codes (n,) the classes that targets (n, n_outputs) say. With
    two classes one output tells the second from the first. Weights near these are rounded by the
    second value.
    """
    system = _weighed_system(inputs, targets, weight)
    solved, standard = system.standard(LIKELY)
    weights = solved / standard.unit[:, None]
    offset = system.mean[inputs.shape[1] :] - ridge.combine(standard.mean[:, None], weights)[0]
    fit = ridge.Fit(weights, offset, LIKELY, np.empty((0, 0)))
    fit = ridge.discriminate(fit._replace(left_out=fit.fitted(inputs)), codes, weight)
    if targets.shape[1] == 1:
        apart, offset = fit.weights[:, 1:] - fit.weights[:, :1], fit.offset[1:] - fit.offset[:1]
        fit = fit._replace(weights=apart, offset=offset)
    return fit, standard


def _weighed_system(inputs: _Inputs, targets: _Floats, weight: NDArray[np.floating]) -> _System:
    """Return the normal equations of weighted rows."""
    return _System(_products(inputs, targets, _shares(inputs, weight)), inputs.shape[1])


def _shares(inputs: _Inputs, weight: NDArray[np.floating]) -> _Doubles:
    """Return weights of rows in steps that keep products exact."""
    step = max(_SHARE, 2.0 ** int(np.frexp(_most(inputs) ** 2 * 2 * weight.sum() / ridge.EXACT)[1]))
    return np.maximum(np.rint(weight.astype(np.float64) / step), 1.0)


def _most(inputs: _Inputs) -> float:
    """Return the largest size of inputs and rounded targets."""
    return max(float(inputs.max(initial=1)), -float(inputs.min(initial=0)), 1 / float(_SHADE))


def _products(inputs: _Inputs, targets: NDArray[np.float32], share: _Doubles) -> _Doubles:
    """Return exact weighted products of all pairs of inputs, targets and 1."""
    assert _most(inputs) ** 2 * share.sum() < ridge.EXACT
    size = inputs.shape[1] + targets.shape[1] + 1
    total = np.zeros((size, size))
    for first in range(0, len(inputs), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        ones = np.ones((len(share[part]), 1))
        rows = np.hstack([inputs[part], targets[part], ones]).astype(np.float64)
        weighed = rows * share[part, None]
        for begin in range(0, size, _INPUTS_AT_ONCE):
            end = begin + _INPUTS_AT_ONCE
            total[begin:end, begin:] += weighed[:, begin:end].T @ rows[:, begin:]
    for begin in range(0, size, _INPUTS_AT_ONCE):
        end = begin + _INPUTS_AT_ONCE
        total[end:, begin:end] = total[begin:end, end:].T
    return total


class _System:
    """The normal equations of standardised inputs, of `_products`."""

    def __init__(self, products: _Doubles, n_inputs: int) -> None:
        p, total = n_inputs, products[-1, -1]
        self.mean = products[-1, :-1] / total  # of inputs, then of targets
        centred = products[:-1, :-1] / total
        for row, mean in zip(centred, self.mean, strict=True):
            row -= mean * self.mean
        deviation = np.sqrt(np.maximum(np.diagonal(centred)[:p], 0.0))
        varies = deviation > 1e-9
        # Inputs that hardly vary would get weights so large that the others round to 0.
        least = ridge.LEAST_DEVIATION * float(np.median(deviation[varies])) if varies.any() else 1.0
        self.unit = np.maximum(deviation, least)
        centred[:p] /= self.unit[:, None]
        centred[:, :p] /= self.unit
        self.centred, self.n_inputs = centred, p

    def solve(self, penalty: float, stage: str = "") -> tuple[_Doubles, _Doubles, float]:
        """Return the weights of standardised inputs, L', and the penalty on the diagonal."""
        p = self.n_inputs
        matrix = self.centred[:p, :p].copy()
        return _solve(matrix, self.centred[:p, p:].copy(), penalty, stage)

    def standard(self, penalty: float, stage: str = "") -> tuple[_Doubles, Standard]:
        """Return the weights of standardised inputs, and how these are standardised."""
        solved, upper, added = self.solve(penalty, stage)
        return solved, Standard(self.mean[: self.n_inputs], self.unit, upper, added)

    def error(self, products: _Doubles, solved: _Doubles) -> float:
        """Return the weighted squared error of a solution on products of other rows."""
        weights = solved / self.unit[:, None]
        p, n_outputs = weights.shape
        offset = self.mean[p:] - ridge.combine(self.mean[:p, None], weights)[0]
        weights = np.vstack([weights, -np.eye(n_outputs), offset])
        return ridge.add_up((weights * product(products, weights)).T)


def _solve(
    matrix: _Doubles, right: _Doubles, penalty: float, stage: str = ""
) -> tuple[_Doubles, _Doubles, float]:
    """Solve for (n, n_outputs) with a penalty in means of the diagonal.

    Also returns L', the upper half of the matrix, and the penalty on the diagonal.
    """
    n = len(matrix)
    added = max(penalty * ridge.diagonal_mean(matrix), 1e-9)
    matrix[np.arange(n), np.arange(n)] += added
    # Panel by panel, so that Ctrl-C can end it.
    for first in progress.steps(stage, range(0, n, PANEL)):
        eliminate(matrix, first)
    return substitute(matrix, right), matrix, added


def input_power(
    inputs: _Inputs, targets: NDArray[np.float32], weight: NDArray[np.float32], n_strong: int = 0
) -> _Doubles:
    """Return the effect of each input on the outputs of ridge regression, by its dual."""
    rows, _, deviation, unit = ridge.standardise(inputs, n_strong)
    share = weight.astype(np.float64)
    gram = ridge.centred_products(ridge.products_of_rows(rows.astype(np.float64)), share)
    wanted = (targets - ridge.weighted_mean(targets, share)) * np.sqrt(share)[:, None]
    # Ratio of the means of the diagonals of Z' w Z and its dual.
    dual, *_ = _solve(gram, wanted, _RANKING * len(rows) / rows.shape[1], "ranking")
    weights = ridge.combine(rows, dual * np.sqrt(share)[:, None])
    moved: _Doubles = np.square(weights * (deviation / unit)[:, None]).sum(axis=1)
    return moved


def _choose(
    inputs: _Inputs, targets: NDArray[np.float32], share: _Doubles, folds: Sequence[Fold]
) -> tuple[float, float]:
    """Return the penalty of the least squared error on folds, and this error."""
    used = np.union1d(folds[0].inside, folds[0].outside)
    whole = _products(inputs[used], targets[used], share[used])
    errors, total = np.zeros(len(PENALTIES)), 0.0
    n_steps = len(folds) * len(PENALTIES)
    for number, fold in enumerate(folds):
        out = fold.outside
        left = _products(inputs[out], targets[out], share[out])
        total += float(left[-1, -1]) * targets.shape[1]
        system = _System(whole - left, inputs.shape[1])
        for place, penalty in enumerate(PENALTIES):
            progress.report("choosing the penalty", number * len(PENALTIES) + place, n_steps)
            errors[place] += system.error(left, system.solve(penalty)[0])
    progress.report("choosing the penalty", n_steps, n_steps)
    best = int(np.argmin(errors))
    return PENALTIES[best], float(errors[best] / total)


def _round(
    upper: _Doubles, solved: _Doubles, unit: _Doubles, bits: int, stage: str = ""
) -> tuple[_Doubles, float, bool]:
    """Round a solution to levels; return these, the step, and whether Ctrl-C ended the search."""
    most = 2 ** (bits - 1) - 1
    largest = max(float(np.abs(solved / unit[:, None]).max()), 1e-12) / most
    factor = np.ascontiguousarray(upper.T)
    best: tuple[float, float, _Doubles] | None = None
    interrupted = False
    try:
        for step in progress.steps(stage, (largest * ridge.STEPS).tolist()):
            levels, loss = _nearest_plane(factor, solved, step * unit, most)
            if best is None or loss < best[0]:
                best = loss, step, levels
    except KeyboardInterrupt:
        if best is None:
            raise
        interrupted = True
    assert best is not None
    return best[2], best[1], interrupted


@njit(nogil=True)
def _nearest_plane(factor, solved, step, most):  # type: ignore[no-untyped-def]
    """Return levels (n, n_outputs) of steps (n,), and their loss."""
    n, n_outputs = solved.shape
    levels, pull = np.zeros_like(solved), np.zeros_like(solved)
    loss = 0.0
    for i in range(n - 1, -1, -1):
        for o in range(n_outputs):
            wanted = (solved[i, o] + pull[i, o] / factor[i, i]) / step[i]
            level = min(max(np.rint(wanted), -most), most)
            levels[i, o] = level
            error = solved[i, o] - step[i] * level
            rest = factor[i, i] * error + pull[i, o]
            loss += rest * rest
            for j in range(i):
                pull[j, o] += factor[i, j] * error
    return levels, loss


@dataclass(frozen=True, eq=False)
class Standard:
    """How inputs are standardised, (n_inputs,) each, and U with ``U' U = Z' Z + penalty``."""

    mean: _Doubles
    unit: _Doubles
    upper: _Doubles
    penalty: float


def likeliest(
    inputs: NDArray[Any], targets: NDArray[Any], share: _Doubles, standard: Standard
) -> tuple[_Doubles, _Doubles, bool]:
    """Return weights of standardised inputs, (n_inputs, n_outputs), and offsets (n_outputs,).

    With few inputs squared errors miss a class between two others; the likelihood does not. With Z
    the standardised inputs, Y the targets 0 and 1, and P the softmax (of one output the logistic
    function) of the outputs of weights W, the Hessian of the mean log-likelihood of an output is at
    most ``Z' Z / 2``, of one output ``Z' Z / 4`` (Boehning, Ann. Inst. Statist. Math. 1992). So one
    matrix serves all steps, with momentum (Nesterov, Soviet Math. Dokl. 1983)::

        W += 2 (Z' Z + penalty)^-1 (Z' (Y - P) - penalty W / 2)

    Inputs (n, n_inputs) are integers, targets (n, n_outputs) -1 and 1, `share` (n,) row weights.
    The last value says whether Ctrl-C ended the steps; in the first step it is raised.
    """
    truth = (targets.astype(np.float64) + 1.0) / 2
    bound = 0.5 if truth.shape[1] > 1 else 0.25
    odds = ridge.weighted_mean(truth, share)
    offset = logs(odds if truth.shape[1] > 1 else odds / (1 - odds))
    weights = np.zeros((inputs.shape[1], truth.shape[1]))
    before = weights, offset
    interrupted = False
    try:
        for step in progress.steps("weighing", range(LIKELIHOOD_STEPS)):
            momentum = step / (step + 3)
            there = weights + momentum * (weights - before[0])
            level = offset + momentum * (offset - before[1])
            missed = truth.copy()
            _take_chances(inputs, there / standard.unit[:, None], standard.mean, level, missed)
            total = ridge.weighted_mean(missed, share)
            slope = ridge.combine(inputs, missed * share[:, None]) / ridge.add_up(share)
            slope = (slope - standard.mean[:, None] * total) / standard.unit[:, None]
            slope -= bound * standard.penalty * there
            before = weights, offset
            weights = there + substitute(standard.upper, slope) / bound
            offset = level + total / bound
    except KeyboardInterrupt:
        if not weights.any():
            raise
        interrupted = True
    return weights, offset, interrupted


@njit(nogil=True)
def _take_chances(inputs, weights, mean, offset, truth):  # type: ignore[no-untyped-def]
    """Subtract the probabilities of classes from truth (n, n_outputs)."""
    n_outputs = weights.shape[1]
    start, sums = offset.copy(), np.empty(n_outputs)
    for j in range(weights.shape[0]):
        for o in range(n_outputs):
            start[o] -= mean[j] * weights[j, o]
    for i in range(inputs.shape[0]):
        most = 0.0 if n_outputs == 1 else -np.inf
        for o in range(n_outputs):
            sums[o] = start[o]
        for j in range(weights.shape[0]):
            for o in range(n_outputs):
                sums[o] += inputs[i, j] * weights[j, o]
        for o in range(n_outputs):
            most = max(most, sums[o])
        total = exp(-most) if n_outputs == 1 else 0.0
        for o in range(n_outputs):
            sums[o] = exp(sums[o] - most)
            total += sums[o]
        for o in range(n_outputs):
            truth[i, o] -= sums[o] / total
