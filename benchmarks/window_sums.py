"""Would sums over a window tell more, beside the counts of kernels?

Run with ``python benchmarks/window_sums.py --data DIR``; DIR holds ``ucr.npz``, ``motors.npz`` and
``har_raw.npz``. Of each channel the window less its mean has a mean of squares, of absolute values
and of fourth powers, a peak, and a number of crossings of 0. Sixteenths of their log2 stand beside
the window, so that ratios such as crest and kurtosis are differences. A third of the training rows
is held out at a time, of motors and har_raw whole recordings and persons.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from differences import UCR, folds
from numpy.typing import NDArray

from tinykernel import TernaryKernelClassifier


def sums(X: NDArray) -> NDArray:
    """Return sixteenths of log2 of the sums of windows (n, samples, channels), as int16.

    >>> sums(np.array([[[-4], [4], [-4], [4]]])).tolist()  # 16, 4, 256, 4, 3
    [[64, 32, 128, 32, 32]]
    """
    wave = X - X.mean(axis=1, keepdims=True)
    size = np.abs(wave)
    crossings = np.count_nonzero(np.diff(wave > 0, axis=1), axis=1)
    found = [(wave**2).mean(axis=1), size.mean(axis=1), (wave**4).mean(axis=1), size.max(axis=1)]
    levels = [16 * np.log2(np.maximum(each, 2**-4)) for each in found]
    levels.append(16 * np.log2(1 + crossings))
    return np.rint(np.concatenate(levels, axis=1)).astype(np.int16)


def accuracy(
    rows: NDArray,
    shape: tuple[int, ...],
    y: NDArray,
    group: NDArray | None,
    n_kernels: int,
    beside: int,
) -> float:
    """Return the accuracy on held-out rows, of which the last values stand beside the window."""
    fold, right = folds(y, group), []
    for out in (fold == k for k in range(3)):
        inside = ~out
        model = TernaryKernelClassifier(
            n_components=0,
            linear=8,
            n_kernels=n_kernels,
            window_shape=shape,
            options={"beside": beside},
            random_state=0,
        )
        model.fit(rows[inside], y[inside], groups=None if group is None else group[inside])
        right.append(model.score(rows[out], y[out]))
    return float(np.mean(right))


def compare(name: str, X: NDArray, y: NDArray, group: NDArray | None) -> None:
    """Print the accuracy of few and of many kernels, alone and with sums beside them."""
    X = X[:, : X.shape[1] // 2 * 2]
    beside, flat = sums(X), X.reshape(len(X), -1).astype(np.int16)
    told = beside[:, beside.min(axis=0) < beside.max(axis=0)]
    both = np.hstack([flat, told])
    shape = X.shape[1:]
    cells = []
    for n_kernels in (32, 256):
        alone = accuracy(flat, shape, y, group, n_kernels, 0)
        cells.append(f"{n_kernels} kernels {100 * alone:.2f}, with sums ")
        cells[-1] += f"{100 * accuracy(both, shape, y, group, n_kernels, told.shape[1]):.2f}"
    print(f"{name:24} {'; '.join(cells)}", flush=True)


def main() -> None:
    """Compare all sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    with np.load(folder / "motors.npz") as file:
        compare("motors", file["X"][:, :1024], file["y"], file["group"])
    with np.load(folder / "har_raw.npz") as file:
        some = np.random.default_rng(0).permutation(len(file["X"]))[:900]
        X = file["X"][some].reshape(len(some), 128, 6)
        compare("har_raw", X, file["y"][some], file["group"][some])
    with np.load(folder / "ucr.npz") as file:
        for name in UCR:
            compare(name, file[f"{name}/X_train"][:, :, None], file[f"{name}/y_train"], None)


if __name__ == "__main__":
    main()
