"""Learned convolutions for images: chains of 3 x 3 kernels, a hidden layer, and the linear part.

All that is stored is rounded from float shadows in every step, and the forward pass computes the
integers of `Convolutions` and `Dense`: taps are multiples of 2**-6 up to 2, weights of the hidden
layer are -1, 0 or 1 (Hubara et al. 2016; the form of network is that of BitNetMCU). Rounding,
shifts and clipping have straight-through gradients.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.hadamard import run_on_rows
from tinykernel.learn.augment import Augmentation, affine_moves
from tinykernel.learn.convolutions import chain_passes as passes
from tinykernel.learn.linear.passes import SLOTS
from tinykernel.learn.linear.training import LinearLearner, LinearRecipe, TrainingRows
from tinykernel.learn.signals.pool import count_scaler
from tinykernel.pieces.convolutions.spec import Convolutions, pooled
from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.scale.spec import Scale

_SHIFT, _TOP = 6, 255
_ONE = np.float32(1 << _SHIFT)
# Images of so many rows are averaged.
_FINE_IMAGE = 24
# What is stored of them fits a byte, two bytes, and -1 to 1.
_LARGEST = {
    "taps": np.float32(127 / 2**_SHIFT),
    "bias": np.float32(32767 // 2**_SHIFT),
    "hidden": np.float32(1.4),
}
_START_ROWS, _MEASURED_ROWS = 128, 512
# What the first responses reach, and by how much the first taps are scaled for it at most.
_REACH, _STRETCH = 200, 10
# Deviation of the first sums of hidden units, and the range of their first biases.
_DEVIATION, _FIRST_BIAS = 48, 32

_Floats = NDArray[np.float32]


class ImageLearner(LinearLearner, ABC):
    """Stages and a linear part for images, uint8 of (n, channels, height, width).

    Images are quantized inputs plus 128.
    """

    #: Parameters of the stages, each with the field of the plan that holds its largest step.
    STEPS: ClassVar[dict[str, str]]

    def __init__(self, rows: TrainingRows, plan: Any, augmentation: Augmentation) -> None:
        self.plan, self.augmentation = plan, augmentation
        super().__init__(rows, plan.linear)

    def steps(self) -> dict[str, float]:
        """Return the names of all learned parameters, each with its largest step."""
        steps = {name: getattr(self.plan, step) for name, step in self.STEPS.items()}
        return super().steps() | steps

    def moves(self, rows: NDArray[np.int64]) -> _Floats:
        """Draw how the images of a batch are moved."""
        return affine_moves(self.augmentation, rows.size, self.inputs.shape[2:], self.rng)

    @abstractmethod
    def stages(self, scaler: Scale) -> tuple[Stage, ...]:
        """Return the stages before the linear part; TinykernelError for what the C lacks."""


def as_levels(rows: NDArray[Any], scaler: Scale, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Quantize raw rows (n, height * width * channels) to (n, channels, height, width) bytes."""
    height, width, channels = shape
    q = scaler.quantize(rows.reshape(-1, channels)).astype(np.int16) + 128
    images = q.astype(np.uint8).reshape(len(rows), height, width, channels)
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def padded_levels(levels: NDArray[np.int64], average: int, padding: int) -> NDArray[np.int64]:
    """Return levels (..., rows, columns) or their means of two by two, with zeros around."""
    if average == 2:
        rows, columns = (side // 2 * 2 for side in levels.shape[-2:])
        levels = levels[..., :rows:2, :columns] + levels[..., 1:rows:2, :columns]
        levels = (levels[..., ::2] + levels[..., 1::2]) >> 2
    return np.pad(levels, [(0, 0)] * (levels.ndim - 2) + [(padding, padding)] * 2)


@dataclass(frozen=True)
class ConvolutionPlan:
    """The shape of convolutions for images, and how they are trained."""

    n_channels: int = 32
    n_hidden: int = 32  # units of the hidden layer.
    average: int = 1  # {1, 2}
    padding: int = 1  # {0, 1}: zeros around the levels.
    pools: tuple[int, ...] = (1, 2, 2)  # of each layer: 2 takes the largest of two by two values.
    linear: LinearRecipe = field(default_factory=LinearRecipe)
    tap_step: float = 0.01  # largest steps of Adam.
    bias_step: float = 1.0
    hidden_step: float = 0.02


def _shapes(plan: ConvolutionPlan, height: int, width: int) -> NDArray[np.int64]:
    """Lay out the maps of a channel, see `convolution_passes`; the last row is what they give."""
    rows, columns = height // plan.average + 2 * plan.padding, width // plan.average
    columns, place, shapes = columns + 2 * plan.padding, 0, []
    for pool in plan.pools:
        after = place + rows * columns
        shapes.append([rows, columns, pool, place, after])
        place = after + (rows - 2) * (columns - 2)
        rows, columns = (rows - 2) // pool, (columns - 2) // pool
    return np.array([*shapes, [rows, columns, 1, place, place]], dtype=np.int64)


class ConvolutionLearner(ImageLearner):
    """Taps, biases, hidden layer and linear part, of images of one channel."""

    STEPS: ClassVar[dict[str, str]] = {
        "taps": "tap_step",
        "bias": "bias_step",
        "hidden": "hidden_step",
        "hidden_bias": "bias_step",
    }
    plan: ConvolutionPlan

    def draw(self) -> None:
        """Draw all that is learned."""
        plan = self.plan
        shapes = _shapes(plan, self.inputs.shape[2], self.inputs.shape[3])
        self.shapes, self.n_values = shapes[:-1], plan.n_channels * int(shapes[-1, :2].prod())
        zeros, (rows, columns) = plan.padding, shapes[0, :2].tolist()
        inner = rows - 2 * zeros, columns - 2 * zeros
        geometry = 0, plan.average, *inner, zeros, zeros, columns, rows * columns
        self._geometry = np.array(geometry, dtype=np.int64)
        self._draw_taps()
        self._draw_hidden()
        self.draw_linear()

    def _draw_taps(self) -> None:
        """Draw taps of which the responses fill the range; part of these is above 0."""
        plan, rng = self.plan, self.rng
        shape = (len(plan.pools), plan.n_channels, 9)
        self.taps = rng.standard_normal(shape, dtype=np.float32)
        self.taps[1:, :, 4] += 1
        self.bias = np.zeros(shape[:2], dtype=np.float32)
        rows = np.sort(rng.permutation(len(self.inputs))[:_START_ROWS])
        shares = rng.uniform(0.1, 0.6, (shape[0] - 1, shape[1]))
        images = self.inputs[rows, 0].astype(np.int64)
        levels = padded_levels(images, plan.average, plan.padding).astype(np.float32)
        for channel in range(plan.n_channels):  # one by one, as maps of all take memory
            self._fit_taps(channel, levels, shares[:, channel])

    def _fit_taps(self, channel: int, maps: _Floats, shares: NDArray[np.float64]) -> None:
        """Scale the taps of a channel, layer by layer, and set the share of responses above 0."""
        for layer, pool in enumerate(self.plan.pools):
            taps = self.taps[layer, channel]
            responses = _responses(maps, taps)
            reach = np.quantile(np.abs(responses), 0.995)
            factor = np.clip(_REACH / np.maximum(reach, 1), 1 / _STRETCH, _STRETCH)
            factor = np.float32(np.minimum(factor, _LARGEST["taps"] / np.abs(taps).max()))
            taps *= factor
            responses *= factor
            nonzero = responses[responses != 0]
            if layer and nonzero.size:
                bias = -np.quantile(nonzero, shares[layer - 1])
                self.bias[layer, channel] = np.clip(bias, -100, 100)
            maps = np.clip(np.floor(responses + self.bias[layer, channel]), 0, _TOP)
            maps = pooled(maps) if pool == 2 else maps

    def _draw_hidden(self) -> None:
        """Draw the hidden layer, and choose its shift by the deviation of its sums."""
        rows = np.sort(self.rng.permutation(len(self.inputs))[:_MEASURED_ROWS])
        n_hidden = self.plan.n_hidden
        self.hidden = np.zeros((self.n_values, 0), dtype=np.float32)
        self.hidden_bias = np.zeros(0, dtype=np.float32)
        self.hidden_shift = 0
        self.centre = np.zeros(self.n_values, dtype=np.float32)
        values = self.features(self.inputs[rows]).astype(np.int64)
        self.centre = np.rint(values.mean(axis=0)).astype(np.float32)
        drawn = self.rng.standard_normal((self.n_values, n_hidden), dtype=np.float32)
        self.hidden = np.float32(0.7) * drawn
        self.hidden_bias = np.float32(_FIRST_BIAS) * self.rng.random(n_hidden, dtype=np.float32)
        levels = self._hidden_levels().astype(np.int64)
        sums = np.einsum("ni,io->no", values - self.centre.astype(np.int64), levels)
        spread = np.sqrt(np.square(sums, dtype=np.float64).mean())
        self.hidden_shift = int(np.clip(np.rint(np.log2(max(spread, 1) / _DEVIATION)), 0, 14))
        self.measure(self.features(self.inputs[rows]))
        self.spread[:] = 1  # units that are constant at first may learn

    def _stored_taps(self) -> tuple[_Floats, _Floats]:
        """Return taps and biases as the firmware has them, in units of 2**6."""
        return np.clip(np.rint(self.taps * _ONE), -127, 127), np.rint(self.bias * _ONE)

    def _hidden_levels(self) -> _Floats:
        return np.clip(np.rint(self.hidden), -1, 1)

    def _hidden_biases(self, levels: _Floats) -> NDArray[np.int64]:
        """Return the biases of the hidden layer, which take off the centre of its values."""
        moved = np.einsum("io,i->o", levels.astype(np.int64), self.centre.astype(np.int64))
        biases: NDArray[np.int64] = np.rint(self.hidden_bias).astype(np.int64)
        return np.asarray((biases << self.hidden_shift) - moved)

    def _numbers(self) -> tuple[_Floats, _Floats, _Floats, _Floats]:
        """Return taps, biases, hidden weights and biases with the shifts in them; exact."""
        (taps, bias), levels = self._stored_taps(), self._hidden_levels()
        step = np.float32(2.0**-self.hidden_shift)
        hidden_biases = self._hidden_biases(levels).astype(np.float32) * step
        return taps / _ONE, bias / _ONE, levels * step, hidden_biases

    def features(self, rows: NDArray[Any]) -> NDArray[np.uint8]:
        """Compute what the linear part sees, plus 128; shape (n, n_hidden)."""
        n, numbers = len(rows), self._numbers()
        out = np.empty((n, numbers[2].shape[1] or self.n_values), dtype=np.uint8)
        arguments = rows, self._geometry, self.shapes, numbers
        run_on_rows(passes.hidden_values, n, self.recipe.n_threads, *arguments, out)
        return out

    def accumulate(self, rows: NDArray[np.int64]) -> None:
        """Compute the gradients of some images."""
        batch, numbers, g = self.batch(rows), self._numbers(), self.gradients
        d_taps = np.zeros((SLOTS, *self.bias.shape, 10), dtype=np.float32)
        arguments = self.inputs, self.moves(rows), self._geometry, self.shapes, numbers, self.centre

        def part(slot: int) -> None:
            hidden = g["hidden"][slot], g["hidden_bias"][slot]
            gradients = passes.ConvolutionGradients(d_taps[slot], *hidden)
            passes.learn_convolutions(slot, SLOTS, *arguments, batch, gradients, self.room(slot))

        self._in_threads(part, self._n_slots)
        g["taps"][...], g["bias"][...] = d_taps[..., :9], d_taps[..., 9]

    def update(self, share: float, factor: np.float32) -> None:
        """Let Adam move every learned parameter; shadows stay near what is stored."""
        super().update(share, factor)
        for name, most in _LARGEST.items():
            np.clip(getattr(self, name), -most, most, out=getattr(self, name))

    def stages(self, scaler: Scale) -> tuple[Stage, ...]:
        """Return the stages before the linear part."""
        taps, bias = self._stored_taps()
        plan, levels = self.plan, self._hidden_levels()
        # The grid has the channels of a position side by side.
        by_place = levels.reshape(plan.n_channels, -1, plan.n_hidden).transpose(2, 1, 0)
        return (
            Levels(scaler, scaler.bits - 8, plan.average, np.eye(1, dtype=np.int8)),
            Convolutions(
                taps.reshape(*bias.shape, 3, 3).astype(np.int8),
                bias.astype(np.int32),
                np.full(len(plan.pools), _SHIFT, dtype=np.uint8),
                np.array(plan.pools) == 2,
                plan.padding,
            ),
            Dense(
                by_place.reshape(plan.n_hidden, -1).astype(np.int8),
                self._hidden_biases(levels).astype(np.int32),
                self.hidden_shift,
            ),
            count_scaler("uint8", _TOP),
        )


def _responses(maps: _Floats, taps: _Floats) -> _Floats:
    """Return the responses (n, rows - 2, columns - 2) of maps to the nine taps of a channel."""
    rows, columns = maps.shape[1] - 2, maps.shape[2] - 2
    out = np.zeros((len(maps), rows, columns), dtype=np.float32)
    for place in range(9):
        i, j = divmod(place, 3)
        out += taps[place] * maps[:, i : i + rows, j : j + columns]
    return out


def pools_for(side: int) -> tuple[int, ...]:
    """Return how layers pool, of images with zeros around of which this is the shorter side.

    >>> pools_for(16), pools_for(26), pools_for(10)
    ((1, 2, 2), (1, 2, 2), (1, 2))
    """
    pools, side = [1], side - 2
    while side >= 6 and len(pools) < 6:
        pools.append(2)
        side = (side - 2) // 2
    return tuple(pools)


def convolution_plan(
    shape: tuple[int, ...], n_channels: int, linear: LinearRecipe | None = None
) -> ConvolutionPlan:
    """Plan so many channels for images of (height, width, channels).

    >>> convolution_plan((28, 28, 1), 48).n_hidden
    72
    """
    side = min(shape[:2])
    average = 2 if side >= _FINE_IMAGE else 1
    return ConvolutionPlan(
        n_channels=n_channels,
        n_hidden=max(16, 4 * round(1.5 * n_channels / 4)),
        average=average,
        pools=pools_for(side // average + 2),
        linear=linear or LinearRecipe(),
    )


def responses_of(shape: tuple[int, ...]) -> int:
    """Return how many responses a channel has in images of (height, width, channels)."""
    sizes = _shapes(convolution_plan(shape, 1), shape[0], shape[1])[:-1]
    return int(((sizes[:, 0] - 2) * (sizes[:, 1] - 2)).sum())


def no_chains(shape: tuple[int, ...]) -> str:
    """Return why images of this shape cannot have chains of convolutions; empty if they can."""
    if shape[2] != 1:
        return f"images have {shape[2]} channels, and chains take one"
    if min(shape[:2]) < 4 or max(shape[:2]) > 96:
        return f"images of {shape[0]} x {shape[1]}; give 4 to 96 rows and columns"
    return ""
