"""Learning from an SVM: tables of digits and usps in 8 KB, with and without a teacher.

Run it with ``python benchmarks/teacher.py --into docs/results --write docs/results/converted.md``.
``--data`` is the folder of ``usps.npz``. Five splits each, those that are in ``--into`` already not
again: of digits a stratified quarter is tested; of usps 2,000 of the official training rows are
learned, and the official test rows tested. The teacher, an RBF SVM, has C and gamma of a search on
training rows of the first split.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from _data import Data, digits, load, split
from _environment import describe_machine
from _page import print_section, rendered
from _rows import FinishedRows, measure_sets
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import tinykernel

SPLITS, ROWS = 5, 2000
TEACHERS = {"digits": {"C": 10, "gamma": 0.001}, "usps": {"C": 10, "gamma": 0.01}}


def rows_of(name: str, seed: int, folder: Path) -> Data:
    """Return the rows of a split."""
    if name == "digits":
        return split(*digits(), 0.25, seed)
    (whole,) = load(folder, name)
    X, _, y, _ = train_test_split(
        whole.X, whole.y, train_size=ROWS, stratify=whole.y, random_state=seed
    )
    return replace(whole, X=X, y=y)


def measure(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train with and without the teacher, and compare both with it."""
    data, teacher = rows_of(name, seed, folder), SVC(**TEACHERS[name])
    answers = teacher.fit(data.X, data.y).predict(data.X_test)
    right = float(np.mean(answers == data.y_test))
    row: dict[str, Any] = {"svm": right, "measured": describe_machine()}
    for key, of in (("alone", None), ("taught", teacher)):
        started = process_time()
        result = tinykernel.train(
            data.X, data.y, budget="8KB", teacher=of, link=False, random_state=seed, n_jobs=1
        )
        labels = result.model.predict(data.X_test)
        row[key] = {
            "accuracy": float(np.mean(labels == data.y_test)),
            "agreement": float(np.mean(labels == answers)),
            "flash": result.sizes.flash,
            "seconds": round(process_time() - started),
        }
    return row


def section(rows: FinishedRows) -> Iterator[str]:
    """Yield the lines of the section."""
    kinds, lines = ("alone", "taught"), []
    for name in TEACHERS:
        parts = [rows[key] for key in rows if key.split()[0] == name]
        gains = [100 * (part["taught"]["accuracy"] - part["alone"]["accuracy"]) for part in parts]
        svm = 100 * np.mean([part["svm"] for part in parts])
        accuracy, agreement, seconds = (
            [float(np.mean([part[kind][key] for part in parts])) for kind in kinds]
            for key in ("accuracy", "agreement", "seconds")
        )
        lines.append(
            f"{name} | {len(parts)} | {svm:.2f} % | "
            f"{' | '.join(f'{100 * share:.2f} %' for share in accuracy)} | "
            f"{np.mean(gains):+.2f}, worst {min(gains):+.2f} | "
            f"{', '.join(f'{100 * share:.2f} %' for share in agreement)} | "
            f"{', '.join(f'{mean:.0f}' for mean in seconds)}"
        )
    measured = next(iter(rows.values()))["measured"]
    yield from rendered("teacher", rows=lines, n_rows=f"{ROWS:,}", measured=measured)


if __name__ == "__main__":
    measure_sets(
        __doc__, "teacher", TEACHERS, measure, section, lambda _: SPLITS, write=print_section
    )
