"""A training set in an order that depends only on what it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["canonical_rows"]


@njit(cache=True, nogil=True)
def _hash_rows(data):  # type: ignore[no-untyped-def]
    """Hash the bytes of every row (FNV-1a, 64 bits)."""
    hashes = np.empty(data.shape[0], np.uint64)
    for i in range(data.shape[0]):
        value = np.uint64(14695981039346656037)
        for j in range(data.shape[1]):
            value = (value ^ np.uint64(data[i, j])) * np.uint64(1099511628211)
        hashes[i] = value
    return hashes


def canonical_rows(
    X: NDArray[Any],
    codes: NDArray[np.int64],
    sample_weight: NDArray[np.float64],
    groups: NDArray[np.int64] | None = None,
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Bring a training set into an order that depends only on what it holds.

    Equal rows of one class, and of one group, become one row with the sum of their weights, and
    they are sorted by a hash, so that the order looks random. Thus a model depends neither on the
    order of the rows nor on whether a row is repeated or weighted.

    Parameters
    ----------
    X : ndarray, shape (n, n_features), C order
    codes : ndarray of int64, shape (n,)
        Class of each row.
    sample_weight : ndarray of float64, shape (n,)
        Positive.
    groups : ndarray of int64, shape (n,), optional
        Group of each row.

    Returns
    -------
    X, codes, sample_weight
        With at most n rows.
    position : ndarray of int64, shape (n,)
        Where each given row went.

    Examples
    --------
    >>> X, codes, weight = np.array([[1], [2], [1]]), np.array([0, 1, 0]), np.ones(3)
    >>> *rows, position = canonical_rows(X, codes, weight)
    >>> sorted(zip(*(array.ravel().tolist() for array in rows)))
    [(1, 0, 2.0), (2, 1, 1.0)]
    >>> bool(position[0] == position[2])
    True
    """
    if X.dtype.kind == "f":
        X = X + X.dtype.type(0)  # one zero: -0.0 + 0.0 is 0.0
    X = np.ascontiguousarray(X)
    kind = codes
    if groups is not None:
        kind = codes + (codes.max(initial=0) + 1) * groups
    order = np.lexsort((kind, _hash_rows(X.view(np.uint8).reshape(X.shape[0], -1))))
    X, codes, sample_weight, kind = X[order], codes[order], sample_weight[order], kind[order]
    fresh = np.ones(X.shape[0], dtype=bool)
    fresh[1:] = (kind[1:] != kind[:-1]) | (X[1:] != X[:-1]).any(axis=1)
    position = np.empty(order.size, dtype=np.int64)
    position[order] = np.cumsum(fresh) - 1
    if fresh.all():
        return X, codes, sample_weight, position
    first = np.flatnonzero(fresh)
    return X[first], codes[first], np.add.reduceat(sample_weight, first), position
