"""Recognise training rows, by a record of a few kilobytes in the model file.

It holds the smallest digests of the training rows (Bar-Yossef et al. 2002, "Counting distinct
elements in a data stream"). The share of other rows' digests in the same range that it holds
estimates the share of training rows: exactly up to `KEPT` training rows. Digests of every second
input find rows with small changes: a changed input leaves the digest of the others equal.
"""

from __future__ import annotations

import base64
import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Digests in a record, each of five bytes.
KEPT = 1024
#: Digests of every second input, and as many of the others.
HALVES_KEPT = 128
_BYTES = 5
_ROWS_AT_ONCE = 4096
# Rows of fewer inputs share every second one by chance. Near copies are a fifth more than chance
# (1 % at least), by a test of this risk.
_LEAST_INPUTS, _MORE, _RISK, _LEAST_CHANCE = 6, 0.2, 1e-4, 0.01


def digests(X: NDArray[Any], inputs: slice = slice(None)) -> NDArray[np.uint64]:
    """Return 40-bit digests of some inputs of each row, as float32, whatever their type.

    >>> rows = np.array([[1, 2], [2, 1], [1, 2]])
    >>> first, second, third = digests(rows)
    >>> bool(first == third), bool(first == second), bool(first == digests(rows * 1.0)[0])
    (True, False, True)
    """
    hashes = np.empty(len(X), dtype=np.uint64)
    for first in range(0, len(X), _ROWS_AT_ONCE):
        rows = X[first : first + _ROWS_AT_ONCE]
        # The sum turns -0.0 into 0.0.
        part = rows.reshape(len(rows), -1)[:, inputs].astype("<f4") + np.float32(0)
        for row, values in enumerate(part, start=first):
            digest = hashlib.blake2b(values.tobytes(), digest_size=_BYTES).digest()
            hashes[row] = int.from_bytes(digest, "big")
    return hashes


def rows_among(X: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of rows equal to one of others, by their digests."""
    return np.isin(digests(X), digests(others))


def record_of_training(X: NDArray[Any], y: NDArray[Any]) -> dict[str, Any]:
    """Return `record_of` with the SHA-256 of rows and their labels, whatever their order."""
    rows = zip(digests(X).tolist(), y.tolist(), strict=True)
    digest = hashlib.sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest()
    return {"rows": len(X), "sha256": digest, **record_of(X)}


def record_of(X: NDArray[Any]) -> dict[str, Any]:
    """Return the record of training rows for a model file, as JSON types."""
    return _sample(digests(X), KEPT) | {"halves": [_half_record(X, half) for half in _halves(X)]}


def _sample(hashes: NDArray[np.uint64], most: int) -> dict[str, Any]:
    """Return the smallest digests, and whether they are all."""
    smallest = np.unique(hashes)
    least = smallest[:most]
    raw = b"".join(int(value).to_bytes(_BYTES, "big") for value in least)
    return {"all": len(least) == len(smallest), "digests": base64.b64encode(raw).decode()}


def _halves(X: NDArray[Any]) -> list[slice]:
    """Return slices of the even and odd inputs; none for few inputs."""
    many = math.prod(X.shape[1:]) >= _LEAST_INPUTS
    return [slice(0, None, 2), slice(1, None, 2)] if many else []


def _half_record(X: NDArray[Any], half: slice) -> dict[str, Any]:
    """Return digests of every second input, and the share of every fifth row in the others."""
    hashes, fifth = digests(X, half), np.arange(len(X)) % 5 == 0
    shared = float(np.isin(np.unique(hashes[fifth]), hashes[~fifth]).mean()) if len(X) > 1 else 0.0
    return _sample(hashes, HALVES_KEPT) | {"shared": round(shared, 4)}


def seen_before(X: NDArray[Any], record: object) -> float | None:
    """Return the share of rows that were trained on; None where it cannot be estimated."""
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


def near_copies(X: NDArray[Any], record: object) -> float:
    """Return the share of rows that are near copies of training rows, at least.

    Near copies equal a training row in every second input. The share is 0 where it is not above
    that among the training rows themselves, or the record has no such digests.
    """
    from scipy.stats import binomtest

    halves = record.get("halves") if isinstance(record, dict) else None
    if not isinstance(halves, list) or len(halves) != len(_halves(X)):
        return 0.0
    shares = []
    for half, part in zip(_halves(X), halves, strict=True):
        known, shared = _known(part), part.get("shared") if isinstance(part, dict) else None
        if known is None or not isinstance(shared, float) or not 0 <= shared <= 1:
            return 0.0
        hashes = np.unique(digests(X, half))
        hashes = hashes if known[1] else hashes[hashes <= known[0].max()]
        n, same = len(hashes), int(np.isin(hashes, known[0]).sum())
        chance = max(shared, _LEAST_CHANCE)
        if (
            n
            and same > (shared + _MORE) * n
            and binomtest(same, n, chance, "greater").pvalue < _RISK
        ):
            shares.append(same / n)
    return max(shares, default=0.0)


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
