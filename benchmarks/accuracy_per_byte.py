"""Accuracy of the firmware against linked bytes, with reference classifiers of the same sizes.

Run with ``python benchmarks/accuracy_per_byte.py --data DIR [--names usps,har] [--plot FILE]``;
prints a Markdown table. For each data set and budget one model is trained with the same call; only
the budget differs. Hyper-parameters come from the training part. Every model is quantised, its C is
run on the host over the test part and compared score by score, and its flash is that of the linked
program on Cortex-M4 (or, without that compiler, the estimate; the table says which).
References, trained in the same run: a linear SVM and a one-hidden-layer perceptron with int8
weights and as many hidden units as fit the budget, counting tables only, and the exact RBF SVM.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from tinykernel.integer import IntegerModel, quantize
from tinykernel.measure.report import report
from tinykernel.training.joint import fit_joint
from tinykernel.verify import verify

NAMES = ("mnist", "fashion_mnist", "usps", "har", "covtype", "digits", "ecg", "gas_drift")
BUDGETS = (2, 4, 8, 16, 30)
MUST = {
    ("mnist", 30): 97.6, ("mnist", 8): 96.0, ("fashion_mnist", 30): 88.2,
    ("fashion_mnist", 8): 86.2, ("usps", 30): 94.3, ("usps", 8): 93.0, ("har", 30): 94.5,
    ("har", 8): 93.5, ("covtype", 30): 88.0, ("covtype", 8): 85.0, ("digits", 30): 98.3,
    ("digits", 8): 98.0,
}  # fmt: skip
TARGET = "cortex-m4"
_WORD = 32
_MOST_WORDS = 1024


def load(folder: Path, name: str) -> tuple[Any, Any, Any, Any, Any]:
    """Return X, y, X_test, y_test and the groups of the training rows or None."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(
            X.astype(np.uint8), y, test_size=0.25, stratify=y, random_state=0
        )
        return X, y, X_test, y_test, None
    with np.load(folder / f"{name}.npz", allow_pickle=False) as data:
        arrays = {key: data[key] for key in data.files}
    if name == "gas_drift":
        group = arrays["group"]
        train, test = group <= 6, group >= 8
        return (arrays["X"][train], arrays["y"][train], arrays["X"][test], arrays["y"][test],
                group[train])  # fmt: skip
    if "X_train" in arrays:
        return (*(arrays[k] for k in ("X_train", "y_train", "X_test", "y_test")),
                arrays.get("group_train"))  # fmt: skip
    X, X_test, y, y_test = train_test_split(
        arrays["X"], arrays["y"], test_size=0.2, stratify=arrays["y"], random_state=0
    )
    return X, y, X_test, y_test, None


def flash_of(model: IntegerModel) -> tuple[int, str]:
    """Return the bytes of flash of a model, and how they were found."""
    found = report(model, TARGET)
    return found.flash, found.source


def capacity(X: np.ndarray, y: np.ndarray, budget: int) -> dict[str, int]:
    """Return how many components of each format fit a budget, from models of random weights."""
    chosen = np.unique(np.concatenate([np.arange(0, len(y), max(1, len(y) // 2000)),
                                       X.argmin(axis=0), X.argmax(axis=0)]))  # fmt: skip

    def flash(storage: str, words: int) -> int:
        machine = fit_joint(X[chosen], y[chosen], n_components=words * _WORD, epochs=1,
                            search=False, storage=storage, quantise_from=0.0).machine  # fmt: skip
        return report(quantize(machine), TARGET, compiler="none").flash

    found = {}
    for storage in ("compact", "phases"):
        low, high = 0, _MOST_WORDS
        while low < high:
            middle = (low + high + 1) // 2
            if flash(storage, middle) <= 0.97 * budget:
                low = middle
            else:
                high = middle - 1
        if low:
            found[storage] = low * _WORD
    return found


def perceptron(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray,
               budget: int) -> float:  # fmt: skip
    """Return the accuracy of a perceptron with int8 weights that fill the budget."""
    n_outputs = len(np.unique(y))
    hidden = max(1, (budget - n_outputs) // (X.shape[1] + n_outputs + 1))
    scaler = StandardScaler().fit(X)
    model = MLPClassifier((hidden,), early_stopping=True, max_iter=40, random_state=0)
    model.fit(scaler.transform(X), y)
    for weights in model.coefs_:
        step = np.abs(weights).max() / 127
        weights[...] = np.rint(weights / step) * step
    return float(model.score(scaler.transform(X_test), y_test))


def references(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> str:
    """Train the linear and, on at most 20000 rows, the exact RBF SVM."""
    scaler = StandardScaler().fit(X)
    rows = np.random.default_rng(0).permutation(len(y))[:20000]
    inputs, test = scaler.transform(X[rows]), scaler.transform(X_test)
    linear = LinearSVC(C=0.01).fit(inputs, y[rows]).score(test, y_test)
    rbf = SVC(C=10).fit(inputs, y[rows]).score(test[:20000], y_test[:20000])
    return f"linear SVM {100 * linear:.2f} %, RBF SVM ({len(rows)} rows) {100 * rbf:.2f} %"


def measure(data: tuple[Any, Any, Any, Any, Any], name: str, kilobytes: int, threads: int,
            with_perceptron: bool) -> dict[str, Any]:  # fmt: skip
    """Train, quantise, verify and measure one model."""
    X, y, X_test, y_test, groups = data
    begin = time.perf_counter()
    fitting = capacity(X, y, kilobytes * 1024)
    if not fitting:
        return {}
    result = fit_joint(X, y, capacity=fitting, groups=groups, n_threads=threads,
                       class_weight="balanced" if name == "ecg" else None)  # fmt: skip
    seconds = time.perf_counter() - begin
    model = quantize(result.machine)
    flash, source = flash_of(model)
    checked = verify(model, X_test, y_test, target="host")
    scored = 100 * float(checked.accuracy or 0)
    if name == "ecg":
        labels = model.predict(X_test)
        scored = 100 * float(np.mean([np.mean(labels[y_test == c] == c) for c in np.unique(y)]))
    other = perceptron(X, y, X_test, y_test, kilobytes * 1024) if with_perceptron else np.nan
    return {"accuracy": scored, "flash": flash, "source": source, "perceptron": 100 * other,
            "differences": checked.differences, "seconds": seconds,
            "storage": result.options.storage, "p": result.options.n_components}  # fmt: skip


def plot(points: dict[str, list[tuple[int, float, float]]], path: Path) -> None:
    """Draw accuracy against linked bytes, one panel a data set."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(points), figsize=(4 * len(points), 3.5), squeeze=False)
    for axis, (name, rows) in zip(axes[0], points.items(), strict=True):
        table = np.array(rows)
        axis.semilogx(table[:, 0] / 1024, table[:, 1], "o-", label="tinykernel")
        axis.semilogx(table[:, 0] / 1024, table[:, 2], "s--", label="int8 perceptron")
        axis.set(title=name, xlabel="flash (KB)", ylabel="test accuracy (%)")
        axis.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Train every model, print the table and, if wanted, draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--names", default=",".join(NAMES))
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)), help="in KB")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-references", action="store_true")
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    print(f"budgets of linked flash on {TARGET}, 1 KB = 1024 bytes; ecg: balanced accuracy\n")
    print("| data | budget | flash | format, p | accuracy of the C | must | differing scores "
          "| int8 perceptron | training |")  # fmt: skip
    print("|---|---:|---:|---|---:|---:|---:|---:|---:|", flush=True)
    points: dict[str, list[tuple[int, float, float]]] = {}
    notes, missed = [], False
    for name in arguments.names.split(","):
        data = load(arguments.data, name)
        for kilobytes in map(int, arguments.budgets.split(",")):
            row = measure(data, name, kilobytes, arguments.threads, not arguments.no_references)
            if not row:
                print(f"| {name} | {kilobytes} KB | nothing fits | | | | | | |", flush=True)
                continue
            must = MUST.get((name, kilobytes))
            # Rounded as printed.
            missed |= must is not None and round(row["accuracy"], 2) < must
            missed |= row["differences"] > 0 or row["flash"] > kilobytes * 1024
            points.setdefault(name, []).append((row["flash"], row["accuracy"], row["perceptron"]))
            print(f"| {name} | {kilobytes} KB | {row['flash']} ({row['source']}) | "
                  f"{row['storage']}, {row['p']} | {row['accuracy']:.2f} % | {must or ''} | "
                  f"{row['differences']} | {row['perceptron']:.2f} % | {row['seconds']:.0f} s |",
                  flush=True)  # fmt: skip
        if not arguments.no_references:
            notes.append(f"{name}: {references(*data[:4])}")
    print("\n" + "\n".join(f"- {note}" for note in notes))
    if arguments.plot is not None:
        plot(points, arguments.plot)
    raise SystemExit(int(missed))


if __name__ == "__main__":
    main()
