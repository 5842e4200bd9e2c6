"""Checks of the values that a user gives for parameters, options and groups."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from tinykernel.base.errors import DataError, OptionError, ShapeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


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


LINEAR_BITS = (2, 4, 8)
LARGEST_SEED = 2**32 - 1  # of scikit-learn and NumPy
#: With more, training takes days, and no target has the flash.
MOST_COMPONENTS = 65536
MOST_UNITS = 1024
#: Layouts that have a name, by their widths (`is_layout`).
PRESETS = {
    "compact": "g4",
    "phases": "g8-b8",
    "windows": "g8-b8-t8-rows-ternary",
    "full": "g4-b4-t4-ternary",
}
DEFAULT_LAYOUT = "full"
_WIDTHS = re.compile(r"g[148](-b[48](-t[48])?)?(-rows)?(-ternary)?")
AUGMENTATIONS = ("shift", "affine", "flip", "scale", "noise", "rotate")
MOST_CELLS = 255


@dataclass(frozen=True)
class Check:
    """A function of name and value that refuses, and its range and type as text."""

    test: Callable[[str, Any], object]
    range: str = ""
    type: str = ""
    choices: tuple[object, ...] = ()

    def __call__(self, name: str, value: Any) -> object:
        """Refuse a value that is not allowed."""
        return self.test(name, value)


def one_of(*choices: object) -> Check:
    """Accept one of the choices."""
    known = ", ".join(f'"{value}"' if isinstance(value, str) else f"{value}" for value in choices)
    test = partial(check_choice, choices=choices)
    return Check(test, type=f"{{{known}}}", choices=choices)


def at_least(low: int, most: float = math.inf) -> Check:
    """Accept whole numbers from `low`, and to `most`."""

    def check(name: str, value: Any) -> None:
        if check_count(name, value, low) > most:
            raise OptionError(f"{name} must be at most {most}; got {value}")

    return Check(check, f"{low} or more" if most == math.inf else f"{low} to {most}")


def between(low: float, high: float, text: str, *, open_ends: bool = False) -> Check:
    """Accept numbers of a range; `text` describes it."""

    def check(name: str, value: Any) -> None:
        inside = isinstance(value, Real) and not isinstance(value, bool)
        inside = inside and (low < value < high if open_ends else low <= value <= high)
        if not inside:
            raise OptionError(f"{name} must be a number {text}; got {value!r}")

    return Check(check, text.removeprefix("from "))


def is_layout(name: str) -> bool:
    """Whether this names a layout: a preset, or the widths of what a component stores.

    Widths are ``g1``, ``g4`` or ``g8``: bits of G; ``b4`` or ``b8`` after that: of the phase start
    of each row; ``t4`` or ``t8``: of the width of its window; ``rows``: S for each row instead of
    each block; ``ternary``: weights -1, 0, 1.

    >>> is_layout("g4-b8-ternary"), is_layout("t8")
    (True, False)
    """
    return name in PRESETS or _WIDTHS.fullmatch(name) is not None


def layout(name: str, value: Any) -> None:
    """Check the name of a layout."""
    if not isinstance(value, str) or (value != "auto" and not is_layout(value)):
        raise OptionError(
            f"{name}: {value!r} is not a layout; give {', '.join(PRESETS)}, or widths as g4-b8"
        )


def components(name: str, value: Any) -> None:
    """Check a number of components."""
    if isinstance(value, Mapping):
        raise OptionError(f"{name}: give one number, and the layout by layout")
    if value == 0 and not isinstance(value, bool):
        raise OptionError(f"{name}: 0 is for a linear part alone; give {{model}}", model="linear")
    at_least(1, MOST_COMPONENTS)(name, value)


def augmentation(name: str, value: Any) -> None:
    """Check a mapping of augmentations to amounts."""
    if not isinstance(value, Mapping):
        raise OptionError(f'{name}: give a mapping such as {{"shift": 1}} or None')
    for key, amount in value.items():
        if key == "shift":
            check_count(f"{name}: shift", amount, 0)
        elif key in AUGMENTATIONS:
            most = 1 if key == "flip" else 10
            between(0, most, f"from 0 to {most}")(f"{name}: {key}", amount)
        else:
            names = ", ".join(AUGMENTATIONS)
            raise OptionError(f"{name}: {key!r} is not known; give one of {names}")


def sides(form: str, *lengths: int) -> Check:
    """Accept shapes of so many sides; `form` describes them."""

    def check(name: str, value: Any) -> None:
        is_list = hasattr(value, "__len__") and not isinstance(value, str)
        if not is_list or len(value) not in lengths:
            raise OptionError(f"{name}: {value!r}; give {form}")
        for side in value:
            check_count(name, side)

    return Check(check)


def matching(pattern: str, advice: str, range_: str = "") -> Check:
    """Accept text of a pattern."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise OptionError(f"{name}: {value!r}; {advice}")

    return Check(check, range_)


#: Frames of a camera, and the segments of a spectrum.
frame = matching(
    r"[1-9]\d{0,3}x[1-9]\d{0,3}:\w+",
    "write WIDTHxHEIGHT:FORMAT, as 160x120:rgb565",
    "2x2 to 4096x4096",
)
spectrum = matching(
    r"auto|off|on|\d+/\d+/\d+", "give auto, off, on, or length/hop/bands of segments, as 512/320/12"
)


def cells(name: str, value: Any) -> None:
    """Check a number of cells."""
    if value != "auto" and check_count(name, value) > MOST_CELLS:
        raise OptionError(f"{name}: {value}; give 1 to {MOST_CELLS}")


def class_weight(name: str, value: Any) -> None:
    """Check the weights of classes."""
    if not isinstance(value, Mapping) and value != "balanced":
        raise OptionError(
            f"{name} must be balanced, or weights of labels as in yes:2,no:1; got {value!r}"
        )


def threads(name: str, value: Any) -> None:
    """Check a number of threads."""
    if value != -1:
        check_count(name, value)


def check_pair(name: str, value: object, of_rows: str = "labels") -> None:
    """Check that rows and what belongs to them are given together."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise OptionError(f"{name}: give a pair (X, y) of rows and {of_rows}")


def check_seed(name: str, value: Any) -> None:
    """Check a random seed."""
    if value is not None and not isinstance(value, int):
        from sklearn.utils import check_random_state  # takes seconds

        try:
            check_random_state(value)
        except ValueError:
            advice = f"give a whole number from 0 to {LARGEST_SEED}, or a RandomState of numpy"
            raise OptionError(f"{name}: {value!r}; {advice}") from None
    elif value is not None and not 0 <= value <= LARGEST_SEED:
        raise OptionError(f"{name} must be from 0 to {LARGEST_SEED}; got {value!r}")


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
    import numpy as np  # the command line answers without it

    names = np.asarray(groups)
    if names.shape != (n,):
        raise ShapeError(
            f"groups: shape {names.shape}; give a name or number for each of the {n} rows"
        )
    refuse_missing("groups", names)
    return names.astype(str) if len({*map(type, names.tolist())}) > 1 else names
