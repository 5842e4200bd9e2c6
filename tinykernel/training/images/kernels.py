"""Learned kernels for images: ternary taps, thresholds and the linear part on their counts.

A kernel is a float shadow of its taps: those above 0.7 of the mean magnitude are stored as +-1, at
most `taps` of them. Taps, thresholds and weights are learned together; the forward pass uses the
integers of the firmware from the first step on, so that its counts are those of `Kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.hadamard import run_on_rows
from tinykernel.model.grid import Grid
from tinykernel.model.stage import Stage
from tinykernel.model.stages.kernels import WIDEST_CELL, Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.scale import Scale
from tinykernel.training.images.kernel_passes import KernelBatch, count_images, learn_images
from tinykernel.training.images.learner import ImageLearner, padded_levels
from tinykernel.training.readouts.counts import CountingStages, count_multiplier, scaled_counts
from tinykernel.training.readouts.linear import SLOTS, LinearRecipe

_CUT = 0.7
_START_ROWS = 256
_SMALL_IMAGE, _LARGE_IMAGE = 10, 40

_Floats = NDArray[np.float32]


@dataclass(frozen=True)
class KernelPlan:
    """The shape of a local stage for images, and how it is trained."""

    n_kernels: int = 32
    size: int = 5  # rows and columns of a kernel, odd.
    taps: int = 14  # most taps of a kernel that are not 0.
    level_bits: int = 3
    average: int = 1  # {1, 2}
    cells: tuple[int, int] = (4, 4)
    linear: LinearRecipe = field(default_factory=LinearRecipe)
    tap_step: float = 0.015  # largest steps of Adam.
    threshold_step: float = 0.1
    slope: float = 2.0  # k of the surrogate derivative.


def kernel_plan(shape: tuple[int, ...], n_kernels: int, linear: LinearRecipe) -> KernelPlan:
    """Plan kernels for images of (height, width, channels)."""
    side = min(shape[:2])
    size, taps = (3, 7) if side <= _SMALL_IMAGE else (5, 14)
    average = 2 if side >= _LARGE_IMAGE else 1
    return KernelPlan(n_kernels, size, taps, average=average, linear=linear)


def _layout(plan: KernelPlan, shape: tuple[int, ...]) -> KernelBatch:
    """Lay out planes for images of (channels, height, width); taps and thresholds follow."""
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
    largest = -(-rows // plan.cells[0]) * across
    return KernelBatch(
        geometry=np.array([shift, plan.average, rows, columns, half, half, pitch, plane]),
        offsets=np.zeros((0, 0), dtype=np.int64),
        signs=np.zeros((0, 0), dtype=np.int16),
        base=np.sort(np.arange(plan.n_kernels) % channels) * plane,
        places=i * pitch + j,
        thresholds=np.zeros(0, dtype=np.int16),
        inverse=np.ones(plan.n_kernels, dtype=np.float32),
        slope=np.float32(plan.slope),
        cell=np.where(x < columns, cell, n_cells),
        n_cells=n_cells,
        multiplier=count_multiplier(largest),
    )


class KernelLearner(ImageLearner):
    """Kernels, thresholds and linear part."""

    STEPS: ClassVar[dict[str, str]] = {"shadow": "tap_step", "threshold": "threshold_step"}
    plan: KernelPlan

    def draw(self) -> None:
        """Draw taps, put thresholds at quantiles of the responses, and measure the counts."""
        plan, rng = self.plan, self.rng
        self._known = _layout(plan, self.inputs.shape[1:])
        self._channel = self._known.base // int(self._known.geometry[7])
        rows, columns = self._known.geometry[2:4].tolist()
        self.largest_count = -(-rows // plan.cells[0]) * -(-columns // plan.cells[1])
        self.shadow = rng.standard_normal((plan.n_kernels, plan.size**2), dtype=np.float32)
        self.threshold = np.zeros(plan.n_kernels, dtype=np.float32)
        chosen = rng.permutation(len(self.inputs))[:_START_ROWS]
        share = rng.uniform(0.5, 0.95, plan.n_kernels)
        for k, r in enumerate(self._responses(np.sort(chosen))):
            values = r[r != 0] if np.mean(r == 0) > 0.3 and r.any() else r
            self.threshold[k] = np.quantile(values, share[k])
            self._known.inverse[k] = 1 / (r.std() + 1e-3)
        self.measure(self.seen(self.inputs[chosen]))
        self.draw_linear()

    def taps(self) -> NDArray[np.int8]:
        """Return the taps, shape (n_kernels, size**2)."""
        size = np.abs(self.shadow)
        keep = size > np.float32(_CUT) * size.mean(axis=1, keepdims=True)
        rank = np.argsort(np.argsort(-size, axis=1, kind="stable"), axis=1, kind="stable")
        keep &= rank < self.plan.taps
        return np.where(keep, np.sign(self.shadow), 0).astype(np.int8)

    def _batch(self) -> KernelBatch:
        """Return the kernels as they are now; taps are filled up to a multiple of four with 0."""
        taps, known = self.taps(), self._known
        most = -(-int(np.count_nonzero(taps, axis=1).max()) // 4) * 4
        order = np.argsort(taps == 0, axis=1, kind="stable")[:, :most]
        signs = np.zeros((taps.shape[0], most), dtype=np.int16)
        offsets = np.zeros(signs.shape, dtype=np.int64)
        signs[:, : order.shape[1]] = np.take_along_axis(taps, order, axis=1)
        offsets[:, : order.shape[1]] = known.places[order]
        offsets += known.base[:, np.newaxis]
        return known._replace(offsets=offsets, signs=signs, thresholds=self.integer_threshold())

    def _responses(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Compute the responses of some images at all positions, shape (n_kernels, ...)."""
        shift, average, height, width, half = self._known.geometry[:5].tolist()
        levels = padded_levels(self.inputs[rows].astype(np.int64) >> shift, average, half)
        taps = self.taps().reshape(-1, self.plan.size, self.plan.size)
        out = np.zeros((len(taps), len(rows), height, width), dtype=np.int64)
        for k, i, j in zip(*np.nonzero(taps), strict=True):
            plane = levels[:, self._channel[k], i : i + height, j : j + width]
            out[k] += int(taps[k, i, j]) * plane
        return out.reshape(len(taps), -1)

    def integer_threshold(self) -> NDArray[np.int16]:
        """Return the thresholds as they are stored: none beyond what a response can reach."""
        taps, top = self.taps().astype(np.int64), 2**self.plan.level_bits - 1
        low, high = top * np.minimum(taps, 0).sum(1) - 1, top * np.maximum(taps, 0).sum(1)
        return np.clip(np.rint(self.threshold), low, high).astype(np.int16)

    def seen(self, images: NDArray[np.uint8]) -> NDArray[np.int16]:
        """Compute what the linear part sees, plus 128; shape (n, kernels * cells)."""
        out = np.empty((len(images), self.plan.n_kernels * self._known.n_cells), dtype=np.int32)
        n_threads = self.recipe.n_threads
        run_on_rows(count_images, len(images), n_threads, images, self._batch(), out)
        return scaled_counts(out, self.largest_count)

    def accumulate(self, rows: NDArray[np.int64], run: Callable[..., Iterable[None]]) -> None:
        """Compute the gradients of some images."""
        batch, kernels, g = self.batch(rows), self._batch(), self.gradients
        moves = self.moves(rows)

        def part(slot: int) -> None:
            own = g["shadow"][slot], g["threshold"][slot], self.room(slot)
            learn_images(slot, SLOTS, self.inputs, moves, kernels, batch, *own)

        list(run(part, range(SLOTS)))

    def update(self, share: float, factor: np.float32) -> None:
        """Let Adam move every learned parameter; no tap grows out of reach of the others."""
        super().update(share, factor)
        np.clip(self.shadow, -2, 2, out=self.shadow)

    # -- the result ---------------------------------------------------------------------------

    def counting(self, scaler: Scale, numbers: NDArray[np.int64]) -> CountingStages:
        """Return the stages of some of the kernels."""
        channels, height, width = self.inputs.shape[1:]
        n, plan = numbers.size, self.plan
        mix = np.eye(channels, dtype=np.int8)
        levels = Levels(scaler, scaler.bits - plan.level_bits, plan.average, mix)
        kernels = Kernels(
            taps=self.taps()[numbers].reshape(n, plan.size, plan.size),
            dilation=np.ones(n, dtype=np.uint8),
            channel=self._channel[numbers].astype(np.uint8),
            threshold=self.integer_threshold()[numbers].astype(np.int32),
            cells=plan.cells,
            padding=plan.size // 2,
        )
        return CountingStages(Grid.raw(scaler.raw_dtype, height, width, channels), levels, kernels)

    def stages(self, scaler: Scale) -> tuple[Stage, ...]:
        """Return the stages of all kernels; TinykernelError for images too wide for the C."""
        stages, across = self.counting(scaler, np.arange(self.plan.n_kernels)), self.plan.cells[1]
        if stages.kernels.cell_columns(stages.placed) > WIDEST_CELL:
            most = across * WIDEST_CELL * stages.levels.average
            raise TinykernelError(
                f"image_shape: {stages.taken.rows} x {stages.taken.columns} is too wide for a "
                f"local stage of {across} cells across, at most {most} columns; scale the images "
                "down"
            )
        return stages.then_scaled(self.largest_count)

    def finished(self, scaler: Scale) -> tuple[tuple[Stage, ...], Any]:
        """Return the stages of the kernels that some output weighs, and these weights."""
        weights, worth, offset = self.stored()
        by_kernel = weights.reshape(self.n_outputs, self.plan.n_kernels, -1)
        used = np.asarray(by_kernel.any(axis=(0, 2)))
        used[0] |= not used.any()
        stages = self.counting(scaler, np.flatnonzero(used)).then_scaled(self.largest_count)
        return stages, (by_kernel[:, used].reshape(self.n_outputs, -1), worth, offset)


def no_kernels(shape: tuple[int, ...]) -> str:
    """Say why images of (height, width, channels) have no kernels; nothing where they may."""
    if min(shape[:2]) < 4:
        return f"{shape[0]} x {shape[1]} is too small for a local stage; at least 4 x 4"
    return ""
