"""Crop and resize a picture to n x m by the mean of areas, in integers with one rounding.

In one channel, with integer division //, for N x M pixels after cropping:

    sum[i, j]    = sum over y, x of overlap(i, y, N, n) * overlap(j, x, M, m) * pixel[y, x]
    result[i, j] = (2 * sum[i, j] + N * M) // (2 * N * M)

`overlap(i, y, N, n)` is the length that output i and pixel y share, in n-ths of a pixel: output i
covers i * N to (i + 1) * N, pixel y covers y * n to (y + 1) * n. The overlaps of an output sum to
N, so a result is the mean of the area, rounded half up. A smaller picture repeats its pixels.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Rows of a picture summed at a time, so that memory does not grow with its height.
_ROWS_AT_ONCE = 64


def crop_box(height: int, width: int, rows: int, columns: int) -> tuple[int, int, int, int]:
    """Return top, left, height and width, rounded down, of the centred part with a ratio."""
    if width * rows > height * columns:
        part = max(1, height * columns // rows)
        return 0, (width - part) // 2, height, part
    part = max(1, width * rows // columns)
    return (height - part) // 2, 0, part, width


def area_sums(pixels: NDArray[Any], n: int) -> NDArray[np.int64]:
    """Return the sums of the formula along axis 0 of integers (N, ...): int64 (n, ...).

    >>> area_sums(np.array([10, 20, 30]), 2).tolist()
    [40, 80]
    """
    length = len(pixels)
    before = np.zeros((length + 1, *pixels.shape[1:]), np.int64)
    np.cumsum(pixels, axis=0, out=before[1:])
    # The integral up to i * N n-ths of a pixel: whole pixels, then a part of the next one.
    whole, part = np.divmod(np.arange(n + 1) * length, n)
    integral = n * before[whole]
    inside = part > 0
    rest = part[inside].reshape(-1, *[1] * (pixels.ndim - 1))
    integral[inside] += rest * pixels[whole[inside]].astype(np.int64)
    return np.diff(integral, axis=0)


def resize(
    rows_of: Callable[[int, int], NDArray[np.uint8]],
    height: int,
    width: int,
    rows: int,
    columns: int,
) -> NDArray[np.uint8]:
    """Crop and resize a picture; `rows_of(top, end)` returns rows, (rows, width, channels)."""
    top, left, high, wide = crop_box(height, width, rows, columns)
    parts = []
    for first in range(top, top + high, _ROWS_AT_ONCE):
        pixels = rows_of(first, min(first + _ROWS_AT_ONCE, top + high))[:, left : left + wide]
        parts.append(area_sums(pixels.transpose(1, 0, 2), columns).transpose(1, 0, 2))
    sums, area = area_sums(np.concatenate(parts), rows), high * wide
    return ((2 * sums + area) // (2 * area)).astype(np.uint8)
