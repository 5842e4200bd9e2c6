"""Which form `train` chooses, and which form is best on rows that were never touched.

Run with ``python benchmarks/choice.py [--data DIR] [--sets all] [--into docs/results] [--write
FILE]``. DIR holds ``tables/*.csv``, ``usps.npz`` and ``har.npz``. Each set is trained as `train`
does with a budget, and once more for each form alone: trees, components with a linear part where
that helps, a linear part. All are judged on the test rows: 20 % by seed 0, or the official ones.
The form that ``effort="quick"`` chooses stands beside. A row that is finished is kept in
``numbers/choice.json`` of the folder.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _data import Data, digits, load, split
from _environment import describe_machine
from _page import rendered
from _rows import FinishedRows, measure_sets
from sklearn.datasets import make_classification
from tables import BALANCED, VALUES, rows_of
from tables import SETS as TABLES

from tinykernel.base import progress
from tinykernel.base.errors import TinykernelError
from tinykernel.kinds.train.fitting import TrainResult, train
from tinykernel.learn.choice import standard_error
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.trees.spec import Trees

#: Rows, inputs, informative inputs, classes and separation of sets of scikit-learn.
MADE = {"made 3": (2000, 20, 8, 3, 1.0), "made 5": (4000, 30, 12, 5, 1.2)}
MADE["made 26"] = (6000, 16, 12, 26, 1.8)
#: Budgets in KB.
SETS = {name: kb for name, (kb, _) in TABLES.items() if not name.startswith("covtype")}
SETS |= {"digits": 8.0, **dict.fromkeys(MADE, 8.0), "har": 4.4, "usps": 8.0}
FORMS: dict[str, dict[str, Any]] = {
    "trees": {"model": "trees"},
    "components": {"model": "components"},
    "linear part": {"model": "linear", "linear": 8},
}


def rows(name: str, folder: Path) -> tuple[Data, dict[str, Any]]:
    """Return the rows of a set, and what the trainer is told besides."""
    if name in TABLES:
        kinds: dict[tuple[str, ...], dict[str, Any]] = {
            BALANCED: {"class_weight": "balanced"},
            VALUES: {"task": "numbers"},
        }
        return rows_of(name, folder / "tables" / f"{name}.csv")[0], kinds.get(TABLES[name][1], {})
    if name in ("har", "usps"):
        return load(folder, name)[0], {}
    if name == "digits":
        return split(*digits(), 0.2), {}
    n, inputs, informative, classes, apart = MADE[name]
    X, y = make_classification(
        n, inputs, n_informative=informative, n_classes=classes, class_sep=apart, random_state=0
    )
    return split(X.astype(np.float32), y, 0.2), {}


def trained(data: Data, besides: dict[str, Any]) -> tuple[TrainResult, float, float]:
    """Train; return the result and the processor time of the search and of all."""
    begun, ends = time.process_time(), [time.process_time()]

    def note(message: progress.Progress) -> None:
        if message.stage.startswith("choosing"):
            ends.append(time.process_time())

    with progress.observing(note):
        result = train(
            data.X, data.y, groups=data.groups, random_state=0, n_jobs=1, link=False, **besides
        )
    return result, ends[-1] - begun, time.process_time() - begun


def kind_of(result: TrainResult) -> str:
    """Return the form of a model."""
    if result.model.find(Trees) is not None:
        return "trees"
    return "linear part" if result.model.find(Components) is None else "components"


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Train what is chosen and each form alone, and compare them on the test rows."""
    data, besides = rows(name, folder)
    budget = {**besides, "budget": f"{SETS[name]:g}KB"}
    chosen, searched, seconds = trained(data, budget)
    outcomes = {kind_of(chosen): chosen}
    for form, more in FORMS.items():
        if form not in outcomes:
            try:
                result = trained(data, {**budget, **more})[0]
            except TinykernelError:  # not in this budget
                continue
            outcomes.setdefault(kind_of(result), result)
    values, weight = "task" in besides, np.ones(len(data.y_test))
    if "class_weight" in besides:
        codes = np.unique(data.y_test, return_inverse=True)[1]
        weight = 1 / np.bincount(codes)[codes]
    lost = {form: _lost(each, data, values=values) for form, each in outcomes.items()}
    means = {form: float(np.average(each, weights=weight)) for form, each in lost.items()}
    best, taken = min(means, key=lambda form: means[form]), kind_of(chosen)
    noise = standard_error(lost[taken] - lost[best], weight, data.groups_test)
    whole = float(np.var(data.y_test)) if values else 0.01
    behind = 0.0 if best == taken else (means[taken] - means[best]) / noise
    return {
        "scores": {form: (1 if values else 100) - mean / whole for form, mean in means.items()},
        "values": values,
        "chosen": taken,
        "quick": kind_of(trained(data, {**budget, "effort": "quick"})[0]),
        "best": best,
        "behind": round(float(behind), 2),
        "flash": None if chosen.memory is None else chosen.memory.flash,
        "search": round(searched, 1),
        "seconds": round(seconds, 1),
        "measured": describe_machine(),
    }


def _lost(result: TrainResult, data: Data, *, values: bool) -> np.ndarray:
    """Return what a model misses of each test row: the squared error, or 1 of a wrong label."""
    answers = result.model.predict(data.X_test)
    if values:
        return np.asarray(np.square(np.ravel(answers) - np.ravel(data.y_test)), np.float64)
    return np.asarray(answers != data.y_test, np.float64)


def page(finished: FinishedRows) -> Iterator[str]:
    """Yield the lines of the page."""
    known = [name for name in SETS if name in finished]
    rows = []
    for name in known:
        row, cells = finished[name], []
        for form in FORMS:
            score = row["scores"].get(form)
            text = "-" if score is None else f"{score:.3f}" if row["values"] else f"{score:.2f}"
            cells.append(f"**{text}**" if form == row["best"] else text)
        times = f"{row['search']:.0f} s, {row['seconds'] - row['search']:.0f} s"
        front = (name, f"{SETS[name]:g} KB", row["chosen"], row["quick"], *cells)
        rows.append((*front, f"{row['behind']:.1f}", str(row["flash"]), times))
    yield from rendered(
        "choice",
        forms=FORMS,
        rows=rows,
        right=sum(finished[name]["chosen"] == finished[name]["best"] for name in known),
        near=sum(finished[name]["behind"] <= 1 for name in known),
        quick=sum(finished[name]["chosen"] == finished[name]["quick"] for name in known),
        missing=[name for name in SETS if name not in known],
    )


if __name__ == "__main__":
    measure_sets(__doc__, "choice", SETS, measure, page)
