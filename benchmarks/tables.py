"""Tables with text, gaps and thresholds, each in a budget, beside classifiers of any size.

Run with ``python benchmarks/tables.py [--data DIR] [--sets all] [--into docs/results] [--write
FILE]``. DIR holds ``tables/*.csv`` and ``covtype.npz``. A row that is finished is kept in
``numbers/tables.json`` of the folder, so that a run can be continued. Every model is trained by
``tinykernel train`` with its budget, and with the class weight or the task that `SETS` names; it is
judged on the rows that the command keeps aside with seed 0. The tree of depth 6 and the linear
model are those of its own report. The others learn from the same numbers in the same run: an RBF
SVM with C = 10 on standardized inputs, text as one-hot; HistGradientBoosting with its defaults; a
forest that emlearn converts to C, where that is installed, in the same budget.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _data import Data, label_of, load
from _environment import describe_machine
from _page import draw_dots, rendered
from _rows import FinishedRows, measure_sets
from peers import available
from peers.converted import emlearn_trees
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, balanced_accuracy_score, r2_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tinykernel.base.coding import Coding
from tinykernel.data.load import TableSource
from tinykernel.data.tables import Selection

BALANCED, VALUES = ("--class-weight", "balanced"), ("--task", "numbers")
#: Budget in KB, and what the command is told besides.
SETS: dict[str, tuple[float, tuple[str, ...]]] = {
    "hypothyroid": (4, BALANCED),
    "mushroom": (2, ()),
    "credit_g": (4, BALANCED),
    "segment": (8, ()),
    "page_blocks": (8, ()),
    "kr_vs_kp": (8, ()),
    "soybean": (8, ()),
    "abalone": (8, VALUES),
    "elevators": (8, VALUES),
    "cpu_act": (8, VALUES),
    "covtype 8": (8, ()),
    "covtype 30": (30, ()),
}
_SVM_ROWS, _TEST_ROWS = 20_000, 20_000
_ANSWERS = ("tree", "linear", "svm", "boosting", "emlearn")


def command(*arguments: str) -> tuple[dict[str, Any], float]:
    """Run the command line; return what it prints as JSON, and its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = [sys.executable, "-m", "tinykernel", *arguments, "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr.strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return dict(json.loads(done.stdout)), round(seconds, 1)


def rows_of(name: str, file: Path) -> tuple[Data, Coding]:
    """Return the rows as the command reads them, in numbers, and what stands for text."""
    found = TableSource(
        file, Selection(label=label_of(file)), values=SETS[name][1] == VALUES
    ).train_rows()
    data = Data(found.X_train, found.y_train, found.X_test, found.y_test)
    columns = found.columns or ()
    texts = {
        str(columns.index(column)): t for column, t in (found.coding or Coding()).texts.items()
    }
    return data, Coding(texts)


def shares(name: str, y: Any, answers: Any) -> list[float]:
    """Return accuracy and balanced accuracy in %, of values R2."""
    if SETS[name][1] == VALUES:
        return [float(r2_score(y, answers))]
    return [100 * float(score(y, answers)) for score in (accuracy_score, balanced_accuracy_score)]


def told(figures: dict[str, float]) -> list[float]:
    """Return the same of what the command says."""
    if "r2" in figures:
        return [figures["r2"]]
    return [100 * figures["accuracy"], 100 * figures["balanced_accuracy"]]


def peers(name: str, data: Data, coding: Coding) -> dict[str, Any]:
    """Train the SVM, the boosted trees and emlearn's forest; of many rows the SVM has some."""
    numbers = SETS[name][1] == VALUES
    weight = "balanced" if SETS[name][1] == BALANCED else None
    some = np.random.default_rng(0).permutation(len(data.y))[:_SVM_ROWS]
    tested = np.random.default_rng(0).permutation(len(data.y_test))[:_TEST_ROWS]
    inputs, others = (_spread(X, coding) for X in (data.X[some], data.X_test[tested]))
    scaler = StandardScaler().fit(inputs)
    y, worth = data.y[some], (0.0, 1.0)
    if numbers:
        worth = (float(y.mean()), float(y.std()))
    machine = SVR(C=10) if numbers else SVC(C=10, class_weight=weight, cache_size=1000)
    machine.fit(scaler.transform(inputs), (y - worth[0]) / worth[1] if numbers else y)
    answers = machine.predict(scaler.transform(others))
    svm = shares(name, data.y_test[tested], answers * worth[1] + worth[0] if numbers else answers)
    boosting = (
        HistGradientBoostingRegressor(random_state=0)
        if numbers
        else HistGradientBoostingClassifier(class_weight=weight, random_state=0)
    )
    boosted = boosting.fit(data.X, data.y).predict(data.X_test)
    found = {"svm": svm, "boosting": shares(name, data.y_test, boosted), "emlearn": None}
    if not numbers and available("emlearn trees", name):
        outcome = emlearn_trees(name, _levels(data), int(1024 * SETS[name][0]))
        if outcome is not None:
            found["emlearn"] = shares(name, data.y_test, outcome.labels)
            found["emlearn flash"] = outcome.flash
            found["emlearn instructions"] = outcome.instructions
    return found


def _spread(X: np.ndarray, coding: Coding) -> np.ndarray:
    """Return inputs with the numbers of more than two texts as one-hot."""
    columns = []
    for i, column in enumerate(X.astype(np.float64).T):
        texts = coding.texts.get(str(i), ())
        one_hot = [column == code for code in range(-1, len(texts))]
        columns += one_hot if len(texts) > 2 else [column]
    return np.stack(columns, axis=1).astype(np.float64)


def _levels(data: Data) -> Data:
    """Return inputs as int16, each column over the range that it has in training."""
    low, high = (end(data.X, axis=0).astype(np.float64) for end in (np.min, np.max))
    factor = 64000 / np.where(high > low, high - low, 1)
    X, X_test = (
        np.clip(np.rint((given - low) * factor) - 32000, -32000, 32000).astype(np.int16)
        for given in (data.X, data.X_test)
    )
    return Data(X, data.y, X_test, data.y_test)


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Train, judge and count one model, and the others on the same rows."""
    kilobytes, told_besides = SETS[name]
    with tempfile.TemporaryDirectory() as scratch:
        model, file = Path(scratch) / "model.tkm", folder / "tables" / f"{name}.csv"
        if name.startswith("covtype"):
            file = Path(scratch) / "covtype.npz"
            (data,), coding = load(folder, "covtype"), Coding()
            data.write(file)
        else:
            data, coding = rows_of(name, file)
            told_besides += ("--label", label_of(file))
        line = ("train", str(file), "--budget", f"{kilobytes:g}KB", *told_besides)
        trained, seconds = command(*line, "-o", str(model))
        counted, _ = command("bench", str(model), "--target", "cortex-m4")
    judged = trained["evaluation"]
    simple = {peer: told(judged["baselines"][peer]) for peer in ("tree", "linear")}
    return {
        "model": trained["model_kind"],
        "found": told(judged),
        "flash": trained["flash"],
        "instructions": counted["instructions"],
        "seconds": seconds,
        **simple,
        **peers(name, data, coding),
        "measured": describe_machine(),
    }


def page(rows: FinishedRows) -> Iterator[str]:
    """Yield the lines of the page."""
    names = [name for name in SETS if name in rows]
    cells = []
    for name in names:
        row, (kilobytes, _) = rows[name], SETS[name]
        others = [_cell(row[peer]) for peer in _ANSWERS]
        if row["emlearn"] is not None:
            others[-1] += f" ({row['emlearn flash']}, {row['emlearn instructions']})"
        own = (f"**{_cell(row['found'])}**", row["flash"], row["instructions"], row["seconds"])
        cells.append((name.split()[0], f"{kilobytes:g} KB", *own, *others, row["model"]))
    leads = [_points(rows[name]["found"]) - _points(rows[name]["boosting"]) for name in names]
    ahead = sum(lead > -0.5 for lead in leads)
    yield from rendered("tables", rows=cells, ahead=ahead, known=len(SETS))


def picture(rows: FinishedRows, file: Path) -> None:
    """Draw the figure by which each table is judged: balanced accuracy, or R2."""
    titles = {"found": "tinykernel", "boosting": "HistGradientBoosting", "svm": "RBF SVM"}
    titles |= {"linear": "linear", "tree": "tree of depth 6", "emlearn": "emlearn's forest"}
    dots = {
        f"{name.split()[0]}, {SETS[name][0]:g} KB": {
            title: _points(row[key]) for key, title in titles.items() if row[key] is not None
        }
        for name, row in ((name, rows[name]) for name in SETS if name in rows)
    }
    draw_dots(dots, "balanced accuracy, or 100 R2", file)


def _points(figures: list[float]) -> float:
    """Return the last figure of a row in points of 100."""
    return figures[-1] * (100 if len(figures) == 1 else 1)


def _cell(figures: list[float] | None) -> str:
    if figures is None:
        return "-"
    return f"{figures[0]:.3f}" if len(figures) == 1 else " / ".join(f"{f:.1f}" for f in figures)


if __name__ == "__main__":
    measured, written = measure_sets(__doc__, "tables", SETS, measure, page)
    if written is not None:
        picture(measured, written.with_suffix(".png"))
