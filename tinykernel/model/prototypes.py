"""Distances to prototypes: rows of inputs in 4 bits, in the arithmetic of the firmware."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.model.arrays import checked_array

#: No number of a margin line is larger.
LARGEST_MARGIN_LINE = 2**31 - 1


def coarse(Q: NDArray[Any], sign: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the top 8 bits of quantized inputs; 0 for constant ones, whatever they are."""
    wide = Q.astype(np.int64)
    return np.where(sign == 0, 0, wide >> 8 if Q.dtype.itemsize == 2 else wide)


def centres(prototypes: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return what the levels -8..7 of prototypes stand for, on the scale of 8-bit inputs."""
    return prototypes.astype(np.int64) * 16 + 8


def distances(
    Q: NDArray[Any], sign: NDArray[np.int8], prototypes: NDArray[np.int8]
) -> NDArray[np.int32]:
    """Return the squared distance of each row to the nearest prototype.

    Examples
    --------
    >>> Q, sign = np.array([[0, -128], [127, 5]], dtype=np.int8), np.ones(2, dtype=np.int8)
    >>> distances(Q, sign, np.array([[0, 0], [7, 0]], dtype=np.int8)).tolist()
    [18560, 58]
    """
    # Whole numbers below 2**53, so that floats, which are faster, are exact in any order.
    rows, means = coarse(Q, sign).astype(np.float64), centres(prototypes).astype(np.float64)
    squares = np.square(rows).sum(axis=1)[:, np.newaxis] + np.square(means).sum(axis=1)
    return np.asarray((squares - 2 * rows @ means.T).min(axis=1), dtype=np.int32)


def farthest(prototypes: NDArray[np.int8]) -> int:
    """Return the largest distance that a row can have to any one of the prototypes."""
    means = centres(prototypes)
    return int(np.square(np.maximum(127 - means, means + 128)).sum(axis=1).max())


def most_steps(gain: int) -> int:
    """Return how many steps of the margin count, so that none times `gain` leaves int32."""
    return LARGEST_MARGIN_LINE // gain


def checked_prototypes(value: object, n_features: int | None) -> NDArray[np.int8]:
    """Return prototypes as a read-only array, refusing levels and distances out of range."""
    found = checked_array("prototypes", value, "int8", (None, n_features))
    if np.any((found < -8) | (found > 7)):
        raise TinykernelError("integer model: a level of a prototype is not -8..7")
    if farthest(found) > LARGEST_MARGIN_LINE:
        raise TinykernelError(
            f"integer model: the distance to a prototype of {found.shape[1]} inputs can leave int32"
        )
    return found
