"""Grid: the values that one stage of a model passes to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import ShapeError
from tinykernel.base.frames import check_equal_shapes
from tinykernel.base.text import count
from tinykernel.pieces.record import Record, limits, raw_values

#: Most values of a grid.
LARGEST = 1 << 20


@dataclass(frozen=True)
class Grid(Record):
    """The shape of values, and the proved range of every one of them.

    A table is 1 x 1 x n; a signal rows x 1 x channels, its rows the samples, oldest first; an image
    rows x columns x channels. A row of values holds them in this order, channels innermost.

    >>> Grid.raw("uint8", 28, 28).size
    784
    """

    rows: int = field(metadata=limits(1, LARGEST))
    columns: int = field(metadata=limits(1, LARGEST))
    channels: int = field(metadata=limits(1, LARGEST))
    dtype: str  # name of the NumPy type that holds a value
    low: int  # the range over every possible input; 0 and 0 of floats, which have none
    high: int
    # positions of values that are always 0 and take no part in anything
    constant: frozenset[int] = field(default=frozenset(), metadata={"stored": False})
    # of a network of another library the axes of a row as its values lie, and whether the library
    # has the last one first; they change no value
    axes: tuple[int, ...] = field(default=(), compare=False, metadata={"later": True})
    channels_first: bool = field(default=False, compare=False, metadata={"later": True})

    def check(self) -> None:
        """Check the number of values, their axes and their range."""
        if self.axes and (min(self.axes) < 1 or prod(self.axes) != self.size):
            raise self.refuse(f"axes of {' x '.join(map(str, self.axes))} hold other values")
        if self.size > LARGEST:
            raise self.refuse(f"{self.size} values at a time; at most {LARGEST} are supported")
        if self.low > self.high:
            raise self.refuse(f"values from {self.low} to {self.high}")

    @staticmethod
    def raw(dtype: str, rows: int, columns: int, channels: int = 1) -> Grid:
        """Return a grid of raw values: anything that the type can hold."""
        kind = np.dtype(dtype)
        low, high = (0, 0)
        if kind.kind in "iu":
            low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        return Grid(rows, columns, channels, dtype, low, high)

    @staticmethod
    def table(dtype: str, n: int) -> Grid:
        """Return a grid of n raw values that have no shape."""
        return Grid.raw(dtype, 1, 1, n)

    @property
    def size(self) -> int:
        """Number of values."""
        return self.rows * self.columns * self.channels

    @property
    def is_table(self) -> bool:
        """Whether the values have no shape."""
        return self.rows == 1 and self.columns == 1

    @property
    def is_signal(self) -> bool:
        """Whether the rows are samples in time."""
        return self.rows > 1 and self.columns == 1

    @property
    def kind(self) -> str:
        """Its name: table, signal or image."""
        return "table" if self.is_table else "signal" if self.is_signal else "image"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an input: (n,), (samples, channels), or (rows, columns) and any channels."""
        if self.is_table:
            return (self.channels,)
        if self.is_signal:
            return (self.rows, self.channels)
        return (self.rows, self.columns, *((self.channels,) if self.channels > 1 else ()))

    def as_raw(self, X: ArrayLike, more: int = 0) -> NDArray[Any]:
        """Convert inputs to rows of `dtype`; `more` values of a row follow these."""
        # Floats are rounded to float32; a TinykernelError names an integer that does not fit.
        return raw_values(self.in_order(X, more), self.dtype)

    def in_order(self, X: ArrayLike, more: int = 0) -> NDArray[Any]:
        """Return inputs as rows of values in their order; rows with channels first are turned.

        X has the shape (n_rows, size), (n_rows, *shape), (n_rows, *axes), or (n_rows, rows,
        columns, channels). A ShapeError says that its axes fit in no order, or in both.
        """
        check_equal_shapes(X)
        values = np.asarray(X)
        lengths = values.shape[1:]
        whole = (self.rows, self.columns, self.channels)
        with_channels = {whole} | ({self.shape} if self.is_signal else set())
        with_channels |= {self.axes} if self.channels_first else set()
        fits = bool(lengths) and lengths in {self.shape, self.axes} | with_channels and not more
        is_turned = lengths[1:] + lengths[:1] in with_channels and len(lengths) > 1 and not more
        if lengths == (self.size + more,) or (fits and not (is_turned and self.channels_first)):
            return values.reshape(len(values), self.size + more)
        if values.ndim < 2 or not is_turned:
            shape = f"{self.title}, then {more} beside them" if more else self.title
            if values.ndim > 2 and self.order.endswith("last"):
                shape += ", channels last: np.moveaxis(X, 1, -1)"
            raise ShapeError(f"inputs: shape {values.shape}, but the model takes {shape}")
        if fits and min(lengths[0], prod(lengths[1:])) > 1:
            raise ShapeError(
                f"inputs: shape {values.shape} may have channels first or last; the model takes "
                "channels last: np.moveaxis(X, 1, -1).reshape(len(X), -1)"
            )
        return np.moveaxis(values, 1, -1).reshape(len(values), self.size)

    @property
    def order(self) -> str:
        """How the values of a row lie, in words; nothing where they have no axes."""
        axes = " x ".join(map(str, self.axes)) + ", " if self.is_table else ""
        if self.axes and not self.channels_first:
            return f"{axes}the last axis innermost"
        if self.is_table and not self.axes:
            return ""
        has_channels = self.axes[-1] > 1 if self.axes else self.channels > 1
        return f"{axes}row by row" + (", channels last" if has_channels else "")

    @property
    def title(self) -> str:
        """Name for people."""
        if self.is_table:
            axes = f" ({' x '.join(map(str, self.axes))})" if self.axes else ""
            return f"rows of {count(self.channels, 'input')}{axes}"
        if self.is_signal:
            return f"windows of {count(self.rows, 'sample')} of {count(self.channels, 'channel')}"
        return f"images of {' x '.join(map(str, self.shape))}"
