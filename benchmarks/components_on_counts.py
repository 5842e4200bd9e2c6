"""Would components on the counts of a local stage be worth their bytes?

Run with ``python benchmarks/components_on_counts.py --data DIR``, where DIR holds ``usps.npz`` and
``har_raw.npz``. A quarter of the training rows is held out, of har_raw whole persons. At the bytes
of tables of a model with the local stage and a linear part alone, half of the kernels are replaced
by components that see the counts of the other half, beside the linear part. The code of components,
about a kilobyte, is not even counted.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from tinykernel import TernaryKernelClassifier
from tinykernel.codegen.plan import pack
from tinykernel.hadamard import padded_dimension
from tinykernel.model import IntegerModel
from tinykernel.training.layouts import LAYOUTS, components_within

#: Data set: shape of an input, and kernels that fill 8 KB.
SETS = {"usps": ((16, 16), 70), "har_raw": ((128, 6), 340)}


def _tables(model: IntegerModel) -> int:
    return sum(pack(model).table_bytes().values())


def compare(folder: Path, name: str, epochs: int | None) -> None:
    """Print the accuracies on held-out rows of one data set."""
    shape, n_kernels = SETS[name]
    with np.load(folder / f"{name}.npz") as file:
        X = file["X_train"] if "X_train" in file else file["X"]
        y = file["y_train"] if "y_train" in file else file["y"]
        group = file.get("group")
    rows = X.reshape(len(X), -1)
    if group is None:
        inside, out = train_test_split(
            np.arange(len(y)), test_size=0.25, stratify=y, random_state=0
        )
    else:
        inside, out = next(GroupShuffleSplit(1, test_size=0.25, random_state=0).split(X, y, group))
    option = {"window_shape" if len(shape) == 2 and shape[0] > 64 else "image_shape": shape}

    def stage(n: int) -> IntegerModel:
        given = {"n_kernels": n, "linear": 4, "epochs": epochs, "random_state": 0}
        return TernaryKernelClassifier(**option, **given).fit(rows[inside], y[inside]).quantize()

    def say(what: str, model: IntegerModel, inputs: np.ndarray, n_bytes: int) -> None:
        right = 100 * np.mean(model.predict(inputs[out]) == y[out])
        print(f"{name:8} {what:44} {n_bytes:6} B of tables  {right:.2f} %", flush=True)

    start = time.perf_counter()
    full, half = stage(n_kernels), stage(n_kernels // 2)
    say(f"{n_kernels} kernels, linear part", full, rows, _tables(full))
    say(f"{n_kernels // 2} kernels, linear part", half, rows, _tables(half))
    counts = half.as_raw(rows)
    for each, given in zip(half.stages[:-1], half.grids(), strict=False):
        counts = each.run(counts, given)
    n_outputs, d = half.n_outputs, padded_dimension(counts.shape[1])
    left = _tables(full) - _tables(half)
    for layout in ("compact", "phases"):
        p = max(32, components_within(left, LAYOUTS[layout], d, n_outputs))
        given = {"n_components": {f"{layout}+linear4": p}, "effort": "quick", "random_state": 0}
        both = TernaryKernelClassifier(**given, epochs=epochs).fit(counts[inside], y[inside])
        model = both.quantize()
        # The stage, and the machine on its counts.
        n_bytes = _tables(half) + _tables(model) - counts.shape[1] * n_outputs // 2
        what = f"{n_kernels // 2} kernels, linear part, {p} {layout} components"
        say(what, model, counts, n_bytes)
    print(f"{name:8} {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--names", default="usps,har_raw")
    parser.add_argument("--epochs", type=int, help="instead of the usual ones")
    asked = parser.parse_args()
    for one in asked.names.split(","):
        compare(asked.data, one, asked.epochs)
