"""The option `permutation`: blocks and P to begin with, chosen by kernel alignment.

Of several random draws those are kept whose components match the labels best: the score of a
component is its share in the alignment of the kernel with the labels (Zhang 2022 (000), (16)-(27),
after Sinha & Duchi 2016), that of a block the mean of its components.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.hadamard import fwht
from tinykernel.training.inputs import SharedTransform, draw_permutation, neighbour_distance

_ROWS = 1000
_BLOCKS = 4


def block_scores(
    mixed: NDArray[np.float32],
    codes: NDArray[np.int64],
    diagonal: NDArray[Any],
    activation: Callable[[int, NDArray[np.float32]], NDArray[np.float32]],
) -> NDArray[np.float64]:
    """Score blocks, shape (m,), by the alignment of their components with the labels.

    `mixed` (n, d) is ``P H B x / sqrt(d)``, `diagonal` (m, d) the G of each block; `activation`
    gets the number of a block and its projections (n, d), and returns the components.
    """
    return np.array(
        [
            _alignment(activation(i, fwht(mixed * g)), codes).mean()
            for i, g in enumerate(diagonal.astype(np.float32))
        ]
    )


def _alignment(components: NDArray[np.float32], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ``|| sum_i ybar_i phi_l(x_i) ||^2`` of each component: v of 000 (20) and (27)."""
    classes = np.unique(codes)
    classes = classes[1:] if classes.size == 2 else classes
    labels = np.where(codes[:, None] == classes, np.float32(1), np.float32(-1))
    sums = components.T @ labels
    return np.asarray(np.einsum("ij,ij->i", sums, sums, dtype=np.float64))


def aligned_blocks(
    mixed: NDArray[np.float32],
    codes: NDArray[np.int64],
    diagonal: NDArray[Any],
    activation: Callable[[int, NDArray[np.float32]], NDArray[np.float32]],
    keep: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Choose the blocks with the largest scores on some of the rows; their numbers, ascending."""
    rows = np.sort(rng.permutation(codes.size)[:_ROWS])
    scores = block_scores(mixed[rows], codes[rows], diagonal, activation)
    return np.sort(np.argsort(-scores, kind="stable")[:keep])


def aligned_permutation(
    transform: SharedTransform,
    X: NDArray[Any],
    codes: NDArray[np.int64],
    candidates: int,
    rng: np.random.Generator,
) -> SharedTransform:
    """Choose P from random orbits: the one under which random blocks align best."""
    rows = np.sort(rng.permutation(codes.size)[:_ROWS])
    d = transform.dimension
    diagonal = rng.standard_normal((_BLOCKS, d))
    phase = rng.random(d, dtype=np.float32)
    first = transform.mixed(X[rows])
    rate = np.float32(1 / (2 * np.pi * neighbour_distance(first, rng)))

    def activation(block: int, y: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.where(np.mod(y * rate + phase, 1) < 0.5, np.float32(1), np.float32(-1))

    tried = [transform]
    tried += [
        replace(transform, permutation=draw_permutation(d, rng)) for _ in range(candidates - 1)
    ]
    scores = [
        block_scores(t.mixed(X[rows]), codes[rows], diagonal, activation).mean() for t in tried
    ]
    return tried[int(np.argmax(scores))]
