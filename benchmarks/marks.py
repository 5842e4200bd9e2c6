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
from _environment import describe_machine
from _rows import FinishedRows, measure_sets
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import tinykernel
from tinykernel.codegen.description import consists_of
from tinykernel.data.load import load_data

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
        X, y = load_digits(return_X_y=True)
        X = X.astype(np.uint8)
    elif name == "letters":
        shape = {"n_features": 16, "n_informative": 12, "n_redundant": 0, "n_classes": 26}
        X, y = make_classification(
            4000, **shape, n_clusters_per_class=2, class_sep=1.5, random_state=0
        )
    else:
        loaded = load_data(
            folder / "tables" / "abalone.csv", label="Class_Rings", values=True, test_size=0
        )
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
    yield "# Tables with nothing set but a budget"
    yield ""
    names = [name for name in SETS if any(key.startswith(f"{name} ") for key in rows)]
    means = {}
    for name in names:
        splits = [row for key, row in rows.items() if key.startswith(f"{name} ")]
        means[name] = (np.mean([s["score"] for s in splits]), np.mean([s["svm"] for s in splits]))
    leads = [100 * (svm - own) for own, svm in means.values() if svm > own]
    yield f"An RBF SVM of any size is ahead of models in 8 KB on {len(leads)} of {len(names)}"
    yield f"tables, by up to {max(leads, default=0.0):.1f} points."
    yield "Images are given without their shape."
    yield "*letters* are made rows of 26 classes."
    yield ""
    yield "| data | splits | tinykernel | each | RBF SVM | bytes | a model |"
    yield "|---|---:|---:|---|---:|---:|---|"
    for name in names:
        splits = [row for key, row in rows.items() if key.startswith(f"{name} ")]
        unit = 100 if SETS[name][2] == "accuracy" else 1
        digits = 2 if unit == 100 else 3
        own, svm = (f"{unit * mean:.{digits}f}{' %' * (unit == 100)}" for mean in means[name])
        each = ", ".join(f"{unit * row['score']:.{digits}f}" for row in splits)
        bytes_of = max(row["flash"] or 0 for row in splits)
        model = splits[0]["model"]
        yield f"| {name} | {len(splits)} | {own} | {each} | {svm} | {bytes_of} | {model} |"
    yield ""
    yield "Of abalone it is R2. Three folds of the training rows choose C of the SVM, and whether"
    yield "its inputs are standardized. Repeat it with `python benchmarks/marks.py --into FOLDER`."


if __name__ == "__main__":
    measure_sets(__doc__, "marks", SETS, measure, page, lambda name: SETS[name][1])
