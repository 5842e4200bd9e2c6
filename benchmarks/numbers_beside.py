"""What numbers beside a window tell: beats with RR intervals, a gyroscope with mean accelerations.

python benchmarks/numbers_beside.py --data DIR --write docs/results/sounds-ablation.md

puts their table at the end of that page. DIR holds ``ecg_beats.npz`` and ``har_raw.npz``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from _page import page_arguments, print_section
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold

from tinykernel import TernaryKernelClassifier

TITLE = "## Numbers beside a window"
N_KERNELS = 64
# Samples of the 512 around a beat that kernels look at.
_BEAT = slice(206, 306)
_PROBE = 24
_PAST = 8


def intervals(X: NDArray[Any], group: NDArray[Any]) -> NDArray[np.int64]:
    """Return the samples from the beat before to each one, (n,), by how their windows overlap.

    511 stands where they do not, or where the record has no beat before.

    >>> x = np.random.default_rng(0).integers(0, 99, 600)
    >>> intervals(np.stack([x[:512], x[70:582], x[:512]]), np.array([0, 0, 1])).tolist()
    [511, 70, 511]
    """
    found = np.full(len(X), 511)
    for i in np.flatnonzero(group[1:] == group[:-1]):
        before, after = X[i], X[i + 1]
        views = np.lib.stride_tricks.sliding_window_view(before, _PROBE)
        for lag in np.flatnonzero((views == after[:_PROBE]).all(axis=1)):
            if lag and np.array_equal(before[lag:], after[: len(after) - lag]):
                found[i + 1] = lag
                break
    return found


def relative(interval: NDArray[np.int64], group: NDArray[Any]) -> NDArray[np.int64]:
    """Return each interval over the median of up to 8 before it in its record, times 128."""
    out = np.empty(len(interval), np.int64)
    for one in np.unique(group):
        at = np.flatnonzero(group == one)
        own = interval[at]
        medians = [np.median(own[max(0, j - _PAST) : max(1, j)]) for j in range(len(at))]
        out[at] = np.minimum(511, 128 * own / medians)
    return out


def answers(
    windows: NDArray[Any],
    beside: NDArray[Any],
    inside: NDArray[Any],
    outside: NDArray[Any],
    y: NDArray[Any],
    group: NDArray[Any],
    **more: Any,
) -> list[NDArray[Any]]:
    """Return what is answered outside without and with the numbers (n, k)."""
    shape, found = windows.shape[1:], []
    flat = windows.reshape(len(windows), -1)
    for rows in (flat, np.hstack([flat, beside.astype(flat.dtype)])):
        k = rows.shape[1] - flat.shape[1]
        model = TernaryKernelClassifier(
            n_components=0,
            n_kernels=N_KERNELS,
            window_shape=shape,
            random_state=0,
            options={"beside": k, "cells": 1},
            **more,
        )
        model.fit(rows[inside], y[inside], groups=group[inside])
        found.append(model.quantize().predict(rows[outside]))
    return found


def beats(folder: Path) -> list[float]:
    """Return the mean recall of N, S, V over all folds of records, in %."""
    with np.load(folder / "ecg_beats.npz") as held:
        X, y, group = held["X"], held["y"], held["group"]
    interval = intervals(X, group)
    numbers = np.stack([interval, relative(interval, group)], axis=1)
    known = y != "F"  # few; only the intervals need them
    X, y, group, numbers = X[known], y[known], group[known], numbers[known]
    folds = list(GroupKFold(11).split(y, y, group))
    # Every fifth normal beat is trained, which keeps the time short.
    some = (y != "N") | (np.random.default_rng(0).random(len(y)) < 0.2)
    given = []
    for inside, outside in folds:
        own = inside[some[inside]]
        windows = X[:, _BEAT, None]
        given.append(answers(windows, numbers, own, outside, y, group, class_weight="balanced"))
        print(".", end="", file=sys.stderr, flush=True)
    true = np.concatenate([y[outside] for _, outside in folds])
    pooled = [np.concatenate(parts) for parts in zip(*given, strict=True)]
    return [100 * float(np.mean([(each[true == c] == c).mean() for c in "NSV"])) for each in pooled]


def gyroscope(folder: Path) -> list[float]:
    """Return % right of every fourth person, held out."""
    with np.load(folder / "har_raw.npz") as held:
        X, y, group = held["X"].reshape(-1, 128, 6), held["y"], held["group"]
    out = np.isin(group, np.unique(group)[::4])
    inside, outside = np.flatnonzero(~out), np.flatnonzero(out)
    mean = np.rint(X[:, :, :3].mean(axis=1))
    given = answers(X[:, :, 3:], mean, inside, outside, y, group)
    return [100 * float((each == y[outside]).mean()) for each in given]


def section(folder: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    yield TITLE
    yield ""
    yield f"Accuracy in % of integer models of {N_KERNELS} kernels. Beats are 100 samples: mean"
    yield "recall of N, S and V, GroupKFold(11) by record. The interval before a beat stands"
    yield "beside it, in samples and over the median of the last 8. The gyroscope of har_raw leaves"
    yield "every fourth person out; the means of three accelerations stand beside it."
    yield "Written by `benchmarks/numbers_beside.py`."
    yield ""
    yield "| data | window alone | with numbers |"
    yield "|---|---|---|"
    for name, (alone, both) in (
        ("beats, RR intervals", beats(folder)),
        ("gyroscope, mean accelerations", gyroscope(folder)),
    ):
        yield f"| {name} | {alone:.1f} | {both:.1f} |"


if __name__ == "__main__":
    given = page_arguments(__doc__, "").parse_args()
    print_section(section(Path(given.data)), given.write)
