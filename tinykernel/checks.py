"""Checks of the values that a user gives for parameters."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import DataError, OptionError, ShapeError


def check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Raise TinykernelError for a parameter, called `name`, that is not one of `choices`."""
    if not any(value is choice or value == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise OptionError(f"{name} must be one of {listed}; got {value!r}")


def check_count(name: str, value: object, low: int = 1) -> int:
    """Return a whole number of at least `low`; raise TinykernelError for anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise OptionError(f"{name} must be a whole number of at least {low}; got {value!r}")
    return int(value)


def check_positive(name: str, value: object) -> float:
    """Return a finite number above 0 as float; raise TinykernelError for anything else."""
    number = isinstance(value, Real)
    if isinstance(value, bool) or not number or not 0 < value < math.inf:  # type: ignore[operator]
        raise OptionError(f"{name} must be a positive number; got {value!r}")
    return float(value)  # type: ignore[arg-type]


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for an ``n_jobs``: None and -1 for all that numba uses."""
    if n_jobs in (None, -1):
        import numba  # takes a second, which not every command needs

        return int(numba.config.NUMBA_NUM_THREADS)
    return check_count("n_jobs", n_jobs)


def refuse_missing(name: str, values: NDArray[Any]) -> None:
    """Raise TinykernelError where one of the `values` (n,), called `name`, is None or NaN."""
    if values.dtype.kind not in "fOMm":
        return
    for row, value in enumerate(values.tolist()):
        if not isinstance(value, str) and str(value) in ("None", "nan", "NaT", "<NA>"):
            raise DataError(f"{name}: row {row} has none ({value}); leave such rows out")


def as_groups(groups: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """Return the groups of n rows, as text where they are of several types; None for None."""
    if groups is None:
        return None
    names = np.asarray(groups)
    if names.shape != (n,):
        raise ShapeError(
            f"groups: shape {names.shape}; give a name or number for each of the {n} rows"
        )
    refuse_missing("groups", names)
    return names.astype(str) if len({*map(type, names.tolist())}) > 1 else names
