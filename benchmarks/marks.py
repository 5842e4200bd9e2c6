"""Accuracy of tables in a budget, beside the last release: what fell by more than its noise fails.

So does what fell below its mark; what was below it already is named in a line of its own.

``make marks`` runs ``python benchmarks/marks.py [--data DIR] [--sets digits,usps] [--into DIR]
[--write FILE]``. DIR holds ``usps.npz``, ``har.npz``, ``covtype7.npz`` and ``tables/abalone.csv``;
a row without its file is left out, and named. The splits and seeds are fixed, and nothing is set
but the budget. Images are given without their shape. The last release is ``benchmarks/marks.json``,
which a release replaces by ``numbers/marks.json`` of the folder of finished rows. All rows take
about half an hour of two processors.
"""

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from _data import digits
from _environment import describe_machine
from _page import page_arguments, rendered
from _rows import FinishedRows, measure_sets
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import tinykernel
from tinykernel.compile.enums import consists_of
from tinykernel.data.load import TableSource
from tinykernel.data.partition import Dataset
from tinykernel.data.tables import Selection

RELEASE = Path(__file__).with_name("marks.json")
#: Noise of R2, which has no formula as short as that of shares.
_NOISE_OF_R2 = 0.02
_COVTYPE_ROWS = 10_000


class Mark(NamedTuple):
    """What a table is trained for, and what its test rows must reach."""

    budget: str
    n_splits: int
    least: float  # a share of right answers, or R2
    file: str = ""  # in the folder of data; without one the rows are made


MARKS = {
    "classes10": Mark("8KB", 3, 0.64),
    "classes26": Mark("8KB", 2, 0.72),
    "classes5": Mark("8KB", 3, 0.77),
    "digits": Mark("8KB", 3, 0.989),
    "usps": Mark("8KB", 1, 0.953, "usps.npz"),
    "har": Mark("4.4KB", 1, 0.958, "har.npz"),
    "covtype7": Mark("30KB", 1, 0.0, "covtype7.npz"),
    "abalone": Mark("8KB", 2, 0.541, "tables/abalone.csv"),
}
#: Made tables: rows, and what `make_classification` takes.
MADE: dict[str, tuple[int, dict[str, int]]] = {
    "classes10": (4000, {"n_features": 30, "n_informative": 12, "n_classes": 10}),
    "classes26": (
        4000,
        {"n_features": 16, "n_informative": 12, "n_classes": 26, "n_clusters_per_class": 1},
    ),
    "classes5": (3000, {"n_features": 20, "n_informative": 10, "n_classes": 5}),
}


def data_of(name: str, seed: int, folder: Path) -> Dataset:
    """Return the rows to learn and to judge."""
    file, values = folder / MARKS[name].file, name == "abalone"
    if name in ("usps", "har", "abalone"):
        selection = Selection(label="Class_Rings") if values else Selection()
        return TableSource(file, selection, values=values).train_rows(0.2, seed)
    if name == "digits":
        X, y = digits()
    elif name == "covtype7":
        with np.load(file) as data:
            X, y = data["X"], data["y"]
        some = np.random.default_rng(0).permutation(len(y))[:_COVTYPE_ROWS]
        X, y = X[some], y[some]
    else:
        n_rows, shape = MADE[name]
        X, y = make_classification(n_rows, **shape, random_state=seed)
    split = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y)
    return Dataset(split[0], split[2], split[1], split[3], name, "")


def measure(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train for the budget and judge the test rows."""
    data, begin = data_of(name, seed, folder), time.process_time()
    trained = tinykernel.train(
        data.X_train,
        data.y_train,
        groups=data.group_train if data.splits_groups else None,
        budget=MARKS[name].budget,
        random_state=seed,
        task="numbers" if name == "abalone" else "classes",
    )
    assert data.y_test is not None
    return {
        "score": round(trained.model.score(data.X_test, data.y_test), 4),
        "rows": len(data.y_test),
        "flash": None if trained.memory is None else trained.memory.flash,
        "model": consists_of(trained.model),
        "seconds": round(time.process_time() - begin),
        "measured": describe_machine(),
    }


def noise_of(name: str, rows: list[dict[str, Any]]) -> float:
    """Return one standard error of the mean score of splits."""
    if name == "abalone":
        return _NOISE_OF_R2
    share = float(np.mean([row["score"] for row in rows]))
    return math.sqrt(share * (1 - share) / sum(row["rows"] for row in rows))


class Comparison(NamedTuple):
    """The mean score of a table, now and in the last release, of the same splits."""

    now: float
    release: float
    noise: float

    @property
    def fell(self) -> bool:
        """Whether it fell by more than its noise."""
        return self.release - self.now > self.noise


def compare(rows: Mapping[str, Any], release: Mapping[str, Any]) -> dict[str, Comparison]:
    """Compare each table that both have."""
    found = {}
    for name in MARKS:
        keys = [key for key in rows if key in release and key.startswith(f"{name} ")]
        if keys:
            now, then = ([source[key] for key in keys] for source in (rows, release))
            means = (float(np.mean([row["score"] for row in part])) for part in (now, then))
            found[name] = Comparison(*means, noise_of(name, then))
    return found


def page(rows: FinishedRows) -> Iterator[str]:
    """Yield the lines of the page."""
    cells = []
    for name, mark in MARKS.items():
        splits = [row for key, row in rows.items() if key.startswith(f"{name} ")]
        if splits:
            scores = [row["score"] for row in splits]
            each = ", ".join(f"{score:.4f}" for score in scores)
            most = max(row["flash"] or 0 for row in splits)
            model = splits[0]["model"]
            seconds = round(np.mean([row["seconds"] for row in splits]))
            mean, least = f"{np.mean(scores):.4f}", f"{mark.least:.3f}" if mark.least else ""
            cells.append((name, mark.budget, mean, each, least, most, seconds, model))
    absent = [name for name in MARKS if name not in {row[0] for row in cells}]
    yield from rendered("marks", rows=cells, absent=absent)


def tell(compared: Mapping[str, Comparison]) -> bool:
    """Print the comparison, what fell in red, and what is below its mark; return if any fell."""
    below, fell = [], False
    for name, means in compared.items():
        least = MARKS[name].least
        is_worse = means.fell or means.now < least <= means.release
        line = f"{name}: {means.now:.4f}, last release {means.release:.4f} ± {means.noise:.4f}"
        click.secho(line, fg="red" if is_worse else None)
        below += [f"{name} {means.now:.4f} of {least:g}"] if means.now < least else []
        fell = fell or is_worse
    if below:
        click.secho(f"below their marks: {', '.join(below)}", fg="yellow")
    return fell


def measurable(folder: Path) -> list[str]:
    """Return the tables whose rows are there, and say which are not."""
    absent = [name for name, mark in MARKS.items() if not (folder / mark.file).exists()]
    if absent:
        print(f"not in {folder}: {', '.join(absent)}", file=sys.stderr)
    return [name for name in MARKS if name not in absent]


def main() -> None:
    """Measure, print the page, and compare."""
    folder = page_arguments(__doc__, "all").parse_known_args()[0].data
    splits = {name: mark.n_splits for name, mark in MARKS.items()}
    rows, _ = measure_sets(__doc__, "marks", measurable(folder), measure, page, splits.__getitem__)
    release = json.loads(RELEASE.read_text()) if RELEASE.exists() else {}
    sys.exit(tell(compare(rows, release)))


if __name__ == "__main__":
    main()
