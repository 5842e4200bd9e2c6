"""Counts as the machine takes them: bytes as they are, wider ones brought to their range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.stages.scale import Scale

_ONE = 1 << 16
_BYTE = 255


def count_multiplier(largest: int) -> int:
    """Return what counts up to `largest` are multiplied with, in units of 2**-16."""
    return _ONE if largest <= _BYTE else _ONE * _BYTE // largest


def scaled_counts(counts: NDArray[Any], largest: int) -> NDArray[np.int16]:
    """Return what the machine sees of counts, plus 128.

    >>> [scaled_counts(np.array([0, n]), n).tolist() for n in (200, 510)]
    [[0, 200], [0, 255]]
    """
    return ((counts * count_multiplier(largest)) >> 16).astype(np.int16)


def count_scaler(dtype: str, largest: int) -> Scale:
    """Return the scaler that does the same in the firmware, and takes off the 128."""
    offset = np.zeros(1, dtype=np.int32)
    factor = np.array([count_multiplier(largest)], dtype=np.uint32)
    span = np.array([max(largest, _BYTE)], dtype=np.uint32)
    return Scale(dtype, 8, offset, factor, span)
