"""The columns that a model sees: raw inputs, or what the steps of a Pipeline make of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError, DataError, ShapeError
from tinykernel.conversion.filesteps import FileStep
from tinykernel.model.pipelines import columns_behind, gaps_are_nan
from tinykernel.model.scale import raw_dtype_of
from tinykernel.pieces.scale.spec import Scale, order_of

# Every option of these steps counts, since their own `transform` says what a model sees of a raw
# value. What a function of one input can be is read here: where it may jump (`missing_values`,
# `categories_`), which columns come out (`statistics_`, `indicator_`, `_n_features_outs`), and
# which inputs are errors (`handle_unknown`).
_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")  # rise; -0 like 0
_ENCODERS = ("OrdinalEncoder", "OneHotEncoder")
_KNOWN = (*_SCALERS, "SimpleImputer", *_ENCODERS, "ColumnTransformer")
#: Steps whose columns are sums of others, and what is known behind them.
_MIXERS = (
    *("PCA", "IncrementalPCA", "TruncatedSVD", "FastICA", "FactorAnalysis"),
    *("GaussianRandomProjection", "SparseRandomProjection", "LinearDiscriminantAnalysis"),
    *("NeighborhoodComponentsAnalysis", "MatMul"),
)
_OF_FILES = ("Add", "Sub", "Mul", "Div", "ArrayFeatureExtractor")
_MOST_MIXED = 4096


@dataclass(frozen=True)
class StepColumn:
    """A column that a step takes or makes, as a function of one input."""

    source: int  # the input
    #: The inputs that it tells apart, in order; of None it rises with the input.
    points: tuple[float, ...] | None = None
    is_closed: bool = False  # whether an input that is no point is an error
    is_raw: bool = True  # whether it is the input, but for missing values
    holes: tuple[float, ...] = ()  # inputs that stand for missing values, in order: jumps


def kind_of(step: Any) -> str:
    """Return the name of a step's class, or of the operator of a file."""
    return step.op if isinstance(step, FileStep) else type(step).__name__


def followed(name: str, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    """Return the columns that a fitted step makes of others."""
    return columns_behind(f"convert: the step {name!r}", step, columns, _made)


def _made(place: str, step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    kind = kind_of(step)
    if isinstance(step, FileStep):
        if kind == "ArrayFeatureExtractor":
            return [columns[i] for i in step.number.astype(int)]
        if kind == "Imputer" and not np.isnan(step.missing_values):
            return [_with_hole(place, step.missing_values, column) for column in columns]
        return columns if kind == "Imputer" else [replace(c, is_raw=False) for c in columns]
    if kind == "ColumnTransformer":
        raise ConvertError(f"{place} (ColumnTransformer with weights) is not known; scale before")
    if kind not in _KNOWN or not type(step).__module__.startswith("sklearn."):
        raise ConvertError(
            f"{place} ({kind}) is not known; known are {', '.join(_KNOWN)} of scikit-learn, "
            "selections of columns, and before weights a PCA and other sums of columns"
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


_AT_ONCE = 4096
_MOST_INPUTS = 65536
_LARGEST = np.finfo(np.float32).max
_TOP = 0x7F800000  # the bits of infinity


@dataclass(frozen=True)
class ModelColumns:
    """The steps before a model, the raw rows that are known, and their type."""

    steps: tuple[Any, ...]
    columns: tuple[StepColumn, ...]  # those of the model
    n_inputs: int
    raw_dtype: str
    rows: NDArray[Any] | None  # raw rows
    mixers: tuple[Any, ...] = ()  # steps behind these columns, whose own are sums of them

    @staticmethod
    def of(steps: list[tuple[str, Any]], model: Any, rows: NDArray[Any] | None) -> ModelColumns:
        """Check the steps of a Pipeline and follow the columns through them."""
        first = next((step for _, step in steps if hasattr(step, "n_features_in_")), model)
        n = _n_inputs(first)
        if not 0 < n <= _MOST_INPUTS:
            raise ConvertError(f"convert: the model has {n} inputs; 1 to {_MOST_INPUTS} are known")
        if rows is not None and rows.shape[1] != n:
            raise ShapeError(f"convert: X has {rows.shape[1]} columns, but the model {n} inputs")
        columns = [StepColumn(i) for i in range(n)]
        steps = [(name, step) for name, step in steps if step not in (None, "passthrough")]
        kinds = [kind_of(step) for _, step in steps]
        first_mixer = next((i for i, kind in enumerate(kinds) if kind in _MIXERS), len(steps))
        for name, step in steps[:first_mixer]:
            columns = followed(name, step, columns)
        for (name, step), kind in list(zip(steps, kinds, strict=True))[first_mixer:]:
            is_sum = kind in (*_SCALERS, *_MIXERS, *_OF_FILES) or hasattr(step, "get_support")
            if not is_sum or getattr(step, "clip", False):
                raise ConvertError(
                    f"convert: the step {name!r} ({kind}) behind {kinds[first_mixer]} makes no "
                    "sums of columns; put it before, or let the Pipeline teach: "
                    "tinykernel.train(X, y, teacher=...)"
                )
        dtype = "float32" if rows is None else raw_dtype_of(rows.dtype)
        before, mixers = steps[:first_mixer], steps[first_mixer:]
        used = tuple(step for _, step in before)
        behind = tuple(step for _, step in mixers)
        return ModelColumns(used, tuple(columns), n, dtype, rows, behind)

    def behind(self, name: str, step: Any) -> ModelColumns:
        """Return the columns behind one more step."""
        columns = tuple(followed(name, step, list(self.columns)))
        return replace(self, steps=(*self.steps, step), columns=columns)

    @cached_property
    def source(self) -> NDArray[np.intp]:
        """The input that each column of the model is made of."""
        return np.array([column.source for column in self.columns], dtype=np.intp)

    def finite_rows(self, kind: str) -> NDArray[Any]:
        """Return the raw rows, which a model of that name needs without missing values."""
        if self.rows is None:
            raise lacking_rows(kind)
        if not np.all(np.isfinite(self.rows)):
            raise DataError(
                f"convert: X has missing or infinite values, which a {kind} does not take; give "
                "filled rows"
            )
        return self.rows

    def unmixed(
        self, weights: NDArray[np.float64], bias: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return weights of these columns, and offsets, from those behind the mixers."""
        if not self.mixers:
            return weights, bias
        n = len(self.columns)
        if n > _MOST_MIXED:
            raise ConvertError(f"convert: {n} columns before a PCA; {_MOST_MIXED} are the most")
        size = 1.0 if self.rows is None else 1.0 + float(np.abs(self.rows).max())
        tried = size * np.vstack([np.zeros(n), np.eye(n), np.linspace(-1, 1, n)])
        sums = seen_by(self.mixers, tried).astype(np.float64)
        zero, lines = sums[0], (sums[1:-1] - sums[0]) / size
        if not np.allclose(tried[-1] @ lines + zero, sums[-1], rtol=1e-4, atol=1e-4 * size):
            raise ConvertError("convert: a step before weights clips, or makes no sums of columns")
        return weights @ lines.T, bias + weights @ zero

    def seen(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return what the model sees of raw rows, or what the mixers see."""
        return seen_by(self.steps, rows)

    @cached_property
    def in_order(self) -> tuple[NDArray[np.int64], NDArray[Any]] | None:
        """Of rows in float64, the order of each input in float32, and what the model sees."""
        if self.rows is None or self.rows.dtype != np.float64:
            return None
        with np.errstate(over="ignore"):
            floats = self.rows.astype(np.float32)
        if np.array_equal(floats, self.rows, equal_nan=True):
            return None
        return self.order(floats), self.seen(self.rows)

    @property
    def bits(self) -> int:
        """Width of quantized inputs that hold every raw value."""
        return 32 if self.raw_dtype == "float32" else 8 * np.dtype(self.raw_dtype).itemsize

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the largest raw value, as integers in their order."""
        if self.raw_dtype == "float32":
            return -_TOP, _TOP
        return int(np.iinfo(self.raw_dtype).min), int(np.iinfo(self.raw_dtype).max)

    def order(self, raw: NDArray[Any]) -> NDArray[np.int64]:
        """Return the integers in the order of raw values."""
        return (order_of(raw) if self.raw_dtype == "float32" else raw).astype(np.int64)

    def raw(self, ordered: NDArray[np.int64]) -> NDArray[Any]:
        """Return the raw values that integers in their order stand for; see `order_of`."""
        if self.raw_dtype != "float32":
            return ordered.astype(self.raw_dtype)
        bits = np.where(ordered < 0, 0x80000000 - ordered, ordered).astype(np.uint32)
        return bits.view(np.float32)

    def last_left(
        self, column: NDArray[np.intp], goes_left: Callable[[NDArray[Any]], NDArray[np.bool_]]
    ) -> NDArray[np.int64]:
        """Return, of each threshold, the largest raw value that goes left, in order.

        `goes_left` takes what the model sees in `column` of each threshold. It is true of all
        small values and false of all large ones. The result is one below the least value if none
        goes left.
        """
        low, high = self.ends
        left = np.full(column.size, low - 1, dtype=np.int64)
        right = np.full(column.size, high + 1, dtype=np.int64)
        beside = self._beside_holes(column)
        while np.any(right - left > 1):
            middle = np.clip((left + right) // 2, low, high)
            tried = middle.copy()
            for hole, instead in beside:
                tried[middle == hole] = instead[middle == hole]
            to_left = goes_left(self.of_column(column, self.raw(tried)))
            inside = right - left > 1
            left = np.where(inside & to_left, middle, left)
            right = np.where(inside & ~to_left, middle, right)
        return left

    def holes_of(self, column: int) -> list[int]:
        """Return the raw values, in order, that stand for missing ones in a column."""
        numbers = np.array(self.columns[column].holes)
        if self.raw_dtype != "float32":  # others do not occur
            least, most = self.ends
            inside = (numbers >= least) & (numbers <= most) & (numbers == np.rint(numbers))
            numbers = numbers[inside]
        return self.order(numbers.astype(self.raw_dtype)).tolist()  # type: ignore[no-any-return]

    def _beside_holes(self, column: NDArray[np.intp]) -> list[tuple[int, NDArray[np.int64]]]:
        """Return each hole of the columns, and a value beside it that is none, of each column."""
        places, high = dict[int, NDArray[np.int64]](), self.ends[1]
        for number in np.unique(column).tolist() if self.steps else ():
            holes = self.holes_of(number)
            for hole in holes:
                free = hole
                while free in holes and free < high:
                    free += 1
                while free in holes:
                    free -= 1
                places.setdefault(hole, np.full(column.size, hole))[column == number] = free
        return list(places.items())

    def of_column(self, column: NDArray[np.intp], raw: NDArray[Any]) -> NDArray[Any]:
        """Return what the model sees in a column of each raw value."""
        if not self.steps:
            return raw
        parts, usual = [], np.zeros(self.n_inputs)
        for each in self.columns:
            if each.points:  # encoders refuse others
                usual[each.source] = each.points[0]
        for first in range(0, column.size, _AT_ONCE):
            chosen, values = column[first : first + _AT_ONCE], raw[first : first + _AT_ONCE]
            rows = np.tile(usual.astype(raw.dtype), (chosen.size, 1))
            place = np.arange(chosen.size)
            if raw.dtype.kind == "f":  # steps refuse infinity
                values = np.clip(values, -_LARGEST, _LARGEST)
            rows[place, self.source[chosen]] = values
            parts.append(self.seen(rows)[place, chosen])
        return np.concatenate(parts) if parts else np.zeros(0)

    def of_gaps(self, column: NDArray[np.intp]) -> NDArray[Any]:
        """Return what the model sees of missing values; NaN where the steps refuse these."""
        every, place = np.unique(column, return_inverse=True)
        try:
            return self.of_column(every, np.full(every.size, np.nan, np.float32))[place]
        except ValueError:
            if every.size < 2:
                return np.full(column.size, np.nan)
        halves = np.array_split(every, 2)
        return np.asarray(np.concatenate([self.of_gaps(half) for half in halves])[place])

    def lines(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return slope and offset of each column as a function of its input; else refuse it."""
        for step in self.steps:
            indicates = getattr(step, "add_indicator", False)
            if getattr(step, "clip", False) or indicates or not gaps_are_nan(step):
                raise ConvertError(
                    f"convert: a {kind_of(step)} before weights is supported only without "
                    "clip and add_indicator, and with missing_values=NaN"
                )
        every = np.arange(len(self.columns))
        ends = np.zeros(every.size), np.ones(every.size)
        if self.rows is not None:  # far apart, so that little is lost by the difference
            ends = ends[0], (np.abs(self.rows.astype(np.float64)).max(axis=0) + 1.0)[self.source]
        for i, column in enumerate(self.columns):
            if column.points:
                ends[0][i], ends[1][i] = column.points[0], column.points[-1]
        values = [self.of_column(every, end).astype(np.float64) for end in ends]
        width = np.where(ends[1] > ends[0], ends[1] - ends[0], 1.0)
        slope = (values[1] - values[0]) / width
        offset = values[0] - slope * ends[0]
        for i, column in enumerate(self.columns):
            points = np.array(column.points or ())
            off = self.of_column(np.full(points.size, i), points) - (slope[i] * points + offset[i])
            if points.size and np.abs(off).max() > 1e-9:
                raise ConvertError(
                    f"convert: categories of input {column.source} before weights are no straight "
                    "line; two of them are, or convert trees"
                )
        return slope, offset

    def scale(self, low: NDArray[Any], high: NDArray[Any], used: NDArray[np.bool_]) -> Scale:
        """Return the scaler that leaves raw values as they are; unused inputs are constant.

        `low` and `high`, in order, say where values lie; see `Scale`.
        """
        bits = self.bits
        if self.raw_dtype == "float32":
            ends = [
                self.raw(np.clip(end, -_TOP + 1, _TOP - 1)).astype(np.float64)
                for end in (low, high)
            ]
            offset = ends[0].astype(np.float32)
            width = np.maximum(ends[1] - offset, 1e-30)
            slope = np.clip(2.0**32 / width, 1e-30, 1e38).astype(np.float32)
            return Scale("float32", 32, np.where(used, offset, 0), np.where(used, slope, 0))
        least, most = self.ends
        if bits < 32:  # the identity
            low, high = np.full_like(low, least), np.full_like(high, most)
        low = np.clip(low, -(2**31), most)
        span = np.where(used, np.maximum(np.clip(high, low, most) - low, 1), 1)
        shift = np.maximum(np.array([int(s).bit_length() for s in span]) - 16, 0)
        return Scale(self.raw_dtype, bits, low, np.where(used, 65536, 0), span, shift)


def seen_by(steps: tuple[Any, ...], values: Any) -> NDArray[Any]:
    """Return what steps make of rows."""
    for step in steps:
        names = getattr(step, "feature_names_in_", None)
        if type(step).__name__ == "ColumnTransformer" and names is not None:
            values = import_module("pandas").DataFrame(values, columns=names)
        with warnings.catch_warnings():  # of names, and of categories that are tried out
            warnings.simplefilter("ignore")
            values = step.transform(values)
        values = values.toarray() if hasattr(values, "toarray") else values
    return np.asarray(values)


def lacking_rows(kind: str, of: str = "its inputs") -> DataError:
    """Return the error of a model of that name without rows."""
    return DataError(
        f"convert: a {kind} needs X, rows with the ranges of {of}: "
        "tinykernel.convert(model, X), or convert --data FILE"
    )


def _n_inputs(model: Any) -> int:
    for name in ("n_features_in_", "n_features_"):
        if getattr(model, name, 0):  # CatBoost has 0 of models that it loaded
            return int(getattr(model, name))
    if getattr(model, "feature_names_", None):
        return len(model.feature_names_)
    for name in ("num_feature", "num_features"):
        if callable(getattr(model, name, None)):
            return int(getattr(model, name)())
    raise ConvertError(f"convert: the {type(model).__name__} is not fitted")
