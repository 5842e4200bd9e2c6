"""Would differences of samples tell more than samples, in place of them or beside them?

Run with ``python benchmarks/differences.py --data DIR``; DIR holds ``ucr.npz``, ``motors.npz`` and
``har_raw.npz``. A third of the training rows is held out at a time, of motors and har_raw whole
recordings and persons. "Left out" is the error by which a training of few windows would choose.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tinykernel import TernaryKernelClassifier

UCR = (
    "GunPointAgeSpan",
    "PowerCons",
    "SwedishLeaf",
    "MedicalImages",
    "RefrigerationDevices",
    "WormsTwoClass",
)


def views(X: NDArray) -> dict[str, NDArray]:
    """Return windows (n, samples, channels) of samples, of differences, and of both."""
    steps = np.diff(X.astype(np.int32), axis=1)
    both = np.concatenate([X[:, 1:], steps], axis=2)
    # An odd window could not be averaged.
    return {
        name: view[:, : view.shape[1] // 2 * 2]
        for name, view in (("samples", X), ("differences", steps), ("both", both))
    }


def folds(y: NDArray, group: NDArray | None) -> NDArray:
    """Deal groups, or the rows of each class, out to three folds; return that of each row."""
    rng, fold = np.random.default_rng(0), np.zeros(len(y), int)
    if group is not None:
        for i, value in enumerate(rng.permutation(np.unique(group))):
            fold[group == value] = i % 3
        return fold
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        fold[rows] = np.arange(len(rows)) % 3
    return fold


def compare(name: str, X: NDArray, y: NDArray, group: NDArray | None) -> None:
    """Print the accuracy on held-out rows, and the error left out, of each view."""
    fold = folds(y, group)
    for view, windows in views(X).items():
        right, left_out = [], []
        for out in (fold == k for k in range(3)):
            inside = ~out
            model = TernaryKernelClassifier(n_components=0, linear=8, random_state=0)
            model.fit(windows[inside], y[inside], groups=None if group is None else group[inside])
            right.append(model.score(windows[out], y[out]))
            left_out.append(model.history_["loss"][0])
        print(f"{name:20} {view:12} {np.mean(right):.4f}  left out {np.mean(left_out):.4f}")


def main() -> None:
    """Compare all sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    for name in UCR:
        with np.load(folder / "ucr.npz") as file:
            compare(name, file[f"{name}/X_train"][:, :, None], file[f"{name}/y_train"], None)
    with np.load(folder / "motors.npz") as file:
        compare("motors", file["X"][:, :1024], file["y"], file["group"])
    with np.load(folder / "har_raw.npz") as file:
        some = np.random.default_rng(0).permutation(len(file["X"]))[:1400]
        X = file["X"][some].reshape(len(some), 128, 6)
        compare("har_raw", X, file["y"][some], file["group"][some])


if __name__ == "__main__":
    main()
