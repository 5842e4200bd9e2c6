"""Linear models of scikit-learn: weights that the scaler and the linear part share.

A score is ``sum_i W_i x_i + b``. Inputs are quantized so that the largest weight of each input is
the same in levels, hence what is left to the linear part are weights within -127..127, or the signs
where there is one output.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError, DataError
from tinykernel.conversion.columns import ModelColumns
from tinykernel.conversion.curves import PER_LOG, curved
from tinykernel.model.answers import Labels, Values, numbered_values
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.piece import Readout
from tinykernel.pieces.scale.spec import Scale

MARGIN = 0.25  # of the range of an input, beyond it on both sides
_MOST = 2**31 - 1
_SUM = 65000  # of weights and signs, so that a dot product with 16-bit inputs fits int32


def read(model: Any, columns: ModelColumns, bits: int = 8) -> IntegerModel:
    """Convert a fitted linear model, with weights of 2, 4 or 8 bits."""
    weights, bias = _weights(model)
    curve = "power" if _has_log(model) else ""
    factor = PER_LOG if curve else 1.0
    classes = getattr(model, "classes_", None)
    return curved(
        of_weights(factor * weights, factor * bias, classes, columns, bits), curve, columns
    )


def of_weights(
    weights: NDArray[np.float64],
    bias: NDArray[np.float64],
    classes: Any,
    columns: ModelColumns,
    bits: int,
) -> IntegerModel:
    """Convert weights of columns, shape (n_outputs, n_columns); `classes` is None of values."""
    rows = columns.finite_rows("linear model").astype(np.float64)
    weights, bias = of_inputs(weights, bias, columns)
    largest = np.abs(weights).max(axis=0)
    if not np.any(largest > 0) or np.all(np.ptp(rows, axis=0) == 0):
        raise DataError("convert: no input has a weight and varies in X")
    largest_weight = 2 ** (bits - 1) - 1
    most = max(1, min(largest_weight if len(weights) > 1 else 1, _SUM // weights.shape[1]))
    fit = _fitted(columns, rows, weights, bias, most, 1.0)
    shift, multiplier = _fixed_point(fit, classes is None)
    step = fit.unit / multiplier
    if classes is None:  # again, so that a dot product is worth a whole number of 2^-shift
        step = 2.0**-shift
        fit = _fitted(columns, rows, weights, bias, most, fit.unit / (multiplier * step))
    offset = np.rint(fit.offset / step).astype(np.int64)
    return IntegerModel(
        input=Grid.table(columns.raw_dtype, weights.shape[1]),
        stages=(fit.scale,),
        readout=Readout(
            (Linear(fit.weights, np.full(len(weights), multiplier, np.int32)),),
            offset.astype(np.int32),
        ),
        answers=Values(numbered_values(len(weights)), shift)
        if classes is None
        else Labels(tuple(np.asarray(classes).tolist())),
        decision_scale=step,
    )


@dataclass(frozen=True)
class _Fit:
    """A scaler, and scores ``unit * (weights @ q) + offset``."""

    scale: Scale
    weights: NDArray[np.int8]
    unit: float
    offset: NDArray[np.float64]

    @property
    def reach(self) -> float:
        """The largest size of a score, in units."""
        sums = np.abs(self.weights.astype(np.int64)).sum(axis=1)
        size = 2.0 ** (self.scale.bits - 1) * sums + np.abs(self.offset) / self.unit
        return float(size.max()) + 1


def _fitted(
    columns: ModelColumns,
    rows: NDArray[np.float64],
    weights: NDArray[np.float64],
    bias: NDArray[np.float64],
    most: int,
    finer: float,
) -> _Fit:
    """Round weights to -most..most; `finer`, at most 1, scales the levels of the inputs."""
    scale, slope = scale_of(columns, rows, np.abs(weights).max(axis=0), finer)
    per_level = np.divide(weights, slope, out=np.zeros_like(weights), where=slope > 0)
    unit = float(np.abs(per_level).max()) / most
    rounded = np.rint(per_level / unit).astype(np.int8)
    quantized = scale.quantize(columns.rows.astype(columns.raw_dtype))  # type: ignore[union-attr]
    dots = quantized.astype(np.float64) @ rounded.T.astype(np.float64)
    offset = (rows @ weights.T + bias - dots * unit).mean(axis=0)
    return _Fit(scale, rounded, unit, offset)


def _has_log(model: Any) -> bool:
    """Say whether the values of a model are exp of its sums."""
    link = getattr(getattr(model, "_base_loss", None), "link", None)
    return type(link).__name__ == "LogLink"


def _weights(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights, shape (n_outputs, n_columns), and the offsets of the outputs."""
    if hasattr(model, "estimators_"):
        return _of_members(model)
    kind, classes = type(model).__name__, getattr(model, "classes_", None)
    if not hasattr(model, "coef_"):
        raise ConvertError(f"convert: the {kind} is not fitted")
    if hasattr(model, "get_booster"):
        weights, bias = _of_margins(model)
    else:
        coefficients = model.coef_
        if hasattr(coefficients, "toarray"):  # after sparsify(), and of kernels
            coefficients = coefficients.toarray()
        weights = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
        bias = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (len(weights),))
    if classes is not None and len(weights) != (len(classes) if len(classes) > 2 else 1):
        raise ConvertError("convert: a classifier of several labels a row is not supported")
    return weights, bias


def _of_margins(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of gblinear of XGBoost, whose `coef_` mixes up several classes."""
    n = model.n_features_in_
    rows = np.vstack([np.zeros(n), np.eye(n)]).astype(np.float32)
    margins = np.asarray(model.predict(rows, output_margin=True), dtype=np.float64)
    if not hasattr(model, "classes_") and not np.allclose(model.predict(rows), margins, rtol=1e-4):
        raise ConvertError(
            f"convert: values of gblinear by {model.objective!r} are no sums of inputs; train it "
            "by 'reg:squarederror', or a PoissonRegressor"
        )
    margins = margins.reshape(n + 1, -1)
    half = 0.5 * (model.objective == "binary:logitraw")  # with which XGBoost compares these sums
    return (margins[1:] - margins[0]).T, margins[0] - half


def _of_members(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of models one behind the other, one a class, or of their mean."""
    parts, kind = [_weights(member) for member in model.estimators_], type(model).__name__
    if any(len(weights) != 1 for weights, _ in parts):
        raise ConvertError(f"convert: members of the {kind} have several outputs")
    if any(map(_has_log, model.estimators_)):
        raise ConvertError(f"convert: a {kind} of models with a link adds up no sums of inputs")
    weights, bias = np.zeros((len(parts), model.n_features_in_)), np.zeros(len(parts))
    chosen = getattr(model, "estimators_features_", [slice(None)] * len(parts))
    for i, (part, offset) in enumerate(parts):
        np.add.at(weights[i], chosen[i], part[0])  # columns may come twice
        bias[i] = offset[0]
    if not kind.startswith(("Bagging", "Voting")):
        is_one = len(parts) == 1 and not hasattr(model.estimators_[0], "classes_")
        return weights, bias - 0.5 * (is_one and hasattr(model, "classes_"))  # as OneVsRest does
    counts = getattr(model, "_weights_not_none", None)
    mean = np.average(np.column_stack([weights, bias]), axis=0, weights=counts)[None]
    return mean[:, :-1], mean[:, -1]


def of_inputs(
    weights: NDArray[np.float64], bias: NDArray[np.float64], columns: ModelColumns
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights and offsets of raw inputs, where steps before the model are straight lines."""
    weights, bias = columns.unmixed(weights, bias)
    if not columns.steps:
        return weights, bias
    gain, zero = columns.lines()
    by_input = np.zeros((len(weights), columns.n_inputs))
    np.add.at(by_input.T, columns.source, (weights * gain).T)
    return by_input, bias + weights @ zero


def scale_of(
    columns: ModelColumns, rows: NDArray[np.float64], largest: NDArray[np.float64], finer: float
) -> tuple[Scale, NDArray[np.float64]]:
    """Return the scaler, and levels per raw unit, which are proportional to the weights."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    used = (largest > 0) & (high > low)
    margin = MARGIN * (high - low)
    low, high = low - margin, high + margin
    dtype = columns.raw_dtype
    if dtype != "float32":
        ends = np.iinfo(dtype)
        low, high = np.maximum(np.floor(low), ends.min), np.minimum(np.ceil(high), ends.max)
    width = np.where(used, high - low, 1.0)
    slope = np.where(used, largest, 0.0)
    slope *= finer * 65535 / (slope * width).max()
    if dtype == "float32":
        multiplier, offset = slope.astype(np.float32), np.where(used, low, 0).astype(np.float32)
        return Scale(dtype, 16, offset, multiplier), multiplier.astype(np.float64)
    span = np.where(used, width, 0).astype(np.uint32)
    shift = np.maximum(np.array([int(s).bit_length() for s in span]) - 16, 0).astype(np.uint8)
    most = (2**32 - 1) // np.maximum(span >> shift, 1)
    whole = np.minimum(np.floor(slope * 2.0 ** (16.0 + shift)), most).astype(np.int64)
    offset = np.where(used, low, 0).astype(np.int64)
    return Scale(dtype, 16, offset, whole, span, shift), whole / 2.0 ** (16.0 + shift)


def _fixed_point(fit: _Fit, values: bool) -> tuple[int, int]:
    """Return the shift of values and the multiplier of dot products: the finest that fit int32."""
    most = min(4095, int(_MOST / fit.reach) // 2)
    if most < 1:
        raise ConvertError("convert: the offset is too large beside the weights")
    if not values:
        return 0, most
    shift = int(np.floor(np.log2(most / fit.unit)))
    return shift, int(np.ceil(fit.unit * 2.0**shift))
