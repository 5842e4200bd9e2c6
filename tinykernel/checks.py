"""Checks of the values that a user gives for parameters."""

from __future__ import annotations

import math
from numbers import Integral, Real

from tinykernel.errors import TinykernelError


def check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Refuse a parameter, called `name`, that is not one of `choices`; TinykernelError.

    >>> check_choice("kernel", "gaussian", ("gaussian",))
    """
    if not any(value is choice or value == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise TinykernelError(f"{name} must be one of {listed}; got {value!r}")


def check_count(name: str, value: object, low: int = 1) -> int:
    """Return a parameter that is a whole number of at least `low`; TinykernelError for all else.

    >>> check_count("n_components", 5)
    5
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise TinykernelError(f"{name} must be a whole number of at least {low}; got {value!r}")
    return int(value)


def check_positive(name: str, value: object) -> float:
    """Return a parameter that is a finite number greater than 0; TinykernelError for all else.

    >>> check_positive("sigma", 2)
    2.0
    """
    number = isinstance(value, Real)
    if isinstance(value, bool) or not number or not 0 < value < math.inf:  # type: ignore[operator]
        raise TinykernelError(f"{name} must be a positive number; got {value!r}")
    return float(value)  # type: ignore[arg-type]


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads an ``n_jobs`` stands for: None and -1 for all that numba uses.

    >>> thread_count(2)
    2
    """
    if n_jobs in (None, -1):
        import numba  # takes a second, which not every command needs

        return int(numba.config.NUMBA_NUM_THREADS)
    return check_count("n_jobs", n_jobs)
