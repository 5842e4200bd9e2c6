"""What learners of images share: their rows, how these are varied, and what they end in."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.stage import Stage
from tinykernel.model.stages.scale import Scale
from tinykernel.training.augment import Augmentation, affine_moves
from tinykernel.training.readouts.linear import LinearLearner

_Floats = NDArray[np.float32]


class ImageLearner(LinearLearner):
    """Stages and a linear part for images, uint8 of (n, channels, height, width).

    Images are quantized inputs plus 128; targets (n, n_outputs) and weights (n,) are float32.
    """

    #: Parameters of the stages, each with the field of the plan that holds its largest step.
    STEPS: ClassVar[dict[str, str]]

    def __init__(
        self,
        images: NDArray[np.uint8],
        targets: _Floats,
        weight: _Floats,
        plan: Any,
        augmentation: Augmentation,
    ) -> None:
        self.plan, self.augmentation = plan, augmentation
        super().__init__(images, targets, weight, plan.linear)

    def steps(self) -> dict[str, float]:
        """Return the names of all learned parameters, each with its largest step."""
        own = {name: getattr(self.plan, step) for name, step in self.STEPS.items()}
        return super().steps() | own

    def moves(self, rows: NDArray[np.int64]) -> _Floats:
        """Draw how the images of a batch are moved."""
        return affine_moves(self.augmentation, rows.size, self.inputs.shape[2:], self.rng)

    def seen(self, images: NDArray[np.uint8]) -> NDArray[Any]:
        """Compute what the linear part sees, plus 128."""
        raise NotImplementedError

    def stages(self, scaler: Scale) -> tuple[Stage, ...]:
        """Return the stages before the linear part; TinykernelError for what the C lacks."""
        raise NotImplementedError


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
