"""Does a larger model of the same kind teach a small one, and at what cost in time?

Run with ``python benchmarks/teachers.py [--data DIR] [--names usps,har_raw] [--rows 10000]
[--epochs N]``. Rows held out of the training part are scored, whole groups where there are groups;
the test part is never read. The larger model is trained for 30 KB and saved, the small one for 4.4
KB by its labels alone, and then by these and the file.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _data import load
from ablation import LOCAL_SETS, held_out
from sklearn.model_selection import train_test_split

import tinykernel
from tinykernel.budget.teacher import probabilities_of
from tinykernel.modelfile import save

NAMES = "mnist,fashion_mnist,usps,har_raw,ucr/Fish,ucr/Lightning7,ucr/OSULeaf,ucr/Meat,ucr/Beef"
LARGE, SMALL = "30KB", "4500"


def parts_of(folder: Path, name: str, most: int) -> tuple[list[Any], dict[str, Any]]:
    """Return rows, labels, rows held out, their labels; and what `train` is told."""
    if name.startswith("ucr/"):
        with np.load(folder / "ucr.npz") as data:
            X, y = (data[f"{name.removeprefix('ucr/')}/{part}_train"] for part in "Xy")
        split = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
        return [split[i] for i in (0, 2, 1, 3)], {"window_shape": (X.shape[1], 1)}
    part = load(folder, name)[0]
    out = held_out(len(part.y), part.groups)
    kept = np.flatnonzero(~out)[:most]
    told = dict(LOCAL_SETS[name])
    if part.groups is not None:
        told["groups"] = part.groups[kept]
    return [part.X[kept], part.y[kept], part.X[out], part.y[out]], told


def measure(folder: Path, name: str, most: int, epochs: int | None) -> str:
    """Train the three models; return the cells of a row."""
    (X, y, X_out, y_out), told = parts_of(folder, name, most)
    given = {"random_state": 0, "link": False, "epochs": epochs, **told}
    cells = []
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "large.tkm"
        for budget, taught in ((LARGE, False), (SMALL, False), (SMALL, True)):
            began = time.perf_counter()
            teacher = probabilities_of(file, X, y) if taught else None
            found = tinykernel.train(X, y, budget=budget, teacher=teacher, **given)
            if budget == LARGE:
                save(found.model, file)
            right = 100 * np.mean(found.model.predict(X_out) == y_out)
            cells.append(f"{right:.2f} % in {time.perf_counter() - began:.0f} s")
    return f"{len(y)}, {len(y_out)} | " + " | ".join(cells)


def main() -> None:
    """Print a row a data set."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    folder = os.environ.get("TINYKERNEL_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=folder is None)
    parser.add_argument("--names", default=NAMES)
    parser.add_argument("--rows", type=int, default=10000, help="at most, to train on")
    parser.add_argument("--epochs", type=int, help="of each training")
    arguments = parser.parse_args()
    print(f"| data | rows, held out | {LARGE} | {SMALL} bytes | {SMALL} bytes, taught |")
    print("|---|---|---|---|---|")
    for name in arguments.names.split(","):
        cells = measure(arguments.data, name, arguments.rows, arguments.epochs)
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
