"""Fisher's discriminants of what ridge regression says of rows that it left out.

With many classes a one-vs-rest target says little of the classes that are mistaken for each other.
Let e be what the fit says of a row, m_c its mean over class c, m that over all, and S the
covariance within classes. The score of a class is ``(e - (m + m_c) / 2)' S^-1 (m_c - m)`` plus
the logarithm of its share (Hastie, Buja, Tibshirani, Penalized discriminant analysis, 1995). It is
linear in e, so the firmware computes no more than before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.elementary import logs
from tinykernel.training.matrices import product, solve
from tinykernel.training.readouts.closed_form import Fit, combined, diagonal_mean

#: Of fewer classes, ridge regression is as good (``benchmarks/series.py``, ``many_classes.py``).
MANY_CLASSES = 20
# Share of a multiple of the identity in the covariance.
_SHRINKAGE = 0.3

_Doubles = NDArray[np.float64]


def discriminants(
    said: _Doubles, codes: NDArray[np.integer], weight: _Doubles
) -> tuple[_Doubles, _Doubles]:
    """Return weights (n_said, n_classes) and offsets of discriminants of rows (n, n_said).

    >>> rows = np.array([[0.0], [2.0], [4.0], [6.0]])
    >>> slope, offset = discriminants(rows, np.array([0, 0, 1, 1]), np.ones(4))
    >>> (rows @ slope + offset).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    members = (codes[:, None] == np.arange(codes.max() + 1)) * weight[:, None]
    count = combined(np.ones((len(codes), 1)), members)[0]
    share = count / np.cumsum(count)[-1]
    means = combined(members, said) / count[:, None]
    middle = combined(means, share[:, None])[:, 0]
    apart = said - means[codes]
    covariance = combined(apart * (weight / np.cumsum(weight)[-1])[:, None], apart)
    covariance *= 1 - _SHRINKAGE
    spread = max(diagonal_mean(covariance) / (1 - _SHRINKAGE), 1e-12)
    covariance[np.diag_indices(len(covariance))] += _SHRINKAGE * spread
    slope = solve(covariance, np.ascontiguousarray((means - middle).T))
    offset = logs(share) - np.diagonal(product((means + middle) / 2, slope))
    return slope, offset


def discriminating(fit: Fit, codes: NDArray[np.integer], weight: NDArray[np.floating]) -> Fit:
    """Return a fit to the classes whose scores are the discriminants of another."""
    slope, offset = discriminants(fit.left_out, codes, weight.astype(np.float64))
    weights = product(fit.weights, slope)
    offset = offset + product(fit.offset[None], slope)[0]
    return Fit(weights, offset, fit.penalty, product(fit.left_out, slope) + offset)
