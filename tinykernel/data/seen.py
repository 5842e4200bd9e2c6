"""Which rows a model was trained on, in a few kilobytes.

A model file keeps the smallest digests of the training rows (Bar-Yossef et al. 2002, "Counting
distinct elements in a data stream"). The share of them that rows of the same range of digests have
is an estimate of the share of rows that were trained on: exact up to `KEPT` training rows.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Digests in a record, each of five bytes.
KEPT = 1024
_BYTES = 5
_ROWS_AT_ONCE = 4096


def digests(X: NDArray[Any]) -> NDArray[np.uint64]:
    """Return 40 bits for each row, the same for equal rows of any type.

    Values count as float32, of which the firmware sees no more.

    Examples
    --------
    >>> rows = np.array([[1, 2], [2, 1], [1, 2]])
    >>> first, second, third = digests(rows)
    >>> bool(first == third), bool(first == second), bool(first == digests(rows * 1.0)[0])
    (True, False, True)
    """
    found = np.empty(len(X), dtype=np.uint64)
    for first in range(0, len(X), _ROWS_AT_ONCE):
        # The sum turns -0.0 into 0.0.
        part = X[first : first + _ROWS_AT_ONCE].astype("<f4") + np.float32(0)
        for row, values in enumerate(part, start=first):
            digest = hashlib.blake2b(values.tobytes(), digest_size=_BYTES).digest()
            found[row] = int.from_bytes(digest, "big")
    return found


def hash_of(X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return the SHA-256 of rows and their labels, whatever their order.

    Examples
    --------
    >>> X, y = np.array([[1, 2], [2, 1]]), np.array(["a", "b"])
    >>> hash_of(X, y) == hash_of(X[::-1], y[::-1]), hash_of(X, y) == hash_of(X, y[::-1])
    (True, False)
    """
    rows = zip(digests(X).tolist(), y.tolist(), strict=True)
    return hashlib.sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest()


def record_of(X: NDArray[Any]) -> dict[str, Any]:
    """Return what a model file keeps of its training rows, as JSON types."""
    smallest = np.unique(digests(X))
    kept = smallest[:KEPT]
    raw = b"".join(int(value).to_bytes(_BYTES, "big") for value in kept)
    return {"all": len(kept) == len(smallest), "digests": base64.b64encode(raw).decode()}


def seen_before(X: NDArray[Any], record: object) -> float | None:
    """Return the share of rows that were trained on, or None where that cannot be told.

    Parameters
    ----------
    X : ndarray, shape (n_rows, n_inputs)
    record : dict
        Of `record_of`; anything else gives None.

    Examples
    --------
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> seen_before(X, record_of(X[5:]))
    0.5
    """
    try:
        raw = base64.b64decode(record["digests"], validate=True)  # type: ignore[index]
        complete = record["all"] is True  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        return None
    if not raw or len(raw) % _BYTES:
        return None
    known = np.array(
        [int.from_bytes(raw[i : i + _BYTES], "big") for i in range(0, len(raw), _BYTES)],
        dtype=np.uint64,
    )
    found = digests(X)
    if not complete:
        found = found[found <= known.max()]
    return float(np.isin(found, known).mean()) if found.size else None
