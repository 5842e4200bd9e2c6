"""Random spectra."""

from collections.abc import Iterator

import numpy as np

from tinykernel.base.windows import SEGMENTS
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.kernels.sample import random_kernels
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.spectrum.spec import Spectrum


def random_spectrum(seed: int) -> Spectrum:
    """Draw a stage: narrow and wide bands, any hop."""
    rng = np.random.default_rng([seed, 1])
    length = int(rng.choice(SEGMENTS))
    bands = int(rng.integers(1, min(65, length // 2 - 2)))
    edges = np.sort(2 + rng.permutation(length // 2 - 1)[: bands + 1])
    hop = int(rng.integers(1, length + 1))
    return Spectrum(length, hop, edges, int(rng.integers(1, 4)), int(rng.integers(0, 200)))


def spectral(seed: int, hop: int = 6) -> tuple[Grid, Spectrum, int]:
    """Return a window of frames and a rest, their spectrum, and the hop of so many frames."""
    spectrum = Spectrum(64, 24, np.array([2, 8, 14, 20, 26, 32]), 2, 70)
    dtype = ("int16", "uint8")[seed % 2]
    return Grid.raw(dtype, 64 + 19 * 24 + 12, 1), spectrum, hop * 24


def samples(seed: int) -> Iterator[Sample]:
    """Yield spectra before levels and kernels."""
    raw, spectrum, hop = spectral(seed)
    rows, rng = spectrum.gives(raw), np.random.default_rng(seed)
    scale = Scale("uint8", 8, [0], [65536], [255])
    levels = Levels(scale, 0, 1, np.eye(rows.channels, dtype=np.int8))
    kernels = random_kernels(rng, levels.gives(rows), cells=(2, 1))
    yield Sample(raw, (spectrum, levels, kernels), hop=hop)
    yield Sample(raw, (spectrum, levels, kernels))
