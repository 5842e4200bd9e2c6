"""Which rows a model was trained on, in a few kilobytes.

A model file keeps the smallest digests of the training rows (Bar-Yossef et al. 2002, "Counting
distinct elements in a data stream"). The share of them that rows of the same range of digests have
is an estimate of the share of rows that were trained on: exact up to `KEPT` training rows. Digests
of every second input tell rows in which little was changed: one changed input leaves others equal.
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
# Rows of fewer inputs share every second one by chance. More than chance is a fifth more, by a test
# that is wrong once in ten thousand; nothing has less of a chance than a hundredth.
_LEAST_INPUTS, _MORE, _RISK, _LEAST_CHANCE = 6, 0.2, 1e-4, 0.01


def digests(X: NDArray[Any], inputs: slice = slice(None)) -> NDArray[np.uint64]:
    """Return 40 bits for some inputs of each row, the same for equal rows of any type.

    Values count as float32, of which the firmware sees no more.

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
    """Return which rows equal one of others, by their digests."""
    return np.isin(digests(X), digests(others))


def hash_of(X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return the SHA-256 of rows and their labels, whatever their order.

    >>> X, y = np.array([[1, 2], [2, 1]]), np.array(["a", "b"])
    >>> hash_of(X, y) == hash_of(X[::-1], y[::-1]), hash_of(X, y) == hash_of(X, y[::-1])
    (True, False)
    """
    rows = zip(digests(X).tolist(), y.tolist(), strict=True)
    return hashlib.sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest()


def record_of(X: NDArray[Any]) -> dict[str, Any]:
    """Return what a model file keeps of its training rows, as JSON types."""
    return _sample(digests(X), KEPT) | {"halves": [_half_record(X, half) for half in _halves(X)]}


def _sample(hashes: NDArray[np.uint64], most: int) -> dict[str, Any]:
    """Return the smallest digests, and whether they are all."""
    smallest = np.unique(hashes)
    least = smallest[:most]
    raw = b"".join(int(value).to_bytes(_BYTES, "big") for value in least)
    return {"all": len(least) == len(smallest), "digests": base64.b64encode(raw).decode()}


def _halves(X: NDArray[Any]) -> list[slice]:
    """Return every second input, and the others; nothing of rows of few inputs."""
    many = math.prod(X.shape[1:]) >= _LEAST_INPUTS
    return [slice(0, None, 2), slice(1, None, 2)] if many else []


def _half_record(X: NDArray[Any], half: slice) -> dict[str, Any]:
    """Return digests of every second input, and which share of new rows has one by chance.

    That is the share that every fifth row has among the others, where equal ones count once.
    """
    hashes, fifth = digests(X, half), np.arange(len(X)) % 5 == 0
    shared = float(np.isin(np.unique(hashes[fifth]), hashes[~fifth]).mean()) if len(X) > 1 else 0.0
    return _sample(hashes, HALVES_KEPT) | {"shared": round(shared, 4)}


def seen_before(X: NDArray[Any], record: object) -> float | None:
    """Return the share of rows that were trained on; None where that cannot be told.

    >>> X = np.arange(20.0).reshape(10, 2)
    >>> seen_before(X, record_of(X[5:]))
    0.5
    """
    known = _known(record)
    if known is None:
        return None
    hashes, (digests_known, complete) = digests(X), known
    if not complete:
        hashes = hashes[hashes <= digests_known.max()]
    return float(np.isin(hashes, digests_known).mean()) if hashes.size else None


def equal_rows(X: NDArray[Any], record: object) -> NDArray[np.bool_] | None:
    """Return which rows were trained on, or None where a record does not know all of them.

    >>> X = np.arange(8.0).reshape(4, 2)
    >>> equal_rows(X, record_of(X[3:])).tolist()
    [False, False, False, True]
    """
    known = _known(record)
    return np.isin(digests(X), known[0]) if known is not None and known[1] else None


def near_copies(X: NDArray[Any], record: object) -> float:
    """Return the share of new rows in which little was changed since the training, at least.

    They are equal to a training row in every second input, by more than is usual among the training
    rows themselves; 0 where that cannot be told by the record, of `record_of`.

    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> other = X + np.eye(8)[0]
    >>> near_copies(other, record_of(X)), near_copies(X + 1, record_of(X))
    (1.0, 0.0)
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
    """Return the digests of a record, and whether they are all; None of anything else."""
    try:
        raw = base64.b64decode(record["digests"], validate=True)  # type: ignore[index]
        complete = record["all"] is True  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        return None
    if not raw or len(raw) % _BYTES:
        return None
    known = [int.from_bytes(raw[i : i + _BYTES], "big") for i in range(0, len(raw), _BYTES)]
    return np.array(known, dtype=np.uint64), complete
