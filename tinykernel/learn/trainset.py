"""From what a user gives to `fit` to the one form in which trainers take a training set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.checks import as_groups, check_choice, check_positive
from tinykernel.base.coding import find_absurd
from tinykernel.base.errors import DataError, OptionError, RowsError, TinykernelError, warn
from tinykernel.base.text import count, join
from tinykernel.learn.choice import weights_like
from tinykernel.learn.loss import Truth, targets_of
from tinykernel.learn.options import RegressorOptions
from tinykernel.model.fixed import ValueUnits
from tinykernel.model.scale import raw_dtype_of, to_raw

# Larger ones, and smaller ones by as much, leave nothing of the other classes.
_LARGEST_WEIGHT = 1e6
_STRATA = 8
#: Rows that are hashed at once, so that their hashes stay in the processor's cache.
_HASHED_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Quantity:
    """What a regressor learns."""

    targets: NDArray[np.float32]  # (n, n_outputs): values, in `units`.
    losses: tuple[float, ...]  # as in `tinykernel.learn.options.Recipe`.
    units: ValueUnits


@dataclass(frozen=True, eq=False)
class TrainSet:
    """A checked training set in canonical order: the input of every trainer."""

    X: NDArray[Any]  # (n, n_features): raw rows.
    # Position of the class of each row in `classes`. Every class occurs. Of a quantity the stratum
    # of its first value.
    codes: NDArray[np.int64]  # (n,)
    sample_weight: NDArray[np.float64]  # (n,): positive; class weights are multiplied in.
    classes: tuple[object, ...]  # at least two labels, ascending; none of a quantity.
    raw_dtype: str  # of the sensor values that the firmware takes.
    groups: NDArray[np.int64] | None = None  # (n,): rows of a group stay together.
    # Raw rows of `raw_dtype`, and their codes, or targets of a quantity.
    validation: tuple[NDArray[Any], NDArray[Any]] | None = None
    quantity: Quantity | None = None  # what is learned where it is no class.
    n_varied: int = 0  # of the last rows: copies of others, varied.

    @property
    def n_classes(self) -> int:
        """Number of classes c."""
        return len(self.classes)

    @property
    def losses(self) -> tuple[float, ...]:
        """What each output of a regressor minimises; empty for classes."""
        return () if self.quantity is None else self.quantity.losses

    @property
    def weight(self) -> NDArray[np.float32]:
        """Weights of the rows, in the mean 1."""
        return np.asarray(self.sample_weight / self.sample_weight.mean(), dtype=np.float32)

    @property
    def meaning(self) -> tuple[object, ...] | ValueUnits:
        """What the outputs are: classes, or values in these units."""
        return self.classes if self.quantity is None else self.quantity.units

    @property
    def truth(self) -> NDArray[Any]:
        """What predictions are judged by: codes (n,), or targets (n, n_outputs) of values."""
        return self.codes if self.quantity is None else self.quantity.targets

    def truth_of(self, rows: NDArray[np.int64]) -> Truth:
        """Return what decisions of some rows are judged by."""
        return Truth(self.truth[rows], self.weight[rows], self.losses)

    def targets(self) -> NDArray[np.float32]:
        """Return what the outputs should be, shape (n, n_outputs)."""
        if self.quantity is not None:
            return self.quantity.targets
        return targets_of(self.codes, self.n_classes)

    def of(self, rows: NDArray[np.int64]) -> TrainSet:
        """Return some of the rows, without those of validation."""
        quantity = self.quantity
        return replace(
            self,
            X=self.X[rows],
            codes=self.codes[rows],
            sample_weight=self.sample_weight[rows],
            groups=None if self.groups is None else self.groups[rows],
            validation=None,
            quantity=quantity and replace(quantity, targets=quantity.targets[rows]),
        )

    def map_rows(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> TrainSet:
        """Return what a function makes of all rows in their place."""
        validation = self.validation and (function(self.validation[0]), self.validation[1])
        return replace(self, X=function(self.X), validation=validation)

    def validation_weight(self, weight: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return weights of the validation rows: that of a row of the class, in the mean."""
        assert self.validation is not None
        truth = self.validation[1]
        if self.quantity is not None:
            return np.ones(len(truth), dtype=np.float32)
        return weights_like(self.codes, weight, truth)


def prepare(
    X: NDArray[Any],
    y: NDArray[Any],
    sample_weight: NDArray[np.float64] | None = None,
    *,
    class_weight: Mapping[Any, float] | str | None = None,
    groups: ArrayLike | None = None,
    validation: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> tuple[NDArray[Any], TrainSet]:
    """Bring rows into the canonical form, and everything that belongs to rows with them.

    X (n, n_features) holds finite numbers, y (n,) labels. Rows of weight 0 are left out, and
    weights of classes are multiplied with those of the rows. Equal rows of different groups are not
    merged, and a single group counts as none: there is no other one to leave out. `validation` are
    rows and labels. Returned are the classes and the training set; what does not fit to the rows is
    a TinykernelError.

    >>> classes, data = prepare(np.array([[1.0], [2.0], [1.0]]), np.array(["a", "b", "a"]))
    >>> sorted(data.sample_weight.tolist())
    [1.0, 2.0]
    """
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    classes, data = _canonical_set(X, y, weight, groups)
    names = tuple(classes.tolist())
    if len(names) < 2:
        raise RowsError(f"y holds one class only ({names[0]!r}); a classifier needs two classes")
    factors = class_weights(class_weight, names, data.codes, data.sample_weight)
    labelled = None
    if validation is not None:
        rows, labels = raw_validation(validation[0], data.raw_dtype), validation[1]
        unknown = np.setdiff1d(labels, classes)
        if unknown.size:
            raise DataError(
                f"validation: the label {unknown.tolist()[0]!r} is not in the training rows"
            )
        labelled = rows, np.searchsorted(classes, labels).astype(np.int64)
    weighted = data.sample_weight * factors[data.codes]
    return classes, replace(data, sample_weight=weighted, classes=names, validation=labelled)


def _canonical_set(
    X: NDArray[Any], y: NDArray[Any], sample_weight: NDArray[np.float64], groups: ArrayLike | None
) -> tuple[NDArray[Any], TrainSet]:
    """Return the distinct labels or values, and the rows of positive weight with codes of these.

    Equal rows of equal values are merged, as those of a class are.
    """
    if not sample_weight.any():
        raise DataError("sample_weight: all weights are 0; give some rows a weight")
    raw_dtype, used = raw_dtype_of(X.dtype), sample_weight > 0
    raw, group = to_raw(X, raw_dtype), None if groups is None else group_codes(groups, used)
    rows = raw
    if not used.all():
        rows, y, sample_weight = rows[used], y[used], sample_weight[used]
    distinct, codes = np.unique(y, axis=None if y.ndim == 1 else 0, return_inverse=True)
    ordered = canonical_rows(rows, codes.ravel().astype(np.int64), sample_weight, group)
    ordered = (within_reach(ordered[0], raw), *ordered[1:])
    return distinct, TrainSet(*ordered[:3], (), raw_dtype, ordered[3])


def within_reach(X: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Return X, what is absurdly far from all other values of its column nearer; warn of that.

    Else it would take the range of the inputs, and leave one level to the others. `rows` are those
    of the user, in whose order the warning counts.
    """
    nearer, n_far, first = X, 0, ""
    if X.dtype.itemsize < 4:
        return X
    for j, column in enumerate(X.T):
        far = find_absurd(column)
        # Equal rows are one in X, so that what is rare in it may be usual.
        if not far.any() or not find_absurd(rows[:, j]).any():
            continue
        nearer = X.copy() if nearer is X else nearer
        near, n_far = (column[~far].min(), column[~far].max()), n_far + int(far.sum())
        nearer[:, j] = column.clip(*near)
        row = int(np.flatnonzero(rows[:, j] == column[far][0])[0])
        first = first or (
            f"row {row}, column {j} is {rows[row, j]:g}, where others are from {near[0]:g} to "
            f"{near[1]:g}, and counts as the nearest of these"
        )
    if n_far:
        beside = f" ({count(n_far - 1, 'more value')})" * (n_far > 1)
        warn(f"X: {first}{beside}; mend it, or leave such rows out")
    return nearer


def _hash_rows(data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Hash the bytes of every row (FNV-1a, 64 bits)."""
    hashes = np.full(data.shape[0], 14695981039346656037, np.uint64)
    for start in range(0, len(data), _HASHED_ROWS):
        part = hashes[start : start + _HASHED_ROWS]
        for column in data[start : start + _HASHED_ROWS].T:
            part ^= column
            part *= np.uint64(1099511628211)
    return hashes


def canonical_rows(
    X: NDArray[Any],
    codes: NDArray[np.int64],
    sample_weight: NDArray[np.float64],
    groups: NDArray[np.int64] | None = None,
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64] | None]:
    """Bring a training set into an order that depends only on what it holds.

    Equal rows of one class, and of one group, become one row with the sum of their weights, and
    they are sorted by a hash, so that the order looks random. Thus a model depends neither on the
    order of the rows nor on whether a row is repeated or weighted.

    `X` has shape (n, n_features), the others (n,). Returned are rows, codes, weights and groups.

    >>> X, codes, weight = np.array([[1], [2], [1]]), np.array([0, 1, 0]), np.ones(3)
    >>> *rows, _ = canonical_rows(X, codes, weight)
    >>> sorted(zip(*(array.ravel().tolist() for array in rows)))
    [(1, 0, 2.0), (2, 1, 1.0)]
    """
    kind = codes
    if groups is not None:
        kind = codes + (codes.max(initial=0) + 1) * groups
    X, order = canonical_order(X, kind)
    codes, sample_weight, kind = codes[order], sample_weight[order], kind[order]
    groups = None if groups is None else groups[order]
    fresh = np.ones(X.shape[0], dtype=bool)
    fresh[1:] = (kind[1:] != kind[:-1]) | (X[1:] != X[:-1]).any(axis=1)
    if fresh.all():
        return X, codes, sample_weight, groups
    first = np.flatnonzero(fresh)
    groups = None if groups is None else groups[first]
    return X[first], codes[first], np.add.reduceat(sample_weight, first), groups


def canonical_order(
    X: NDArray[Any], kind: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return rows in the order of a hash, then of their kind, and where they were."""
    if X.dtype.kind == "f":
        X = X + X.dtype.type(0)  # one zero: -0.0 + 0.0 is 0.0
    X = np.ascontiguousarray(X)
    order = np.lexsort((kind, _hash_rows(X.view(np.uint8).reshape(X.shape[0], -1))))
    return X[order], order


def group_codes(groups: ArrayLike, used: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return the number of the group of each row that is used; None for a single group."""
    names = as_groups(groups, used.size)
    assert names is not None
    _, codes = np.unique(names[used], return_inverse=True)
    # Of a single group nothing can be left out.
    return np.asarray(codes, dtype=np.int64) if codes.any() else None


def class_weights(
    class_weight: Mapping[Any, float] | str | None,
    classes: tuple[object, ...],
    codes: NDArray[np.int64],
    sample_weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the weight of every class."""
    weights = np.ones(len(classes))
    if class_weight is None:
        return weights
    if isinstance(class_weight, Mapping):
        places = {label: i for i, label in enumerate(classes)}
        for label, value in class_weight.items():
            if label not in places:
                labels = join(classes, 12)
                raise OptionError(
                    f"class_weight: {label!r} is not a label in y; choose from {labels}"
                )
            weight = check_positive(f"class_weight: that of {label!r}", value)
            if not 1 / _LARGEST_WEIGHT <= weight <= _LARGEST_WEIGHT:
                raise OptionError(
                    f"class_weight: that of {label!r} must be from {1 / _LARGEST_WEIGHT:g} to "
                    f"{_LARGEST_WEIGHT:g}; got {value!r}"
                )
            weights[places[label]] = weight
        return weights
    check_choice("class_weight", class_weight, ("balanced",))
    totals = np.bincount(codes, weights=sample_weight)
    return np.asarray(totals.sum() / (totals.size * totals), dtype=np.float64)


def raw_validation(X: NDArray[Any], raw_dtype: str) -> NDArray[Any]:
    """Bring validation rows into the raw type of the training rows."""
    if X.dtype.kind == "f" and raw_dtype != "float32" and not np.array_equal(X, np.rint(X)):
        raise DataError(
            f"validation: its rows are not whole numbers, but the training rows are {raw_dtype}; "
            "give both in one type"
        )
    try:
        return to_raw(X, raw_dtype)
    except TinykernelError as error:
        raise DataError(f"validation: {error}") from None


def strata(y: NDArray[Any]) -> NDArray[np.int64]:
    """Return the stratum of each row: eight of equal size by the first value."""
    first = y if y.ndim == 1 else y[:, 0]
    edges = np.quantile(first, np.arange(1, _STRATA) / _STRATA, method="higher")
    return np.searchsorted(edges, first, side="left").astype(np.int64)


def prepare_values(
    X: NDArray[Any],
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64],
    options: RegressorOptions,
    names: Sequence[str],
    *,
    groups: ArrayLike | None = None,
    validation: tuple[NDArray[Any], NDArray[np.float64]] | None = None,
) -> TrainSet:
    """Bring rows X and values y (n, n_values) into the canonical form, as `trainset.prepare`."""
    distinct, data = _canonical_set(X, y, sample_weight, groups)
    values = distinct[data.codes]
    units = _units(values, data.sample_weight, options)

    def targets(values: NDArray[np.float64]) -> NDArray[np.float32]:
        repeated = np.repeat(values, len(options.levels()), axis=1)
        worth = np.where(units.scale > 0, units.scale, 1.0)
        return np.ascontiguousarray((repeated - units.offset) / worth, dtype=np.float32)

    judging = None
    if validation is not None:
        judging = raw_validation(validation[0], data.raw_dtype), targets(validation[1])
    quantity = Quantity(
        targets(values),
        options.losses(y.shape[1]),
        ValueUnits(options.names(names), units.offset, units.scale),
    )
    return replace(data, codes=strata(values), validation=judging, quantity=quantity)


def _units(
    values: NDArray[np.float64], weight: NDArray[np.float64], options: RegressorOptions
) -> ValueUnits:
    """Return mean and deviation of the values, shared by all quantiles of a value."""
    with np.errstate(over="ignore", invalid="ignore"):
        share = weight / weight.sum()
        centre = np.einsum("i,ij->j", share, values)
        spread = np.sqrt(np.einsum("i,ij->j", share, np.square(values - centre)))
    if not (np.all(np.isfinite(centre)) and np.all(np.isfinite(spread))):
        raise DataError("y: its values are too large; give them in another unit")
    # Equal values may differ from their mean by rounding.
    spread = np.where(spread > 1e-12 * np.abs(centre), spread, 0.0)
    times = len(options.levels())
    return ValueUnits((), np.repeat(centre, times), np.repeat(spread, times))
