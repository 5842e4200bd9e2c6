"""What class offsets gain that move on the device: HAR by held-out person, gas by late batch.

Each person (or batch) is met by a classifier that never saw it: random binary components with ridge
weights, which are trained in seconds, and whose scores are rounded to integers. Offsets learn from
20 labelled rows, and are judged on all others; 10 draws each. Prints the tables of
docs/results/adaptation.md, in about half a minute of an idle core:

    python benchmarks/adaptation.py [--data FOLDER]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinykernel.decisions.adaptation import ADAPT_SHIFT

COMPONENTS, RIDGE, SCALE = 768, 30.0, 20000
LABELLED, DRAWS, FOLDS = 20, 10, 3
LARGEST = 2**30


@dataclass(frozen=True)
class Unit:
    """Scores and labels of one person or batch, from a model that never saw it."""

    name: str
    scores: np.ndarray
    labels: np.ndarray


def fit(
    X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from rows to integer scores."""
    mean, deviation, n = X.mean(axis=0), X.std(axis=0) + 1e-6, X.shape[1]
    R = (rng.normal(size=(n, COMPONENTS)) / (1.2 * np.sqrt(n))).astype(np.float32)
    start = rng.uniform(0, 2 * np.pi, COMPONENTS).astype(np.float32)

    def components(rows: np.ndarray) -> np.ndarray:
        return np.where(np.cos((rows - mean) / deviation @ R + start) > 0, 1, -1).astype(np.float32)

    Z, Y = components(X), 2.0 * np.eye(int(y.max()) + 1)[y] - 1
    W = np.linalg.solve(Z.T @ Z + RIDGE * np.eye(COMPONENTS), Z.T @ Y)
    return lambda rows: (components(rows) @ W * SCALE).astype(np.int64)


def _load(file: Path, parts: tuple[str, ...]) -> tuple[np.ndarray, ...]:
    with np.load(file) as data:
        X, y, group = (
            np.concatenate([data[f"{name}{part}"] for part in parts])
            for name in ("X", "y", "group")
        )
    return X.reshape(len(X), -1).astype(np.float32), np.unique(y, return_inverse=True)[1], group


def batches(folder: Path) -> list[Unit]:
    """Train on the first six batches of the gas sensors, and return the late ones."""
    X, y, group = _load(folder / "gas_drift.npz", ("",))
    scores = fit(X[group <= 6], y[group <= 6], np.random.default_rng(0))
    late = np.unique(group[group > 6])
    return [Unit(f"batch {one}", scores(X[group == one]), y[group == one]) for one in late]


def persons(folder: Path) -> list[Unit]:
    """Train on HAR with whole persons left out, and return all 30 of them."""
    X, y, group = _load(folder / "har.npz", ("_train", "_test"))
    rng, everybody, found = np.random.default_rng(0), np.unique(group), []
    for fold in range(FOLDS):
        held = everybody[fold::FOLDS]
        scores = fit(X[~np.isin(group, held)], y[~np.isin(group, held)], rng)
        found += [Unit(f"person {one}", scores(X[group == one]), y[group == one]) for one in held]
    return found


def adapted(unit: Unit, rows: np.ndarray, shift: int | None) -> np.ndarray:
    """Return the offsets after these rows; a shift of None is a perceptron of fixed steps."""
    offsets = np.zeros(unit.scores.shape[1], dtype=np.int64)
    two = np.sort(unit.scores, axis=1)[:, -2:]
    fixed = int(np.median(two[:, 1] - two[:, 0])) // 4
    for row in rows:
        scores, label = unit.scores[row] + offsets, unit.labels[row]
        wrong = int(scores.argmax())
        if wrong != label:
            step = fixed if shift is None else (int(scores[wrong] - scores[label]) >> shift) + 1
            offsets[label] += min(step, LARGEST - offsets[label])
            offsets[wrong] -= min(step, LARGEST + offsets[wrong])
    return offsets


def in_turn(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Order rows so that every class comes once, then once more, and so on."""
    seen: dict[int, int] = {}
    turns = []
    for label in labels[rows].tolist():
        turns.append(seen.get(label, 0))
        seen[label] = turns[-1] + 1
    return rows[np.lexsort((labels[rows], turns))]


def gains(unit: Unit, shift: int | None, by_class: bool) -> tuple[float, float]:
    """Return accuracy before and after in percent, means over the draws."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS):
        rows = rng.permutation(len(unit.labels))
        rows = in_turn(unit.labels, rows) if by_class else rows
        offsets, judge = adapted(unit, rows[:LABELLED], shift), rows[LABELLED:]
        both = (unit.scores[judge], unit.scores[judge] + offsets)
        found.append([np.mean(s.argmax(axis=1) == unit.labels[judge]) for s in both])
    before, after = 100 * np.mean(found, axis=0)
    return float(before), float(after)


def print_rules(name: str, units: list[Unit]) -> None:
    """Print what each rule of update gains over all units."""
    print(f"\n{name}: {len(units)}, {LABELLED} labelled rows each, {DRAWS} draws\n")
    print("| step | labelled rows | before | after | gain | worst | best | worse off |")
    print("|---|---|---|---|---|---|---|---|")
    for by_class in (False, True):
        for shift in (0, 1, 2, 3, 4, None):
            found = np.array([gains(unit, shift, by_class) for unit in units])
            gain = found[:, 1] - found[:, 0]
            rule = "fixed (perceptron)" if shift is None else f"gap / {2**shift}"
            rule += " (built in)" if shift == ADAPT_SHIFT else ""
            print(
                f"| {rule} | {'class by class' if by_class else 'at random'} "
                f"| {found[:, 0].mean():.2f} % | {found[:, 1].mean():.2f} % "
                f"| {gain.mean():+.2f} +- {gain.std(ddof=1):.2f} | {gain.min():+.2f} "
                f"| {gain.max():+.2f} | {np.sum(gain < 0)} of {len(gain)} |",
                flush=True,
            )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("TINYKERNEL_DATA", "data"))
    parser.add_argument("--data", type=Path, default=default)
    folder = parser.parse_args().data
    print_rules("Late batches of gas sensors", batches(folder))
    print_rules("Persons of HAR", persons(folder))


if __name__ == "__main__":
    main()
