"""Offsets before levels of the differences that there can be."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.kernels.sample import random_kernels
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.offset.spec import Offset
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.scale.spec import Scale


def samples(seed: int) -> Iterator[Sample]:
    """Yield the offset of a signal of int8 and of int16, with and without a stream."""
    for dtype, hop in (("int8", 0), ("int16", 32)):
        raw = Grid.raw(dtype, 64, 1, 3)
        grid = Offset().gives(raw)
        factor = ((1 << 32) - 1) // (1 << (grid.high - grid.low).bit_length())
        scale = Scale(grid.dtype, 16, [grid.low], [factor], [grid.high - grid.low], [1])
        levels = Levels(scale, 6, 1, np.eye(3, dtype=np.int8))
        kernels = random_kernels(np.random.default_rng(seed), levels.gives(grid))
        yield Sample(raw, (Offset(), levels, kernels), hop=hop)
