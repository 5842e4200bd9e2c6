"""The steps of a Pipeline, as far as each column that they make is made of one input."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinykernel.base.errors import ConvertError
from tinykernel.model.pipelines import columns_behind

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
    return columns_behind(f"convert: the step {name!r}", step, columns, _made)


def _made(place: str, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    kind = type(step).__name__
    if kind in _ENCODERS:
        return _encoded(place, step, columns)
    if getattr(step, "add_indicator", False):
        raise ConvertError(f"{place} adds indicators; set add_indicator=False")
    if kind == "ColumnTransformer":
        raise ConvertError(f"{place} (ColumnTransformer with weights) is not known; scale before")
    if kind not in _RISING:
        raise ConvertError(
            f"{place} ({kind}) is not known; known are "
            f"{', '.join((*_RISING, *_ENCODERS, 'ColumnTransformer'))} and selections of columns"
        )
    if kind == "SimpleImputer":
        if not np.all(np.isfinite(np.asarray(step.statistics_, dtype=np.float64))):
            raise ConvertError(f"{place} drops a column; drop it before")
        return columns
    return [replace(column, is_raw=False) for column in columns]


def _encoded(place: str, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    """Return the columns of an encoder: one a column, or one a category."""
    counts = [1] * len(columns)
    if type(step).__name__ == "OneHotEncoder":
        counts = list(step._n_features_outs)
    results: list[StepColumn] = []
    for column, categories, n in zip(columns, step.categories_, counts, strict=True):
        if any(isinstance(category, str) for category in categories):
            raise ConvertError(
                f"{place} takes text, which the firmware has no type for; code "
                "the text as numbers before, and convert the steps behind"
            )
        values = np.asarray(categories, dtype=np.float64)
        if column.points is None and not column.is_raw:
            raise ConvertError(f"{place} encodes scaled values; encode first")
        points = column.points or tuple(np.unique(values[np.isfinite(values)]).tolist())
        is_closed = step.handle_unknown == "error" or (column.is_closed and bool(column.points))
        results += [StepColumn(column.source, points, is_closed, False)] * n
    return results
