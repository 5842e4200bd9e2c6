"""Random scales."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.scale.spec import Scale

_LIMITS = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "uint16": (0, 65535),
    "int16": (-32768, 32767),
    "int32": (-(2**31), 2**31 - 1),
}


def random_scaler(
    rng: np.random.Generator, raw_dtype: str, bits: int, n: int, shared: bool
) -> Scale:
    """Return a scaler with wide and narrow ranges, and some constant features unless shared."""
    size = 1 if shared else n
    constant = (rng.random(size) < 0.1) & (not shared)
    if raw_dtype == "float32":
        offset = rng.normal(size=size).astype(np.float32)
        multiplier = np.exp(rng.normal(size=size) * 2 + 3).astype(np.float32)
        multiplier[constant] = 0
        return Scale(raw_dtype, bits, offset, multiplier)
    low, high = _LIMITS[raw_dtype]
    ends = np.sort(rng.integers(low, high, size=(2, size), endpoint=True, dtype=np.int64), axis=0)
    span = np.maximum(ends[1] - ends[0], 1)
    pre_shift = np.array([max(int(s).bit_length() - 16, 0) for s in span])
    multiplier = ((1 << (16 + bits)) - 1) // (span >> pre_shift)
    multiplier = np.minimum(multiplier, 2**32 - 1)
    multiplier[constant] = 0
    return Scale(
        raw_dtype,
        bits,
        ends[0].astype(np.int32),
        multiplier.astype(np.uint32),
        span.astype(np.uint32),
        pre_shift.astype(np.uint8),
    )


def scaled(grid: Grid, bits: int = 8) -> Scale:
    """Return the scale of the values that there can be, not of the whole type."""
    factor = min(((1 << (16 + bits)) - 1) // grid.high, 2**32 - 1)
    return Scale(grid.dtype, bits, [0], [factor], [grid.high])


def samples(seed: int) -> Iterator[Sample]:
    """Yield scales of all raw types."""
    for number, dtype in enumerate(_LIMITS | {"float32": (0, 0)}):
        rng = np.random.default_rng([seed, number])
        scale = random_scaler(rng, dtype, (8, 16)[number % 2], 9, number == 1)
        yield Sample(Grid.table(dtype, 9), (scale,))
