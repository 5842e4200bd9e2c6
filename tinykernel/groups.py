"""Groups of rows and labels as a user gives them: none is missing."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import DataError, ShapeError


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
