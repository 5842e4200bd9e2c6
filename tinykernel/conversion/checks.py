"""What every reader of foreign models checks: that nothing is damaged, and no field unknown."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from tinykernel.base.errors import ConvertError, FormatError, TinykernelError

#: What our own readers raise of numbers, lengths and fields that are not as they should be.
_FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def first_line(error: Exception) -> str:
    """Return the first line of what an error of a library says, or its type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def damaged(what: str) -> FormatError:
    """Return the error of a damaged model."""
    return FormatError(f"{what} is damaged; save it again")


@contextmanager
def intact(what: str, *faults: type[Exception]) -> Iterator[None]:
    """Refuse as damaged what cannot be read; `faults` are errors of a library that reads."""
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused
            yield
    except TinykernelError:
        raise
    except _FAULTS + faults:
        raise damaged(what) from None


def check_fields(of: str, fields: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a field that nothing reads: it may change what a model predicts."""
    unknown = sorted(set(fields) - set(known))
    if unknown:
        raise ConvertError(
            f"convert: {of} has the field {unknown[0][:40]!r}, which is not supported; train "
            "without it, or save the model by an older version of its library"
        )
