"""Learned kernels for images: ternary taps, thresholds and the linear part on their counts.

A kernel is a float shadow of its taps: those above 0.7 of the mean magnitude are stored as +-1, at
most `taps` of them. Taps, thresholds and weights are learned together; the forward pass uses the
integers of the firmware from the first step on, so that its counts are those of `Kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.hadamard import run_on_rows
from tinykernel.model.grid import Grid
from tinykernel.model.stages.kernels import Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.scale import Scale
from tinykernel.training.augment import Augmentation, affine_moves
from tinykernel.training.images.kernel_passes import KernelBatch, count_images, learn_images
from tinykernel.training.readouts.counts import CountingStages, count_multiplier, scaled_counts
from tinykernel.training.readouts.linear import SLOTS, LinearLearner, LinearRecipe

_CUT = 0.7
_START_ROWS = 256

_Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ImagePlan:
    """The shape of a local stage for images, and how it is trained.

    Parameters
    ----------
    n_kernels : int
    size : int
        Rows and columns of a kernel, odd.
    taps : int
        Most taps of a kernel that are not 0.
    level_bits : int
        Bits of a level.
    average : {1, 2}
    cells : (int, int)
    linear : LinearRecipe
    tap_step, threshold_step : float
        Largest steps of Adam.
    slope : float
        k of the surrogate derivative.
    """

    n_kernels: int = 32
    size: int = 5
    taps: int = 14
    level_bits: int = 3
    average: int = 1
    cells: tuple[int, int] = (4, 4)
    linear: LinearRecipe = field(default_factory=LinearRecipe)
    tap_step: float = 0.015
    threshold_step: float = 0.1
    slope: float = 2.0


@dataclass(frozen=True, eq=False)
class _Geometry:
    """Where things lie in the planes of one group, see `kernel_passes`."""

    numbers: NDArray[np.int64]
    cell: NDArray[np.int64]
    n_cells: int
    places: NDArray[np.int64]
    channel: NDArray[np.int64]
    base: NDArray[np.int64]


def _geometry(plan: ImagePlan, shape: tuple[int, int, int]) -> _Geometry:
    """Lay out planes for images of (channels, height, width)."""
    channels, height, width = shape
    rows, columns, half = height // plan.average, width // plan.average, plan.size // 2
    pitch = columns + half
    plane = half + (rows + 2 * half) * pitch
    shift = 8 - plan.level_bits
    place = np.arange((rows - 1) * pitch + columns)
    y, x = place // pitch, place % pitch
    across = -(-columns // plan.cells[1])
    cell = y * plan.cells[0] // rows * plan.cells[1] + x // across
    n_cells = plan.cells[0] * plan.cells[1]
    i, j = np.divmod(np.arange(plan.size**2), plan.size)
    channel = np.sort(np.arange(plan.n_kernels) % channels)
    return _Geometry(
        numbers=np.array([shift, plan.average, rows, columns, half, half, pitch, plane]),
        cell=np.where(x < columns, cell, n_cells).astype(np.int64),
        n_cells=n_cells,
        places=(i * pitch + j).astype(np.int64),
        channel=channel,
        base=(channel * plane).astype(np.int64),
    )


class ImageLearner(LinearLearner):
    """Kernels, thresholds and linear part for images, uint8 of (n, channels, height, width).

    Images are quantized inputs plus 128; targets (n, n_outputs) and weights (n,) are float32.
    """

    names = ("linear", "offset", "gain", "shadow", "threshold")

    def __init__(
        self,
        images: NDArray[np.uint8],
        targets: _Floats,
        weight: _Floats,
        plan: ImagePlan,
        augmentation: Augmentation,
    ) -> None:
        self.inputs, self.targets, self.weight = images, targets, weight
        self.plan, self.recipe, self.augmentation = plan, plan.linear, augmentation
        self.rng = np.random.default_rng([plan.linear.seed, 5])
        self.n_outputs = targets.shape[1]
        self._layout = _geometry(plan, (images.shape[1], images.shape[2], images.shape[3]))
        shape = (plan.n_kernels, plan.size**2)
        self.shadow = self.rng.standard_normal(shape, dtype=np.float32)
        self.threshold = np.zeros(plan.n_kernels, dtype=np.float32)
        self._start()
        self.draw_linear()
        self.begin()

    @property
    def largest_count(self) -> int:
        """No count is larger."""
        rows, columns = int(self._layout.numbers[2]), int(self._layout.numbers[3])
        return -(-rows // self.plan.cells[0]) * -(-columns // self.plan.cells[1])

    @property
    def multiplier(self) -> int:
        """Return what counts are multiplied with, in units of 2**-16."""
        return count_multiplier(self.largest_count)

    def taps(self) -> NDArray[np.int8]:
        """Return the taps, shape (n_kernels, size**2)."""
        size = np.abs(self.shadow)
        keep = size > np.float32(_CUT) * size.mean(axis=1, keepdims=True)
        rank = np.argsort(np.argsort(-size, axis=1, kind="stable"), axis=1, kind="stable")
        keep &= rank < self.plan.taps
        return np.where(keep, np.sign(self.shadow), 0).astype(np.int8)

    def _tables(self) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
        """Return offsets and signs of the taps, filled up to a multiple of four with 0."""
        taps = self.taps()
        most = -(-int(np.count_nonzero(taps, axis=1).max()) // 4) * 4
        order = np.argsort(taps == 0, axis=1, kind="stable")[:, :most]
        signs = np.zeros((taps.shape[0], most), dtype=np.int16)
        offsets = np.zeros(signs.shape, dtype=np.int64)
        signs[:, : order.shape[1]] = np.take_along_axis(taps, order, axis=1)
        offsets[:, : order.shape[1]] = self._layout.places[order]
        return offsets + self._layout.base[:, np.newaxis], signs

    def _start(self) -> None:
        """Put thresholds at quantiles of the responses, and measure the counts."""
        rows = self.rng.permutation(len(self.inputs))[:_START_ROWS]
        share = self.rng.uniform(0.5, 0.95, self.plan.n_kernels)
        self.inverse = np.ones(self.plan.n_kernels, dtype=np.float32)
        for k, r in enumerate(self._responses(np.sort(rows))):
            values = r[r != 0] if np.mean(r == 0) > 0.3 and r.any() else r
            self.threshold[k] = np.quantile(values, share[k])
            self.inverse[k] = 1 / (r.std() + 1e-3)
        self.measure(self.seen(self.inputs[rows]))

    def _responses(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Compute the responses of some images at all positions, shape (n_kernels, ...)."""
        shift, average, height, width, half = self._layout.numbers[:5].tolist()
        levels = padded_levels(self.inputs[rows].astype(np.int64) >> shift, average, half)
        taps = self.taps().reshape(-1, self.plan.size, self.plan.size)
        out = np.zeros((len(taps), len(rows), height, width), dtype=np.int64)
        for k, i, j in zip(*np.nonzero(taps), strict=True):
            plane = levels[:, self._layout.channel[k], i : i + height, j : j + width]
            out[k] += int(taps[k, i, j]) * plane
        return out.reshape(len(taps), -1)

    def integer_threshold(self) -> NDArray[np.int16]:
        """Return the thresholds as they are stored: none beyond what a response can reach."""
        taps, top = self.taps().astype(np.int64), 2**self.plan.level_bits - 1
        low, high = top * np.minimum(taps, 0).sum(1) - 1, top * np.maximum(taps, 0).sum(1)
        return np.clip(np.rint(self.threshold), low, high).astype(np.int16)

    def seen(self, images: NDArray[np.uint8]) -> NDArray[np.int16]:
        """Compute what the linear part sees, plus 128; shape (n, kernels * cells)."""
        out = np.empty((len(images), self.plan.n_kernels * self._layout.n_cells), dtype=np.int32)
        offsets, signs = self._tables()
        run_on_rows(
            count_images,
            len(images),
            self.recipe.n_threads,
            images,
            self._layout.numbers,
            offsets,
            signs,
            self.integer_threshold(),
            self._layout.cell,
            self._layout.n_cells,
            out,
        )
        return scaled_counts(out, self.largest_count)

    def accumulate(self, rows: NDArray[np.int64], run: Callable[..., Iterable[None]]) -> None:
        """Compute the gradients of some images."""
        offsets, signs = self._tables()
        batch, layout, g = self.batch(rows, self.kept(rows.size)), self._layout, self.gradients
        kernels = KernelBatch(
            layout.numbers,
            offsets,
            signs,
            layout.base,
            layout.places,
            self.integer_threshold(),
            self.inverse,
            np.float32(self.plan.slope),
            layout.cell,
            layout.n_cells,
            self.multiplier,
        )
        moves = affine_moves(self.augmentation, rows.size, self.inputs.shape[2:], self.rng)

        def part(slot: int) -> None:
            own = g[3][slot], g[4][slot], self.room(slot)
            learn_images(slot, SLOTS, self.inputs, moves, kernels, batch, *own)

        list(run(part, range(SLOTS)))

    def steps(self) -> dict[str, float]:
        """Return the largest step of each parameter."""
        own = {"shadow": self.plan.tap_step, "threshold": self.plan.threshold_step}
        return super().steps() | own

    def update(self, share: float, factor: np.float32) -> None:
        """Let Adam move every learned parameter; no tap grows out of reach of the others."""
        super().update(share, factor)
        np.clip(self.shadow, -2, 2, out=self.shadow)

    # -- the result ---------------------------------------------------------------------------

    def stages(self, scaler: Scale, kept: NDArray[np.int64]) -> CountingStages:
        """Return the stages of some of the kernels."""
        channels, height, width = self.inputs.shape[1:]
        n, plan = kept.size, self.plan
        levels = Levels(
            scaler,
            level_shift=scaler.bits - plan.level_bits,
            average=plan.average,
            mix=np.eye(channels, dtype=np.int8),
        )
        kernels = Kernels(
            taps=self.taps()[kept].reshape(n, plan.size, plan.size),
            dilation=np.ones(n, dtype=np.uint8),
            channel=self._layout.channel[kept].astype(np.uint8),
            threshold=self.integer_threshold()[kept].astype(np.int32),
            cells=plan.cells,
            padding=plan.size // 2,
        )
        taken = Grid.raw(scaler.raw_dtype, height, width, channels)
        return CountingStages(taken, levels, kernels)

    def used(self) -> NDArray[np.int64]:
        """Return the kernels that some output weighs."""
        levels, _, _ = self.stored()
        by_kernel = levels.reshape(self.n_outputs, self.plan.n_kernels, -1)
        return np.flatnonzero(by_kernel.any(axis=(0, 2)))


def padded_levels(levels: NDArray[np.int64], average: int, padding: int) -> NDArray[np.int64]:
    """Return levels (..., rows, columns) or their means of two by two, with zeros around."""
    if average == 2:
        rows, columns = (side // 2 * 2 for side in levels.shape[-2:])
        levels = levels[..., :rows:2, :columns] + levels[..., 1:rows:2, :columns]
        levels = (levels[..., ::2] + levels[..., 1::2]) >> 2
    return np.pad(levels, [(0, 0)] * (levels.ndim - 2) + [(padding, padding)] * 2)


def as_levels(rows: NDArray[Any], scaler: Scale, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Quantize raw rows (n, height * width * channels) to (n, channels, height, width) bytes."""
    height, width, channels = shape
    q = scaler.quantize(rows.reshape(-1, channels)).astype(np.int16) + 128
    images = q.astype(np.uint8).reshape(len(rows), height, width, channels)
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
