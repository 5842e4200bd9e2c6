"""Accuracy of tables in a budget, with nothing set by hand but the budget, beside an RBF SVM.

Run with ``python benchmarks/marks.py [--data DIR] [--sets all] [--into DIR] [--write FILE]``. DIR
holds ``usps.npz`` and ``tables/abalone.csv``. Finished rows are kept in ``numbers/marks.json`` of
the folder. Images are given as tables, without their shape, so that no convolutions compete. C of
the SVM, 1, 3 or 10, and whether its inputs are standardized are chosen by three folds of the
training rows. It takes about fifteen minutes of two processors.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _data import digits, letters
from _environment import describe_machine
from _page import rendered
from _rows import FinishedRows, measure_sets
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import tinykernel
from tinykernel.compile.enums import consists_of
from tinykernel.data.load import TableSource
from tinykernel.data.tables import Selection

#: Budget, number of splits, and what is judged.
SETS = {
    "digits": ("8KB", 5, "accuracy"),
    "usps": ("8KB", 1, "accuracy"),
    "letters": ("8KB", 2, "accuracy"),
    "abalone": ("8KB", 2, "R2"),
}


def parts_of(name: str, seed: int, folder: Path) -> tuple[Any, Any, Any, Any]:
    """Return inputs and labels, or values, to learn and to judge."""
    if name == "usps":
        with np.load(folder / "usps.npz") as data:
            return tuple(data[key] for key in ("X_train", "X_test", "y_train", "y_test"))
    if name == "digits":
        X, y = digits()
    elif name == "letters":
        X, y = letters()
    else:
        loaded = TableSource(
            folder / "tables" / "abalone.csv", Selection(label="Class_Rings"), values=True
        ).train_rows(0)
        X, y = np.asarray(loaded.X_train), np.asarray(loaded.y_train, dtype=float).ravel()
    is_class = SETS[name][2] == "accuracy"
    return tuple(
        train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y if is_class else None)
    )


def measure(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train for the budget, and the SVM on the same rows."""
    X, X_test, y, y_test = parts_of(name, seed, folder)
    budget, _, judged = SETS[name]
    task = {} if judged == "accuracy" else {"task": "numbers"}
    trained = tinykernel.train(X, y, budget=budget, random_state=seed, **task)
    machine = SVC() if judged == "accuracy" else SVR()
    peer = Pipeline([("scaler", StandardScaler()), ("machine", machine)])
    tried = {"scaler": [StandardScaler(), "passthrough"], "machine__C": [1, 3, 10]}
    peer = GridSearchCV(peer, tried, cv=3).fit(X, y)
    return {
        "score": round(trained.model.score(X_test, y_test), 4),
        "svm": round(peer.score(X_test, y_test), 4),
        "flash": None if trained.memory is None else trained.memory.flash,
        "model": consists_of(trained.model),
        "measured": describe_machine(),
    }


def page(rows: FinishedRows) -> Iterator[str]:
    """Yield the lines of the page."""
    leads, cells = [], []
    for name in SETS:
        splits = [row for key, row in rows.items() if key.startswith(f"{name} ")]
        if not splits:
            continue
        unit, places = (100, 2) if SETS[name][2] == "accuracy" else (1, 3)
        means = [np.mean([row[key] for row in splits]) for key in ("score", "svm")]
        leads.append(100 * (means[1] - means[0]))
        own, svm = (f"{unit * mean:.{places}f}{' %' * (unit == 100)}" for mean in means)
        each = ", ".join(f"{unit * row['score']:.{places}f}" for row in splits)
        most = max(row["flash"] or 0 for row in splits)
        cells.append((name, len(splits), own, each, svm, most, splits[0]["model"]))
    yield from rendered("marks", rows=cells, leads=[lead for lead in leads if lead > 0])


if __name__ == "__main__":
    measure_sets(__doc__, "marks", SETS, measure, page, lambda name: SETS[name][1])
