"""Classes of normal distributions: naive Bayes and quadratic discriminants as sums of squares.

The score of a class is ``constant - |M x + b|**2 / 2``. M = QR, and R x has the length of M x.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError, DataError
from tinykernel.conversion import linear
from tinykernel.conversion.columns import ModelColumns
from tinykernel.model.answers import Labels
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Readout
from tinykernel.pieces.squares.spec import MOST_DISTANCE, MOST_SUM, Squares

_BITS = 6, 18  # behind the point of scores and distances
_HALF = 2.0**15  # of the levels of an input
_MOST_DROP = 20
_MOST_INPUTS = 1024


@dataclass(frozen=True)
class _Class:
    """A score ``constant - |weights @ x + offset|**2 / 2``."""

    weights: NDArray[np.float64]
    offset: NDArray[np.float64]
    constant: float

    def triangular(self) -> "_Class":
        """Return the same sum of rows of which each begins one input later."""
        q, r = np.linalg.qr(self.weights)
        offset = q.T @ self.offset
        rest = self.offset @ self.offset - offset @ offset
        return _Class(r, offset, float(self.constant - rest / 2))


def read(model: Any, columns: ModelColumns, bits: int = 8) -> IntegerModel:
    """Convert a fitted GaussianNB or QuadraticDiscriminantAnalysis; weights have `bits` twice."""
    kind = type(model).__name__
    if not hasattr(model, "classes_"):
        raise ConvertError(f"convert: the {kind} is not fitted")
    if kind == "GaussianNB" and np.allclose(model.var_, model.var_[:1], 1e-6, 0.0):
        return linear.of_weights(*_shared(model), model.classes_, columns, bits)
    rows = columns.finite_rows(kind).astype(np.float64)
    if columns.n_inputs > _MOST_INPUTS:
        raise ConvertError(f"convert: {columns.n_inputs} inputs of a {kind}; 1024 are the most")
    span = np.ptp(rows, axis=0)
    if not np.any(span > 0):
        raise DataError("convert: no input varies in X")
    narrow = np.divide(1, span, out=np.zeros_like(span), where=span > 0)
    scale, slope = linear.scale_of(columns, rows, narrow, 1.0)
    unit = np.divide(1, slope, out=np.zeros_like(slope), where=slope > 0)
    quantized = scale.quantize(columns.rows.astype(columns.raw_dtype))  # type: ignore[union-attr]
    zero = (rows - quantized * unit).mean(axis=0)  # the input whose level is 0
    parts = []
    for part in _classes(model):
        is_flat = part.weights.shape[0] < part.weights.shape[1]  # of fewer rows than inputs
        if is_flat or not np.isfinite([*part.offset, part.constant]).all():
            raise ConvertError(
                f"convert: a class of the {kind} has a variance or a prior of 0; give priors above "
                f"0, and a larger {'var_smoothing' if kind == 'GaussianNB' else 'reg_param'}"
            )
        weights, offset = linear.of_inputs(part.weights, part.offset, columns)
        offset = offset + weights @ zero
        parts.append(_Class(weights * unit, offset, part.constant).triangular())
    middle = quantized.mean(axis=0)
    squares, point = _squares(parts, middle, kind, 2 ** (2 * bits - 1) - 1)
    constants = np.array([part.constant for part in parts])
    biases = np.diff(constants) if constants.size == 2 else constants - constants.max()
    return IntegerModel(
        input=Grid.table(columns.raw_dtype, columns.n_inputs),
        stages=(scale,),
        readout=Readout((squares,), np.rint(np.ldexp(biases, point)).astype(np.int64)),
        answers=Labels(tuple(np.asarray(model.classes_).tolist())),
        decision_scale=2.0**-point,
    )


def _shared(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the linear discriminant of classes that share their variances."""
    weights = model.theta_ / model.var_[:1]
    bias = np.log(model.class_prior_) - 0.5 * (model.theta_ * weights).sum(axis=1)
    if len(weights) == 2:
        return weights[1:] - weights[:1], bias[1:] - bias[:1]
    return weights, bias


def _classes(model: Any) -> list[_Class]:
    """Return the classes of a model, as functions of its columns."""
    with np.errstate(divide="ignore", invalid="ignore"):  # what is not finite is refused
        if type(model).__name__ == "GaussianNB":
            means, variances, priors = model.theta_, model.var_, model.class_prior_
            rows = [np.diag(each**-0.5) for each in variances]
        else:
            means, variances, priors = model.means_, model.scalings_, model.priors_
            turns = zip(model.rotations_, variances, strict=True)
            rows = [(turn * each**-0.5).T for turn, each in turns]
        return [
            _Class(row, -row @ mean, float(np.log(prior) - np.log(each).sum() / 2))
            for row, mean, each, prior in zip(rows, means, variances, priors, strict=True)
        ]


def _squares(
    parts: list[_Class], middle: NDArray[np.float64], kind: str, largest: int
) -> tuple[Squares, int]:
    """Return classes in fixed point, with weights up to `largest`, and the bits of scores.

    In the middle of the inputs, rounded weights lose nothing.
    """
    weights, offset = (
        np.stack([getattr(p, name) for p in parts]) for name in ("weights", "offset")
    )
    far = np.abs(weights).sum(axis=2) * _HALF + np.abs(offset)
    constants = [part.constant for part in parts]
    most = max(float((far**2).sum(axis=1).max()) / 2, float(np.ptp(constants)))
    bits = int(np.clip(np.floor(np.log2(MOST_DISTANCE / far.max())), *_BITS))
    point = min(int(np.clip(np.floor(np.log2(MOST_SUM / most)), *_BITS)), 2 * bits + 1)
    n_rows, n = weights.shape[1:]
    dots = 2.0**31 - 2**_MOST_DROP - n * _HALF  # what is rounded adds to them
    with np.errstate(divide="ignore"):
        widest = np.minimum(dots / far, largest / np.abs(weights).max(axis=2))
        drop = np.floor(np.log2(widest)) - bits
    if drop.min() < 0:
        raise ConvertError(
            f"convert: a class of the {kind} is {far.max():.2g} times narrower than X; train it "
            f"with a larger {'var_smoothing' if kind == 'GaussianNB' else 'reg_param'}"
        )
    drop = np.minimum(drop, _MOST_DROP).astype(np.int64)
    factor = np.ldexp(1.0, bits + drop)
    rounded = np.rint(weights * factor[..., None])
    lost = (weights * factor[..., None] - rounded) @ middle
    offset = np.rint(offset * factor + lost + np.ldexp(0.5, drop))
    width = n if np.any(np.triu(rounded, 1)) else 1
    flat = np.hstack([rounded[:, r, r : r + width] for r in range(n_rows)])
    return Squares(flat, offset, drop, width, 2 * bits + 1 - point), point
