"""What a RAM copy of the linear part gains that moves on the device, beside class offsets.

Real models of 512 components and a linear part of 8 bits: gas sensors trained on batches 1 to 6 and
met by the late ones, HAR in three folds of whole persons. 20 labelled rows in turn by class, 10
draws, as in ``adaptation.py``; steps are shifts. Run at the top of the repository:

    python benchmarks/adaptation_linear.py [--data FOLDER] [--sets gas,har]
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from adaptation import DRAWS, FOLDS, LABELLED, _load, in_turn

import tinykernel

Unit = tuple[tinykernel.IntegerModel, np.ndarray, np.ndarray]


def trained(X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> tinykernel.IntegerModel:
    """Train in a few seconds."""
    classifier = tinykernel.TernaryKernelClassifier(
        n_components=512, linear=8, effort="quick", epochs=12, random_state=0
    )
    return classifier.fit(X, y, groups=groups).quantize()


def units(name: str, folder: Path) -> list[Unit]:
    """Return batches or persons with a model that never saw them."""
    if name == "gas":
        X, y, group = _load(folder / "gas_drift.npz", ("",))
        early = group <= 6
        model = trained(X[early], y[early], group[early])
        return [(model, X[group == one], y[group == one]) for one in np.unique(group[~early])]
    X, y, group = _load(folder / "har.npz", ("_train", "_test"))
    everybody, found = np.unique(group), []
    for fold in range(FOLDS):
        held = everybody[fold::FOLDS]
        known = ~np.isin(group, held)
        model = trained(X[known], y[known], group[known])
        found += [(model, X[group == one], y[group == one]) for one in held]
    return found


def moved(
    scores: np.ndarray,
    Q: np.ndarray,
    labels: np.ndarray,
    rows: np.ndarray,
    linear: bool,
    shift: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and changes of the linear part after these rows; one of them stays 0."""
    offsets = np.zeros(scores.shape[1], dtype=np.int64)
    change = np.zeros((scores.shape[1], Q.shape[1]), dtype=np.int64)
    for row in rows:
        adapted, label = scores[row] + offsets + change @ Q[row], labels[row]
        wrong = int(adapted.argmax())
        if wrong == label:
            continue
        gap = int(adapted[wrong] - adapted[label])
        if linear:  # passive-aggressive, in 1/256 of a score a unit of input
            step = (gap * 256) // (2 * int(Q[row] @ Q[row])) >> shift
            change[label] += step * Q[row] // 256
            change[wrong] -= step * Q[row] // 256
        else:
            offsets[label] += (gap >> shift) + 1
            offsets[wrong] -= (gap >> shift) + 1
    return offsets, change


def gains(unit: Unit, linear: bool, shift: int) -> np.ndarray:
    """Return accuracy before and after in percent, means over the draws."""
    model, X, labels = unit
    scores, Q = model.scores(X).astype(np.int64), model.quantize_inputs(X).astype(np.int64)
    Q >>= model.scaler.bits - 8
    rng, found = np.random.default_rng(0), []
    for _ in range(DRAWS):
        rows = in_turn(labels, rng.permutation(len(labels)))
        offsets, change = moved(scores, Q, labels, rows[:LABELLED], linear, shift)
        judge = rows[LABELLED:]
        after = scores[judge] + offsets + Q[judge] @ change.T
        found.append([np.mean(s.argmax(axis=1) == labels[judge]) for s in (scores[judge], after)])
    return 100 * np.mean(found, axis=0)


def main() -> None:
    """Print one table a set."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("TINYKERNEL_DATA", "data"))
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--sets", default="gas,har")
    given = parser.parse_args()
    for name in given.sets.split(","):
        every = units(name, given.data)
        print(f"\n{name}: {len(every)}, {LABELLED} labelled rows each, {DRAWS} draws\n")
        print("| what moves | before | after | gain | worst | best | worse off |")
        print("|---|---|---|---|---|---|---|")
        for linear, shifts in ((False, (2, 3, 4)), (True, (0, 1, 2, 3))):
            for shift in shifts:
                found = np.array([gains(unit, linear, shift) for unit in every])
                gain = found[:, 1] - found[:, 0]
                what = "linear part" if linear else "offsets"
                before, after = found.mean(axis=0)
                print(
                    f"| {what}, gap / {2**shift} | {before:.2f} % | {after:.2f} % "
                    f"| {gain.mean():+.2f} +- {gain.std(ddof=1):.2f} | {gain.min():+.2f} "
                    f"| {gain.max():+.2f} | {np.sum(gain < 0)} of {len(gain)} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
