"""What a local stage or a linear part of some size takes, and which one fits a budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinykernel.errors import TinykernelError

__all__ = ["linear_bytes", "local_bytes", "local_instructions", "plan"]

_MOST_KERNELS = 1024
_FEWEST_KERNELS = 4


def linear_bytes(n_inputs: int, n_outputs: int, bits: int) -> int:
    """Return the bytes of the weights and offsets of a linear part.

    Examples
    --------
    >>> linear_bytes(561, 6, 4)
    1710
    """
    return n_outputs * (-(-n_inputs * bits // 8) + 4)


def local_bytes(shape: tuple[int, ...], n_kernels: int) -> int:
    """Return about how many bytes the kernels of a local stage take.

    Images: two masks of the taps and a threshold; signals: kind, dilation and channel, threshold.

    Examples
    --------
    >>> local_bytes((28, 28, 1), 32), local_bytes((128, 6), 256)
    (320, 1392)
    """
    if len(shape) == 3:
        return n_kernels * (10 if _size(shape) == 5 else 6)
    # Few mixes of channels, with two bytes each, and a scaler for each channel.
    return 5 * n_kernels + 32 + 12 * shape[1] + 8


def local_instructions(shape: tuple[int, ...], n_kernels: int, n_outputs: int) -> int:
    """Return about how many instructions a decision takes on a Cortex-M4: packed 8 or 16 bits.

    Examples
    --------
    >>> local_instructions((28, 28, 1), 32, 10)
    201216
    """
    n_counts = n_kernels * _cells(shape)
    if len(shape) == 3:
        average = 2 if min(shape[:2]) >= 40 else 1
        positions = (shape[0] // average) * (shape[1] // average)
        each = 7 if _size(shape) == 5 else 5
        return int(n_kernels * positions * each + 5 * n_counts * n_outputs)
    return int(n_kernels * shape[0] / 2 * 5 + shape[0] * shape[1] * 20 + 3 * n_counts * n_outputs)


def plan(
    shape: tuple[int, ...], n_outputs: int, table_bytes: int, instructions: int | None = None
) -> dict[str, Any]:
    """Return the options of `TernaryKernelClassifier` that use up a size of tables.

    Parameters
    ----------
    shape : tuple of int
        (samples, channels) of a window, or (height, width, channels) of an image.
    n_outputs : int
        1 for two classes, else one a class.
    table_bytes : int
        Bytes of flash for tables: the budget less the code.
    instructions : int, optional
        Most instructions of a decision on a Cortex-M4.

    Returns
    -------
    dict
        ``n_kernels`` and ``linear``.

    Raises
    ------
    TinykernelError
        If not even a few kernels fit.

    Examples
    --------
    >>> plan((28, 28, 1), 10, 2900)
    {'n_kernels': 31, 'linear': 4}
    """
    found: dict[str, Any] = {}
    for bits in (4, 2):
        fitting = [
            n
            for n in range(_FEWEST_KERNELS, _MOST_KERNELS + 1)
            if size_of(shape, n_outputs, n, bits) <= table_bytes
            and (not instructions or local_instructions(shape, n, n_outputs) <= instructions)
        ]
        if fitting:
            found = {"n_kernels": fitting[-1], "linear": bits}
            break
    if not found:
        raise TinykernelError(
            f"{table_bytes} bytes of tables are too few for {_FEWEST_KERNELS} kernels; allow "
            f"{size_of(shape, n_outputs, _FEWEST_KERNELS, 2)}"
        )
    return found


def size_of(shape: tuple[int, ...], n_outputs: int, n_kernels: int, bits: int) -> int:
    """Return about how many bytes of tables so many kernels and their linear part take."""
    counts = n_kernels * _cells(shape)
    return local_bytes(shape, n_kernels) + linear_bytes(counts, n_outputs, bits)


def _size(shape: tuple[int, ...]) -> int:
    return 3 if min(shape[:2]) <= 10 else 5


def _cells(shape: tuple[int, ...]) -> int:
    return int(np.prod((4, 4))) if len(shape) == 3 else 1
