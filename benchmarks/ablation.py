"""What each part of the joint trainer gives: accuracy with one thing changed at a time.

Run with ``python benchmarks/ablation.py --data DIR [--name mnist]``; prints a Markdown table. Rows
held out of the training part are scored (whole groups where the file has groups), never the test
part. All variants of one table use the same bytes of tables, unless the row says otherwise.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

from tinykernel.hadamard import padded_dimension
from tinykernel.training.joint import fit_joint
from tinykernel.training.joint_options import FORMATS, components_within

BASE = {"dropout": 0.0, "sigma_multiple": 1.0, "noise": 0.3}
VARIANTS: dict[str, dict[str, Any]] = {
    "recipe": {},
    "format phases: 8-bit G, learned starts": {"storage": "phases"},
    "format windows: also widths, S, ternary weights": {"storage": "windows"},
    "random features: G not learned": {"diagonal_factor": 0.0},
    "no noise": {"noise": 0.0},
    "twice the noise": {"noise": 0.6},
    "dropout 0.2": {"dropout": 0.2},
    "sigma halved": {"sigma_multiple": 0.5},
    "sigma doubled": {"sigma_multiple": 2.0},
    "label smoothing 0.1": {"smoothing": 0.1},
    "squared hinge": {"loss": "squared_hinge"},
    "quantised from the start": {"quantise_from": 0.0},
    "quantised afterwards": {"quantise_from": 1.0},
    "surrogate slope 4": {"slope": 4.0},
    "half the rate of G": {"diagonal_factor": 7.5},
}


def held_out(n_rows: int, groups: np.ndarray | None) -> np.ndarray:
    """Return which rows are scored."""
    rng = np.random.default_rng(0)
    if groups is None:
        return rng.permutation(n_rows) % 6 == 0
    names = rng.permutation(np.unique(groups))
    return np.isin(groups, names[: max(1, len(names) // 4)])


def labels_of(machine: Any, X: np.ndarray) -> np.ndarray:
    """Return the predicted labels."""
    decisions = machine.decision_function(X)
    index = decisions[:, 0] > 0 if decisions.shape[1] == 1 else decisions.argmax(axis=1)
    return np.array(machine.classes)[index.astype(int)]


def main() -> None:
    """Train every variant with every seed and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--name", default="mnist")
    parser.add_argument("--bytes", type=int, default=6000, help="of tables")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    with np.load(arguments.data / f"{arguments.name}.npz", allow_pickle=False) as data:
        X = data["X_train"] if "X_train" in data else data["X"]
        y = data["y_train"] if "y_train" in data else data["y"]
        groups = data.get("group_train")
    out = held_out(len(y), groups)
    n_classes = len(np.unique(y))
    n_outputs = 1 if n_classes == 2 else n_classes
    print(f"{arguments.name}: {arguments.bytes} bytes of tables, {arguments.epochs} epochs, "
          f"{arguments.seeds} seeds, {out.sum()} rows held out\n")  # fmt: skip
    print("| variant | p | accuracy | lowest to highest | loss |")
    print("|---|---:|---:|---:|---:|")
    for title, changes in VARIANTS.items():
        options = {**BASE, **changes}
        form = FORMATS[options.get("storage", "compact")]
        p = components_within(arguments.bytes, form, padded_dimension(X.shape[1]), n_outputs)
        scores, losses = [], []
        for seed in range(arguments.seeds):
            result = fit_joint(X[~out], y[~out], n_components=p, epochs=arguments.epochs,
                               search=False, random_state=seed, n_threads=arguments.threads,
                               **options)  # fmt: skip
            scores.append(100 * np.mean(labels_of(result.machine, X[out]) == y[out]))
            losses.append(result.history[-1]["loss"])
        print(f"| {title} | {p} | {np.mean(scores):.2f} % | {min(scores):.2f} to {max(scores):.2f} "
              f"| {np.mean(losses):.3f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
