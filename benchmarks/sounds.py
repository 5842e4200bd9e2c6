"""Words, digits and motors from samples, all bytes counted: accuracy of groups held out.

python benchmarks/sounds.py --sets speech:8KB,motors:4KB --write docs/results/sounds.md

The number of kernels that the budget allows is found on the first fold and kept for the others; the
bytes are those of the largest linked model. ``speech:16KB:1`` takes the first fold alone, which
keeps the time short; the page shows it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from _page import page_arguments, print_page
from sklearn.model_selection import GroupKFold

from tinykernel import train
from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.measure.report import report
from tinykernel.model.stages.kernels import Kernels

WINDOW = {"speech": 16000, "spoken_digits": 8000, "motors": 4096}
RATE = {"speech": 16000.0, "spoken_digits": 8000.0, "motors": 1000.0}
PROTOCOLS = {
    "speech": "GroupKFold(6) by person",
    "spoken_digits": "clips 0 to 4 of each person and digit",
    "spoken_digits without": "one person left out",
    "motors": "GroupKFold(5) by recording",
}
Folds = list[tuple[np.ndarray, np.ndarray]]


def load(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, Folds]:
    """Return windows (n, samples, channels), labels, groups and folds."""
    with np.load(folder / f"{name.split()[0]}.npz", allow_pickle=False) as held:
        data = {key: held[key] for key in held.files}
    y, group = data["y"], data["group"]
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


def row(name: str, budget: str, n_folds: int, folder: Path) -> str:
    """Train on the first folds; return a line of the table."""
    X, y, group, folds = load(name, folder)
    own = name.split()[0]
    options: dict[str, Any] = {"rate": RATE[own], "hop": WINDOW[own] // 2, "random_state": 0}
    found, right, sizes = None, [], []
    for inside, outside in folds[:n_folds]:
        if found is None:
            kept = train(X[inside], y[inside], budget=budget, groups=group[inside], **options)
            found = {"n_kernels": kept.model.find(Kernels).n_kernels}
            model = kept.model
        else:
            model = TernaryKernelClassifier(**options | found).fit(X[inside], y[inside]).quantize()
        right.append(float((model.predict(X[outside]) == y[outside]).mean()))
        sizes.append(report(model, "cortex-m4").flash)
        print(f"{name} {budget}: {100 * right[-1]:.2f} % in {sizes[-1]} B", file=sys.stderr)
    each = ", ".join(f"{100 * share:.1f}" for share in right)
    assert found is not None
    protocol = PROTOCOLS[name] + (f", first {n_folds}" if n_folds < len(folds) else "")
    return (
        f"| {name} | {protocol} | {budget} | {100 * np.mean(right):.2f} | {each} | "
        f"{found['n_kernels']} | {max(sizes)} |"
    )


def page(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Sounds and vibrations"
    yield ""
    yield "Accuracy in % of windows whose groups were held out, of the integer model; bytes are"
    yield "those linked on Cortex-M4, spectrum included. Written by `benchmarks/sounds.py`."
    yield ""
    yield "| data | held out | budget | accuracy | each fold | kernels | bytes |"
    yield "|---|---|---|---|---|---|---|"
    for one in arguments.sets.split(","):
        name, budget, *first = one.split(":")
        yield row(name, budget, int(first[0]) if first else 99, Path(arguments.data))


if __name__ == "__main__":
    chosen = "speech:8KB,spoken_digits:8KB,spoken_digits without:8KB,motors:2KB:1,motors:4KB"
    given = page_arguments(__doc__, chosen).parse_args()
    print_page(page(given), given.write)
