"""What is found that was never shown, by models of one class beside detectors of scikit-learn.

Run with ``python benchmarks/one_class.py [--data DIR] [--sets digits,wine] [--write FILE]``. Sets
and splits are those of ``novelty.py``, without the labels: all classes but one are what is normal.
``tumours`` are scikit-learn's breast cancer data, where benign is normal and malignant is not. DIR
holds ``gas_drift.npz`` and ``har_raw.npz``, whose test rows are of other batches or persons.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _page import page_arguments, print_page
from novelty import FALSE_ALARMS, TARGETS, Rows, Split, area_table, detectors
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import roc_auc_score

import tinykernel
from tinykernel.build.toolchains import find_toolchain
from tinykernel.codegen.targets import find_target
from tinykernel.data.load import load_data
from tinykernel.errors import TinykernelError
from tinykernel.estimator import NoveltyDetector, calibrate_one_class
from tinykernel.measure.footprint import measure_footprint
from tinykernel.model.readouts.prototypes import Prototypes

_DETECTORS = ("IsolationForest", "OneClassSVM", "Mahalanobis")


def rows_of(name: str, folder: Path) -> tuple[Rows, Rows, Rows | None, list[object]]:
    """Return rows, labels, groups and the classes to leave out, one after the other."""
    if name in ("digits", "wine", "tumours"):
        load = {"digits": load_digits, "wine": load_wine, "tumours": load_breast_cancer}[name]
        X, y = load(return_X_y=True)
        out = [0] if name == "tumours" else np.unique(y).tolist()
        return X.astype(np.float32), y, None, out
    data = load_data(folder / f"{name}.npz", groups="group")
    assert data.group_train is not None
    return data.X_train, data.y_train, data.group_train, np.unique(data.y_train).tolist()


def section(name: str, folder: Path) -> Iterator[str]:
    """Yield the tables of one set."""
    X, y, groups, every = rows_of(name, folder)
    found: dict[str, list[float]] = {}
    rates, refusal = [], ""
    for out in every:
        split = Split(X, y, groups, out)
        watch = NoveltyDetector(
            window_shape=(128, 6) if name == "har_raw" else None, random_state=0
        ).fit(split.X)
        scores = {"ours": -watch.score_samples(split.rows)}
        scores |= {kind: values for kind, values in detectors(split).items() if kind in _DETECTORS}
        for kind, values in scores.items():
            found.setdefault(kind, []).append(roc_auc_score(split.is_new, values))
        try:
            model, _ = calibrate_one_class(watch.quantize(), split.X_keep, FALSE_ALARMS)
        except TinykernelError as error:
            refusal = str(error).removeprefix("calibrate: ")
            model = watch.quantize()
        else:
            novel = model.predict(split.rows) == "novel"
            rates.append((novel[~split.is_new].mean(), novel[split.is_new].mean()))
    yield from area_table(name, X, every, found)
    if rates:
        false, true = 100 * np.array(rates).T
        yield (
            f"At most {100 * FALSE_ALARMS:g} % false alarms, with 95 % confidence: "
            f"{false.mean():.2f} % of test rows of what is normal were taken for novel (at most "
            f"{false.max():.2f} %), and {true.mean():.1f} % of the rows of the class left out "
            f"({true.min():.1f} to {true.max():.1f} %)."
        )
    else:
        yield f"At most {100 * FALSE_ALARMS:g} % false alarms: refused, {refusal}."
    yield from costs(model, split.rows[-100:])


def costs(model: tinykernel.IntegerModel, rows: Rows) -> Iterator[str]:
    """Yield what the last model takes on each core, and whether C and Python agree."""
    prototypes = model.find(Prototypes)
    assert prototypes is not None
    yield ""
    yield f"{len(prototypes.levels)} prototypes of {model.n_features} inputs or counts."
    yield ""
    yield "| core | flash | RAM without stack | instructions | C and Python |"
    yield "|---|---|---|---|---|"
    for target in TARGETS:
        chain = find_toolchain(find_target(target))
        if chain is None:
            continue
        size = measure_footprint(model, target, chain)
        result = tinykernel.verify(model, rows, target=target)
        count = tinykernel.bench(model, target, X=rows[:3]).instructions
        yield (
            f"| {target} | {size.flash} | {size.static + size.scratch} | {count} "
            f"| {result.differences} differences in {result.rows} rows |"
        )


def page(folder: Path, sets: list[str]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# One class: only normal rows are given"
    yield ""
    yield "Written by `benchmarks/one_class.py`. AUROC: how often a row of the class left out has a"
    yield "larger novelty than a test row of what is normal. What it is for:"
    yield "[decisions.md](../decisions.md#one-class-only-normal-rows)."
    for name in sets:
        yield ""
        yield from section(name, folder)


def main() -> None:
    """Run everything and print or write the page."""
    given = page_arguments(__doc__, sets="digits,wine,tumours,gas_drift,har_raw").parse_args()
    print_page(page(given.data, given.sets.split(",")), given.write)


if __name__ == "__main__":
    main()
