"""LocalStage: counts of threshold crossings of small kernels, for signals and images."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import TinykernelError
from tinykernel.hadamard import run_on_rows, useful_threads
from tinykernel.model.local.checking import CHECKS
from tinykernel.model.local.counting import count_images, count_signals
from tinykernel.model.proof import Range
from tinykernel.model.scaler import InputScaler

#: Widths of the packed integers that hold responses in C: 4 or 2 in a word.
LANE_BITS = (8, 16)
#: The firmware has C for cells of images of so many columns at most.
WIDEST_CELL = 255


@dataclass(frozen=True, eq=False)
class LocalStage:
    """What comes before the machine for inputs with a shape: small kernels, thresholds, counts.

    After MiniRocket (Dempster, Schmidt, Webb, KDD 2021): a count is the number of positions at
    which the response of a kernel exceeds a threshold. This docstring is the specification that
    Python and C follow. An input has `height` rows of `width` columns of `channels` values; of a
    signal the rows are the samples, oldest first, and the width is 1. ``>>`` rounds down.

    **1. Levels.** ``e = (q + 2**(bits - 1)) >> level_shift`` where q is what `scaler` makes of a
    raw value; its arrays have one entry a channel, or one for all. So e is in ``0..top``, ``top =
    2**(bits - level_shift) - 1``.

    **2. Averaging.** With `average` 2, two by two neighbours become ``(e + e + e + e) >> 2``, two
    samples of a signal ``(e + e) >> 1``; a last odd row or column is left out. Below, `height` and
    `width` mean those after this step (`rows`, `columns`).

    **3. Channels.** Mixed channel m has ``f_mc = e_c`` where ``mix[m, c] == 1`` and ``top - e_c``
    where it is -1; with one such term it is that, with two ``(f + f) >> 1``.

    **4. Responses.** `padding` rows of zeros stand before and after the input. Kernel k of size
    (kh, kw) and dilation d looks at mixed channel ``channel[k]``. At every padded row ``y >= (kh -
    1) d`` and every column x, with values outside of the columns 0::

        r = sum over i, j of taps[k, i, j] * f[y - (kh - 1 - i) d, x + (j - kw // 2) d]

    Row y is the newest that the response needs, so that a stream can compute it at once.

    **5. Counts.** The positions of kernel k are cut into ``cells[0]`` by ``cells[1]`` cells: with R
    rows of positions, ``y' = y - (kh - 1) d`` is in cell ``y' * cells[0] // R``, and x in cell ``x
    // ceil(columns / cells[1])``. The count number ``(k * cells[0] + cell of y) * cells[1] + cell
    of x`` is the number of positions there with ``r > threshold[k]``. Counts are uint8, or uint16
    where a cell has more than 255 positions. They are the raw inputs of the machine.

    Parameters
    ----------
    height, width, channels : int
        Shape of an input. `width` is 1 for signals.
    scaler : InputScaler
        No value of a channel is constant (multiplier 0).
    level_shift : int
        From 0 to ``bits - 1``.
    average : {1, 2}
    mix : ndarray of int8, shape (n_mixed, channels)
        Entries -1, 0, 1; one or two in a row are not 0.
    taps : ndarray of int8, shape (n_kernels, kh, kw)
        Images: entries -1, 0, 1, kh and kw odd and at most 7, no kernel all 0. Signals: kh is 9 and
        kw 1, and a kernel is one of three kinds: three 2 and six -1 (MiniRocket's), nine 1, or a 1
        for the newest sample alone.
    dilation : ndarray of uint8, shape (n_kernels,)
        At least 1.
    channel : ndarray of uint8, shape (n_kernels,)
        Which mixed channel.
    threshold : ndarray of int32, shape (n_kernels,)
    cells : (int, int)
        The second is 1 for signals and 1, 2 or 4 for images.
    padding : int
        Rows of zeros before and after; 0 for signals.
    hop : int
        Signals: a stream begins a window every so many samples, at most `height`; it and `height`
        are multiples of `average`. 0: no stream. Takes no part in the scores of a window.

    Raises
    ------
    TinykernelError
        If a field has the wrong type, shape or range, a kernel does not fit into the input, or a
        response could overflow 16 bits.

    Examples
    --------
    >>> scaler = InputScaler("uint8", 8, [0], [65536], [255])
    >>> taps = np.array([[[0, 0, 0], [-1, 1, 0], [0, 0, 0]]])  # brighter than the left neighbour
    >>> stage = LocalStage(height=3, width=4, channels=1, scaler=scaler, level_shift=4, average=1,
    ...                    mix=[[1]], taps=taps, dilation=[1], channel=[0], threshold=[0],
    ...                    cells=(1, 2), padding=1)
    >>> image = np.array([[[0, 90, 90, 200], [0, 0, 0, 0], [16, 16, 0, 0]]], dtype=np.uint8)
    >>> stage.counts(image).tolist()
    [[2, 1]]
    """

    height: int
    width: int
    channels: int
    scaler: InputScaler
    level_shift: int
    average: int
    mix: NDArray[np.int8]
    taps: NDArray[np.int8]
    dilation: NDArray[np.uint8]
    channel: NDArray[np.uint8]
    threshold: NDArray[np.int32]
    cells: tuple[int, int]
    padding: int = 0
    hop: int = 0

    def __post_init__(self) -> None:
        """Check every field, make the arrays read-only, and prove that nothing overflows."""
        for check in CHECKS:
            for name, value in check(self).items():
                object.__setattr__(self, name, value)
        for stage in self.ranges():
            if not stage.fits:
                raise TinykernelError(
                    f"local stage: {stage.stage} can reach {stage.low}..{stage.high}, allowed are "
                    f"{stage.limit_low}..{stage.limit_high}; use fewer levels or smaller taps"
                )

    # -- sizes --------------------------------------------------------------------------------

    @property
    def n_inputs(self) -> int:
        """Number of raw values of an input."""
        return self.height * self.width * self.channels

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an input: (samples, channels), (height, width) or (height, width, channels)."""
        if self.is_signal:
            return (self.height, self.channels)
        return (self.height, self.width, *((self.channels,) if self.channels > 1 else ()))

    @property
    def is_signal(self) -> bool:
        """Whether the rows are samples in time."""
        return self.width == 1

    @property
    def rows(self) -> int:
        """Number of rows after averaging."""
        return self.height // self.average

    @property
    def columns(self) -> int:
        """Number of columns after averaging."""
        return 1 if self.is_signal else self.width // self.average

    @property
    def cell_columns(self) -> int:
        """Columns of a cell, the last one may have fewer."""
        return -(-self.columns // self.cells[1])

    @property
    def top(self) -> int:
        """Largest level."""
        return int((1 << (self.scaler.bits - self.level_shift)) - 1)

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return int(self.taps.shape[0])

    @property
    def n_counts(self) -> int:
        """Number of counts: kernels times cells."""
        return self.n_kernels * self.cells[0] * self.cells[1]

    def spans(self) -> NDArray[np.int64]:
        """Return how many rows before the newest each kernel reaches back, shape (n_kernels,)."""
        rows: NDArray[np.int64] = (self.taps.shape[1] - 1) * self.dilation.astype(np.int64)
        return rows

    @property
    def largest_count(self) -> int:
        """No count is larger: the positions of the largest cell."""
        positions = self.rows + 2 * self.padding - int(self.spans().min())
        return -(-positions // self.cells[0]) * self.cell_columns

    @property
    def count_dtype(self) -> str:
        """Type of the counts: "uint8" or "uint16"."""
        return "uint8" if self.largest_count < 256 else "uint16"

    @property
    def lane_bits(self) -> int:
        """Width of the packed integers in C that hold any ``r - threshold`` with its sign: 8 or 16.

        A response is kept as ``r - threshold - 1 + 2**(bits - 1)``, which is in ``0..2**bits - 1``;
        its top bit says whether ``r > threshold``.
        """
        low, high = self._margins()
        return 8 if low.min() >= -128 and high.max() <= 127 else 16

    # -- proof --------------------------------------------------------------------------------

    def _responses(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the exact range of the responses of each kernel."""
        taps = self.taps.astype(np.int64).reshape(self.n_kernels, -1)
        return self.top * np.minimum(taps, 0).sum(1), self.top * np.maximum(taps, 0).sum(1)

    def _margins(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the range of ``r - threshold - 1``."""
        low, high = self._responses()
        above = self.threshold.astype(np.int64) + 1
        return low - above, high - above

    def ranges(self) -> tuple[Range, ...]:
        """Return the proved bound of every step, over every possible input.

        Returns
        -------
        tuple of Range
        """
        low, high = self._responses()
        margin_low, margin_high = self._margins()
        most = 255 if self.count_dtype == "uint8" else 65535
        bits = self.lane_bits
        return (
            Range("level", 0, self.top, 0, (1 << bits) - 1),
            Range("response", int(low.min()), int(high.max()), -(1 << 31), (1 << 31) - 1),
            Range(
                "response less threshold",
                int(margin_low.min()),
                int(margin_high.max()),
                -(1 << (bits - 1)),
                (1 << (bits - 1)) - 1,
            ),
            Range("count", 0, self.largest_count, 0, most),
        )

    # -- identity -----------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """Return everything that is not an array, as JSON types."""
        own = {
            "height": self.height,
            "width": self.width,
            "channels": self.channels,
            "raw_dtype": self.scaler.raw_dtype,
            "bits": int(self.scaler.bits),
            "level_shift": self.level_shift,
            "average": self.average,
            "cells": list(self.cells),
            "padding": self.padding,
        }
        return own | {"hop": self.hop} if self.hop else own

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return every array by name, the scaler's with the prefix ``scaler_``."""
        own = {
            name: getattr(self, name)
            for name in ("mix", "taps", "dilation", "channel", "threshold")
        }
        return own | {f"scaler_{name}": array for name, array in self.scaler.arrays.items()}

    # -- execution ----------------------------------------------------------------------------

    def as_raw(self, X: ArrayLike) -> NDArray[Any]:
        """Convert inputs to rows of the raw type of the firmware.

        Parameters
        ----------
        X : array-like, shape (n, *shape) or (n, n_inputs)
            Numbers, as for `InputScaler.as_raw`.

        Returns
        -------
        ndarray of `scaler.raw_dtype`, shape (n, n_inputs)

        Raises
        ------
        TinykernelError
            If the shape differs, or a value is not one that the raw type can hold.
        """
        given = np.asarray(X)
        full = (self.height, self.width, self.channels)
        if given.ndim < 2 or given.shape[1:] not in ((self.n_inputs,), self.shape, full):
            raise TinykernelError(
                f"inputs: shape {given.shape}, but the model takes {self._words()}"
            )
        return self.scaler.as_raw(given.reshape(given.shape[0], self.n_inputs))

    def _words(self) -> str:
        if self.is_signal:
            return f"windows of {self.height} samples of {self.channels} channels"
        return f"images of {' x '.join(str(n) for n in self.shape)}"

    def levels(self, raw: NDArray[Any]) -> NDArray[np.int32]:
        """Compute steps 1 to 3 of rows of the raw type.

        Parameters
        ----------
        raw : ndarray of `scaler.raw_dtype`, shape (n, n_inputs)

        Returns
        -------
        ndarray of int32, shape (n, rows, columns, n_mixed)
        """
        by_channel = raw.reshape(-1, self.channels)
        half = 1 << (self.scaler.bits - 1)
        level = (self.scaler.quantize(by_channel).astype(np.int32) + half) >> self.level_shift
        level = level.reshape(-1, self.height, self.width, self.channels)
        if self.average == 2:
            level = level[:, : 2 * self.rows]
            level = level[:, ::2] + level[:, 1::2]
            if not self.is_signal:
                level = level[:, :, : 2 * self.columns]
                level = level[:, :, ::2] + level[:, :, 1::2]
            level >>= 1 if self.is_signal else 2
        mixed = [self._mixed(level, row) for row in self.mix]
        return np.ascontiguousarray(np.stack(mixed, axis=-1), dtype=np.int32)

    def _mixed(self, level: NDArray[np.int32], mix: NDArray[np.int8]) -> NDArray[np.int32]:
        used = np.flatnonzero(mix)
        terms = [level[..., c] if mix[c] > 0 else self.top - level[..., c] for c in used]
        return terms[0] if len(terms) == 1 else (terms[0] + terms[1]) >> 1

    def counts(self, X: ArrayLike) -> NDArray[Any]:
        """Compute the counts of inputs (steps 1 to 5).

        Parameters
        ----------
        X : array-like, shape (n, *shape) or (n, n_inputs)
            Raw values.

        Returns
        -------
        ndarray of `count_dtype`, shape (n, n_counts)

        Raises
        ------
        TinykernelError
            As `as_raw`.
        """
        raw = self.as_raw(X)
        out = np.zeros((raw.shape[0], self.n_counts), dtype=self.count_dtype)
        positions = (self.rows + 2 * self.padding) * self.columns
        work = positions * int(self._tap_table[0][-1])
        kernels = *self._tap_table, self.dilation.astype(np.int64), self.channel.astype(np.int64)
        count = count_signals if self.is_signal else count_images
        grid = self.taps.shape[1], self.padding, *self.cells, self.cell_columns
        for first in range(0, raw.shape[0], 4096):
            part = slice(first, first + 4096)
            level = np.ascontiguousarray(self.levels(raw[part]).transpose(0, 3, 1, 2))
            run_on_rows(
                count,
                level.shape[0],
                useful_threads(work * level.shape[0]),
                level,
                *kernels,
                self.threshold,
                *(grid[:3:2] if self.is_signal else grid),
                out[part],
            )
        return out

    @cached_property
    def _tap_table(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Return the taps that are not 0, kernel by kernel: ends, places (rows, columns), taps."""
        k, i, j = np.nonzero(self.taps)
        places = np.stack([i - (self.taps.shape[1] - 1), j - self.taps.shape[2] // 2], axis=1)
        ends = np.searchsorted(k, np.arange(self.n_kernels + 1)).astype(np.int64)
        return ends, places.astype(np.int64), self.taps[k, i, j].astype(np.int32)
