"""Random trees."""

from collections.abc import Iterator

import numpy as np

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.scale.sample import random_scaler
from tinykernel.pieces.trees.spec import Trees


def random_trees(
    seed: int,
    n_features: int,
    n_outputs: int,
    bits: int = 16,
    leaf_bits: int = 4,
    most: tuple[int, int] = (11, 19),
) -> Trees:
    """Draw so many trees and nodes of each at most, with thresholds and leaves of any size."""
    rng = np.random.default_rng([seed, 7])
    n_trees, n_thresholds = int(rng.integers(1, most[0] + 1)), int(rng.integers(1, 40))

    def left(m: int) -> list[int]:
        below = int(rng.integers(0, m)) if m else 0
        return [below, *left(below), *left(m - 1 - below)] if m else []

    size = rng.integers(0, most[1] + 1, n_trees)
    size[0] += size.sum() == 0  # one node at least
    nodes, top, largest = int(size.sum()), 2 ** (bits - 1), 2 ** (leaf_bits - 1)
    leaves = rng.integers(-largest, largest, nodes + n_trees)
    leaves[0] = -largest  # so that the width is known
    return Trees(
        rng.integers(0, n_features, n_thresholds).astype(np.uint16),
        rng.integers(-top, top, n_thresholds).astype(np.int16),
        size,
        np.sort(rng.integers(0, n_outputs, n_trees)).astype(np.uint8),
        rng.integers(0, 9, n_trees).astype(np.uint8),
        rng.integers(0, n_thresholds, nodes),
        np.array([below for m in size for below in left(int(m))], np.int64),
        leaves.astype(np.int8),
        rng.integers(1, 50, n_outputs).astype(np.int32),
    )


def samples(seed: int) -> Iterator[Sample]:
    """Yield trees of leaves of 4 and 8 bits."""
    for bits in (4, 8):
        scale = random_scaler(np.random.default_rng([seed, bits]), "int16", 16, 9, True)
        yield Sample(Grid.table("int16", 9), (scale,), random_trees(seed, 9, 3, 16, bits))
