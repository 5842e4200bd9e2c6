"""Would text as one-hot columns be worth its bytes beside the numbers that it has?

Run with ``python benchmarks/one_hot.py --data DIR``, where DIR holds ``tables/*.csv``. Of the rows
that ``train`` learns from, a fifth is held out at a time, twice, and texts get their numbers from
the other rows. A linear SVM stands for the linear part and one of Gaussian kernels for components;
each takes the constant that is best for it. Bytes are those of one byte a weight.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from tinykernel.data.coding import Coding, coding_of, recoded
from tinykernel.data.load import load_data
from tinykernel.data.partition import Dataset

SETS = ("credit_g", "soybean", "mushroom", "kr_vs_kp")
LINEAR, KERNELS = (0.0003, 0.001, 0.01, 0.1, 1.0), (0.3, 1.0, 3.0, 10.0)


def views(data: Dataset, X: NDArray, inside: NDArray) -> dict[str, NDArray]:
    """Return all rows with text in the order of the alphabet, of the labels, and as one-hot."""
    assert data.coding is not None
    assert data.columns is not None
    texts, gaps = data.coding.texts, np.isnan(X).any(axis=0)
    ours = coding_of(X[inside], data.y_train[inside], data.columns, texts, gaps)
    alphabet = Coding({name: tuple(sorted(found)) for name, found in texts.items()}, ours.gaps)
    found = {
        "alphabet": recoded(X, data.columns, texts, alphabet),
        "labels": recoded(X, data.columns, texts, ours),
    }
    many = [i for i, name in enumerate(data.columns) if len(texts.get(name, ())) > 2]
    columns = OneHotEncoder(sparse_output=False).fit_transform(found["labels"][:, many])
    return found | {"one-hot": np.hstack([np.delete(found["labels"], many, axis=1), columns])}


def compare(file: Path) -> None:
    """Print the balanced accuracy of each view of a table, and how it differs from the labels'."""
    data = load_data(file)
    assert data.coding is not None
    assert data.columns is not None
    X, y = data.X_train.astype(float), data.y_train
    for i, name in enumerate(data.columns):
        X[X[:, i] == data.coding.gaps.get(name, np.nan), i] = np.nan
    outputs = len(np.unique(y)) if len(np.unique(y)) > 2 else 1
    scores: dict[tuple[str, str, float], list[float]] = {}
    width = {}
    for inside, out in RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=1).split(X, y):
        for view, rows in views(data, X, inside).items():
            rows, width[view] = StandardScaler().fit(rows[inside]).transform(rows), rows.shape[1]
            models = [("linear", C, LinearSVC(C=C, dual=False)) for C in LINEAR]
            models += [("kernels", C, SVC(C=C)) for C in KERNELS]
            for kind, C, model in models:
                model.set_params(class_weight="balanced").fit(rows[inside], y[inside])
                found = balanced_accuracy_score(y[out], model.predict(rows[out]))
                scores.setdefault((kind, view, C), []).append(100 * found)
    for kind in ("linear", "kernels"):
        best = {
            v: max((s for k, s in scores.items() if k[:2] == (kind, v)), key=np.mean) for v in width
        }
        for view, found in best.items():
            less = np.subtract(found, best["labels"])
            error = less.std(ddof=1) / np.sqrt(len(less))
            size = f"{outputs * width[view]} B" if kind == "linear" else ""
            print(
                f"{file.stem:9} {kind:8} {view:9} {np.mean(found):6.2f} % "
                f"({less.mean():+.2f} +- {error:.2f}) {size}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    given = parser.parse_args()
    for name in given.sets:
        compare(given.data / "tables" / f"{name}.csv")


if __name__ == "__main__":
    main()
