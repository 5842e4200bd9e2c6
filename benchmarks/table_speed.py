"""How long tables train, beside libraries for computers on the same rows.

Run with ``python benchmarks/table_speed.py [--sets all] [--into docs/results] [--write FILE]``.
Seconds are those of processors, with one thread each, after a short training that compiles. A row
that is finished is kept in ``numbers/table_speed.json`` of the folder.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _data import digits
from _environment import describe_machine
from _page import rendered
from _rows import FinishedRows, measure_sets
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from tinykernel import train

#: Rows, inputs, informative inputs and classes of sets of scikit-learn; budget.
MADE = {f"made {n}": ((4000, 30, 12, n), "30KB") for n in (2, 3, 4, 10)}
SETS = (*MADE, "digits")
OURS, PEERS = ("normal", "quick"), ("HistGradientBoosting", "MLP", "LightGBM")


def rows(name: str) -> tuple[list[Any], str]:
    """Return training and test rows, and the budget."""
    if name == "digits":
        (X, y), budget = digits(), "8KB"
    else:
        (n, inputs, informative, classes), budget = MADE[name]
        options = {"n_informative": informative, "n_classes": classes, "random_state": 0}
        X, y = make_classification(n, inputs, **options)
        X = X.astype(np.float32)
    return train_test_split(X, y, test_size=0.2, stratify=y, random_state=0), budget


def timed(fit: Callable[[], Any], X: Any, y: Any) -> dict[str, float]:
    """Return seconds of a processor, and the accuracy on test rows in %."""
    begun = time.process_time()
    model = fit()
    return {"seconds": time.process_time() - begun, "accuracy": 100 * float(model.score(X, y))}


def measure(name: str, _: Path) -> dict[str, Any]:
    """Train each on the same rows."""
    (X, X_test, y, y_test), budget = rows(name)
    ours = {"budget": budget, "random_state": 0, "n_jobs": 1, "link": False}
    train(X[:300], y[:300], **ours | {"budget": "3KB", "effort": "quick"})  # compiles
    mlp = MLPClassifier((100,), early_stopping=True, random_state=0)
    peers = {
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
        "MLP": make_pipeline(StandardScaler(), mlp),
    }
    try:
        from lightgbm import LGBMClassifier

        peers["LightGBM"] = LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)
    except ImportError:
        print("LightGBM is not installed, and left out")
    result: dict[str, Any] = {"rows": f"{len(y):,} x {X.shape[1]}", "classes": int(y.max()) + 1}
    for effort in OURS:
        result[effort] = timed(lambda e=effort: train(X, y, effort=e, **ours), X_test, y_test)
    with threadpool_limits(1):
        for peer, model in peers.items():
            result[peer] = timed(lambda m=model: m.fit(X, y), X_test, y_test)
    return result | {"budget": budget, "measured": describe_machine()}


def page(finished: FinishedRows) -> Iterator[str]:
    """Yield the lines of the page."""
    names, rows = (*OURS, *PEERS), []
    for name, row in finished.items():
        cells = [row.get(each) for each in names]
        texts = (f"{c['seconds']:.1f} s, {c['accuracy']:.1f}" if c else "-" for c in cells)
        rows.append((name, row["rows"], row["classes"], row["budget"], *texts))
    missing = [name for name in SETS if name not in finished]
    yield from rendered("table_speed", names=names, rows=rows, missing=missing)


if __name__ == "__main__":
    measure_sets(__doc__, "table_speed", SETS, measure, page)
