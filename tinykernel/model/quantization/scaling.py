"""The scaler of the inputs in floats, and which raw types the firmware takes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import DataError

_KEPT = ("uint8", "int8", "uint16", "int16")


def raw_dtype_of(dtype: np.dtype[Any]) -> str:
    """Return the raw input type for training data of a dtype; int32 for integers over 16 bits."""
    if dtype.kind == "f":
        return "float32"
    if dtype.kind == "b":
        return "uint8"
    if dtype.kind in "iu":
        return dtype.name if dtype.name in _KEPT else "int32"
    raise DataError(f"X: values of type {dtype} are not numbers that firmware can take")


def to_raw(X: NDArray[Any], raw_dtype: str) -> NDArray[Any]:
    """Convert finite rows (n, n_features) to a raw type of `raw_dtype_of`, in C order."""
    # A TinykernelError names the first row and column whose value does not fit.
    dtype = np.dtype(raw_dtype)
    limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    low, high = float(limits.min), float(limits.max)
    if X.dtype != dtype and X.size and (X.min().item() < low or X.max().item() > high):
        row, column = np.argwhere(np.less(X, low) | np.greater(X, high))[0].tolist()
        raise DataError(
            f"X: row {row}, column {column} is {X[row, column]}, which {raw_dtype}, the widest "
            "type the firmware takes, cannot hold; rescale the column"
        )
    return np.ascontiguousarray(X, dtype=dtype)


@dataclass(frozen=True, eq=False)
class InputScaling:
    """A scaler in floats: ``x' = clip((x - offset) * scale, low, high)``."""

    offset: NDArray[np.float64]  # (n_features,), like the others
    scale: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def choose_scope(X: NDArray[Any], scope: str) -> str:
    """Decide whether inputs (n, n_features) have a scaler each, "feature", or share one, "global".

    "auto" shares one where most of the inputs that vary span at least half of the common range.

    >>> choose_scope(np.array([[0, 0], [16, 12]]), "auto")
    'global'
    >>> choose_scope(np.array([[0, 0], [1, 900]]), "auto")
    'feature'
    """
    if scope != "auto":
        return scope
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    varies = high > low
    if not varies.any():
        return "feature"
    # Halves, because the range of float64 extremes would overflow.
    whole = 0.5 * high[varies].max() - 0.5 * low[varies].min()
    spread = 0.5 * high[varies] - 0.5 * low[varies]
    return "global" if np.mean(spread >= 0.5 * whole) > 0.5 else "feature"
