"""Recognise training rows, by a record of a few kilobytes in the model file.

The record holds the smallest digests of the training rows (Bar-Yossef et al. 2002, "Counting
distinct elements in a data stream"). Of the digests of other rows in the same range, the share that
is in the record estimates the share of training rows. Up to `KEPT` training rows it is exact.
"""

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
    """Return 40-bit digests of the inputs of each row, as float32, whatever their type.

    >>> rows = np.array([[1, 2], [2, 1], [1, 2]])
    >>> first, second, third = digests(rows)
    >>> bool(first == third), bool(first == second), bool(first == digests(rows * 1.0)[0])
    (True, False, True)
    """
    hashes = np.empty(len(X), dtype=np.uint64)
    for first in range(0, len(X), _ROWS_AT_ONCE):
        rows = X[first : first + _ROWS_AT_ONCE]
        # The sum turns -0.0 into 0.0.
        part = rows.reshape(len(rows), -1).astype("<f4") + np.float32(0)
        for row, values in enumerate(part, start=first):
            digest = hashlib.blake2b(values.tobytes(), digest_size=_BYTES).digest()
            hashes[row] = int.from_bytes(digest, "big")
    return hashes


def record_of_training(X: NDArray[Any], y: NDArray[Any]) -> dict[str, Any]:
    """Return `record_of` with the SHA-256 of rows and their labels, whatever their order."""
    rows = zip(digests(X).tolist(), y.tolist(), strict=True)
    digest = hashlib.sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest()
    return {"rows": len(X), "sha256": digest, **record_of(X)}


def record_of(X: NDArray[Any]) -> dict[str, Any]:
    """Return the record of training rows for a model file, as JSON types."""
    smallest = np.unique(digests(X))
    least = smallest[:KEPT]
    raw = b"".join(int(value).to_bytes(_BYTES, "big") for value in least)
    return {"all": len(least) == len(smallest), "digests": base64.b64encode(raw).decode()}


def seen_before(X: NDArray[Any], record: object) -> float | None:
    """Return the share of rows that were trained on; None if it cannot be estimated."""
    known = _known(record)
    if known is None:
        return None
    hashes, (digests_known, complete) = digests(X), known
    if not complete:
        hashes = hashes[hashes <= digests_known.max()]
    return float(np.isin(hashes, digests_known).mean()) if hashes.size else None


def equal_rows(X: NDArray[Any], record: object) -> NDArray[np.bool_] | None:
    """Return a mask of rows that were trained on, or None if the record is not complete."""
    known = _known(record)
    return np.isin(digests(X), known[0]) if known is not None and known[1] else None


def _known(record: object) -> tuple[NDArray[np.uint64], bool] | None:
    """Return the digests of a record, and whether they are all; None for another object."""
    try:
        raw = base64.b64decode(record["digests"], validate=True)  # type: ignore[index]
        complete = record["all"] is True  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        return None
    if not raw or len(raw) % _BYTES:
        return None
    known = [int.from_bytes(raw[i : i + _BYTES], "big") for i in range(0, len(raw), _BYTES)]
    return np.array(known, dtype=np.uint64), complete
