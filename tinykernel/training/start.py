"""Where joint training starts: blocks and a permutation chosen by kernel alignment.

Of several random draws those are kept whose features match the labels best: the score of a feature
is its share in the alignment of the kernel with the labels (Zhang 2022 (000), (16)-(27), after
Sinha & Duchi 2016), that of a block the mean of its features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.hadamard import fwht
from tinykernel.papers.features.alignment_dual import alignment_scores
from tinykernel.training.inputs import SharedTransform, draw_permutation, neighbour_distance

__all__ = ["aligned_blocks", "aligned_permutation", "block_scores"]

_ROWS = 1000
_BLOCKS = 4


def block_scores(
    mixed: NDArray[np.float32], codes: NDArray[np.int64], diagonal: NDArray[Any],
    activation: Callable[[int, NDArray[np.float32]], NDArray[np.float32]],
) -> NDArray[np.float64]:  # fmt: skip
    """Score blocks by the alignment of their features with the labels.

    Parameters
    ----------
    mixed : ndarray of float32, shape (n, d)
        ``P H B x / sqrt(d)``.
    codes : ndarray of int64, shape (n,)
        Labels.
    diagonal : ndarray, shape (m, d)
        G of each block.
    activation : callable
        Gets the number of the block and its projections (n, d); returns the features.

    Returns
    -------
    ndarray of float64, shape (m,)
    """
    return np.array(
        [
            alignment_scores(activation(i, fwht(mixed * g)), codes).mean()
            for i, g in enumerate(diagonal.astype(np.float32))
        ]
    )


def aligned_blocks(
    mixed: NDArray[np.float32], codes: NDArray[np.int64], diagonal: NDArray[Any],
    activation: Callable[[int, NDArray[np.float32]], NDArray[np.float32]], keep: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:  # fmt: skip
    """Choose the blocks with the largest scores on some of the rows.

    Parameters
    ----------
    mixed, codes, diagonal, activation
        As for `block_scores`.
    keep : int
        How many.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (keep,)
        Ascending.
    """
    rows = np.sort(rng.permutation(codes.size)[:_ROWS])
    scores = block_scores(mixed[rows], codes[rows], diagonal, activation)
    return np.sort(np.argsort(-scores, kind="stable")[:keep])


def aligned_permutation(
    transform: SharedTransform, X: NDArray[Any], codes: NDArray[np.int64], candidates: int,
    rng: np.random.Generator,
) -> SharedTransform:  # fmt: skip
    """Choose P from random orbits: the one under which random blocks align best.

    Parameters
    ----------
    transform : SharedTransform
    X : ndarray, shape (n, n_features)
        Raw rows.
    codes : ndarray of int64, shape (n,)
    candidates : int
        How many permutations to try, that of `transform` included.
    rng : numpy.random.Generator

    Returns
    -------
    SharedTransform
    """
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
