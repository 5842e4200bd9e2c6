"""What do sums over a window give beside the counts of kernels, and in place of as much flash?

Run with ``python benchmarks/window_sums.py --data DIR``; DIR holds ``ucr.npz``, ``motors.npz`` and
``har_raw.npz``. A third of the training rows is held out at a time, of motors and har_raw whole
recordings and persons. On a Cortex-M4 the code of sums and their entries take as much flash as
about 96 kernels, so that a line compares n kernels with n - 96 and sums.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from differences import UCR, folds
from numpy.typing import NDArray

from tinykernel import TernaryKernelClassifier

_KERNELS = 96
_Set = tuple[str, NDArray, NDArray, NDArray | None]


def accuracy(one: _Set, n_kernels: int, sums: str) -> float:
    """Return the accuracy in percent on held-out rows."""
    _, X, y, group = one
    fold, right = folds(y, group), []
    for out in (fold == k for k in range(3)):
        model = TernaryKernelClassifier(
            n_components=0,
            linear=8,
            n_kernels=n_kernels,
            options={"sums": sums},
            random_state=0,
        )
        model.fit(X[~out], y[~out], groups=None if group is None else group[~out])
        right.append(model.score(X[out], y[out]))
    return 100 * float(np.mean(right))


def sets(folder: Path) -> Iterator[_Set]:
    """Yield name, windows (n, samples, channels), labels and groups."""
    with np.load(folder / "motors.npz") as file:
        yield "motors", file["X"][:, :1024], file["y"], file["group"]
    with np.load(folder / "har_raw.npz") as file:
        some = np.random.default_rng(0).permutation(len(file["X"]))[:900]
        X = file["X"][some].reshape(len(some), 128, 6)
        yield "har_raw", X, file["y"][some], file["group"][some]
    with np.load(folder / "ucr.npz") as file:
        for name in UCR:
            X = file[f"{name}/X_train"].astype(np.int16)
            yield name, X[:, : X.shape[1] // 2 * 2, None], file[f"{name}/y_train"], None


def main() -> None:
    """Compare all sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", help="these alone, parted by commas")
    parser.add_argument("--kernels", type=int, nargs="*", default=(128, 256))
    arguments = parser.parse_args()
    for one in sets(arguments.data):
        if arguments.sets and one[0] not in arguments.sets.split(","):
            continue
        for n in arguments.kernels:
            few = n - _KERNELS
            told = [
                f"{name} {accuracy(one, *how):.2f}"
                for name, how in (
                    (f"{few} kernels", (few, "off")),
                    (f"{few} and sums", (few, "on")),
                    (f"{n} kernels", (n, "off")),
                )
            ]
            print(f"{one[0]:24} {', '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
