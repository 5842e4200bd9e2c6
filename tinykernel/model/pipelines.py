"""Estimators and Pipelines of scikit-learn as integer models: `quantize` and `as_integer_model`.

Scaling and column selection before a classifier are folded into its model.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import Coding
from tinykernel.base.errors import ConvertError, ModelError
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.scale.spec import Scale

_ColumnT = TypeVar("_ColumnT")
#: Says what a step makes of columns; its place is for messages.
_Made: TypeAlias = Callable[[str, Any, list[_ColumnT]], list[_ColumnT]]
_FOLDED = (
    "StandardScaler, MinMaxScaler, SimpleImputer, OrdinalEncoder of evenly spaced numbers, a "
    "selection of columns and ColumnTransformers of these"
)


@dataclass(frozen=True)
class _Line:
    """A column before the classifier: ``gain * x_source + shift``."""

    source: int
    gain: float = 1.0
    shift: float = 0.0
    gap: float | None = None  # the x that stands for a missing value


def is_pipeline(obj: object) -> bool:
    """Say whether an object is a pipeline of scikit-learn."""
    return isinstance(getattr(obj, "steps", None), list) and hasattr(obj, "named_steps")


def quantize(obj: object, feature_names: tuple[str, ...] | None = None) -> IntegerModel:
    """Return the integer model that the firmware computes.

    Parameters
    ----------
    obj : fitted classifier or regressor, Pipeline that ends in one, or IntegerModel
        Scaling and column selection in a Pipeline become part of the model, and what an imputer
        fills in is the number of a missing value in its `coding`.
    feature_names : tuple of str, optional
        Names of the inputs; the model remembers them. Classifiers know them by themselves.

    Returns
    -------
    IntegerModel
        Proved not to overflow for any input.

    Raises
    ------
    TinykernelError
        If it is another object, or a step of the Pipeline cannot become part of the model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tinykernel import TernaryKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = TernaryKernelClassifier(n_components=32, epochs=2, effort="quick").fit(X, y)
    >>> quantize(classifier, ("a", "b", "c", "d")).feature_names
    ('a', 'b', 'c', 'd')
    """
    model = as_integer_model(obj)
    return model if feature_names is None else replace(model, feature_names=feature_names)


def as_integer_model(obj: object) -> IntegerModel:
    """Return the integer model of a fitted classifier, or of a Pipeline that ends in one."""
    # Scaling and column selection before the classifier become part of the model, see `fold`. A
    # TinykernelError names another object, or a step that cannot be folded.
    if is_pipeline(obj) and hasattr(obj.steps[-1][1], "quantize"):  # type: ignore[attr-defined]
        return fold(obj, as_integer_model(obj.steps[-1][1]))  # type: ignore[attr-defined]
    # By method, because the estimator lies above this package.
    model = obj.quantize() if hasattr(obj, "quantize") else obj
    if isinstance(model, IntegerModel):
        return model
    raise ModelError(
        f"a {type(obj).__name__} is no model; give {model_within(obj)}an IntegerModel, a fitted "
        "estimator, or a model that tinykernel.convert knows"
    )


def model_within(obj: object) -> str:
    """Name the attribute of a search, or of a result of `train`, that is a model."""
    names = [name for name in ("best_estimator_", "classifier") if hasattr(obj, name)]
    return f"its {names[0]}, " if names else ""


def fold(pipeline: Any, model: IntegerModel) -> IntegerModel:
    """Put the steps before the classifier into the scaler of `model`, that of the last step."""
    # The model takes the remaining columns, in their order, as float32; its `feature_names` name
    # them. A scaling moves the limits between two levels of an input by no more than what binary32
    # rounds. A TinykernelError names the step that cannot be folded.
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(pipeline)
    names = getattr(pipeline, "feature_names_in_", None)
    n = int(pipeline.n_features_in_)
    lines = [_Line(i) for i in range(n)]
    for name, step in pipeline.steps[:-1]:
        lines = columns_behind(f"pipeline: the step {name!r}", step, lines, _scale)
    if not model.takes_quantized:
        raise ConvertError("pipeline: a model of signals, images or levels takes raw values only")
    if not lines:
        raise ConvertError("pipeline: its steps leave no column")
    columns, selected = None, [line.source for line in lines]
    if names is not None or selected != list(range(n)):
        known = [f"x{i}" for i in range(n)] if names is None else list(map(str, names))
        columns = tuple(known[i] for i in selected)
    stages = _fold(model.scaler, lines), *model.stages[1:]
    coding = _gaps(lines, columns, model, getattr(pipeline.steps[-1][1], "coding_", None))
    return replace(model, stages=stages, feature_names=columns, coding=coding)


def _gaps(
    lines: list[_Line], columns: tuple[str, ...] | None, model: IntegerModel, of_last: object
) -> Coding:
    """Return the raw numbers of missing values: of an imputer, else of the classifier behind."""
    places = tuple(map(str, range(len(lines))))
    last = Coding.read(of_last) or model.coding or Coding()
    numbers = {**last.usual, **last.gaps}
    lines = _filled(lines, [numbers.get(name) for name in model.feature_names or places])
    gaps = {name: line.gap for name, line in zip(columns or places, lines, strict=True)}
    known = {name: float(np.float32(gap)) for name, gap in gaps.items() if gap is not None}
    return Coding(gaps=known)


def columns_behind(
    place: str, step: Any, columns: list[_ColumnT], made: _Made[_ColumnT]
) -> list[_ColumnT]:
    """Return the columns behind a fitted step; `made` says what one makes that computes.

    Pipelines, ColumnTransformers and selections of columns are walked through; `place` names the
    step in messages.
    """
    if step is None or step == "passthrough" or _is_identity(step):
        return columns
    if is_pipeline(step):
        for name, inner in step.steps:
            columns = columns_behind(f"{place}, step {name!r}", inner, columns, made)
        return columns
    if hasattr(step, "get_support"):
        return [columns[i] for i in step.get_support(indices=True)]
    if type(step).__name__ != "ColumnTransformer":
        return made(place, step, columns)
    results: list[_ColumnT] = []
    for name, part, _ in step.transformers_:
        chosen = [columns[i] for i in step._transformer_to_input_indices[name]]
        if chosen and part != "drop":
            results += columns_behind(f"{place}, part {name!r}", part, chosen, made)
    return made(place, step, results) if step.transformer_weights else results


def _is_identity(step: Any) -> bool:
    """Whether it is a function without effect on numbers, which scikit-learn puts in itself."""
    if type(step).__name__ != "FunctionTransformer":
        return False
    inner = getattr(step.func, "func", None)  # of a partial function
    return step.func is None or getattr(inner, "__name__", "") == "check_array"


def _scale(place: str, step: Any, lines: list[_Line]) -> list[_Line]:
    """Return lines behind a step that scales each column; a TinykernelError names another."""
    kind = type(step).__name__
    if not type(step).__module__.startswith("sklearn."):
        raise ConvertError(f"{place} ({kind}) is not known; use {_FOLDED}")
    if kind == "StandardScaler":
        gain = 1.0 if step.scale_ is None else 1 / step.scale_
        return _then(lines, gain, 0.0 if not step.with_mean else -step.mean_ * gain)
    if kind == "MinMaxScaler" and not step.clip:
        return _then(lines, step.scale_, step.min_)
    if kind == "SimpleImputer" and not step.add_indicator and gaps_are_nan(step):
        filled = step.statistics_.tolist()  # of a constant objects, text too
        if all(isinstance(number, Real) and math.isfinite(number) for number in filled):
            return _filled(lines, list(map(float, filled)))
    if kind == "OrdinalEncoder" and _is_line(step):
        first, gain = np.array([_evenly(values) for values in step.categories_]).T
        return _then(lines, gain, -first * gain)
    if kind in ("OrdinalEncoder", "OneHotEncoder", "SimpleImputer"):
        raise ConvertError(
            f"{place} ({kind}) cannot be folded; leave it out: columns of text and missing values "
            "of a frame are coded by the classifier"
        )
    of = {"MinMaxScaler": " with clip=True", "ColumnTransformer": " with weights"}.get(kind, "")
    raise ConvertError(f"{place} ({kind}{of}) cannot be folded; use {_FOLDED}")


def _then(lines: list[_Line], gain: Any, shift: Any) -> list[_Line]:
    """Return ``gain * z + shift`` of each line z."""
    gains, shifts = (np.broadcast_to(each, len(lines)).tolist() for each in (gain, shift))
    return [
        replace(line, gain=line.gain * by, shift=line.shift * by + more)
        for line, by, more in zip(lines, gains, shifts, strict=True)
    ]


def _filled(lines: list[_Line], numbers: Sequence[float | None]) -> list[_Line]:
    """Return lines whose missing values are numbers from here on, unless they are so before."""
    return [
        line
        if line.gap is not None or number is None
        else replace(line, gap=(number - line.shift) / line.gain)
        for line, number in zip(lines, numbers, strict=True)
    ]


def gaps_are_nan(step: Any) -> bool:
    """Whether a step fills NaN, if it fills anything; other numbers are values in the firmware."""
    gap = getattr(step, "missing_values", np.nan)
    return isinstance(gap, float) and bool(np.isnan(gap))


def _is_line(step: Any) -> bool:
    """Whether the codes of an encoder are a line through each column; unknown ones are an error."""
    groups = getattr(step, "_infrequent_enabled", False)
    return step.handle_unknown == "error" and not groups and all(map(_is_even, step.categories_))


def _is_even(categories: NDArray[Any]) -> bool:
    """Whether the position of a number in categories is a line through them."""
    if categories.dtype.kind not in "fiu" or not np.all(np.isfinite(categories)):
        return False
    return bool(np.allclose(np.diff(categories, 2), 0, atol=1e-6 * np.ptp(categories)))


def _evenly(categories: NDArray[Any]) -> tuple[float, float]:
    """Return the first of the categories, and one over their distance."""
    distance = categories[1] - categories[0] if len(categories) > 1 else 1
    return float(categories[0]), 1 / float(distance)


def _fold(scaler: Scale, lines: list[_Line]) -> Scale:
    """Return the scaler of ``x`` for one of ``z = gain * x + shift``."""
    gain, shift = np.array([(line.gain, line.shift) for line in lines]).T
    if np.all(gain == 1) and np.all(shift == 0):
        return scaler
    if not scaler.is_float:
        raise ConvertError("pipeline: a scaled input is not float32; train on floats")
    # z - offset = gain * (x - (offset - shift) / gain)
    offset = (scaler.offset.astype(np.float64) - shift) / gain
    multiplier = scaler.multiplier.astype(np.float64) * gain
    if not (np.all(np.isfinite(offset)) and np.all(np.isfinite(multiplier))):
        raise ConvertError("pipeline: a scaling is not finite")
    constant = scaler.multiplier == 0
    offset = np.where(constant, 0, offset)
    return Scale(
        "float32",
        scaler.bits,
        offset.astype(np.float32),
        np.where(constant, 0, multiplier).astype(np.float32),
    )
