"""Random numbers beside a window."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.beside.spec import Beside
from tinykernel.pieces.kernels.sample import signal
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.scale.sample import random_scaler
from tinykernel.pieces.scale.spec import Scale


def random_beside(seed: int, n: int, raw_dtype: str, top: int = 255) -> Beside:
    """Return n numbers beside a window, all but the first looked at twice, with random scalers."""
    source = np.concatenate([np.arange(n), np.arange(1, n)])
    scale = random_scaler(np.random.default_rng(seed), raw_dtype, 8, source.size, False)
    arrays = {name: np.broadcast_to(a, source.size).copy() for name, a in scale.arrays.items()}
    arrays["multiplier"] = np.maximum(arrays["multiplier"], 1)
    return Beside(Scale(raw_dtype, 8, **arrays), source, top)


def samples(seed: int) -> Iterator[Sample]:
    """Yield numbers beside the counts of a signal."""
    front = signal(seed)
    yield front._replace(stages=(*front.stages, random_beside(seed, 2, "int16")))
