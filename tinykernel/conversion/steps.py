"""The steps of a Pipeline, as far as each column that they make is made of one input."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinykernel.base.errors import ConvertError
from tinykernel.model.pipelines import columns_behind

# Every option of these steps counts, since their own `transform` says what a model sees of a raw
# value. What a function of one input can be is read here: where it may jump (`missing_values`,
# `categories_`), which columns come out (`statistics_`, `indicator_`, `_n_features_outs`), and
# which inputs are errors (`handle_unknown`).
_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")  # rise; -0 like 0
_ENCODERS = ("OrdinalEncoder", "OneHotEncoder")
_KNOWN = (*_SCALERS, "SimpleImputer", *_ENCODERS, "ColumnTransformer")


@dataclass(frozen=True)
class StepColumn:
    """A column that a step takes or makes, as a function of one input."""

    source: int  # the input
    #: The inputs that it tells apart, in order; of None it rises with the input.
    points: tuple[float, ...] | None = None
    is_closed: bool = False  # whether an input that is no point is an error
    is_raw: bool = True  # whether it is the input, but for missing values
    holes: tuple[float, ...] = ()  # inputs that stand for missing values, in order: jumps


def followed(name: str, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    """Return the columns that a fitted step makes of others."""
    return columns_behind(f"convert: the step {name!r}", step, columns, _made)


def _made(place: str, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    kind = type(step).__name__
    if kind == "ColumnTransformer":
        raise ConvertError(f"{place} (ColumnTransformer with weights) is not known; scale before")
    if kind not in _KNOWN or not type(step).__module__.startswith("sklearn."):
        raise ConvertError(
            f"{place} ({kind}) is not known; known are {', '.join(_KNOWN)} of scikit-learn and "
            "selections of columns"
        )
    if kind in _ENCODERS:
        return _encoded(place, step, columns)
    if kind == "SimpleImputer":
        return _filled(place, step, columns)
    return [replace(column, is_raw=False) for column in columns]


def _filled(place: str, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    """Return the columns of an imputer: those that it keeps, then indicators of missing values."""
    try:
        gap, statistics = float(step.missing_values), np.asarray(step.statistics_, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConvertError(
            f"{place} fills in text, which the firmware has no type for; code the text as numbers "
            "before"
        ) from None
    if not np.isnan(gap):
        columns = [_with_hole(place, gap, column) for column in columns]
    stays = ~np.isnan(statistics) | step.keep_empty_features
    results = [columns[i] for i in np.flatnonzero(stays)]
    if step.add_indicator:
        results += [replace(columns[i], is_raw=False) for i in step.indicator_.features_]
    return results


def _with_hole(place: str, gap: float, column: StepColumn) -> StepColumn:
    """Return a column in which a number stands for missing values."""
    if column.points is not None or not column.is_raw:
        raise ConvertError(f"{place} fills scaled or encoded values; fill first")
    if float(np.float32(gap)) != gap:
        raise ConvertError(
            f"{place}: missing_values={gap!r} is no number of 32 bits, as inputs of the firmware "
            "are; choose one that is"
        )
    return replace(column, holes=tuple(sorted({*column.holes, gap})))


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
        numbers = values[np.isfinite(values)]
        points = column.points or tuple(np.unique([*numbers, *column.holes]).tolist())
        is_closed = step.handle_unknown == "error" or (column.is_closed and bool(column.points))
        results += [StepColumn(column.source, points, is_closed, False)] * n
    return results
