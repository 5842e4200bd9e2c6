"""Bring rows with values into the form in which trainers take a training set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import TinykernelError
from tinykernel.model.quantization.scaling import raw_dtype_of, to_raw
from tinykernel.model.quantization.units import ValueUnits
from tinykernel.training.options.regression import RegressorOptions
from tinykernel.training.trainset import (
    Quantity,
    TrainSet,
    canonical_rows,
    group_codes,
    raw_validation,
)

_STRATA = 8


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
    if not sample_weight.any():
        raise TinykernelError("sample_weight: all weights are 0; give some rows a weight")
    used = sample_weight > 0
    raw_dtype = raw_dtype_of(X.dtype)
    rows, known = to_raw(X, raw_dtype)[used], y[used]
    group = None if groups is None else group_codes(groups, used)
    if group is not None and not group.any():
        group = None  # a single group cannot be held out
    # Equal rows of equal values are merged, as those of a class are.
    different, codes = np.unique(known, axis=0, return_inverse=True)
    rows, codes, weight, position = canonical_rows(
        rows, codes.ravel().astype(np.int64), sample_weight[used], group
    )
    if group is not None:
        moved = np.empty(codes.size, dtype=np.int64)
        moved[position] = group
        group = moved
    values = different[codes]
    units = _units(values, weight, options)

    def targets(values: NDArray[np.float64]) -> NDArray[np.float32]:
        repeated = np.repeat(values, len(options.levels()), axis=1)
        worth = np.where(units.scale > 0, units.scale, 1.0)
        return np.ascontiguousarray((repeated - units.offset) / worth, dtype=np.float32)

    held = None
    if validation is not None:
        held = raw_validation(validation[0], raw_dtype), targets(validation[1])
    quantity = Quantity(
        targets(values),
        options.losses(y.shape[1]),
        ValueUnits(options.names(names), units.offset, units.scale),
    )
    return TrainSet(
        X=rows,
        codes=strata(values),
        sample_weight=weight,
        classes=(),
        raw_dtype=raw_dtype,
        groups=group,
        validation=held,
        quantity=quantity,
    )


def _units(
    values: NDArray[np.float64], weight: NDArray[np.float64], options: RegressorOptions
) -> ValueUnits:
    """Return mean and deviation of the values, shared by all quantiles of a value."""
    with np.errstate(over="ignore", invalid="ignore"):
        share = weight / weight.sum()
        centre = np.einsum("i,ij->j", share, values)
        spread = np.sqrt(np.einsum("i,ij->j", share, np.square(values - centre)))
    if not (np.all(np.isfinite(centre)) and np.all(np.isfinite(spread))):
        raise TinykernelError("y: its values are too large; give them in another unit")
    # Equal values may differ from their mean by rounding.
    spread = np.where(spread > 1e-12 * np.abs(centre), spread, 0.0)
    times = len(options.levels())
    return ValueUnits((), np.repeat(centre, times), np.repeat(spread, times))
