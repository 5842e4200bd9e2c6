"""The search of hyper-parameters: its time against that of the training, and what it is worth.

Run with ``python benchmarks/search.py --data DIR [--sets digits,dna] [--write FOLDER]``, where DIR
holds the data sets. Trains with a budget of 8 KB on five sets, for each seed and each effort:
"normal" (a race) and "thorough" (long trials), to compare with; "quick" (usual values) on request.
A short training comes first, so that no compilation is counted. ``--write FOLDER`` leaves
``search.md`` there and every finished row in ``numbers/search.json``; rows that are there are not
measured again.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from _data import Data, load
from _environment import describe_machine
from _rows import FinishedRows
from sklearn.model_selection import train_test_split

from tinykernel import progress, train
from tinykernel.files import write_bytes_atomically

BUDGET = "8KB"
SETS = ("digits", "dna", "binaryalpha", "usps", "har")
EFFORTS = ("normal", "thorough")
#: Sets on which a search may take so many times the training that follows.
LIMITED, MOST = ("usps", "har", "digits"), 2.0
_OWN_SPLIT = ("digits", "binaryalpha")
Rows = Mapping[str, Mapping[str, Any]]


def split(name: str, folder: Path, seed: int) -> Data:
    """Load a set; where it has no official split, a quarter is drawn to test on by the seed."""
    (found,) = load(folder, name)
    if name not in _OWN_SPLIT:
        return found
    X, y = np.concatenate([found.X, found.X_test]), np.concatenate([found.y, found.y_test])
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    return Data(X, y, X_test, y_test)


def run(data: Data, effort: str, seed: int, **given: Any) -> dict[str, Any]:
    """Train once; return seconds and processor seconds of search and training, and accuracy."""
    seen: dict[str, list[tuple[float, float]]] = {}

    def note(message: progress.Progress) -> None:
        kind = "search" if message.stage.startswith("choosing") else message.stage
        seen.setdefault(kind, []).append((time.perf_counter(), time.process_time()))

    with progress.observing(note):
        found = train(
            data.X,
            data.y,
            budget=BUDGET,
            groups=data.groups,
            random_state=seed,
            effort=effort,
            **given,
        )
    marks = seen.get("search", [seen["training"][0]])
    begin, middle, end = marks[0], marks[-1], seen["training"][-1]
    return {
        "search": middle[0] - begin[0],
        "training": end[0] - middle[0],
        "search_cpu": middle[1] - begin[1],
        "training_cpu": end[1] - middle[1],
        "trials": len(found.classifier.trials_),
        "chosen": found.classifier.search_.get("chosen", "usual values"),
        "accuracy": 100 * float((found.model.predict(data.X_test) == data.y_test).mean()),
        "measured": describe_machine(),
    }


def measure(folder: Path, name: str, effort: str, seed: int) -> dict[str, Any]:
    """Do that on a set."""
    return run(split(name, folder, seed), effort, seed)


def of(rows: Rows, name: str, effort: str) -> list[Mapping[str, Any]]:
    """Return what was measured of a set and effort, by seed."""
    return [row for key, row in rows.items() if key.split()[:2] == [name, effort]]


def differences(rows: Rows) -> list[float]:
    """Return accuracy of "normal" less that of "thorough", for each set and seed that has both."""
    pairs = (
        (row, rows.get(key.replace(" normal ", " thorough ")))
        for key, row in rows.items()
        if " normal " in key
    )
    return [row["accuracy"] - other["accuracy"] for row, other in pairs if other is not None]


def verdict(rows: Rows) -> list[str]:
    """Say in sentences whether the search keeps to its limits."""
    lines = []
    for name in LIMITED:
        found = of(rows, name, "normal")
        if found:
            most = max(row["search_cpu"] / row["training_cpu"] for row in found)
            word = "kept" if most <= MOST else "MISSED"
            lines.append(
                f"- {name}: the search takes at most {most:.2f} times the training, in "
                f"processor time; the limit of {MOST:g} is {word}."
            )
    found = differences(rows)
    if found:
        error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan")
        lines.append(
            f"- Accuracy of the race less that of the long trials, mean over {len(found)} pairs of "
            f"set and seed: {np.mean(found):+.2f} points, with a standard error of {error:.2f}; "
            f"from {min(found):+.2f} to {max(found):+.2f}."
        )
    return lines


def table(rows: Rows) -> list[str]:
    """Return a line for each set and effort: means over the seeds."""
    lines = [
        "| set | effort | seeds | trials | search | training | search / training "
        "| the same, processor time | accuracy, lowest to highest |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, effort in dict.fromkeys(tuple(key.split()[:2]) for key in rows):
        found = of(rows, name, effort)
        mean = {
            key: float(np.mean([row[key] for row in found]))
            for key in found[0]
            if not isinstance(found[0][key], str)
        }
        right = [row["accuracy"] for row in found]
        lines.append(
            f"| {name} | {effort} | {len(found)} | {mean['trials']:.0f} | {mean['search']:.1f} s "
            f"| {mean['training']:.1f} s | {mean['search'] / mean['training']:.2f} "
            f"| {mean['search_cpu'] / mean['training_cpu']:.2f} "
            f"| {mean['accuracy']:.2f} %, {min(right):.2f} to {max(right):.2f} |"
        )
    return lines


def page(rows: Rows) -> str:
    """Write the page."""
    ordered = dict(sorted(rows.items(), key=lambda item: _place(item[0])))
    where = "; ".join(dict.fromkeys(row["measured"] for row in ordered.values()))
    lines = [
        "# The search of hyper-parameters",
        "",
        f"Written by `python benchmarks/search.py`. Budget {BUDGET} on cortex-m4; accuracy of the "
        "integer model on test rows. The machine did other work meanwhile, so that seconds vary "
        "and the ratio of processor times is the steadier one. HAR is trained with its groups; of "
        "digits and binaryalpha the seed draws the test part, too.",
        "",
        *table(ordered),
        "",
        *verdict(ordered),
        "",
        "Each seed:",
        "",
        "| set, effort, seed | search | training | accuracy | chosen |",
        "|---|---:|---:|---:|---|",
        *(
            f"| {key} | {row['search']:.1f} s | {row['training']:.1f} s | {row['accuracy']:.2f} % "
            f"| {row['chosen']} |"
            for key, row in ordered.items()
        ),
        "",
        f"Measured on {where}.",
    ]
    every = [f"{name} {effort} {seed}" for name in SETS for effort in EFFORTS for seed in range(3)]
    missing = [key for key in every if key not in rows]
    if missing:
        lines += ["", f"Not measured yet (the same command goes on): {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def _place(key: str) -> tuple[int, str, str]:
    name, effort, seed = key.split()
    return SETS.index(name) if name in SETS else len(SETS), effort, seed


def main() -> None:
    """Measure what is missing; print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    folder = os.environ.get("TINYKERNEL_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=folder is None)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--efforts", default=",".join(EFFORTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="a folder for the page, e.g. docs/results")
    arguments = parser.parse_args()
    rows = FinishedRows(arguments.write, "search")
    efforts = arguments.efforts.split(",")
    run(split("digits", arguments.data, 0), "normal", 0, epochs=2)
    for effort in efforts:
        for seed in range(arguments.seeds):
            for name in arguments.sets.split(","):
                key = f"{name} {effort} {seed}"
                is_new = rows.measure(key, measure, arguments.data, name, effort, seed)
                if is_new and arguments.write is not None:
                    write_bytes_atomically(arguments.write / "search.md", page(rows).encode())
    text = page(rows)
    print(text)
    if arguments.write is not None:
        write_bytes_atomically(arguments.write / "search.md", text.encode())


if __name__ == "__main__":
    main()
