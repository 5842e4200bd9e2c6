"""Binary features of a training set, one bit each, feature by feature.

Coordinate descent reads one feature of all rows at a time. Rows come in chunks of ``8 * width``;
bit k of byte w of chunk c belongs to row ``(8 c + k) * width + w``. So a sum over the rows whose
bit is set becomes masked vector additions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.compiled import njit

_WIDTH = 128


def pack_features(
    transform: Callable[[NDArray[Any]], NDArray[np.bool_]], X: NDArray[Any], n_features: int
) -> NDArray[np.uint8]:
    """Compute and pack the first components of all rows in chunks; `transform` gives bits.

    Returns planes (n_features, n_chunks, width), 0 in padding rows.
    """
    n_rows = X.shape[0]
    width = max(1, min(_WIDTH, -(-n_rows // 8)))
    step = 8 * width
    planes = np.zeros((n_features, -(-n_rows // step), width), dtype=np.uint8)
    for chunk in range(planes.shape[1]):
        bits = transform(X[chunk * step : (chunk + 1) * step])
        _pack_chunk(bits, chunk, planes)
    return planes


@njit(nogil=True)
def _pack_chunk(bits, chunk, planes):  # type: ignore[no-untyped-def]
    width = planes.shape[2]
    for row in range(bits.shape[0]):
        bit = np.uint8(1 << (row // width))
        byte = row % width
        for j in range(planes.shape[0]):
            if bits[row, j]:
                planes[j, chunk, byte] |= bit


@njit(nogil=True)
def _masked_chunk(chunk, values):  # type: ignore[no-untyped-def]
    total = np.int32(0)
    width = chunk.shape[0]
    for k in range(8):
        bit = np.uint8(1 << k)
        plane = values[k * width : (k + 1) * width]
        for w in range(width):
            if chunk[w] & bit:
                total = np.int32(total + plane[w])
    return total


@njit(nogil=True)
def masked_sum(feature, values):  # type: ignore[no-untyped-def]
    """Return the exact sum of the values of the rows whose bit is set.

    `feature` is one plane, (n_chunks, width). There is a value for every padded row, within
    2**21 - 1, so that 1024 of them fit into 32 bits.
    """
    total = np.int64(0)
    step = 8 * feature.shape[1]
    for c in range(feature.shape[0]):
        total += _masked_chunk(feature[c], values[c * step : (c + 1) * step])
    return total


@njit(nogil=True)
def add_feature(feature, step, sums):  # type: ignore[no-untyped-def]
    """Add ``step * z`` to the sums of all rows, in place: the update of h_i in Algorithm 1."""
    width = feature.shape[1]
    up = np.int32(2 * step)
    for c in range(feature.shape[0]):
        chunk = feature[c]
        for k in range(8):
            first = (8 * c + k) * width
            plane = sums[first : first + width]
            for w in range(width):
                plane[w] += up * np.int32((chunk[w] >> np.uint8(k)) & np.uint8(1)) - np.int32(step)
