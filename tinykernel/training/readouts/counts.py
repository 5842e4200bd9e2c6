"""What gives counts, and how the machine takes them: wide ones brought to the range of bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.grid import Grid
from tinykernel.model.stage import Stage
from tinykernel.model.stages.beside import Beside
from tinykernel.model.stages.kernels import Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.scale import Scale

_ONE = 1 << 16
_BYTE = 255
_LEAST_TOP = 15


@dataclass(frozen=True, eq=False)
class CountingStages:
    """The stages levels and kernels on the input that they take.

    A TinykernelError says that they do not fit together, or that a response could overflow.
    """

    taken: Grid
    levels: Levels
    kernels: Kernels

    def __post_init__(self) -> None:
        """Prove before the training that the firmware can compute the counts."""
        self.kernels.gives(self.placed)
        self.kernels.ranges(self.placed)

    @cached_property
    def placed(self) -> Grid:
        """The levels, which kernels look at."""
        return self.levels.gives(self.taken)

    @property
    def largest_count(self) -> int:
        """No count is larger."""
        return self.kernels.largest_count(self.placed)

    def then_scaled(self, largest: int, beside: Beside | None = None) -> tuple[Stage, ...]:
        """Return the stages and the scaler of their counts, which `scaled_counts` has learned by.

        The counts of some of the kernels may have a smaller type, but no other factor.
        """
        made = self.kernels.gives(self.placed)
        if beside is None:
            return self.levels, self.kernels, count_scaler(made.dtype, largest)
        beside = replace(beside, top=top_of(largest))
        return self.levels, self.kernels, beside, count_scaler(beside.gives(made).dtype, largest)


def count_multiplier(largest: int) -> int:
    """Return what counts up to `largest` are multiplied with, in units of 2**-16."""
    return _ONE if largest <= _BYTE else _ONE * _BYTE // largest


def scaled_counts(counts: NDArray[Any], largest: int) -> NDArray[np.int16]:
    """Return what the machine sees of counts, plus 128.

    >>> [scaled_counts(np.array([0, n]), n).tolist() for n in (200, 510)]
    [[0, 200], [0, 255]]
    """
    return ((counts * count_multiplier(largest)) >> 16).astype(np.int16)


def top_of(largest: int) -> int:
    """Return the largest count of a number beside counts up to `largest`.

    With about that of a kernel, weights of few bits say enough of both.
    """
    return max(largest, _LEAST_TOP)


def count_scaler(dtype: str, largest: int) -> Scale:
    """Return the scaler that does the same in the firmware, and takes off the 128."""
    offset = np.zeros(1, dtype=np.int32)
    factor = np.array([count_multiplier(largest)], dtype=np.uint32)
    span = np.array([max(largest, _BYTE)], dtype=np.uint32)
    return Scale(dtype, 8, offset, factor, span)
