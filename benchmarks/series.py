"""Accuracy on sets of the UCR archive at several budgets, beside other methods.

Run with ``python benchmarks/series.py [--data DIR] [--sets all] [--into docs/results] [--write
FILE]``. DIR holds ``ucr.npz``. A set that is finished is kept in ``numbers/ucr.json`` of the
folder, so that a run can be continued. Nothing is set by hand: every set is trained with the same
arguments, on its official training part. MiniRocket is the published accuracy on the same split
(10,000 float features). A linear model and an RBF SVM of scikit-learn are trained in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _page import page_arguments, print_page
from _rows import FinishedRows
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import tinykernel

BUDGETS = ("4KB", "8KB", "16KB")
TARGET = "cortex-m4"
PEERS = ("minirocket", "linear", "svm")


def measure(file: Path, name: str) -> dict[str, Any]:
    """Train on one set at every budget; returns accuracies, bytes and seconds."""
    with np.load(file) as data:
        X, y, X_test, y_test = (
            data[f"{name}/{part}"] for part in ("X_train", "y_train", "X_test", "y_test")
        )
        row: dict[str, Any] = {"minirocket": float(data[f"{name}/minirocket"])}
    peers = {
        "linear": make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-3, 3, 10))),
        "svm": GridSearchCV(
            make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, 10, 100]}, cv=_folds(y)
        ),
    }
    for peer, machine in peers.items():
        row[peer] = float(machine.fit(X, y).score(X_test, y_test))
    for budget in BUDGETS:
        began = time.perf_counter()
        found = tinykernel.train(
            X, y, budget=budget, target=TARGET, window_shape=(X.shape[1], 1), random_state=0
        )
        assert found.memory is not None
        row[budget] = {
            "accuracy": found.model.score(X_test, y_test),
            "flash": found.memory.flash,
            "ram": found.memory.ram,
            "seconds": round(time.perf_counter() - began, 1),
        }
    return row | {"rows": len(X), "samples": X.shape[1], "classes": int(np.unique(y).size)}


def _folds(y: Any) -> int:
    """Return a number of folds that every class has rows for."""
    return int(max(2, min(5, np.unique(y, return_counts=True)[1].min())))


def page(rows: FinishedRows, known: int) -> Iterator[str]:
    """Yield the lines of the page; `known` is the number of sets that there are."""
    names = sorted(rows)
    yield "# Series of the UCR archive"
    yield ""
    yield "Written by `benchmarks/series.py`. Accuracy in % on the official test part; the C"
    yield "computes the same labels. Flash is linked for a Cortex-M4, with the code. MiniRocket is"
    yield "the published accuracy with 10,000 float features. The others are of the same run."
    if len(names) < known:
        yield f"Measured so far: {len(names)} of {known} sets. The script can go on."
    yield ""
    head = ("set", "rows x samples, classes", *(f"{b} (bytes)" for b in BUDGETS))
    yield "| " + " | ".join((*head, "MiniRocket", "linear", "RBF SVM")) + " |"
    yield "|" + "---|" * (len(head) + 3)
    for name in names:
        row = rows[name]
        cells = [f"{100 * row[b]['accuracy']:.1f} ({row[b]['flash']})" for b in BUDGETS]
        shape = f"{row['rows']} x {row['samples']}, {row['classes']}"
        peers = [f"{100 * row[peer]:.1f}" for peer in PEERS]
        yield "| " + " | ".join((name, shape, *cells, *peers)) + " |"
    means = [np.mean([rows[name][b]["accuracy"] for name in names]) for b in BUDGETS]
    means += [np.mean([rows[name][peer] for name in names]) for peer in PEERS]
    cells = [f"**{100 * mean:.2f}**" for mean in means]
    yield "| " + " | ".join((f"**mean of {len(names)}**", "", *cells)) + " |"
    yield ""
    longest = max(rows[name][b]["seconds"] for name in names for b in BUDGETS)
    largest = max(rows[name][b]["ram"] for name in names for b in BUDGETS)
    yield f"The longest training took {longest:.0f} s. The most RAM is {largest} bytes."


def main() -> None:
    """Measure the sets that are not there yet, then print the page."""
    parser = page_arguments(__doc__, "all")
    parser.add_argument("--into", type=Path, help="folder of the finished rows")
    args = parser.parse_args()
    file = Path(args.data) / "ucr.npz"
    with np.load(file) as data:
        known = sorted({key.split("/")[0] for key in data})
    rows = FinishedRows(args.into, "ucr")
    for name in known if args.sets == "all" else args.sets.split(","):
        rows.measure(name, measure, file, name)
    print_page(page(rows, len(known)), args.write)


if __name__ == "__main__":
    main()
