"""Accuracy on sets of the UCR archive at several budgets, beside other methods.

Run with ``python benchmarks/series.py [--data DIR] [--sets all] [--budgets 4KB,8KB,16KB] [--into
docs/results] [--write FILE]``. DIR holds ``ucr.npz``. What is finished is kept with its day in
``numbers/ucr.json`` of the folder, so that a run can be continued; rows of the budgets from before
``--since DAY`` are measured again. Nothing is set by hand: every set is trained with the same
arguments, on its official training part. MiniRocket is the published accuracy on the same split
(10,000 float features). A linear model and an RBF SVM of scikit-learn are trained in the same run.
"""

import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from _page import page_arguments, print_page, rendered
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
    """Train the other methods on one set; returns their accuracies."""
    X, y, X_test, y_test = parts_of(file, name)
    with np.load(file) as data:
        row: dict[str, Any] = {"minirocket": float(data[f"{name}/minirocket"])}
    peers = {
        "linear": make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-3, 3, 10))),
        "svm": GridSearchCV(
            make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, 10, 100]}, cv=_folds(y)
        ),
    }
    for peer, machine in peers.items():
        row[peer] = float(machine.fit(X, y).score(X_test, y_test))
    return row | {"rows": len(X), "samples": X.shape[1], "classes": int(np.unique(y).size)}


def parts_of(file: Path, name: str) -> list[Any]:
    """Return windows and labels of the training part, and of the test part."""
    with np.load(file) as data:
        names = ("X_train", "y_train", "X_test", "y_test")
        return [data[f"{name}/{part}"] for part in names]


def trained(file: Path, name: str, budget: str) -> dict[str, Any]:
    """Train on one set for a budget; returns accuracy, bytes, seconds and the day."""
    X, y, X_test, y_test = parts_of(file, name)
    began = time.perf_counter()
    found = tinykernel.train(
        X, y, budget=budget, target=TARGET, window_shape=(X.shape[1], 1), random_state=0
    )
    return {
        "accuracy": found.model.score(X_test, y_test),
        "flash": found.memory.flash,
        "ram": found.memory.ram,
        "seconds": round(time.perf_counter() - began, 1),
        "day": str(date.today()),
    }


def _folds(y: Any) -> int:
    """Return a number of folds that every class has rows for."""
    return int(max(2, min(5, np.unique(y, return_counts=True)[1].min())))


def page(rows: FinishedRows, known: int) -> Iterator[str]:
    """Yield the lines of the page; `known` is the number of sets that there are."""
    names = measured(rows)
    gain = {name: rows[name]["8KB"]["accuracy"] - rows[name]["minirocket"] for name in names}
    mean = {b: 100 * np.mean([rows[name][b]["accuracy"] for name in names]) for b in BUDGETS}
    mean |= {peer: 100 * np.mean([rows[name][peer] for name in names]) for peer in PEERS}
    lines = []
    ordered = sorted(names, key=lambda name: -gain[name])
    for name in ordered if len(names) < 15 else ordered[:7] + ordered[-7:]:
        row = rows[name]
        cells = [f"{100 * row[b]['accuracy']:.1f} ({row[b]['flash']})" for b in BUDGETS]
        shape = f"{row['rows']} x {row['samples']}, {row['classes']}"
        lines.append((name, shape, *cells, *(f"{100 * row[peer]:.1f}" for peer in PEERS)))
    means = (f"**{one:.2f}**" for one in mean.values())
    lines.append((f"**mean of {len(names)}**", "", *means))
    yield from rendered(
        "series",
        rows=lines,
        mean=mean,
        budgets=BUDGETS,
        measured=len(names),
        known=known,
        better=sum(one > 0 for one in gain.values()),
        worse=sum(one < 0 for one in gain.values()),
        longest=max(rows[name][b]["seconds"] for name in names for b in BUDGETS),
        largest=max(rows[name][b]["ram"] for name in names for b in BUDGETS),
    )


def measured(rows: FinishedRows) -> list[str]:
    """Return the sets of which every budget was measured."""
    return sorted(name for name in rows if all(budget in rows[name] for budget in BUDGETS))


def picture(rows: FinishedRows, file: Path) -> None:
    """Draw each set: its accuracy in 8 KB against that of MiniRocket."""
    import matplotlib.pyplot as plt

    names = measured(rows)
    figure, axis = plt.subplots(figsize=(5, 5))
    theirs = [100 * rows[name]["minirocket"] for name in names]
    axis.scatter(theirs, [100 * rows[name]["8KB"]["accuracy"] for name in names], s=18)
    axis.axline((50, 50), slope=1, color="grey", linewidth=0.8)
    axis.set(xlabel="MiniRocket, floats (%)", ylabel="tinykernel in 8 KB (%)", aspect="equal")
    figure.savefig(file, dpi=110, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Measure the sets that are not there yet, then print the page."""
    parser = page_arguments(__doc__, "all")
    parser.add_argument("--into", type=Path, help="folder of the finished rows")
    parser.add_argument("--budgets", default=",".join(BUDGETS))
    parser.add_argument("--since", default="0", metavar="DAY", help="measure what is older again")
    args = parser.parse_args()
    file = args.data / "ucr.npz"
    with np.load(file) as data:
        known = sorted({key.split("/")[0] for key in data})
    rows = FinishedRows(args.into, "ucr")
    for name in known if args.sets == "all" else filter(None, args.sets.split(",")):
        rows.measure(name, measure, file, name)
        for budget in args.budgets.split(","):
            if budget not in rows[name] or rows[name][budget]["day"] < args.since:
                rows[name][budget] = trained(file, name, budget)
                rows.save(name)
    print_page(page(rows, len(known)), args.write)
    if args.write is not None:
        picture(rows, args.write.with_suffix(".png"))


if __name__ == "__main__":
    main()
