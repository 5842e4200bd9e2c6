"""Sums of neighbouring values in floats, and the integers that stand for values between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.pieces.filters.spec import UNIT
from tinykernel.pieces.grid import LARGEST

#: Rows, columns and channels; of a table 1, 1 and its values.
Shape = tuple[int, int, int]
_MOST_UNITS = 1024  # of a hidden layer
#: The largest multiplier of the stage *filters*.
LARGEST_GAIN = ((1 << UNIT) - 1) / (1 << UNIT)
_MOST_PRODUCTS = 1 << 26
_TOP = 255


#: Functions between layers that have a table, by their names in ONNX.
CURVES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
}


@dataclass(frozen=True)
class Affine:
    """A layer ``weights @ x + bias`` of floats; weights (n_outputs, n_inputs)."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]
    top: float = np.inf  # of units behind it

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute rows of outputs."""
        return np.asarray(x @ self.weights.T + self.bias)

    def after(self, first: Affine) -> Affine:
        """Return the layer that both are if nothing is between them."""
        return Affine(self.weights @ first.weights, self.of(first.bias[np.newaxis])[0])


@dataclass(frozen=True)
class Window:
    """A convolution of images, channels last, with zeros around them; a dense layer is one, too.

    Of channel o at row y and column x::

        bias[o] + sum over i, j, d of kernel[o, i, j, d] * f[steps[0] y + i - around[0],
                                                             steps[1] x + j - around[1], d]
    """

    kernel: NDArray[np.float64]  # (channels, rows, columns, channels before)
    bias: NDArray[np.float64]  # (channels,)
    steps: tuple[int, int] = (1, 1)
    around: tuple[int, int, int, int] = (0, 0, 0, 0)  # zeros above, before, below and behind

    @staticmethod
    def line(
        gain: NDArray[np.float64], bias: NDArray[np.float64], size: tuple[int, int] = (1, 1)
    ) -> Window:
        """Return a gain and an offset of each channel, or of its means of patches of a size."""
        kernel = np.diag(gain / prod(size))[:, None, None]
        return Window(kernel.repeat(size[0], axis=1).repeat(size[1], axis=2), bias, size)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the kernel."""
        return self.kernel.shape[1], self.kernel.shape[2]

    @property
    def is_pointwise(self) -> bool:
        """Whether it looks at one position, and at all."""
        return self.size == self.steps == (1, 1) and not any(self.around)

    @property
    def depthwise(self) -> NDArray[np.float64] | None:
        """The kernels (channels, rows, columns) if each channel is made of its own."""
        n, _, _, before = self.kernel.shape
        kernels = np.einsum("cijc->cij", self.kernel) if n == before else self.kernel[..., 0]
        is_own = n == before and np.count_nonzero(self.kernel) == np.count_nonzero(kernels)
        return kernels if is_own else None

    @property
    def gains(self) -> NDArray[np.float64] | None:
        """The gain of each channel if it is a line."""
        return self.depthwise[:, 0, 0] if self.is_pointwise and self.depthwise is not None else None

    def gives(self, shape: Shape) -> Shape:
        """Return the shape that it makes of another one."""
        above, before, below, behind = self.around
        rows = shape[0] + above + below - self.size[0]
        columns = shape[1] + before + behind - self.size[1]
        n_padded = (rows + self.size[0]) * (columns + self.size[1]) * shape[2]
        if self.kernel.shape[3] != shape[2] or min(rows, columns) < 0 or n_padded > LARGEST:
            raise ConvertError("takes values of another shape")
        return rows // self.steps[0] + 1, columns // self.steps[1] + 1, len(self.kernel)

    def patches(self, x: NDArray[np.generic], border: int = 0) -> NDArray[np.generic]:
        """Return what each position reads: (n, rows, columns, kernel rows, columns, channels)."""
        above, before, below, behind = self.around
        sides = (0, 0), (above, below), (before, behind), (0, 0)
        padded = np.pad(x, sides, constant_values=border)
        views = np.lib.stride_tricks.sliding_window_view(padded, self.size, axis=(1, 2))
        return views[:, :: self.steps[0], :: self.steps[1]].transpose(0, 1, 2, 4, 5, 3)

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute it for images (n, rows, columns, channels)."""
        patches: NDArray[np.float64] = self.patches(x)  # type: ignore[assignment]
        total: NDArray[np.float64] = np.tensordot(patches, self.kernel, ((3, 4, 5), (1, 2, 3)))
        return total + self.bias

    def affine(self, shape: Shape) -> Affine:
        """Return it as sums of all values of images of a shape."""
        n = prod(shape)
        rows = replace(self, bias=0 * self.bias).of(np.eye(n).reshape(n, *shape)).reshape(n, -1)
        return Affine(rows.T, np.tile(self.bias, rows.shape[1] // len(self.bias)))

    def joined(self, following: Window) -> Window | None:
        """Return both as one if one of them is a line; None where zeros around prevent that."""
        gains = following.gains
        if gains is not None:
            kernel = self.kernel * gains[:, None, None, None]
            return replace(self, kernel=kernel, bias=self.bias * gains + following.bias)
        gains = self.gains
        if gains is None or (any(following.around) and np.any(self.bias)):
            return None
        bias = following.bias + (following.kernel * self.bias).sum(axis=(1, 2, 3))
        return replace(following, kernel=following.kernel * gains, bias=bias)


@dataclass(frozen=True)
class Quantum:
    """Levels 0..255 of values in a quantized file: x is ``scale * (level - zero)``."""

    scale: float
    zero: int

    @staticmethod
    def between(low: float, high: float) -> Quantum:
        """Return the levels of values between two ends, with 0 among them."""
        scale = max(max(high, 0.0) - min(low, 0.0), 1e-30) / _TOP
        return Quantum(scale, int(np.clip(np.rint(-low / scale), 0, _TOP)))

    def holds(self, other: Quantum, bends: bool) -> bool:
        """Whether it has all values of other ones, of these from 0 up if something bends them."""
        low = 0 if bends else -other.zero * other.scale
        high = (_TOP - other.zero) * other.scale
        least, most = -self.zero - 0.5, _TOP - self.zero + 0.5
        return least <= low / self.scale and high / self.scale <= most

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of the nearest levels."""
        return self.scale * (self.levels(x) - self.zero)

    def levels(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the nearest levels."""
        nearest: NDArray[np.float64] = np.rint(x / self.scale) + self.zero
        return nearest.clip(0, _TOP)


@dataclass(frozen=True)
class Step:
    """Sums, then ``min(max(x, 0), top)`` if it bends, or a curve; then one value of each patch.

    Of a quantized file, values become levels behind the sums, the curve and the means. Values are
    numbered: 0 are the rows, k what the step k - 1 gives.
    """

    place: str  # in the network, for errors
    window: Window
    bends: bool = False
    top: float = np.inf
    curve: str = ""  # the name of a function in `CURVES`, in the place of that
    slope: float = 0.0  # of a leaky one below 0
    pool: tuple[int, int] = (1, 1)  # rows and columns of patches side by side
    averages: bool = False  # whether their means follow, not the largest values
    pooled_by: str = ""  # the place of what does that
    scales: NDArray[np.float64] | None = None  # of a quantized file: of a whole weight by channel
    quantum: Quantum | None = None
    of_curve: Quantum | None = None
    of_means: Quantum | None = None
    reads: int | None = None  # the number of the values that it sums; None: those before it
    adds: int | None = None  # of those that it adds to its sums

    @property
    def pools(self) -> bool:
        """Whether patches have more than one value."""
        return self.pool != (1, 1)

    @property
    def branches(self) -> bool:
        """Whether it takes more than what the step before it gives."""
        return self.reads is not None or self.adds is not None

    @property
    def given(self) -> Quantum | None:
        """The levels of what it gives."""
        return self.of_means or (self.of_curve if self.curve else self.quantum)

    @property
    def is_sum(self) -> bool:
        """Whether nothing follows its sums."""
        follows = self.bends or self.pools or self.curve or self.quantum
        return not follows and self.adds is None

    def joins(self, window: Window) -> bool:
        """Whether nothing is between its sums and others but levels that clip like no ReLU."""
        if self.bends or self.pools or self.curve or self.adds is not None:
            return False
        is_offset = window.gains is not None and bool(np.all(window.gains == 1))
        return self.quantum is None or (is_offset and 0 < self.quantum.zero < _TOP)

    def gives(self, shape: Shape) -> Shape:
        """Return the shape that it makes of another one."""
        try:
            rows, columns, channels = self.window.gives(shape)
        except ConvertError as error:
            raise ConvertError(f"convert: {self.place} {error}") from None
        return rows // self.pool[0], columns // self.pool[1], channels

    def of(self, values: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Compute it for images, of all values before it."""
        return self.after(self.sums(values))

    def sums(self, values: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Compute its sums."""
        sums = self.window.of(values[-1 if self.reads is None else self.reads])
        return sums if self.adds is None else sums + values[self.adds]

    @property
    def patch(self) -> tuple[int, int] | None:
        """Rows and columns of patches side by side, if it makes nothing but their means."""
        depthwise, size = self.window.depthwise, self.window.size
        if depthwise is None or self.window.steps != size or size == (1, 1) or self.pools:
            return None
        is_mean = np.allclose(depthwise, 1 / prod(size), rtol=1e-9) and not np.any(self.window.bias)
        return size if is_mean and not any(self.window.around) and not self.curve else None

    def can_average(self, step: Step) -> bool:
        """Whether it can make the means that the step behind it is."""
        size, have, wanted = step.patch, self.given, step.quantum
        if size is None or self.pools or (step.bends and not (self.bends and step.top >= self.top)):
            return False
        if have is None or wanted is None:
            return have is wanted
        return have.scale < wanted.scale * prod(size) * LARGEST_GAIN

    def after(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute what follows the sums."""
        return self.pooled(self.bent(x))

    def bent(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute what follows the sums before the patches."""
        x = np.clip(x, 0, self.top) if self.bends else x
        x = x if self.quantum is None else self.quantum.of(x)
        if not self.curve:
            return x
        if self.curve == "LeakyRelu":
            x = np.where(x < 0, self.slope * x, x)
        else:
            x = np.asarray(CURVES[self.curve](x), dtype=np.float64)
        return x if self.of_curve is None else self.of_curve.of(x)

    def pooled(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute one value of each patch."""
        if not self.pools:
            return x
        (n, rows, columns, channels), (high, wide) = x.shape, self.pool
        x = x[:, : rows // high * high, : columns // wide * wide]
        x = x.reshape(n, rows // high, high, columns // wide, wide, channels)
        x = np.asarray(x.mean(axis=(2, 4)) if self.averages else x.max(axis=(2, 4)))
        return x if self.of_means is None else self.of_means.of(x)


def with_means(steps: list[Step]) -> list[Step]:
    """Return steps, where means of patches are part of the step before them if they can be."""
    joined, places = list[Step](), {0: 0}
    shared = {number for step in steps for number in (step.reads, step.adds)}
    for number, step in enumerate(steps):
        last = joined[-1] if joined else None
        patch = None if step.branches or number in shared else step.patch
        if patch is None or last is None or not last.can_average(step):
            reads, adds = (None if k is None else places[k] for k in (step.reads, step.adds))
            joined.append(replace(step, reads=reads, adds=adds))
        else:
            last = replace(last, pool=patch, averages=True, pooled_by=step.place)
            joined[-1] = replace(last, of_means=step.quantum)
        places[number + 1] = len(joined)
    return joined


def shapes_of(steps: list[Step], shape: Shape) -> list[Shape]:
    """Return the shape before the first step, and those behind all."""
    shapes = [shape]
    for step in steps:
        shapes.append(step.gives(shapes[-1 if step.reads is None else step.reads]))
    return shapes


def lowered(steps: list[Step], shape: Shape) -> list[Affine]:
    """Return steps as layers of sums of all values, with ``max(x, 0)`` between them."""
    layers: list[Affine] = []
    sums: Affine | None = None
    for step in steps:
        before, shape = shape, step.gives(shape)
        n = prod(shape)
        if (
            step.pools
            or step.curve
            or (step.bends and n > _MOST_UNITS)
            or n * prod(before) > _MOST_PRODUCTS
        ):
            sizes = " of ".join(" x ".join(map(str, size)) for size in (shape, before))
            pooled = f", with {step.pooled_by} behind it," if step.pools else ""
            hint = "; use strides in place of pooling" if step.pools and before[1] == 1 else ""
            raise ConvertError(
                f"convert: {step.place}{pooled} makes {sizes} values, and no stage does that here"
                f"{hint}; see 'Images and signals' in docs/convert.md"
            )
        affine = step.window.affine(before)
        sums = affine if sums is None else affine.after(sums)
        if step.bends or step is steps[-1]:
            layers.append(replace(sums, top=step.top))
            sums = None
    return layers


_SWEEPS = 4


@dataclass(frozen=True)
class Signal:
    """Values between two layers on the known rows, and the integers that stand for them."""

    x: NDArray[np.float64]
    levels: NDArray[np.uint8]  # x is about low + step * level
    step: NDArray[np.float64]
    low: NDArray[np.float64]

    @staticmethod
    def of_file(levels: NDArray[np.uint8], low: float, worth: float) -> Signal:
        """Return the values of levels that are worth the same in all channels."""
        ones = np.ones(levels.shape[-1])
        values: NDArray[np.float64] = low + worth * levels.astype(np.float64)
        return Signal(values, levels, worth * ones, low * ones)

    def images(self, shape: tuple[int, int, int]) -> Signal:
        """Return rows of images, whose values of a channel have one step, as images."""
        x, levels = self.x.reshape(-1, *shape), self.levels.reshape(-1, *shape)
        return Signal(x, levels, self.step[: shape[2]], self.low[: shape[2]])

    def flat(self) -> Signal:
        """Return images as rows."""
        n, times = len(self.x), self.x[0, ..., 0].size
        step, low = np.tile(self.step, times), np.tile(self.low, times)
        return Signal(self.x.reshape(n, -1), self.levels.reshape(n, -1), step, low)

    def of_levels(self, layer: Affine) -> Affine:
        """Return a layer of x as one of the levels."""
        return Affine(layer.weights * self.step, layer.of(self.low[np.newaxis])[0])


def rounded(
    weights: NDArray[np.float64], gram: NDArray[np.float64], most: int
) -> NDArray[np.float64]:
    """Round rows w of weights to whole q within -most..most, so that little of the sums changes.

    From the nearest numbers on, one weight after the other becomes the whole number of the least
    ``(w - q) gram (w - q)``, four times: coordinate descent. So it is never more than of the
    nearest numbers. With a gram matrix of inputs that is the squared error of sums of these, which
    Frantar et al. (GPTQ, arXiv 2210.17323, equation 1) minimize.

    >>> rounded(np.array([[0.4, 0.4]]), np.ones((2, 2)), 7).tolist()
    [[1.0, 0.0]]
    """
    whole = np.clip(np.rint(weights), -most, most)
    for _ in range(_SWEEPS):
        for i in np.flatnonzero(np.diag(gram) > 0):
            pull = (weights - whole) @ gram[:, i] / gram[i, i]
            whole[:, i] = np.clip(whole[:, i] + np.rint(pull), -most, most)
    return np.asarray(whole)
