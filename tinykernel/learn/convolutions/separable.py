"""Learned separable convolutions: the stage `Separable`, trained in the integers of the firmware.

Weights are rounded from float shadows in every step, and maps are the bytes of the firmware.
Rounding and clipping have straight-through gradients (Hubara et al. 2016). During training, the
sums of each batch are normalised to a mean and a variance (batch normalisation, Ioffe & Szegedy
2015); at the end the moments of training rows are folded into biases, multipliers and shifts.

Factors of matrix products are integers: stored maps and weights, and gradients rounded to a share
of the largest one that keeps every sum below 2**24. So the order of additions does not change a
bit, and BLAS can be used.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinykernel.learn.augment import Augmentation
from tinykernel.learn.convolutions import separable_passes as passes
from tinykernel.learn.convolutions.chains import ImageLearner
from tinykernel.learn.linear.training import LEVEL_STEPS, LinearRecipe, TrainingRows
from tinykernel.learn.loop import one_blas_thread
from tinykernel.learn.signals.pool import count_scaler
from tinykernel.pieces.layers import MIXED, POINT, SINGLE, size_after
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.separable.spec import Separable

_TOP = 255
# A normalised value of 1 as a byte: 255 is more than five deviations.
_UNIT = np.float32(48)
_LEAST_VARIANCE = 1e-3
# Sums of float32 are exact below this.
_EXACT = 1 << 24
_LARGEST_BIAS, _LARGEST_MULTIPLIER, _LARGEST_SHIFT = (1 << 19) - 1, 127, 24
_MEASURED_ROWS, _ROWS_AT_ONCE = 1024, 128
_NUMBERS_AT_ONCE = 1 << 15  # that stay in the cache while they are multiplied.

_Floats = NDArray[np.float32]
_Integers = NDArray[np.int64]
#: Biases, multipliers and shifts of one layer.
_Folded: TypeAlias = tuple[_Integers, _Integers, _Integers]


@dataclass(frozen=True)
class SeparablePlan:
    """The shape of separable convolutions, and how they are trained."""

    channels: tuple[int, ...]  # of each block, see `Separable`.
    strides: tuple[int, ...]
    average: int = 1  # {1, 2}
    first_bits: int = 8  # {2, 4, 8}: of the weights of the first layer.
    bits: int = 4  # of those of the others.
    linear: LinearRecipe = field(default_factory=LinearRecipe)
    # Largest steps of Adam: for weights of mean square 1, and for normalised values.
    weight_step: float = 0.02
    scale_step: float = 0.005
    # Share of a step of which weights lose as much of themselves (Loshchilov & Hutter 2019).
    decay: float = 0.01
    smoothing: float = 0.05  # share of a label that all classes get (Szegedy et al. 2016).
    row_strides: tuple[int, ...] | None = None  # of a stream.


class _Layer(NamedTuple):
    kind: str
    steps: tuple[int, int]  # strides of rows and of columns
    above: int  # rows of zeros above, if not of kind "point"
    bits: int
    shape: tuple[int, int]  # inputs of a sum, channels
    weights: slice
    units: slice


class _Passed(NamedTuple):
    """What a batch left in a layer, for the way back."""

    levels: _Floats
    step: _Floats
    inputs: _Floats
    sums: _Floats
    values: _Floats
    mean: _Floats
    factor: _Floats
    deviation: _Floats


class SeparableLearner(ImageLearner):
    """Separable convolutions and linear part."""

    STEPS: ClassVar[dict[str, str]] = {
        "shadow": "weight_step",
        "scale_of": "scale_step",
        "shift_of": "scale_step",
    }
    plan: SeparablePlan

    def __init__(self, rows: TrainingRows, plan: SeparablePlan, augmentation: Augmentation) -> None:
        n_outputs = rows.targets.shape[1]
        if n_outputs > 1 and not plan.linear.losses:
            even = np.float32(plan.smoothing / n_outputs)
            rows = replace(rows, targets=rows.targets * np.float32(1 - plan.smoothing) + even)
        super().__init__(rows, plan, augmentation)

    def draw(self) -> None:
        """Draw all that is learned."""
        self._layers = _layers_of(self.plan, self.inputs.shape[1])
        last = self._layers[-1]
        self.shadow = self.rng.standard_normal(last.weights.stop, dtype=np.float32)
        self.scale_of = np.ones(last.units.stop, dtype=np.float32)
        self.shift_of = np.zeros(last.units.stop, dtype=np.float32)
        self._folded: list[_Folded] | None = None
        self._measured = np.sort(self.rng.permutation(len(self.inputs))[:_MEASURED_ROWS])
        self.measure(self.features(self.inputs[self._measured]))
        self.spread[:] = 1  # means that are constant at first may learn
        self.draw_linear()

    def _each(self, kernel: Callable[..., None], n: int, *arguments: Any) -> None:
        parts = min(self.recipe.n_threads, n)
        ends = [n * i // parts for i in range(parts + 1)]
        self._in_threads(lambda i: kernel(ends[i], ends[i + 1], *arguments), parts)

    def _round(self, layer: _Layer) -> tuple[_Floats, _Floats]:
        """Round the shadow of a layer to levels (inputs, channels) of a step a channel."""
        shadow = self.shadow[layer.weights].reshape(layer.shape)
        most = np.float32(2 ** (layer.bits - 1) - 1)
        step = np.abs(shadow).max(axis=0) / most
        if layer.bits in LEVEL_STEPS:
            size = np.sqrt(passes.squares(shadow) / layer.shape[0])
            step = np.minimum(step, (LEVEL_STEPS[layer.bits] * size).astype(np.float32))
        step = np.maximum(step, np.float32(1e-12))
        return np.clip(np.rint(shadow / step), -most, most), step

    def _sum(self, layer: _Layer, levels: _Floats, maps: _Floats) -> tuple[_Floats, _Floats]:
        """Return what the sums of a layer are taken of, and the sums (n, positions, channels)."""
        n, rows, columns, channels = maps.shape
        high, wide = size_after(layer.kind, layer.steps, (layer.above, 1), rows, columns)
        steps = *layer.steps, layer.above
        if layer.kind == SINGLE:
            sums = np.empty((n, high, wide, channels), dtype=np.float32)
            self._each(passes.single_sums, n, maps, levels, steps, sums)
            return maps, sums
        inputs = maps
        if layer.kind == MIXED:
            inputs = np.empty((n, high, wide, 9 * channels), dtype=np.float32)
            self._each(passes.patches, n, maps, steps, inputs)
        sums = np.empty((n, high, wide, levels.shape[1]), dtype=np.float32)
        self._each(_matrix_sums, n, inputs, levels, sums)
        return inputs, sums

    def _forward(self, maps: _Floats) -> list[_Passed]:
        """Run a batch with the mean and the variance of its own."""
        passed: list[_Passed] = []
        for layer in self._layers:
            levels, step = self._round(layer)
            inputs, sums = self._sum(layer, levels, maps)
            moments = self._moments_of(sums)
            mean, deviation = moments[0].astype("f4"), np.sqrt(moments[1]).astype("f4")
            factor = _UNIT * self.scale_of[layer.units] / deviation
            shift = _UNIT * self.shift_of[layer.units] - mean * factor
            maps = np.empty_like(sums)
            wide = _wide(sums, factor, shift)
            self._each(passes.activate, len(sums), *wide, _wide(maps)[0])
            passed.append(_Passed(levels, step, inputs, sums, maps, mean, factor, deviation))
        return passed

    def _moments_of(self, sums: _Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and variance of each channel; sums of whole numbers, exact in any order."""
        parts = np.empty((len(sums), 2, *sums.shape[2:]))
        self._each(passes.moments, len(sums), *_wide(sums), parts.reshape(len(sums), 2, -1))
        count = sums.size // sums.shape[-1]
        mean, square = parts.sum(axis=(0, 2)) / count
        return mean, np.maximum(square - mean * mean, 0) + _LEAST_VARIANCE

    def _fold(self) -> list[_Folded]:
        """Fold the mean and the variance of some training rows into integers, layer by layer."""
        if self._folded is not None:
            return self._folded
        maps, folded = self.measured_maps(), list[_Folded]()
        for layer in self._layers:
            _, sums = self._sum(layer, self._round(layer)[0], maps)
            mean, variance = self._moments_of(sums)
            factor = float(_UNIT) * self.scale_of[layer.units] / np.sqrt(variance)
            shift = float(_UNIT) * self.shift_of[layer.units] - mean * factor
            folded.append(_whole(factor, shift))
            maps = self._clip(sums, folded[-1])
        self._folded = folded
        return folded

    def measured_maps(self) -> _Floats:
        """Return the maps by which sums are normalised."""
        return self._maps(self.inputs, self._measured)

    def _clip(self, sums: _Floats, folded: _Folded) -> _Floats:
        out = np.empty_like(sums)
        self._each(passes.clip_products, len(sums), *_wide(sums, *folded), _wide(out)[0])
        return out

    def _maps(
        self, images: NDArray[np.uint8], rows: NDArray[Any], moves: _Floats | None = None
    ) -> _Floats:
        """Return images as maps, moved or as they are."""
        moves = np.empty((0, 6), np.float32) if moves is None else moves
        n_channels, height, width = images.shape[1:]
        out = np.empty((len(rows), height, width, n_channels), dtype=np.float32)
        self._each(passes.gather_images, len(rows), images, rows, moves, out)
        if self.plan.average == 2:
            cut = out[:, : height // 2 * 2, : width // 2 * 2]
            whole = cut[:, ::2, ::2] + cut[:, 1::2, ::2] + cut[:, ::2, 1::2] + cut[:, 1::2, 1::2]
            out = np.floor(whole * np.float32(0.25))
        return out

    @one_blas_thread
    def features(
        self, rows: NDArray[Any], seen: Callable[[_Floats], _Floats] | None = None
    ) -> NDArray[np.uint8]:
        """Compute what the linear part sees, plus 128; shape (n, channels), or that of `seen`."""
        folded, parts, seen = self._fold(), [], seen or means_of
        levels = [self._round(layer)[0] for layer in self._layers]
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            part = np.arange(first, min(first + _ROWS_AT_ONCE, len(rows)))
            maps = self._maps(rows, part)
            for layer, weights, numbers in zip(self._layers, levels, folded, strict=True):
                maps = self._clip(self._sum(layer, weights, maps)[1], numbers)
            parts.append(seen(maps).astype(np.uint8))
        return np.concatenate(parts)

    def accumulate(self, rows: NDArray[np.int64]) -> None:
        """Compute the gradients of some images."""
        self._folded = None
        passed = self._forward(self.varied_maps(rows))
        d = self.map_gradients(rows, passed[-1].values)
        for layer, left in zip(self._layers[::-1], passed[::-1], strict=True):
            d = self._back(layer, left, d)

    def map_gradients(self, rows: NDArray[np.int64], maps: _Floats) -> _Floats:
        """Learn the linear part of a batch, and return the gradients of the last maps."""
        d_features = self.learn_means(self.batch(rows), means_of(maps))
        d = np.empty_like(maps)
        positions = maps.shape[1] * maps.shape[2]
        d[...] = (d_features / np.float32(positions))[:, None, None, :]
        return d

    def varied_maps(self, rows: NDArray[np.int64]) -> _Floats:
        """Return varied images of a batch as maps."""
        return self._maps(self.inputs, rows, self.moves(rows))

    def _back(self, layer: _Layer, passed: _Passed, d: _Floats) -> _Floats:
        """Store the gradients of a layer, and return those of what it was given."""
        n, sums, flat = len(d), _flat(passed.sums), _flat(d)
        parts = np.empty((n, 2, d.shape[-1]))
        self._each(passes.cut_gradients, n, _flat(passed.values), sums, passed.mean, flat, parts)
        first, second = _add_up(parts)
        deviation = passed.deviation.astype(np.float64)
        self.gradients["scale_of"][0, layer.units] = _UNIT * second / deviation
        self.gradients["shift_of"][0, layer.units] = _UNIT * first
        count, most = d.size // d.shape[-1], np.empty(n, dtype=np.float32)
        means = (first / count).astype(np.float32), (second / count / deviation**2).astype("f4")
        wide = _wide(passed.sums, passed.mean, passed.factor, *means)
        self._each(passes.normal_gradients, n, *wide, _wide(d)[0], most)
        levels, inputs, d_maps = passed.levels, passed.inputs, d
        if layer.kind == SINGLE:
            d_maps, by_image = np.empty_like(inputs), np.empty((n, *layer.shape), np.float32)
            steps = *layer.steps, layer.above
            self._each(passes.single_back, n, inputs, levels, steps, d, d_maps, by_image)
            d_levels = _add_up(by_image)
        else:
            unit, products = _exact_unit(float(most.max()), levels), list[NDArray[np.float64]]()
            d_maps = np.empty_like(inputs if layer.kind == POINT else inputs[:, :0])
            self._each(_matrix_back, n, inputs, levels, unit, d, d_maps, products)
            d_levels = np.sum(products, axis=0) * unit
        self.gradients["shadow"][0, layer.weights] = (d_levels / passed.step).ravel()
        return d_maps

    def update(self, share: float, factor: np.float32) -> None:
        """Let Adam move every learned parameter; weights decay by themselves."""
        super().update(share, factor)
        self.shadow *= np.float32(1 - share * self.plan.weight_step * self.plan.decay)
        np.maximum(self.scale_of, np.float32(0.05), out=self.scale_of)
        self._folded = None

    def restore(self, state: list[_Floats]) -> None:
        """Put back learned parameters."""
        super().restore(state)
        self._folded = None

    def layers_and_scale(self) -> tuple[Stage, ...]:
        """Return the convolutions, and the scale of their means."""
        plan, n_channels = self.plan, self.inputs.shape[1]
        # The channel comes first; a mixed layer has its inputs position by position.
        weights = [self._round(layer)[0].T.astype(np.int8).ravel() for layer in self._layers]
        biases, multipliers, shifts = map(np.concatenate, zip(*self._fold(), strict=True))
        stage = Separable(
            np.array(plan.channels, dtype=np.uint16),
            np.array(plan.strides, dtype=np.uint8),
            n_channels,
            np.concatenate(weights),
            biases.astype(np.int32),
            multipliers.astype(np.uint8),
            shifts.astype(np.uint8),
            None if plan.row_strides is None else np.array(plan.row_strides, dtype=np.uint8),
        )
        return stage, count_scaler("uint8", _TOP)

    def stages(self, scaler: Scale) -> tuple[Stage, ...]:
        """Return the stages before the linear part."""
        mix = np.eye(self.inputs.shape[1], dtype=np.int8)
        return Levels(scaler, scaler.bits - 8, self.plan.average, mix), *self.layers_and_scale()


def _layers_of(plan: SeparablePlan, n_channels: int) -> list[_Layer]:
    layers, weight, unit, before = list[_Layer](), 0, 0, n_channels
    above = int(plan.row_strides is None)
    strides = zip(plan.row_strides or plan.strides, plan.strides, strict=True)
    for block, (channels, step) in enumerate(zip(plan.channels, strides, strict=True)):
        kinds = [(MIXED, step, (9 * before, channels))]
        if block:
            kinds = [(SINGLE, step, (9, before)), (POINT, (1, 1), (before, channels))]
        for kind, steps, shape in kinds:
            bits = plan.bits if block else plan.first_bits
            weights = slice(weight, weight + shape[0] * shape[1])
            units = slice(unit, unit + shape[1])
            layers.append(_Layer(kind, steps, above, bits, shape, weights, units))
            weight, unit = weights.stop, unit + shape[1]
        before = channels
    return layers


def _flat(maps: _Floats) -> _Floats:
    return maps.reshape(len(maps), -1, maps.shape[-1])


def _wide(maps: _Floats, *of_channels: NDArray[Any]) -> list[NDArray[Any]]:
    """Return maps with whole rows side by side, and numbers of channels as wide as these.

    Loops over channels of a position would be too short for compilers.
    """
    rows = maps.reshape(len(maps), maps.shape[1], -1)
    return [rows, *(np.tile(numbers, maps.shape[2]) for numbers in of_channels)]


def _matrix_sums(begin: int, end: int, maps: _Floats, levels: _Floats, out: _Floats) -> None:
    """Write the sums of a layer that mixes channels."""
    flat = maps[begin:end].reshape(-1, len(levels))
    np.matmul(flat, levels, out=out[begin:end].reshape(-1, levels.shape[1]))


def _matrix_back(
    begin: int,
    end: int,
    maps: _Floats,
    levels: _Floats,
    unit: float,
    d: _Floats,
    d_maps: _Floats,
    products: list[NDArray[np.float64]],
) -> None:
    """Write the gradients of maps, if wanted, and append those of weights, in this unit: exact."""
    flat, gradients = (part[begin:end].reshape(-1, part.shape[-1]) for part in (maps, d))
    total, at_once = np.zeros(levels.shape), max(1, _NUMBERS_AT_ONCE // len(levels))
    for first in range(0, len(flat), at_once):
        part = slice(first, first + at_once)
        whole = np.rint(gradients[part] / np.float32(unit))
        total += flat[part].astype(np.float64).T @ whole.astype(np.float64)
        if d_maps.size:
            back = d_maps[begin:end].reshape(flat.shape)[part]
            np.multiply(whole @ levels.T, np.float32(unit), out=back)
    products.append(total)


def _add_up(parts: NDArray[Any]) -> NDArray[np.float64]:
    """Add up what each image gives, one by one: the order of additions is that of the images."""
    total: NDArray[np.float64] = parts[0].astype(np.float64)
    for part in parts[1:]:
        total += part
    return total


def means_of(maps: _Floats) -> _Floats:
    """Return the means of maps as the firmware has them; sums of whole numbers are exact."""
    sums = maps.sum(axis=(1, 2), dtype=np.float64).astype(np.int64)
    means: _Floats = (sums * (65536 // (maps.shape[1] * maps.shape[2])) >> 16).astype(np.float32)
    return means


def _exact_unit(most: float, levels: _Floats) -> float:
    """Return the power of two in which gradients are rounded, so that sums with levels are exact.

    >>> _exact_unit(1.0, np.ones((4, 2), np.float32)) * 2**22
    2.0
    """
    largest = max(1.0, float(np.abs(levels).sum(axis=1).max()))
    _, exponent = math.frexp(max(most, 1e-30) * largest / (_EXACT // 2))
    return 2.0**exponent


def _whole(factor: NDArray[np.float64], shift: NDArray[np.float64]) -> _Folded:
    """Write ``floor(a * factor + shift)`` as ``((a + bias) * multiplier) >> shift``."""
    _, exponent = np.frexp(factor)
    shifts = np.clip(7 - exponent, 0, _LARGEST_SHIFT)
    multipliers = np.clip(np.rint(factor * 2.0**shifts), 1, _LARGEST_MULTIPLIER)
    biases = np.rint(shift * 2.0**shifts / multipliers)
    biases = np.clip(biases, -_LARGEST_BIAS, _LARGEST_BIAS)
    return biases.astype(np.int64), multipliers.astype(np.int64), shifts.astype(np.int64)


# Of each block the channels as shares of the last one's, and the stride, by the shorter side of the
# images: of small ones more positions are left to the last blocks.
_FINE = {
    24: ((3, 1), (6, 2), (8, 1), (12, 2), (12, 1), (16, 1)),
    12: ((4, 1), (8, 2), (12, 1), (16, 2)),
    8: ((6, 1), (12, 2), (16, 1)),
    4: ((8, 1), (16, 1)),
}
# The same with fewer channels and positions: less RAM and time for the same flash.
_COARSE = {
    24: ((1.5, 1), (3, 2), (4, 1), (8, 2), (12, 1), (16, 2), (16, 1)),
    12: ((2, 1), (4, 2), (8, 1), (12, 2), (16, 1)),
}
_PARTS = 16
_LARGE_IMAGE, _LARGEST_SIDE = 48, 192
_MOST_INPUT_CHANNELS = 16


def separable_plan(
    shape: tuple[int, ...],
    n_channels: int,
    linear: LinearRecipe | None = None,
    *,
    is_coarse: bool = False,
) -> SeparablePlan:
    """Plan separable convolutions for images of (height, width, channels).

    The last block has so many channels, the others a share of them.

    >>> separable_plan((32, 32, 3), 64).channels, separable_plan((16, 16, 1), 32).strides
    ((12, 24, 32, 48, 48, 64), (1, 2, 1, 2))
    """
    average = 2 if min(shape[:2]) >= _LARGE_IMAGE else 1
    table = _COARSE if is_coarse else _FINE
    blocks = next(each for least, each in table.items() if min(shape[:2]) // average >= least)
    channels = [max(4, 4 * round(part * n_channels / _PARTS / 4)) for part, _ in blocks[:-1]]
    strides = tuple(stride for _, stride in blocks)
    return SeparablePlan((*channels, n_channels), strides, average, linear=linear or LinearRecipe())


def no_separable(shape: tuple[int, ...], *, is_coarse: bool = False) -> str:
    """Return why images of this shape cannot have separable convolutions; empty if they can."""
    if shape[2] > _MOST_INPUT_CHANNELS:
        return f"images have {shape[2]} channels, and separable convolutions take up to 16"
    least = min(_COARSE if is_coarse else _FINE)
    if min(shape[:2]) < least or max(shape[:2]) > _LARGEST_SIDE:
        return (
            f"images of {shape[0]} x {shape[1]}; give {least} to {_LARGEST_SIDE} rows and columns"
        )
    return ""
