"""Plane: the rows of a spectrum as an image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.proof import Range


@dataclass(frozen=True, eq=False)
class Plane(Stage):
    """The stage *plane*: rows of levels as an image of one channel, bands side by side.

    It takes a signal of uint8 from 0 up and changes no value: row t and channel b are row t and
    column b of the image, which convolutions go through. A stream keeps the newest rows of a
    window, and a decision goes through all of them; or the convolutions stream themselves.

    >>> Plane().gives(Grid(49, 1, 20, "uint8", 0, 255)).shape
    (49, 20)
    """

    KIND = "plane"
    TAKES = ("rows",)
    GIVES = "levels"
    SHARES = True

    def gives(self, grid: Grid) -> Grid:
        if not grid.is_signal or grid.dtype != "uint8" or grid.low != 0 or grid.channels < 2:
            raise self.refuse("it takes a signal of two or more channels of uint8 from 0 up")
        return Grid(grid.rows, grid.channels, 1, "uint8", 0, grid.high)

    def run(self, values: NDArray[np.generic], grid: Grid) -> NDArray[np.generic]:
        return values

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        return (Range("value of the plane", 0, grid.high, 0, 255),)

    def work(self, grid: Grid) -> dict[str, float]:
        """Return the copies of values, and of rows; see `Stage`."""
        return {"value": float(grid.size), "row": float(grid.rows)}
