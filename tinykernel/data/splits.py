"""Hold out whole recordings, and recognise training rows by a short record.

The record holds the smallest digests of the training rows (Bar-Yossef et al. 2002, "Counting
distinct elements in a data stream"). Of the digests of other rows in the same range, the share that
is in the record estimates the share of training rows. Up to `KEPT` training rows it is exact.
"""

import base64
import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, OptionError, RowsError
from tinykernel.base.text import count, join
from tinykernel.data.cutting import Windows
from tinykernel.data.partition import Dataset, held_out_groups
from tinykernel.data.paths import TRAIN, parts_of

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


def split_recordings(
    data: Windows, test_size: float = 0.2, seed: int = 0
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of training and test windows; whole recordings (or groups) are held out.

    Windows of one recording overlap and resemble each other, so they must not be split. The parts
    are those of ``sklearn.model_selection.StratifiedGroupKFold(round(1 / test_size), shuffle=True,
    random_state=seed)``. Of the parts without which every class still has training windows, the
    first one with the most classes is held out. A `test_size` of 0 holds out none.

    Where each is in a folder train, training, test or testing, or its name ends so, these are the
    parts.
    """
    if data.y is None:
        raise DataError(
            f"{data.source}: has no labels to train on; add them, or name them with --label"
        )
    if not 0 <= test_size < 1:
        raise OptionError(f"test size must be at least 0 and below 1, got {test_size}")
    train = np.ones(len(data.X), bool)
    if test_size == 0:
        return train, ~train
    parts = parts_of(data.recordings)
    if parts:
        train = np.array([part.lower() in TRAIN for part in parts])[data.recording]
        only = sorted(map(str, {*data.y[~train].tolist()} - {*data.y[train].tolist()}))
        if only:
            raise RowsError(
                f"{data.source}: {join(sorted(set(parts)))} of its paths split it, and training "
                f"has no {join(only)}; move recordings, or say the labels with --name"
            )
        return train, ~train
    names, group = np.unique(data.groups, return_inverse=True)
    if len(names) < 2:
        unit = "recording" if len(data.recordings) == 1 else "group"
        raise RowsError(
            f"{data.source}: has one {unit} only, and its windows are too alike to test on; give "
            "several files, name groups with --groups, or use --test 0"
        )
    codes = np.unique(data.y, return_inverse=True)[1]
    test = held_out_groups(codes, data.groups, test_size, seed)
    if test is None:
        raise RowsError(_why_no_split(data, codes, group))
    train[test] = False
    return train, ~train


def _why_no_split(data: Windows, codes: NDArray[np.intp], group: NDArray[np.intp]) -> str:
    assert data.y is not None
    for code in range(int(codes.max()) + 1):
        if len(np.unique(group[codes == code])) == 1:
            first = int((codes == code).argmax())
            return (
                f"{data.source}: no recording can be held out: {data.y[first]} is in "
                f"{data.groups[first]} only; record it once more, or use --test 0"
            )
    return (
        f"{data.source}: no recording can be held out without losing a class; record each class "
        "again, or use --test 0"
    )


def as_dataset(data: Windows, test_size: float = 0.2, seed: int = 0) -> Dataset:
    """Split windows into training and test rows by `split_recordings`."""
    train, test = split_recordings(data, test_size, seed)
    assert data.y is not None
    split = f"{count(int(train.sum()), 'training window')}, no test windows"
    groups = data.groups
    if test.any():
        n_train, n_test = (len(np.unique(groups[part])) for part in (train, test))
        unit = "recording" if set(groups) <= set(data.recordings) else "group"
        which = f": {', '.join(np.unique(groups[test]))}" if n_test <= 3 else ""
        folders = sorted(set(parts_of(data.recordings)))
        how = f"as {join(folders)} of their paths split them" if folders else f"seed {seed}"
        split = split.replace("no test windows", count(int(test.sum()), "test window")) + (
            f" ({n_test} of {count(n_train + n_test, unit)} held out{which}; {how})"
        )
    parts = (data.inputs, data.y, groups)
    X_test, y_test, group_test = (each[test] if test.any() else None for each in parts)
    return Dataset(
        data.inputs[train],
        data.y[train],
        X_test,
        y_test,
        data.source,
        split,
        groups[train],
        group_test,
        data.channels,
    )
