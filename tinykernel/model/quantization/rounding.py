"""The mean of the rounding errors of the integer transforms, which quantization takes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.diagonals import SHIFTS
from tinykernel.model.permutation import Permutation


def mean_rounding_errors(
    halve_first: Sequence[bool],
    halve_second: Sequence[bool],
    permutation: Permutation,
    diagonal: NDArray[Any],
    diagonal_kind: str,
) -> NDArray[np.float64]:
    """Return the mean of ``v - y``, shape (n_blocks, d), where y is v without rounding.

    Every shift rounds down. With equally likely lost bits a halving loses 1/4 in the mean, a
    product shifted right by s with ``gcd(G, 2**s) = g`` loses ``(2**s - g) / 2**(s + 1)``; later
    stages are linear in these means.

    >>> float(mean_rounding_errors([True] + 4 * [False], 5 * [False], Permutation(),
    ...     np.ones((1, 32)), "sign")[0, 0])
    -8.0
    """
    d = diagonal.shape[1]
    mixed = _after_transform(np.zeros(d), halve_first)[permutation.indices(d)]
    g = diagonal.astype(np.int64)
    error = g * mixed
    unit = 1 << SHIFTS[diagonal_kind]
    error = (error - (unit - np.gcd(g, unit)) / 2) / unit
    return _after_transform(error, halve_second)


def _after_transform(error: NDArray[np.float64], halve: Sequence[bool]) -> NDArray[np.float64]:
    """Follow mean errors through a transform with its schedule; shape (..., d)."""
    for k, halved in enumerate(halve):
        pairs = error.reshape(*error.shape[:-1], -1, 2, 1 << k)
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        sums = np.stack([a + b, a - b], axis=-2).reshape(error.shape)
        error = sums / 2 - 0.25 if halved else sums
    return error
