"""How many binary features of two rows should differ, by their kernel value (001, Lemma 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def hamming_bounds(u: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bound the expected share of differing features from below and above, for kernel values u.

    ``h1(u) = 4/pi^2 (1 - u)`` and ``h2(u) = min(sqrt(1 - u) / 2, 4/pi^2 (1 - 2u/3))``, as in
    Raginsky & Lazebnik (2009) and 001. The first part of h2 is Jensen's inequality: two features
    differ with probability ``E|cos a - cos b| / 2 <= sqrt(E (cos a - cos b)^2) / 2``, and that mean
    is ``1/2 + 1/2 - u``. 000 (7) prints ``sqrt(1 - u^2)``: true too, being larger, but not tight.
    """
    unrelated = 4 / np.pi**2
    upper = np.minimum(0.5 * np.sqrt(np.maximum(1 - u, 0)), unrelated * (1 - 2 * u / 3))
    return unrelated * (1 - u), upper


def expected_hamming(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected share for values of the Gaussian kernel, accurate to 1e-4.

    ``8/pi^2 sum_{m >= 1} (1 - k(m x, m y)) / (4 m^2 - 1)`` (Raginsky & Lazebnik 2009, lemma 2.3)
    with ``k(m x, m y) = k(x, y)^(m^2)``, and ``sum 1 / (4 m^2 - 1) = 1/2``.
    """
    total = np.full(u.shape, 0.5)
    for square in np.arange(1.0, 2001.0) ** 2:
        total -= u**square / (4 * square - 1)
    return 8 / np.pi**2 * total
