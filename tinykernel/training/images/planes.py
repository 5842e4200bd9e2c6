"""Compiled kernels that lay out images for the trainer: moved, and as planes of levels.

Images travel in groups of `LANES`, side by side in memory: the pixel outside, the image inside. A
plane has `lead` zeros before the first row and the same number after each row, so that one gap
serves the end of a row and the beginning of the next.
"""

from __future__ import annotations

import numpy as np

from tinykernel.compiled import njit
from tinykernel.hadamard import LANES


@njit(nogil=True, error_model="numpy")
def warp(image, move, out):  # type: ignore[no-untyped-def]
    """Sample one plane (h, w) at an affine map of its pixels: bilinear, 0 outside."""
    height, width = image.shape
    for y in range(height):
        for x in range(width):
            v = move[0] * y + move[1] * x + move[2]
            u = move[3] * y + move[4] * x + move[5]
            top = int(np.floor(v))
            left = int(np.floor(u))
            total = np.float32(0.5)
            for i in range(2):
                row = top + i
                if 0 <= row < height:
                    across = np.float32(abs(1 - i - (v - top)))
                    for j in range(2):
                        column = left + j
                        if 0 <= column < width:
                            share = np.float32(abs(1 - j - (u - left)))
                            total += across * share * image[row, column]
            out[y, x] = np.uint8(total)


@njit(nogil=True, error_model="numpy")
def fill(images, moves, rows, first, geometry, scratch, x):  # type: ignore[no-untyped-def]
    """Write the levels of one group into planes; `moves` (n, 6) belong to `rows`, or are none.

    geometry: bits to shift out, average, rows, columns, padding, lead, pitch, plane.
    """
    shift, average, n_rows, n_columns, padding, lead, pitch, plane = geometry
    halves = 2 if average == 2 else 0
    x[:] = 0
    for k in range(LANES):
        row = rows[first + k]
        for c in range(images.shape[1]):
            image = images[row, c]
            if moves.shape[0] > 0:
                warp(image, moves[first + k], scratch)
                image = scratch
            start = c * plane + lead
            for i in range(n_rows):
                place = start + (i + padding) * pitch
                for j in range(n_columns):
                    total = 0
                    for a in range(average):
                        for b in range(average):
                            total += image[average * i + a, average * j + b] >> shift
                    x[(place + j) * LANES + k] = total >> halves
