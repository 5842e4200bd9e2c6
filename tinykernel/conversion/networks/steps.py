"""The steps of a network of any library, as its layers are read."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.conversion.networks.windows import Shape, Step, Window
from tinykernel.errors import ConvertError

_NOTHING = ("Identity", "Dropout", "Dropout1d", "Dropout2d", "Cast")
_ENDS = ("Softmax", "LogSoftmax", "Sigmoid", "ArgMax")


class Steps:
    """Steps in their order, with what follows the last one."""

    def __init__(self) -> None:
        self.layers: list[Step] = []
        self._now: Shape  # after the layers so far
        self._is_flat = False
        self.end = ""
        self.labels: NDArray[Any] | None = None

    @property
    def is_table(self) -> bool:
        """Whether its values have no shape after the layers so far."""
        return self._now[:2] == (1, 1)

    def add(self, place: str, name: str) -> None:
        """Add the operation of a name of ONNX."""
        self._go_on(place)
        if name in _ENDS:
            self.end = name
        elif name == "Flatten":
            self._is_flat = True
        elif name == "Relu":
            self.add_clip(place)
        elif name not in _NOTHING:
            raise ConvertError(f"convert: {place} is not supported")

    def add_clip(self, place: str, low: float = 0.0, top: float = np.inf) -> None:
        """Add ``min(max(x, 0), top)``."""
        self._go_on(place)
        if low != 0 or top <= 0:
            raise ConvertError(f"convert: {place} clips at {low:g} and {top:g}, not from 0 up")
        if not self.layers:
            raise ConvertError(f"convert: {place} has no weights before it")
        last = self.layers[-1]
        self.layers[-1] = replace(last, bends=True, top=min(last.top, top))

    def _go_on(self, place: str) -> None:
        if self.end:
            raise ConvertError(
                f"convert: {place} follows {self.end}, which is supported at the end only; "
                "between layers use ReLU"
            )

    def add_window(self, place: str, window: Window) -> None:
        """Add sums; those of each channel alone become part of the sums beside them."""
        self._go_on(place)
        if self._is_flat and not self.is_table:
            raise ConvertError(f"convert: {place} behind Flatten is not supported")
        step = Step(place, window)
        self._now, last = step.gives(self._now), self.layers[-1] if self.layers else None
        joined = None
        if last is not None and not last.bends and not last.pools:
            joined = last.window.joined(window)
        if joined is None:
            self.layers.append(step)
        else:
            self.layers[-1] = Step(place, joined)

    def add_dense(self, place: str, weights: NDArray[np.float64], bias: ArrayLike) -> None:
        """Add sums of all values, in the order of channels first."""
        rows, columns, channels = self._now
        if weights.shape[1] != prod(self._now) or not (self.is_table or self._is_flat):
            raise ConvertError(f"convert: {place} takes values of another shape")
        self._is_flat = False
        kernel = weights.reshape(-1, channels, rows, columns).transpose(0, 2, 3, 1)
        self.add_window(place, Window(kernel, np.zeros(len(kernel)) + np.ravel(bias)))

    def add_line(self, place: str, gain: ArrayLike, bias: ArrayLike) -> None:
        """Add a gain and an offset of each channel, or one of all."""
        n, gains, offsets = self._now[2], np.ravel(gain), np.ravel(bias)
        if {gains.size, offsets.size} - {1, n}:
            raise ConvertError(f"convert: {place} takes values of another shape")
        self.add_window(place, Window.line(gains + np.zeros(n), offsets + np.zeros(n)))

    def add_normalization(
        self, place: str, parts: Sequence[NDArray[np.float64]], eps: float
    ) -> None:
        """Add ``scale (x - mean) / sqrt(variance + eps) + bias``."""
        scale, bias, mean, variance = parts
        gain = scale / np.sqrt(variance + eps)
        self.add_line(place, gain, bias - gain * mean)

    def add_convolution(
        self,
        place: str,
        kernel: NDArray[np.float64],
        bias: ArrayLike,
        steps: Sequence[int],
        around: Sequence[int],
        groups: int,
    ) -> None:
        """Add a convolution of images or signals, channels first; signals are of one column."""
        if len(steps) == 1:
            kernel, steps, around = kernel[..., None], (*steps, 1), (around[0], 0, around[1], 0)
        n, of_group = kernel.shape[:2]
        full = np.zeros((n, *kernel.shape[2:], of_group * groups))
        for o in range(n):
            first = o * groups // n * of_group
            full[o, :, :, first : first + of_group] = kernel[o].transpose(1, 2, 0)
        above, before, below, behind = around
        offsets, ends = np.zeros(n) + np.ravel(bias), (above, before, below, behind)
        self.add_window(place, Window(full, offsets, (steps[0], steps[1]), ends))

    def add_pool(self, place: str, size: Sequence[int] | None, is_mean: bool) -> None:
        """Add means or largest values of patches side by side; of None, of all positions."""
        self._go_on(place)
        rows, columns, n = self._now
        high, wide = (rows, columns) if size is None else [*size, 1][:2]
        if is_mean:
            self.add_window(place, Window.line(np.ones(n), np.zeros(n), (high, wide)))
            return
        if high > rows or wide > columns:
            raise ConvertError(f"convert: {place} takes values of another shape")
        if not self.layers or self.layers[-1].pools:
            self.layers.append(Step(place, Window.line(np.ones(n), np.zeros(n))))
        self.layers[-1] = replace(self.layers[-1], pool=(high, wide))
        self._now = rows // high, columns // wide, n
