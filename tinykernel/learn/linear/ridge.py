"""Ridge regression in closed form: of few rows, and with a Gaussian kernel.

With Z the centred inputs, ``K = Z Z'`` and targets Y, centred as well, the dual weights are
``C = (K + penalty)^-1 Y`` and those of the inputs ``W = Z' C``. The error of a row that is held
out is ``C_i / ((K + penalty)^-1)_ii`` (Golub, Heath, Wahba, Technometrics 1979), of a group of
rows B ``((K + penalty)^-1_BB)^-1 C_B``.

Inputs are integers, so that K is exact. All else is added up in the order of the source, so that
every processor gives the same bits.

Weights of rows count as repetitions. All is added up in the order of the source (`matrices`), so
that every processor gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import njit, part
from tinykernel.base.elementary import exps, logs
from tinykernel.learn.sums import distances, inverse_root, product, solve, tridiagonal

#: Penalties that are tried, in shares of the mean of the diagonal of K.
PENALTIES = np.array([10.0 ** (k / 2) for k in range(-10, 5)])
#: Matrix products of whole numbers are exact below this.
EXACT = 2.0**53
DEVIATION = 256.0  # of a standardised input
#: Least deviation that inputs are divided by, in medians of the deviations.
LEAST_DEVIATION = 0.25
#: Steps between levels to try, as shares of the step at which no weight is clipped.
STEPS = np.array([2.0 ** (-k / 2) for k in range(12)])

_Array = NDArray[Any]
_Doubles = NDArray[np.float64]
#: Of fewer classes, ridge regression is as good (``benchmarks/series.py``, ``many_classes.py``).
MANY_CLASSES = 20
# Share of a multiple of the identity in the covariance of discriminants.
_SHRINKAGE = 0.3


class Fit(NamedTuple):
    """A ridge regression."""

    weights: _Doubles  # (n_inputs, n_outputs): of one unit of an input.
    offset: _Doubles  # (n_outputs,)
    penalty: float  # added to the diagonal of K.
    left_out: _Doubles  # (n, n_outputs): predictions of fits without the row, or its group.

    def fitted(self, inputs: _Array) -> _Doubles:
        """Return the predictions for inputs (n, n_inputs), added up input by input."""
        columns = np.ascontiguousarray(inputs.T, dtype=np.float64)
        total: _Doubles = combine(columns, self.weights) + self.offset
        return total


def fit_ridge(
    inputs: _Array,
    targets: _Array,
    weight: _Array,
    group: _Array | None = None,
    penalties: _Doubles = PENALTIES,
) -> Fit:
    """Fit ridge regression to few rows: inputs (n, n_inputs), targets (n, n_outputs), weights (n,).

    Inputs are integers with sums of products below 2**53. Rows of a group are held out together;
    penalties are shares of the mean of the diagonal of K.
    """
    place = np.arange(len(inputs)) if group is None else np.unique(group, return_inverse=True)[1]
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    blocks = np.append(starts, len(order)).astype(np.int64)
    rows = inputs[order].astype(np.float64)
    share = weight[order].astype(np.float64)
    root = np.sqrt(share)
    wanted = np.ascontiguousarray(targets[order], dtype=np.float64)
    mean = weighted_mean(wanted, share)
    centred = (wanted - mean) * root[:, None]
    gram = centred_products(products_of_rows(rows), share)
    unit = max(diagonal_mean(gram), 1e-12)

    def solved(penalty: float) -> tuple[float, float, _Doubles, _Doubles]:
        dual, error = _solve(gram, centred, root, penalty, blocks)
        return _mean_square(error), penalty, dual, error

    _, penalty, dual, error = min(map(solved, (penalties * unit).tolist()), key=itemgetter(0))
    dual = dual * root[:, None]
    weights = combine(rows, dual)
    centre = weighted_mean(rows, share)
    left = np.empty_like(wanted)
    left[order] = wanted - error / root[:, None]
    return Fit(weights, mean - combine(centre[:, None], weights)[0], penalty, left)


def products_of_rows(rows: _Doubles) -> _Doubles:
    """Return the products of all pairs of integer rows, which are exact."""
    bound = np.abs(rows).max(initial=0.0) ** 2 * rows.shape[1]
    assert bound < EXACT
    result: _Doubles = rows @ rows.T
    return result


def standardise(
    inputs: _Array, n_strong: int = 0
) -> tuple[NDArray[np.int32], _Doubles, _Doubles, _Doubles]:
    """Return inputs in units of 1/256 deviation, their means, deviations, and units.

    Each of the last `n_strong` inputs has as little penalty as if it occurred as often as there are
    inputs.
    """
    total = inputs.sum(axis=0, dtype=np.int64)
    squares = np.square(inputs.astype(np.int64)).sum(axis=0)
    mean = total / len(inputs)
    deviation = np.sqrt(np.maximum(squares / len(inputs) - np.square(mean), 0.0))
    varies = deviation > 0
    # Inputs that hardly vary would get weights so large that the others round to 0.
    least = LEAST_DEVIATION * float(np.median(deviation[varies])) if varies.any() else 1.0
    unit = np.maximum(deviation, least)
    if n_strong:
        unit[-n_strong:] /= np.sqrt(len(unit))
        # A rare flag is many deviations from its mean: products must stay exact.
        reach = np.abs(inputs[:, -n_strong:] - mean[-n_strong:]).max(axis=0)
        most = 2**26 / DEVIATION / np.sqrt(len(unit))
        unit[-n_strong:] = np.maximum(unit[-n_strong:], 1.01 * reach / most)
    # Whole numbers of 1/256 of a deviation: their products are exact.
    return np.rint((inputs - mean) / unit * DEVIATION).astype(np.int32), mean, deviation, unit


def fit_standardised(
    inputs: _Array, targets: _Array, weight: _Array, group: _Array | None, n_strong: int = 0
) -> tuple[Fit, _Doubles]:
    """Fit to standardised inputs; return the fit to `inputs`, and the deviations.

    The penalty is then the same for all inputs. Without it small sets of windows lose 4 to 8
    points (``benchmarks/series.py``). For `n_strong` see `standardise`.
    """
    rows, mean, deviation, unit = standardise(inputs, n_strong)
    fit = fit_ridge(rows, targets, weight, group)
    weights = fit.weights * (DEVIATION * (deviation > 0) / unit)[:, None]
    offset = fit.offset - combine(mean[:, None], weights)[0]
    return Fit(weights, offset, fit.penalty, fit.left_out), deviation


def round_fit(fit: Fit, inputs: _Array, bits: int) -> tuple[NDArray[np.int8], float, _Doubles]:
    """Round the weights to levels (n_outputs, n_inputs); return these, their unit, and the offsets.

    The unit has the least squared error on the inputs. Larger weights are clipped.
    """
    most = 2 ** (bits - 1) - 1
    mean = inputs.sum(axis=0, dtype=np.int64) / len(inputs)
    rows = np.ascontiguousarray((inputs - mean).T)
    largest = max(float(np.abs(fit.weights).max()), 1e-12) / most

    def rounded(step: float) -> tuple[float, float, _Doubles]:
        levels = np.clip(np.rint(fit.weights / step), -most, most)
        return _mean_square(combine(rows, fit.weights - step * levels)), step, levels

    _, step, levels = min(map(rounded, (largest * STEPS).tolist()), key=itemgetter(0))
    moved = combine(mean[:, None], fit.weights - step * levels)[0]
    return levels.T.astype(np.int8), step, fit.offset + moved


def weighted_mean(rows: _Array, share: _Doubles) -> _Doubles:
    """Return the mean of rows (n, k) with weights (n,)."""
    return np.asarray(combine(rows, share[:, None])[:, 0] / add_up(share))


def centred_products(gram: _Doubles, share: _Doubles) -> _Doubles:
    """Return the products of rows less their weighted mean, times the roots of the weights."""
    near = product(gram, share[:, None])[:, 0] / add_up(share)
    middle = add_up(share * near) / add_up(share)
    out: _Doubles = gram - near[:, None]
    out -= near
    out += middle
    out *= np.sqrt(np.outer(share, share))
    return out


def add_up(values: _Array) -> float:
    """Return the sum of values, added from first to last."""
    return float(np.cumsum(values)[-1])


def diagonal_mean(gram: _Doubles) -> float:
    """Return the mean of the diagonal."""
    return add_up(np.diagonal(gram)) / len(gram)


def _mean_square(error: _Doubles) -> float:
    return add_up(np.square(error)) / error.size


@njit(nogil=True)
def combine(rows, dual):  # type: ignore[no-untyped-def]
    """Return the transpose of rows (n, p) times dual (n, k), added up row by row: (p, k)."""
    out = np.zeros((rows.shape[1], dual.shape[1]))
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            for o in range(dual.shape[1]):
                out[j, o] += rows[i, j] * dual[i, o]
    return out


@part()
def _invert(matrix):  # type: ignore[no-untyped-def]
    """Put the inverse in place of a positive definite matrix, by Gauss and Jordan's sweeps."""
    n = matrix.shape[0]
    for k in range(n):
        pivot = 1.0 / matrix[k, k]
        for i in range(n):
            if i != k:
                factor = matrix[i, k] * pivot
                for j in range(n):
                    matrix[i, j] -= factor * matrix[k, j]
                matrix[i, k] = -factor
        for j in range(n):
            matrix[k, j] *= pivot
        matrix[k, k] = pivot


@njit(nogil=True)
def _solve(gram, targets, root, penalty, blocks):  # type: ignore[no-untyped-def]
    """Return the dual weights and the errors of held-out blocks of rows, both (n, n_outputs).

    The mean has no penalty: along `root`, where the centred K is 0, the inverse is 0.
    """
    n = gram.shape[0]
    inverse = gram.copy()
    total = 0.0
    for i in range(n):
        inverse[i, i] += penalty
        total += root[i] * root[i]
    _invert(inverse)
    for i in range(n):
        for j in range(n):
            inverse[i, j] -= root[i] * root[j] / (penalty * total)
    dual = combine(inverse, targets)
    error = np.empty_like(dual)
    for b in range(blocks.shape[0] - 1):
        first, last = blocks[b], blocks[b + 1]
        block = inverse[first:last, first:last].copy()
        if last - first > 1:
            _invert(block)
            left = combine(block, dual[first:last])
        else:
            left = dual[first:last] / block[0, 0]
        # A loop: assigning an array to a slice takes three seconds to compile.
        for i in range(first, last):
            for o in range(dual.shape[1]):
                error[i, o] = left[i - first, o]
    return dual, error


def discriminants(
    said: _Doubles, codes: NDArray[np.integer], weight: _Doubles
) -> tuple[_Doubles, _Doubles]:
    """Return weights (n_said, n_classes) and offsets of discriminants of rows (n, n_said).

    With many classes a one-vs-rest target says little of the classes that are mistaken for each
    other. Let e be what the fit says of a row that it left out, m_c its mean over class c, m that
    over all, and S the covariance within classes. The score of a class is
    ``(e - (m + m_c) / 2)' S^-1 (m_c - m)`` plus the logarithm of its share (Hastie, Buja,
    Tibshirani, Penalized discriminant analysis, 1995). It is linear in e, so the firmware computes
    no more than before.

    >>> rows = np.array([[0.0], [2.0], [4.0], [6.0]])
    >>> slope, offset = discriminants(rows, np.array([0, 0, 1, 1]), np.ones(4))
    >>> (rows @ slope + offset).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    members = (codes[:, None] == np.arange(codes.max() + 1)) * weight[:, None]
    count = combine(np.ones((len(codes), 1)), members)[0]
    share = count / np.cumsum(count)[-1]
    means = combine(members, said) / count[:, None]
    middle = combine(means, share[:, None])[:, 0]
    apart = said - means[codes]
    covariance = combine(apart * (weight / np.cumsum(weight)[-1])[:, None], apart)
    covariance *= 1 - _SHRINKAGE
    spread = max(diagonal_mean(covariance) / (1 - _SHRINKAGE), 1e-12)
    covariance[np.diag_indices(len(covariance))] += _SHRINKAGE * spread
    slope = solve(covariance, np.ascontiguousarray((means - middle).T))
    offset = logs(share) - np.diagonal(product((means + middle) / 2, slope))
    return slope, offset


def discriminate(fit: Fit, codes: NDArray[np.integer], weight: NDArray[np.floating]) -> Fit:
    """Return a fit to the classes whose scores are the discriminants of another."""
    slope, offset = discriminants(fit.left_out, codes, weight.astype(np.float64))
    weights = product(fit.weights, slope)
    offset = offset + product(fit.offset[None], slope)[0]
    return Fit(weights, offset, fit.penalty, product(fit.left_out, slope) + offset)


_WIDTHS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0)
_PENALTIES = tuple(10.0 ** (k / 2) for k in range(-10, 5))


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows with values."""

    X: _Doubles  # (n, d)
    targets: _Doubles  # (n, n_outputs)
    weight: _Doubles  # (n,): roots of the weights of the rows, whose mean is 1.
    group: NDArray[Any]  # (n,): rows of a group are held out together.

    def of(self, chosen: NDArray[Any]) -> WeightedRows:
        """Return some of the rows."""
        return WeightedRows(
            self.X[chosen], self.targets[chosen], self.weight[chosen], self.group[chosen]
        )

    def along(self, view: _Doubles) -> WeightedRows:
        """Return rows with inputs ``X @ view``."""
        return WeightedRows(product(self.X, view), self.targets, self.weight, self.group)


class Ridge:
    """A fit to rows, with width and penalty of `like`, or of the least held-out error.

    With `near` only widths close to that of another fit are tried.
    """

    def __init__(
        self, rows: WeightedRows, *, like: Ridge | None = None, near: Ridge | None = None
    ) -> None:
        self.rows = rows
        self.width: float
        self.penalty: float
        if like is not None:
            self.width, self.penalty = like.width, like.penalty
        else:
            self.width, self.penalty = _choose(rows, None if near is None else near.width)
        gram = _kernel(rows.X, rows.X, self.width) * np.outer(rows.weight, rows.weight)
        gram[np.diag_indices(len(gram))] += self.penalty
        weight = rows.weight[:, None]
        self.factors: _Doubles = solve(gram, rows.targets * weight) * weight

    def values(self, X: _Doubles) -> _Doubles:
        """Return the values at other rows, shape (k, n_outputs)."""
        parts = np.array_split(X, -(-len(X) // len(self.rows.X)))
        kernels = (_kernel(part, self.rows.X, self.width) for part in parts)
        return np.concatenate([product(kernel, self.factors) for kernel in kernels])

    def slopes(self) -> _Doubles:
        """Return the mean outer product of the gradients at the rows, up to a factor; (d, d)."""
        X = self.rows.X
        kernel = _kernel(X, X, self.width)
        total = np.zeros((X.shape[1], X.shape[1]))
        for factors in self.factors.T:
            gradients = product(kernel, factors[:, None] * X)
            gradients -= product(kernel, factors[:, None].copy()) * X
            gradients *= self.rows.weight[:, None]
            total += product(gradients.T.copy(), gradients)
        return total


def _kernel(rows: _Doubles, others: _Doubles, width: float) -> _Doubles:
    """Return the Gaussian kernel of a width of `width` times the root of the number of inputs."""
    squares: _Doubles = distances(np.ascontiguousarray(rows), others.T.copy())
    return exps(squares / (-2 * rows.shape[1] * width**2))


def _choose(rows: WeightedRows, near: float | None) -> tuple[float, float]:
    """Return width and penalty of the least squared error on held-out groups."""
    rows = rows.of(np.argsort(rows.group, kind="stable"))
    if near is None:
        return min(_least(rows, width) for width in _WIDTHS)[1:]
    best = _least(rows, near)
    for direction in (1, -1):
        at = _WIDTHS.index(near) + direction
        while 0 <= at < len(_WIDTHS) and (other := _least(rows, _WIDTHS[at])) < best:
            best, at = other, at + direction
    return best[1:]


def _least(rows: WeightedRows, width: float) -> tuple[float, float, float]:
    """Return the least error of any penalty, the width, and that penalty.

    With M = (K + penalty)^-1 the errors of held-out rows B are ``M_BB^-1 (M y)_B``; rows of a group
    are consecutive.
    """
    y = rows.targets * rows.weight[:, None]
    parts = np.split(np.arange(len(y)), np.flatnonzero(np.diff(rows.group)) + 1)
    gram = _kernel(rows.X, rows.X, width) * np.outer(rows.weight, rows.weight)
    reduced, tried = tridiagonal(gram), []
    for penalty in _PENALTIES:
        root = inverse_root(*reduced, penalty)
        dual = product(product(root, y).T.copy(), root).T
        if len(parts) == len(y):
            errors = dual / np.square(root).sum(axis=0)[:, None]
        else:
            blocks = ((root[:, b].copy(), dual[b].copy()) for b in parts)
            errors = np.concatenate([solve(product(z.T.copy(), z), left) for z, left in blocks])
        tried.append((float(np.square(errors).mean()), width, penalty))
    return min(tried)
