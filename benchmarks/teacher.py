"""Learning from an SVM: tables of digits and usps in 8 KB, with and without a teacher.

Run it with ``python benchmarks/teacher.py --into docs/results --write docs/results/converted.md``.
``--data`` is the folder of ``usps.npz``. Five splits each, those that are in ``--into`` already not
again: of digits a stratified quarter is tested; of usps 2,000 of the official training rows are
learned, and the official test rows tested. The teacher, an RBF SVM, has C and gamma of a search on
training rows of the first split.
"""

from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from _environment import describe_machine
from _page import page_arguments, print_section
from _rows import FinishedRows
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import tinykernel

SPLITS, ROWS = 5, 2000
TEACHERS = {"digits": {"C": 10, "gamma": 0.001}, "usps": {"C": 10, "gamma": 0.01}}


def rows_of(name: str, seed: int, folder: Path) -> tuple[np.ndarray, ...]:
    """Return rows and labels of a split: those to learn, then those of the test."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(
            X.astype(np.uint8), y, test_size=0.25, stratify=y, random_state=seed
        )
        return X, y, X_test, y_test
    parts = np.load(folder / "usps.npz")
    X, _, y, _ = train_test_split(
        parts["X_train"],
        parts["y_train"],
        train_size=ROWS,
        stratify=parts["y_train"],
        random_state=seed,
    )
    return X, y, parts["X_test"], parts["y_test"]


def measure(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train with and without the teacher, and compare both with it."""
    X, y, X_test, y_test = rows_of(name, seed, folder)
    teacher = SVC(**TEACHERS[name])
    answers = teacher.fit(X, y).predict(X_test)
    row: dict[str, Any] = {"svm": float(np.mean(answers == y_test)), "measured": describe_machine()}
    for key, of in (("alone", None), ("taught", teacher)):
        started = process_time()
        result = tinykernel.train(
            X, y, budget="8KB", teacher=of, link=False, random_state=seed, n_jobs=1
        )
        labels = result.model.predict(X_test)
        row[key] = {
            "accuracy": float(np.mean(labels == y_test)),
            "agreement": float(np.mean(labels == answers)),
            "flash": result.sizes.flash,
            "seconds": round(process_time() - started),
        }
    return row


def section(rows: FinishedRows) -> Iterator[str]:
    """Yield the lines of the section."""
    yield "## Learning from a teacher"
    yield ""
    yield "`python benchmarks/teacher.py --into docs/results --write docs/results/converted.md`"
    yield "writes this section: tables in 8 KB for Cortex-M4, alone and taught by an RBF SVM."
    yield f"usps has {ROWS:,} training rows a split, and the official test rows. All figures are"
    yield "means of the splits; the gain is also that of the worst one."
    yield ""
    yield (
        "| data | splits | SVM | alone | taught | gain, points | agreement with the SVM, alone and "
        "taught | processor seconds, alone and taught |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name in TEACHERS:
        parts = [rows[key] for key in rows if key.split()[0] == name]
        mean = {
            (kind, key): float(np.mean([part[kind][key] for part in parts]))
            for kind in ("alone", "taught")
            for key in ("accuracy", "agreement", "seconds")
        }
        gains = [part["taught"]["accuracy"] - part["alone"]["accuracy"] for part in parts]
        svm = float(np.mean([part["svm"] for part in parts]))
        accuracy, agreement = (
            [f"{100 * mean[kind, key]:.2f} %" for kind in ("alone", "taught")]
            for key in ("accuracy", "agreement")
        )
        seconds = ", ".join(f"{mean[kind, 'seconds']:.0f}" for kind in ("alone", "taught"))
        yield (
            f"| {name} | {len(parts)} | {100 * svm:.2f} % | {' | '.join(accuracy)} | "
            f"{100 * np.mean(gains):+.2f}, worst {100 * min(gains):+.2f} | "
            f"{', '.join(agreement)} | {seconds} |"
        )
    yield ""
    yield str(next(iter(rows.values()))["measured"])


def main() -> None:
    """Measure the splits that are not there yet, and write the section."""
    parser = page_arguments(__doc__, ",".join(TEACHERS))
    parser.add_argument("--into", type=Path, help="folder of the finished rows")
    arguments = parser.parse_args()
    rows = FinishedRows(arguments.into, "teacher")
    for seed in range(SPLITS):
        for name in arguments.sets.split(","):
            rows.measure(f"{name} {seed}", measure, name, seed, Path(arguments.data))
    print_section(section(rows), arguments.write)


if __name__ == "__main__":
    main()
