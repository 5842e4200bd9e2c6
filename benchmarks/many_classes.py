"""Accuracy on few windows of many classes: eight sets of the UCR archive joined to one.

Run with ``python benchmarks/many_classes.py [--data DIR] [--budgets 8KB,16KB]``. DIR holds
``ucr.npz``. Series have 256 samples, mean 0 and deviation 1; the label names the set as well. At
most 10 windows a class are for training and 40 for testing: 64 classes, 621 and 1,865 windows.
"""

from pathlib import Path
from typing import Any

import numpy as np
from _page import page_arguments
from numpy.typing import NDArray

import tinykernel

SETS = (
    *("SwedishLeaf", "Fish", "OSULeaf", "Plane", "MedicalImages", "DistalPhalanxTW"),
    *("SyntheticControl", "Lightning7"),
)
SAMPLES = 256


def joined(file: Path) -> list[NDArray[Any]]:
    """Return windows and labels of the training part, and of the test part."""
    rng = np.random.default_rng(0)
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in ("X", "y", "X_test", "y_test")}
    with np.load(file) as data:
        for name in SETS:
            for suffix, most, end in (("train", 10, ""), ("test", 40, "_test")):
                X, y = data[f"{name}/X_{suffix}"], data[f"{name}/y_{suffix}"]
                rows = [
                    rng.permutation(np.flatnonzero(y == label))[:most] for label in np.unique(y)
                ]
                chosen = np.concatenate(rows)
                parts[f"X{end}"].append(resized(X[chosen]))
                parts[f"y{end}"].append(np.array([f"{name} {label}" for label in y[chosen]]))
    return [np.concatenate(blocks) for blocks in parts.values()]


def resized(series: NDArray[Any]) -> NDArray[np.float32]:
    """Return series of 256 samples, standardised one by one."""
    rows = series.reshape(len(series), -1)
    at = np.linspace(0, rows.shape[1] - 1, SAMPLES)
    out = np.array([np.interp(at, np.arange(rows.shape[1]), row) for row in rows])
    out -= out.mean(axis=1, keepdims=True)
    return np.asarray(out / (out.std(axis=1, keepdims=True) + 1e-9), dtype=np.float32)


def main() -> None:
    """Print accuracy and flash at each budget."""
    parser = page_arguments(__doc__, "all")
    parser.add_argument("--budgets", default="8KB,16KB")
    args = parser.parse_args()
    X, y, X_test, y_test = joined(args.data / "ucr.npz")
    for budget in args.budgets.split(","):
        result = tinykernel.train(
            X, y, budget=budget, target="cortex-m4", window_shape=(SAMPLES, 1), random_state=0
        )
        accuracy = result.model.score(X_test, y_test)
        print(f"{budget}: {100 * accuracy:.1f} % in {result.memory.flash} bytes", flush=True)


if __name__ == "__main__":
    main()
