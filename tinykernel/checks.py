"""Checks of the values that a user gives for parameters."""

import math
from collections.abc import Hashable
from numbers import Integral, Real

from tinykernel.errors import OptionError


def check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Raise TinykernelError for a parameter, called `name`, that is not one of `choices`."""
    is_one = isinstance(value, Hashable)  # arrays compare to arrays
    if not (is_one and any(value is choice or value == choice for choice in choices)):
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
