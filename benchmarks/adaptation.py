"""What class offsets gain that move on the device: HAR by held-out person, gas by late batch.

Each person (or batch) is met by a model that never saw it. Offsets learn from 20 labelled rows,
and are judged on all others; 20 draws each. Prints the tables of docs/results/adaptation.md:

    python benchmarks/adaptation.py [--data FOLDER]
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import GroupKFold

from tinykernel import IntegerModel, TernaryKernelClassifier
from tinykernel.decisions.adaptation import ADAPT_SHIFT, offset_largest

OPTIONS = {"n_components": 256, "epochs": 10, "effort": "quick", "random_state": 0}
LABELLED, DRAWS, FOLDS = 20, 20, 3


@dataclass(frozen=True)
class Unit:
    """Scores and labels of one person or batch, from a model that never saw it."""

    name: str
    scores: np.ndarray
    labels: np.ndarray
    largest: int


def _unit(name: str, model: IntegerModel, X: np.ndarray, y: np.ndarray) -> Unit:
    index = {label: number for number, label in enumerate(model.classes)}
    labels = np.array([index[label] for label in y.tolist()])
    return Unit(name, model.scores(X), labels, offset_largest(model))


def persons(folder: Path) -> list[Unit]:
    """Train on HAR with whole persons left out, and return all 30 of them."""
    with np.load(folder / "har.npz") as data:
        X, y, group = (np.concatenate([data[f"{name}_train"], data[f"{name}_test"]])
                       for name in ("X", "y", "group"))  # fmt: skip
    found = []
    for seen, held in GroupKFold(FOLDS).split(X, y, group):
        model = TernaryKernelClassifier(**OPTIONS).fit(X[seen], y[seen]).quantize()
        for person in np.unique(group[held]):
            mine = group == person
            found.append(_unit(f"person {person}", model, X[mine], y[mine]))
    return found


def batches(folder: Path) -> list[Unit]:
    """Train on the first six batches of the gas sensors, and return the late ones."""
    with np.load(folder / "gas_drift.npz") as data:
        X, y, group = data["X"], data["y"], data["group"]
    model = TernaryKernelClassifier(**OPTIONS).fit(X[group <= 6], y[group <= 6]).quantize()
    return [
        _unit(f"batch {late}", model, X[group == late], y[group == late])
        for late in np.unique(group[group > 6])
    ]


def adapted(unit: Unit, rows: np.ndarray, shift: int | None) -> np.ndarray:
    """Return the offsets after these rows; a shift of None is a perceptron of fixed steps."""
    offsets = np.zeros(unit.scores.shape[1], dtype=np.int64)
    fixed = int(np.median(np.abs(np.diff(np.sort(unit.scores, axis=1)[:, -2:], axis=1)))) // 4
    for row in rows:
        scores, label = unit.scores[row] + offsets, unit.labels[row]
        wrong = int(scores.argmax())
        if wrong != label:
            step = fixed if shift is None else (int(scores[wrong] - scores[label]) >> shift) + 1
            offsets[label] += min(step, unit.largest - offsets[label])
            offsets[wrong] -= min(step, unit.largest + offsets[wrong])
    return offsets


def gains(unit: Unit, shift: int | None, by_class: bool) -> tuple[float, float]:
    """Return accuracy before and after in percent, means over the draws."""
    rng = np.random.default_rng(0)
    before, after = [], []
    for _ in range(DRAWS):
        rows = rng.permutation(len(unit.labels))
        if by_class:  # as a person is asked to do everything once in turn
            order = np.argsort(np.argsort(unit.labels[rows], kind="stable"), kind="stable")
            seen = np.zeros(unit.scores.shape[1], dtype=int)
            turn = np.empty(len(rows), dtype=int)
            for at, row in enumerate(rows):
                turn[at] = seen[unit.labels[row]]
                seen[unit.labels[row]] += 1
            rows = rows[np.lexsort((order, turn))]
        learn, judge = rows[:LABELLED], rows[LABELLED:]
        offsets = adapted(unit, learn, shift)
        before.append(np.mean(unit.scores[judge].argmax(axis=1) == unit.labels[judge]))
        after.append(np.mean((unit.scores[judge] + offsets).argmax(axis=1) == unit.labels[judge]))
    return 100 * float(np.mean(before)), 100 * float(np.mean(after))


def print_rules(name: str, units: list[Unit]) -> None:
    """Print what each rule of update gains over all units."""
    print(f"\n{name}: {len(units)}, {LABELLED} labelled rows each, {DRAWS} draws\n")
    print("| update | rows | before | after | gain | worst | best | worse off |")
    print("|---|---|---|---|---|---|---|---|")
    for by_class in (False, True):
        for shift in (0, 1, 2, 3, 4, None):
            found = np.array([gains(unit, shift, by_class) for unit in units])
            gain = found[:, 1] - found[:, 0]
            rule = "perceptron" if shift is None else f"gap / {2**shift}"
            rule += " (built in)" if shift == ADAPT_SHIFT else ""
            print(f"| {rule} | {'class by class' if by_class else 'at random'} "
                  f"| {found[:, 0].mean():.2f} % | {found[:, 1].mean():.2f} % "
                  f"| {gain.mean():+.2f} +- {gain.std(ddof=1) if len(gain) > 1 else 0:.2f} "
                  f"| {gain.min():+.2f} | {gain.max():+.2f} "
                  f"| {np.sum(gain < 0)} of {len(gain)} |", flush=True)  # fmt: skip


def print_units(units: list[Unit]) -> None:
    """Print every unit with the rule that is built in."""
    print("\n| who | rows | before | after, at random | after, class by class |")
    print("|---|---|---|---|---|")
    for unit in units:
        before, after = gains(unit, ADAPT_SHIFT, False)
        other = gains(unit, ADAPT_SHIFT, True)[1]
        print(f"| {unit.name} | {len(unit.labels)} | {before:.2f} % | {after:.2f} % "
              f"| {other:.2f} % |")  # fmt: skip


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("TINYKERNEL_DATA", "data")
    parser.add_argument("--data", type=Path, default=Path(default))
    folder = parser.parse_args().data
    for name, units in (("Late batches", batches(folder)), ("Persons", persons(folder))):
        print_rules(name, units)
        print_units(units)


if __name__ == "__main__":
    main()
