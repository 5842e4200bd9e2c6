"""Words, digits, motors and beats from samples, all bytes counted: accuracy of groups held out.

python benchmarks/sounds.py --sets speech:8KB,motors:4KB --write docs/results/sounds.md

The number of kernels that the budget allows is found on the first fold and kept for the others, but
for those without the mean; the bytes are those of the largest linked model. ``speech:16KB:1`` takes
the first fold alone, which keeps the time short; the page shows it. Beats count by class, without
those that are fusions; those of ``ecg_beats past`` have numbers beside their windows.
``--intervals`` prints what small forests recognise from the time between beats alone.
Rows of the page that are not asked for stay. ``--work FOLDER`` keeps folds, so that a row goes on
where it ended.
"""

import argparse
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import soundfile
from _page import page_arguments, print_page, rendered
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GroupKFold

from tinykernel import relative, train
from tinykernel.base.files import write_bytes_atomically
from tinykernel.pieces.kernels.spec import Kernels
from tinykernel.pieces.offset.spec import Offset
from tinykernel.pieces.separable.spec import Separable
from tinykernel.pieces.spectrum.spec import Spectrum
from tinykernel.run.report import report

WINDOW = {
    "speech": 16000,
    "google12": 16000,
    "spoken_digits": 8000,
    "motors": 4096,
    "ecg_beats": 512,
}
RATE = {
    "speech": 16000.0,
    "google12": 16000.0,
    "spoken_digits": 8000.0,
    "motors": 1000.0,
    "ecg_beats": 180.0,
}
PROTOCOLS = {
    "speech": "GroupKFold(6) by person",
    "google12": "GroupKFold(3) by speaker",
    "spoken_digits": "clips 0 to 4 of each person and digit",
    "spoken_digits without": "one person left out",
    "motors": "GroupKFold(5) by recording",
    "ecg_beats": "GroupKFold(11) by record",
    "ecg_beats past": "GroupKFold(11) by record, intervals over their past",
}
#: Training windows of a class of beats, which keeps the time short; all others are tested.
BEATS = 5000
Folds = list[tuple[np.ndarray, np.ndarray]]


def load(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, Folds]:
    """Return windows (n, samples, channels), labels, groups and folds."""
    if name == "google12":
        return _of_the_public(folder / "google12.zip")
    with np.load(folder / f"{name.split()[0]}.npz", allow_pickle=False) as held:
        data = {key: held[key] for key in held.files}
    y, group = data["y"], data["group"]
    if name.startswith("ecg_beats"):
        known, X = y != "F", data["X"]
        past = "past" in name
        X = (
            np.hstack([X, over_past(intervals(X, group), group, 32, 8)])
            if past
            else X[:, :, np.newaxis]
        )
        X, y, group = X[known], y[known], group[known]
        return X, y, group, list(GroupKFold(11).split(y, y, group))
    if name == "motors":
        return data["X"], y, group, list(GroupKFold(5).split(y, y, group))
    if name == "speech":
        X = data["X"].reshape(len(y), -1, 1)
        return X, y, group, list(GroupKFold(6).split(y, y, group))
    X = np.zeros((len(y), WINDOW["spoken_digits"], 1), np.int16)
    ends = np.cumsum(data["length"])
    for row, end, length in zip(X, ends, data["length"], strict=True):
        row[:length] = data["samples"].reshape(-1, 1)[end - length : end]
    if name == "spoken_digits":
        out = data["take"] < 5
        return X, y, group, [(np.flatnonzero(~out), np.flatnonzero(out))]
    people = [np.flatnonzero(group == one) for one in np.unique(group)]
    return X, y, group, [(np.setdiff1d(np.arange(len(y)), out), out) for out in people]


def intervals(X: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the time before and after each beat, in samples.

    Windows of neighbouring beats overlap, which tells the time between them. Without overlap, and
    at the ends of a record, it is that of the beat before.
    """
    before = np.zeros(len(X), np.int64)
    for i in range(1, len(X)):
        lags = 20 + np.flatnonzero(X[i - 1, 20:500] == X[i, 0]) if group[i] == group[i - 1] else ()
        before[i] = next(
            (n for n in lags if np.array_equal(X[i - 1, n:], X[i, :-n])), before[i - 1]
        )
    after = np.where(group == np.append(group[1:], -1), np.append(before[1:], 0), before)
    return before, after


def over_past(parts: tuple[np.ndarray, ...], group: np.ndarray, *lengths: int) -> np.ndarray:
    """Return numbers, each over its own past of so many."""
    columns = [relative(part, group, n=n) for part in parts for n in lengths]
    return np.stack(columns, axis=1).astype(np.int16)


def trees_on_intervals(folder: Path) -> Iterator[str]:
    """Yield the recalls of small forests on the intervals of beats, as they are and over a past."""
    with np.load(folder / "ecg_beats.npz", allow_pickle=False) as held:
        X, y, group = held["X"], held["y"], held["group"]
    parts, known = intervals(X, group), y != "F"
    kinds = {f"over {n}": over_past(parts, group, *n) for n in [(8,), (32,), (128,), (8, 32)]}
    y, places = y[known], group[known]
    for kind, numbers in {"as they are": np.stack(parts, axis=1), **kinds}.items():
        rows, answers = numbers[known], []
        for inside, outside in GroupKFold(11).split(y, y, places):
            drawn = np.random.default_rng(0).permutation(inside)
            inside = np.concatenate([drawn[y[drawn] == one][:1500] for one in np.unique(y)])
            options: dict[str, Any] = {"max_depth": 7, "min_samples_leaf": 8, "random_state": 0}
            forest = RandomForestClassifier(40, class_weight="balanced", **options)
            forest.fit(rows[inside], y[inside])
            answers.append((y[outside], forest.predict(rows[outside])))
        share, recalls = _share_right(answers, True)
        yield f"intervals {kind}: {100 * share:.1f} % in the mean, {recalls}"


def _of_the_public(archive: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, Folds]:
    """Return sounds of an archive, WORD/SPEAKER_i.flac, and folds by speaker."""
    with zipfile.ZipFile(archive) as held:
        names = sorted(name for name in held.namelist() if name.endswith(".flac"))
        read = [soundfile.read(io.BytesIO(held.read(name)), dtype="int16")[0] for name in names]
    X = np.zeros((len(names), WINDOW["google12"], 1), np.int16)
    for row, samples in zip(X, read, strict=True):
        row[: len(samples), 0] = samples[: len(row)]
    y, speakers = (
        np.array(part) for part in zip(*(name.split("/") for name in names), strict=True)
    )
    group = np.array([name.split("_")[0] for name in speakers])
    return X, y, group, list(GroupKFold(3).split(y, y, group))


def trained(
    name: str, budget: str, found: dict[str, Any], data: tuple[np.ndarray, ...], outside: np.ndarray
) -> dict[str, Any]:
    """Train for a budget, or with the kernels `found` for it; return answers, kernels, bytes."""
    X, y, group = data
    own, inside = name.split()[0], np.setdiff1d(np.arange(len(y)), outside)
    options: dict[str, Any] = {"rate": RATE[own], "hop": WINDOW[own] // 2, "random_state": 0}
    if own == "ecg_beats":
        drawn = np.random.default_rng(0).permutation(inside)
        inside = np.concatenate([drawn[y[drawn] == one][:BEATS] for one in np.unique(y)])
        options |= {"hop": 0, "class_weight": "balanced"}
        if X.ndim == 2:
            options |= {"window_shape": (512, 1), "beside": X.shape[1] - 512}
    # No option says that kernels of cells take samples without their mean: they are found again.
    kept = found if "offset" not in found else {}
    options |= {"link": False} | kept if kept else {"budget": budget}
    model = train(X[inside], y[inside], groups=group[inside], **options).model
    kernels, convolutions = model.find(Kernels), model.find(Separable)
    if convolutions is not None:
        return {
            "answers": model.predict(X[outside]).tolist(),
            "found": {"n_channels": int(convolutions.channels[-1]), "model": "separable"},
            "flash": report(model, "cortex-m4").flash,
        }
    form = {} if model.find(Offset) is None else {"offset": "remove"}
    form |= {} if model.find(Spectrum) else {"spectrum": "off"}
    return {
        "answers": model.predict(X[outside]).tolist(),
        "found": {"n_kernels": kernels.n_kernels, "cells": kernels.cells[0], "model": "kernels"}
        | form,
        "flash": report(model, "cortex-m4").flash,
    }


def row(name: str, budget: str, n_folds: int, folder: Path, work: Path | None) -> str:
    """Train on the first folds; return a line of the table."""
    *data, folds = load(name, folder)
    y, own = data[1], name.split()[0]
    found: dict[str, Any] = {}
    right, sizes, answers = [], [], []
    for fold, (_, outside) in enumerate(folds[:n_folds]):
        kept = None if work is None else work / f"{name} {budget} {fold}.json"
        if kept is not None and kept.exists():
            one = json.loads(kept.read_text())
        else:
            one = trained(name, budget, found, tuple(data), outside)
            if kept is not None:
                write_bytes_atomically(kept, json.dumps(one).encode())
        found = found or one["found"]
        answers.append((y[outside], np.array(one["answers"])))
        right.append(_share_right([answers[-1]], own == "ecg_beats")[0])
        sizes.append(one["flash"])
        print(f"{name} {budget}: {100 * right[-1]:.2f} % in {sizes[-1]} B", file=sys.stderr)
    each = ", ".join(f"{100 * share:.1f}" for share in right)
    protocol = PROTOCOLS[name] + (f", first {n_folds}" if n_folds < len(folds) else "")
    share = float(np.mean(right))
    if own == "ecg_beats":
        share, words = _share_right(answers, True)
        protocol += f": {words} found"
    kernels = str(found.get("n_kernels") or found["n_channels"])
    if "cells" not in found:
        kernels += " channels"
    elif found["cells"] > 2:
        kernels += f" of {found['cells']} cells"
    if "offset" in found:
        kernels += ", less the mean"
    return (
        f"| {name} | {protocol} | {budget} | {100 * share:.2f} | {each} | {kernels} | "
        f"{max(sizes)} |"
    )


def _share_right(answers: list[tuple[np.ndarray, np.ndarray]], balanced: bool) -> tuple[float, str]:
    """Return the share of right answers, of all or in the mean of the classes, and that of each."""
    true, told = (np.concatenate(part) for part in zip(*answers, strict=True))
    shares = {one: float((told[true == one] == one).mean()) for one in np.unique(true)}
    share = np.mean(list(shares.values())) if balanced else (true == told).mean()
    return float(share), ", ".join(f"{one} {100 * part:.0f}" for one, part in shares.items())


def page(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the page."""
    rows = {}
    if arguments.write and arguments.write.exists():
        lines = arguments.write.read_text().split("|---|\n")[-1].splitlines()
        rows = {_key(line): line for line in lines}
    for one in filter(None, arguments.sets.split(",")):
        name, budget, *first = one.split(":")
        folds = int(first[0]) if first else 99
        line = row(name, budget, folds, arguments.data, arguments.work)
        rows[_key(line)] = line
    yield from rendered("sounds", beats=BEATS, rows=[rows[key] for key in sorted(rows)])


def _key(line: str) -> tuple[int, int]:
    """Return place of the data and KB of the budget of a row, by which rows are sorted."""
    name, _, budget = line.removeprefix("| ").split(" | ")[:3]
    return list(PROTOCOLS).index(name), int(budget.removesuffix("KB"))


if __name__ == "__main__":
    chosen = "speech:8KB,speech:16KB,speech:30KB,google12:16KB,google12:30KB,spoken_digits:8KB,"
    chosen += "spoken_digits:16KB,spoken_digits without:8KB,motors:2KB,motors:4KB,ecg_beats:8KB,"
    chosen += "ecg_beats:16KB:1"
    parser = page_arguments(__doc__, chosen)
    parser.add_argument("--work", type=Path, help="folder that keeps folds")
    parser.add_argument("--intervals", action="store_true", help="forests on intervals of beats")
    given = parser.parse_args()
    if given.intervals:
        for line in trees_on_intervals(given.data):
            print(line, flush=True)
    else:
        print_page(page(given), given.write)
