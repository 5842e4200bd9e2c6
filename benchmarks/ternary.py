"""Ternary against binary weights at equal bytes of tables, with cheap and with full phase windows.

Run with ``python benchmarks/ternary.py --data DIR``. It trains on a part of the training rows of
MNIST and USPS and judges by others, two seeds each; the test parts are not read. Two layouts that
the package does not have are made here: "compact" and "phases" with ternary weights.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from tinykernel.model import quantize
from tinykernel.training import layouts
from tinykernel.training.options import TrainerOptions
from tinykernel.training.trainer import fit
from tinykernel.training.trainset import prepare

TABLE_BYTES = 5500
SETS = {"mnist": (15000, 4000, 6), "usps": (5491, 1800, 20)}
NAMES = ("compact", "compact ternary", "phases", "phases ternary", "windows")


def accuracy(
    X: np.ndarray, y: np.ndarray, n_train: int, epochs: int, layout: str, seed: int
) -> float:
    """Train on the first rows and return the accuracy of the integer model on the others."""
    dimension = 1 << (X.shape[1] - 1).bit_length()
    p = layouts.components_within(TABLE_BYTES, layouts.LAYOUTS[layout], dimension, 10)
    _, data = prepare(X[:n_train], y[:n_train])
    options = TrainerOptions(
        n_components={layout: p}, epochs=epochs, effort="quick", random_state=seed
    )
    model = quantize(fit(data, options).machine)
    return 100 * float(np.mean(model.predict(X[n_train:]) == y[n_train:]))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    folder = os.environ.get("TINYKERNEL_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=folder is None)
    arguments = parser.parse_args()
    for name in ("compact", "phases"):
        ternary = replace(layouts.LAYOUTS[name], name=f"{name} ternary", ternary=True)
        layouts.LAYOUTS[ternary.name] = ternary
    print(f"{TABLE_BYTES} bytes of tables, accuracy on rows held out, %")
    for name, (n_train, n_held, epochs) in SETS.items():
        with np.load(arguments.data / f"{name}.npz") as given:
            order = np.random.default_rng(0).permutation(len(given["y_train"]))[: n_train + n_held]
            X, y = given["X_train"][order], given["y_train"][order].astype(int)
        for layout in NAMES:
            found = [accuracy(X, y, n_train, epochs, layout, seed) for seed in (0, 1)]
            print(f"{name:<8} {layout:<16} {found[0]:.2f} {found[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
