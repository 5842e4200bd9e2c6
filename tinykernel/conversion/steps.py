"""The steps of a Pipeline, as far as each column that they make is made of one input."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinykernel.errors import ConvertError

# Steps that change each column by itself, in its order: rising, and -0 like 0.
_RISING = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "SimpleImputer")
_ENCODERS = ("OrdinalEncoder", "OneHotEncoder")


@dataclass(frozen=True)
class StepColumn:
    """A column that a step takes or makes, as a function of one input."""

    source: int  # the input
    #: The inputs that it tells apart, in order; of None it rises with the input.
    points: tuple[float, ...] | None = None
    is_closed: bool = False  # whether an input that is no point is an error
    is_raw: bool = True  # whether it is the input, but for missing values


def followed(name: str, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    """Return the columns that a fitted step makes of others."""
    kind = type(step).__name__
    if step is None or step == "passthrough" or _is_identity(step):
        return columns
    if hasattr(step, "get_support"):
        return [columns[i] for i in step.get_support(indices=True)]
    if kind == "ColumnTransformer":
        return _transformed(step, columns)
    if hasattr(step, "named_steps"):
        for inner, part in step.steps:
            columns = followed(inner, part, columns)
        return columns
    if kind in _ENCODERS:
        return _encoded(name, step, columns)
    if getattr(step, "add_indicator", False):
        raise ConvertError(f"convert: the step {name!r} adds indicators; set add_indicator=False")
    if kind not in _RISING:
        raise ConvertError(
            f"convert: the step {name!r} ({kind}) is not known; known are "
            f"{', '.join((*_RISING, *_ENCODERS, 'ColumnTransformer'))} and selections of columns"
        )
    if kind == "SimpleImputer":
        if not np.all(np.isfinite(np.asarray(step.statistics_, dtype=np.float64))):
            raise ConvertError(f"convert: the step {name!r} drops a column; drop it before")
        return columns
    return [replace(column, is_raw=False) for column in columns]


def _is_identity(step: Any) -> bool:
    """Whether it is a function without effect on numbers, which scikit-learn puts in itself."""
    if type(step).__name__ != "FunctionTransformer":
        return False
    inner = getattr(step.func, "func", None)  # of a partial function
    return step.func is None or getattr(inner, "__name__", "") == "check_array"


def _transformed(step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    """Return the columns of a ColumnTransformer: those of its parts, one after the other."""
    results: list[StepColumn] = []
    for name, part, _ in step.transformers_:
        chosen = [columns[i] for i in step._transformer_to_input_indices[name]]
        if chosen and part != "drop":
            results += followed(name, part, chosen)
    return results


def _encoded(name: str, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    """Return the columns of an encoder: one a column, or one a category."""
    counts = [1] * len(columns)
    if type(step).__name__ == "OneHotEncoder":
        counts = list(step._n_features_outs)
    results: list[StepColumn] = []
    for column, categories, n in zip(columns, step.categories_, counts, strict=True):
        if any(isinstance(category, str) for category in categories):
            raise ConvertError(
                f"convert: the step {name!r} takes text, which the firmware has no type for; code "
                "the text as numbers before, and convert the steps behind"
            )
        values = np.asarray(categories, dtype=np.float64)
        if column.points is None and not column.is_raw:
            raise ConvertError(f"convert: the step {name!r} encodes scaled values; encode first")
        points = column.points or tuple(np.unique(values[np.isfinite(values)]).tolist())
        is_closed = step.handle_unknown == "error" or (column.is_closed and bool(column.points))
        results += [StepColumn(column.source, points, is_closed, False)] * n
    return results
