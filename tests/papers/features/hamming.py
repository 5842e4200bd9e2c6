"""How many binary features of two rows differ in expectation, by their kernel value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def expected_hamming(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected share for values of the Gaussian kernel, accurate to 1e-4.

    ``8/pi^2 sum_{m >= 1} (1 - k(m x, m y)) / (4 m^2 - 1)`` (Raginsky & Lazebnik 2009, lemma 2.3)
    with ``k(m x, m y) = k(x, y)^(m^2)``, and ``sum 1 / (4 m^2 - 1) = 1/2``.
    """
    total = np.full(u.shape, 0.5)
    for square in np.arange(1.0, 2001.0) ** 2:
        total -= u**square / (4 * square - 1)
    return 8 / np.pi**2 * total


def shares(Z: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return the share of differing features of all pairs of rows of codes."""
    codes = Z.astype(np.float64)
    return (codes.shape[1] - codes @ codes.T) / (2 * codes.shape[1])
