"""The three ways in which an `IntegerModel` holds G, and how float diagonals become them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError

#: Largest magnitude in a diagonal, by kind.
LARGEST = {"int8": 127, "int4": 7, "sign": 1}

#: Bits that one entry takes, by kind.
BITS = {"int8": 8, "int4": 4, "sign": 1}

#: Right shift of the product with a diagonal, by kind: no product is larger than what it came from.
SHIFTS = {"int8": 7, "int4": 3, "sign": 0}

# float32 arithmetic and some room; levels are 1 apart.
_LEVEL_TOLERANCE = 1e-4


def levels_of(
    exact: NDArray[np.float64], kind: str = "int4"
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Recover the levels of each block (n_blocks, d), -7..7 or -127..127, and the worth of one.

    Each block holds multiples, up to ``LARGEST[kind]``, of one number; something else is a
    TinykernelError. Where several sets of levels fit (all of them even, say), the one with the
    largest levels is taken: its products keep the most bits. The worth, shape (n_blocks, 1), is
    positive, and 1 for a block of zeros.

    >>> levels, unit = levels_of(np.array([[0.6, -1.4, 0.2, 0.0]]))
    >>> levels.tolist(), round(float(unit[0, 0]), 3)
    ([[3, -7, 1, 0]], 0.2)
    """
    levels = np.zeros(exact.shape, dtype=np.int8)
    unit = np.ones((exact.shape[0], 1))
    for block, row in enumerate(exact):
        largest = float(np.abs(row).max())
        if largest == 0:
            continue
        for top in range(LARGEST[kind], 0, -1):
            scaled = row / largest * top
            if np.abs(scaled - np.rint(scaled)).max() < _LEVEL_TOLERANCE:
                levels[block] = np.rint(scaled)
                # The mean over all values, weighed by size, has the least rounding error.
                whole = levels[block].astype(np.float64)
                unit[block] = (row * whole).sum() / np.square(whole).sum()
                break
        else:
            raise TinykernelError(
                f"the machine's diagonal of block {block} is no whole multiple, up to "
                f"{LARGEST[kind]}, of one number; round it, or use diagonal_kind 'gaussian'"
            )
    return levels, unit
