"""Accuracy of the firmware against linked bytes, with reference classifiers of the same sizes.

Run with ``python benchmarks/accuracy_per_byte.py --data DIR [--names usps,har] [--budgets 8,30]
[--write FOLDER]``. For each data set and budget it runs, with nothing set by hand but what
describes the data,

    tinykernel train DATA --budget KB --target cortex-m4 -o MODEL
    tinykernel verify MODEL --data DATA

so that hyper-parameters come from the training part, the flash is that of the linked program, and
the accuracy is that of the C, of which every score is compared with Python's. References, trained
in the same run: a one-hidden-layer perceptron with int8 weights and as many hidden units as fill
the budget with tables alone, a linear SVM, and the exact RBF SVM.

``--write FOLDER`` leaves ``accuracy.md`` and ``accuracy.png`` there. Finished rows are kept in
``numbers/accuracy.json`` beside them and not computed again without ``--fresh``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _environment import describe_machine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import tinykernel
from tinykernel.files import write_bytes_atomically

TARGET = "cortex-m4"
BUDGETS = (2, 4, 8, 16, 30)
#: What the trainer is told about a data set, besides the budget.
ARGUMENTS = {
    "mnist": (),
    "fashion_mnist": (),
    "usps": (),
    "har": ("--groups", "group_train"),
    "covtype": (),
    "digits": (),
    "ecg": ("--groups", "group_train", "--class-weight", "balanced"),
    "gas_drift": ("--groups", "group_train"),
}
SPLITS = {
    "har": "official, by person",
    "covtype": "80/20, stratified, seed 0",
    "digits": "75/25, stratified, seed 0",
    "ecg": "by record, inter-patient; balanced accuracy",
    "gas_drift": "batches 1-6 against 8-9",
}
#: Least accuracy of the C in percent, and the goal.
LIMITS = {
    ("mnist", 30): (97.6, 98.4), ("mnist", 8): (96.0, 97.0),
    ("fashion_mnist", 30): (88.2, 89.3), ("fashion_mnist", 8): (86.2, 87.2),
    ("usps", 30): (94.3, 95.3), ("usps", 8): (93.0, 94.0),
    ("har", 30): (94.5, 95.5), ("har", 8): (93.5, 94.9),
    ("covtype", 30): (88.0, 91.0), ("covtype", 8): (85.0, 88.0),
    ("digits", 30): (98.3, 99.1), ("digits", 8): (98.0, 98.5),
}  # fmt: skip
_SVM_ROWS, _SVM_TEST_ROWS, _PERCEPTRON_ROWS = 20000, 20000, 60000


@dataclass(frozen=True)
class Data:
    """Rows of one data set; `groups` of the training rows may be None."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    groups: np.ndarray | None

    def write(self, path: Path) -> None:
        """Write what `tinykernel train` reads."""
        arrays = {"X_train": self.X, "y_train": self.y, "X_test": self.X_test}
        arrays["y_test"] = self.y_test
        if self.groups is not None:
            arrays["group_train"] = self.groups
        np.savez(path, **arrays)


def load(folder: Path, name: str) -> Data:
    """Load a data set with the split that `SPLITS` names, else the official one."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return _split(X.astype(np.uint8), y, 0.25)
    with np.load(folder / f"{name}.npz", allow_pickle=False) as data:
        arrays = {key: data[key] for key in data.files}
    if name == "gas_drift":
        group, X, y = arrays["group"], arrays["X"], arrays["y"]
        train, test = group <= 6, group >= 8
        return Data(X[train], y[train], X[test], y[test], group[train])
    if "X_train" in arrays:
        parts = [arrays[key] for key in ("X_train", "y_train", "X_test", "y_test")]
        return Data(*parts, arrays.get("group_train"))
    return _split(arrays["X"], arrays["y"], 0.2)


def _split(X: np.ndarray, y: np.ndarray, share: float) -> Data:
    X, X_test, y, y_test = train_test_split(X, y, test_size=share, stratify=y, random_state=0)
    return Data(X, y, X_test, y_test, None)


@dataclass(frozen=True)
class Row:
    """What one data set and budget gave; accuracies in percent."""

    data: str
    kilobytes: int
    flash: int
    source: str
    layout: str
    components: int
    accuracy: float
    differences: int
    seconds: float
    rows: int = 0  # rows that were verified
    test_rows: int = 0
    measured: str = ""  # date and machine
    perceptron: float | None = None


class NothingFitsError(Exception):
    """A budget is too small for any model of a data set."""


def tinykernel_json(*arguments: str) -> dict[str, Any]:
    """Run the command line and return what it prints with ``--json``."""
    command = [sys.executable, "-m", "tinykernel", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        if "no model for this data fits" in done.stderr:
            raise NothingFitsError
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def measure(name: str, kilobytes: int, data: Data, folder: Path) -> Row:
    """Train, verify and measure one model by the command line."""
    given, model = folder / f"{name}.npz", folder / f"{name}-{kilobytes}.tkm"
    if not given.exists():
        data.write(given)
    try:
        trained = tinykernel_json("train", str(given), "--budget", f"{kilobytes}KB", "--target",
                                  TARGET, *ARGUMENTS[name], "-o", str(model))  # fmt: skip
    except NothingFitsError:
        return Row(name, kilobytes, 0, "", "", 0, 0.0, 0, 0.0, measured=describe_machine())
    verified = tinykernel_json("verify", str(model), "--data", str(given))
    accuracy = verified["accuracy"]
    if "balanced" in ARGUMENTS[name]:
        # Every score of the C is that of Python, so these are the labels of the C.
        accuracy = balanced_accuracy_score(data.y_test, tinykernel.load(model).predict(data.X_test))
    return Row(
        data=name, kilobytes=kilobytes, flash=trained["flash"], source=trained["flash_source"],
        layout=trained["layout"], components=trained["components"], accuracy=100 * accuracy,
        differences=verified["differences"], seconds=trained["seconds"], rows=verified["rows"],
        test_rows=len(data.y_test), measured=describe_machine(),
    )  # fmt: skip


# -- references -----------------------------------------------------------------------------------


def score(name: str, y: np.ndarray, labels: np.ndarray) -> float:
    """Return the accuracy in percent, balanced where the data set asks for it."""
    if "balanced" in ARGUMENTS[name]:
        return 100 * float(balanced_accuracy_score(y, labels))
    return 100 * float(np.mean(y == labels))


def perceptron(name: str, data: Data, budget: int) -> float:
    """Return the accuracy of a perceptron with int8 weights that fill a budget."""
    n_outputs = len(np.unique(data.y))
    hidden = max(1, (budget - n_outputs) // (data.X.shape[1] + n_outputs + 1))
    chosen = perceptron_rows(data.y, balanced="balanced" in ARGUMENTS[name])
    scaler = StandardScaler().fit(data.X[chosen])
    model = MLPClassifier((hidden,), early_stopping=True, max_iter=40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(scaler.transform(data.X[chosen]).astype(np.float32), data.y[chosen])
    for weights in model.coefs_:
        step = np.abs(weights).max() / 127
        weights[...] = np.rint(weights / step) * step
    labels = model.predict(scaler.transform(data.X_test).astype(np.float32))
    return score(name, data.y_test, labels)


def perceptron_rows(y: np.ndarray, *, balanced: bool) -> np.ndarray:
    """Draw rows for the perceptron, which takes no weights: as many of each class if balanced."""
    rng = np.random.default_rng(0)
    if not balanced:
        return rng.permutation(len(y))[:_PERCEPTRON_ROWS]
    classes = np.unique(y)
    each = max(1, min(len(y), _PERCEPTRON_ROWS) // len(classes))
    drawn = []
    for label in classes:
        rows = rng.permutation(np.flatnonzero(y == label))
        drawn.append(np.resize(rows, each))  # repeats a class with fewer rows, in whole rounds
    return rng.permutation(np.concatenate(drawn))


def machines(name: str, data: Data) -> dict[str, float]:
    """Train the linear and the exact RBF SVM on at most 20000 rows; C of the latter is 10."""
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(data.y))[:_SVM_ROWS]
    tested = rng.permutation(len(data.y_test))[:_SVM_TEST_ROWS]
    scaler = StandardScaler().fit(data.X[chosen])
    inputs, labels = scaler.transform(data.X[chosen]), data.y[chosen]
    test, weight = scaler.transform(data.X_test[tested]), "balanced" if name == "ecg" else None
    found = {}
    for title, model in (
        ("linear SVM", LinearSVC(C=0.01, class_weight=weight)),
        ("RBF SVM", SVC(C=10, class_weight=weight, cache_size=1000)),
    ):
        guessed = model.fit(inputs, labels).predict(test)
        found[title] = score(name, data.y_test[tested], guessed)
    return found


# -- the page -------------------------------------------------------------------------------------


def table(rows: list[Row]) -> str:
    """Write all rows as a Markdown table."""
    nothing = "| nothing fits | | | | | | | |"
    lines = [
        "| data | budget | flash | format, components | accuracy of the C | must | goal "
        "| differing scores | int8 perceptron | training |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        if not row.components:
            lines.append(f"| {row.data} | {row.kilobytes} KB {nothing}")
            continue
        must, goal = LIMITS.get((row.data, row.kilobytes), ("", ""))
        other = "" if row.perceptron is None else f"{row.perceptron:.2f} %"
        lines.append(
            f"| {row.data} | {row.kilobytes} KB | {row.flash} ({row.source}) | {row.layout}, "
            f"{row.components} | {row.accuracy:.2f} % | {must} | {goal} | {row.differences} "
            f"| {other} | {row.seconds:.0f} s |"
        )
    return "\n".join(lines)


def page(rows: list[Row], others: dict[str, dict[str, float]]) -> str:
    """Write the page of the results."""
    names = list(dict.fromkeys(row.data for row in rows))
    lines = [
        "# Accuracy per byte",
        "",
        "Written by `python benchmarks/accuracy_per_byte.py`.",
        f"Budgets are linked flash on {TARGET} at -Os, model and runtime together, 1 KB = 1024 "
        "bytes. Each row is one run of `tinykernel train DATA --budget KB` and `tinykernel verify`;"
        " accuracies are those of the C on the test part.",
        "",
        table(rows),
        "",
        *measured_on(rows),
        "",
        "![Accuracy against linked bytes](accuracy.png)",
        "",
        "| data | split | told to the trainer | linear SVM | RBF SVM |",
        "|---|---|---|---:|---:|",
    ]
    for name in names:
        found = "".join(f"| {value:.2f} % " for value in others.get(name, {}).values()) or "| | "
        told = f"`{' '.join(ARGUMENTS[name])}`" if ARGUMENTS[name] else ""
        lines.append(f"| {name} | {SPLITS.get(name, 'official')} | {told} {found}|")
    lines += [
        "",
        f"The SVMs learn from at most {_SVM_ROWS} rows and are scored on at most "
        f"{_SVM_TEST_ROWS}; the perceptron learns from at most {_PERCEPTRON_ROWS}, stops early, "
        "and its bytes are those of its tables alone, without any code. Where accuracies are "
        "balanced it learns from as many rows of each class, drawn again where there are fewer.",
        "",
    ]
    return "\n".join(lines)


def measured_on(rows: list[Row]) -> list[str]:
    """Say when and where each row was measured, one line for each machine and day."""
    groups: dict[str, dict[str, list[int]]] = {}
    for row in rows:
        where = row.measured or "a machine that was not recorded"
        groups.setdefault(where, {}).setdefault(row.data, []).append(row.kilobytes)
    lines = []
    for where, found in groups.items():
        which = "; ".join(
            f"{name} {', '.join(map(str, sizes))} KB" for name, sizes in found.items()
        )
        lines.append(f"- Rows measured on: {where} ({which})")
    return lines


def plot(rows: list[Row], others: dict[str, dict[str, float]], path: Path) -> None:
    """Draw accuracy against linked bytes, one panel a data set."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row.data for row in rows))
    height = -(-len(names) // 4)
    figure, axes = plt.subplots(height, 4, figsize=(14, 3.2 * height), squeeze=False)
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    for axis, name in zip(axes.flat, names, strict=False):
        mine = [row for row in rows if row.data == name and row.components]
        axis.semilogx([r.flash / 1024 for r in mine], [r.accuracy for r in mine], "o-",
                      label="tinykernel")  # fmt: skip
        other = [r for r in mine if r.perceptron is not None]
        axis.semilogx([r.kilobytes for r in other], [r.perceptron for r in other], "s--",
                      label="int8 perceptron")  # fmt: skip
        for (title, value), style in zip(others.get(name, {}).items(), (":", "-."), strict=False):
            axis.axhline(value, color="grey", linestyle=style, label=title)
        axis.set(title=name, xlabel="flash (KB)", ylabel="test accuracy (%)")
        ticks = sorted({*BUDGETS, *(row.kilobytes for row in mine)})
        axis.set_xticks(ticks, [str(b) for b in ticks])
        axis.minorticks_off()
    axes.flat[0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Sort rows as the data sets stand in `ARGUMENTS`, then by budget."""
    names = list(ARGUMENTS)
    return sorted(rows, key=lambda row: (names.index(row.data), row.kilobytes))


def missed(rows: list[Row]) -> list[str]:
    """Return what did not hold, one line each."""
    lines = []
    for row in rows:
        where = f"{row.data}, {row.kilobytes} KB"
        if not row.components:
            if (row.data, row.kilobytes) in LIMITS:
                lines.append(f"{where}: nothing fits")
            continue
        must = LIMITS.get((row.data, row.kilobytes), (0.0, 0.0))[0]
        if round(row.accuracy, 2) < must:  # as printed
            lines.append(f"{where}: {row.accuracy:.2f} % is below {must} %")
        if row.differences:
            lines.append(f"{where}: {row.differences} scores differ")
        if row.rows != row.test_rows:
            lines.append(f"{where}: {row.rows} rows were verified, {row.test_rows} are for testing")
        if row.flash > row.kilobytes * 1024:
            lines.append(f"{where}: {row.flash} bytes are too many")
    return lines


def main() -> None:
    """Train every model, print the table and, if wanted, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    folder = os.environ.get("TINYKERNEL_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=folder is None)
    parser.add_argument("--names", default=",".join(ARGUMENTS))
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)), help="in KB")
    parser.add_argument("--no-references", action="store_true")
    parser.add_argument("--write", type=Path, help="a folder for the page, its picture and numbers")
    parser.add_argument("--fresh", action="store_true", help="compute finished rows again")
    arguments = parser.parse_args()
    store = arguments.write / "numbers" / "accuracy.json" if arguments.write else None
    kept: dict[str, Any] = {"rows": [], "machines": {}}
    if store is not None and store.exists() and not arguments.fresh:
        kept = json.loads(store.read_text())
    rows = {(r["data"], r["kilobytes"]): Row(**r) for r in kept["rows"]}

    def save() -> list[Row]:
        ordered = in_order(rows.values())
        if store is not None:
            kept["rows"] = [asdict(row) for row in ordered]
            store.parent.mkdir(parents=True, exist_ok=True)
            write_bytes_atomically(store, json.dumps(kept, indent=1).encode())
        return ordered

    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.names.split(","):
            data = load(arguments.data, name)
            for kilobytes in map(int, arguments.budgets.split(",")):
                row = rows.get((name, kilobytes)) or measure(name, kilobytes, data, Path(scratch))
                if row.components and row.perceptron is None and not arguments.no_references:
                    other = perceptron(name, data, kilobytes * 1024)
                    row = replace(row, perceptron=other)
                rows[name, kilobytes] = row
                save()
                print(table([row]).splitlines()[-1], flush=True)
            if not arguments.no_references and name not in kept["machines"]:
                kept["machines"][name] = machines(name, data)
                save()
    ordered = save()
    text = page(ordered, kept["machines"])
    if arguments.write is not None:
        write_bytes_atomically(arguments.write / "accuracy.md", text.encode())
        plot(ordered, kept["machines"], arguments.write / "accuracy.png")
    print(f"\n{text}")
    problems = missed(ordered)
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
