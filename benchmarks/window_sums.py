"""What do sums over a window give beside the counts of kernels, at the same flash?

Run with ``python benchmarks/window_sums.py --data DIR``; DIR holds ``ucr.npz``, ``motors.npz`` and
``har_raw.npz``. A third of the training rows is held out at a time, of motors and har_raw whole
recordings and persons. Every model is within the budget, code and tables of the sums included, and
its accuracy is that of its integers.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from differences import UCR, folds
from numpy.typing import NDArray

import tinykernel

_CHOICES = ("off", "on", "auto")
_Set = tuple[str, NDArray, NDArray, NDArray | None]


def accuracy(one: _Set, budget: str, sums: str) -> tuple[float, int]:
    """Return the accuracy on held-out rows, and in how many of three models there are sums."""
    _, X, y, group = one
    fold, right, taken = folds(y, group), [], 0
    for out in (fold == k for k in range(3)):
        found = tinykernel.train(
            X[~out],
            y[~out],
            groups=None if group is None else group[~out],
            budget=budget,
            link=False,
            n_jobs=1,
            random_state=0,
            sums=sums,
        ).model
        right.append(np.mean(found.predict(X[out]) == y[out]))
        taken += found.stages[0].KIND == "sums"
    return 100 * float(np.mean(right)), taken


def sets(folder: Path) -> Iterator[_Set]:
    """Yield name, windows (n, samples, channels), labels and groups."""
    with np.load(folder / "motors.npz") as file:
        yield "motors", file["X"][:, :1024], file["y"], file["group"]
    with np.load(folder / "har_raw.npz") as file:
        some = np.random.default_rng(0).permutation(len(file["X"]))[:2400]
        X = file["X"][some].reshape(len(some), 128, 6)
        yield "har_raw", X, file["y"][some], file["group"][some]
    with np.load(folder / "ucr.npz") as file:
        for name in UCR:
            X = file[f"{name}/X_train"]
            yield name, X[:, : X.shape[1] // 2 * 2, None], file[f"{name}/y_train"], None


def main() -> None:
    """Compare all sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--budgets", default="3KB,5KB")
    parser.add_argument("--sets", help="these alone, parted by commas")
    arguments = parser.parse_args()
    for one in sets(arguments.data):
        if arguments.sets and one[0] not in arguments.sets.split(","):
            continue
        for budget in arguments.budgets.split(","):
            cells = []
            for sums in _CHOICES:
                right, taken = accuracy(one, budget, sums)
                cells.append(f"{sums} {right:.2f}" + (f" ({taken} of 3)" if sums == "auto" else ""))
            print(f"{one[0]:24} {budget}: {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
