"""The stages that count, and the scaling of counts to bytes."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.grid import Grid
from tinykernel.model.stage import Stage
from tinykernel.model.stages import Beside, Kernels, Levels, Scale

_ONE = 1 << 16
_BYTE = 255
_LEAST_TOP = 15


@dataclass(frozen=True, eq=False)
class CountingStages:
    """Levels and kernels on their input; TinykernelError if they do not fit or could overflow."""

    grid: Grid
    levels: Levels
    kernels: Kernels

    def __post_init__(self) -> None:
        """Prove before training that the firmware can compute the counts."""
        self.kernels.gives(self.placed)
        self.kernels.ranges(self.placed)

    @cached_property
    def placed(self) -> Grid:
        """The grid of levels, input of the kernels."""
        return self.levels.gives(self.grid)

    @property
    def largest_count(self) -> int:
        """Upper bound of the counts."""
        return self.kernels.largest_count(self.placed)

    def then_scaled(self, largest: int, beside: Beside | None = None) -> tuple[Stage, ...]:
        """Return the stages and the scaler of their counts, as in `scaled_counts`."""
        counts = self.kernels.gives(self.placed)
        if beside is None:
            return self.levels, self.kernels, count_scaler(counts.dtype, largest)
        beside = replace(beside, top=top_of(largest))
        return self.levels, self.kernels, beside, count_scaler(beside.gives(counts).dtype, largest)


def count_multiplier(largest: int) -> int:
    """Return the factor of counts up to `largest`, in units of 2**-16."""
    return _ONE if largest <= _BYTE else _ONE * _BYTE // largest


def scaled_counts(counts: NDArray[Any], largest: int) -> NDArray[np.int16]:
    """Return counts scaled to bytes; the machine sees them less 128."""
    return ((counts * count_multiplier(largest)) >> 16).astype(np.int16)


def top_of(largest: int) -> int:
    """Return the largest value of numbers beside counts, close to these: weights have few bits."""
    return max(largest, _LEAST_TOP)


def count_scaler(dtype: str, largest: int) -> Scale:
    """Return the scaler of `scaled_counts` in the firmware, less 128."""
    offset = np.zeros(1, dtype=np.int32)
    factor = np.array([count_multiplier(largest)], dtype=np.uint32)
    return Scale(dtype, 8, offset, factor, np.array([max(largest, _BYTE)], dtype=np.uint32))
