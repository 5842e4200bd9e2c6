"""How well the novelty of a model tells what it was never shown, beside detectors of scikit-learn.

Run with ``python benchmarks/novelty.py [--data DIR] [--sets digits,wine] [--write FILE]``. Each
class is left out in turn: the model and the detectors see the others only, and rank test rows of
known classes and all rows of the class left out. DIR holds ``gas_drift.npz`` and ``har_raw.npz``,
whose test rows are of other batches or persons than those of the training.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _page import page_arguments, print_page, rendered
from numpy.typing import NDArray
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

import tinykernel
from tinykernel.base.errors import TinykernelError
from tinykernel.compile.targets import find_target
from tinykernel.data.load import TableSource
from tinykernel.data.tables import Selection
from tinykernel.learn.novelty import fit_novelty, fit_prototypes
from tinykernel.model.answers import margins
from tinykernel.pieces.prototypes.spec import distances
from tinykernel.run.footprint import measure_footprint
from tinykernel.run.program import find_toolchain

TARGETS = ("cortex-m0", "cortex-m4", "esp32c3")
FALSE_ALARMS = 0.02
#: Rows that the detectors of scikit-learn see at most.
MOST_ROWS = 2000
Rows = NDArray[Any]


class Split:
    """Rows of known classes to train, to calibrate and to test, and those of the class left out."""

    def __init__(self, X: Rows, y: Rows, groups: Rows | None, out: Any) -> None:
        known = np.flatnonzero(y != out)
        self.out, self.new = out, X[y == out]
        fit, rest = _halves(known, y, groups, 0.4)
        keep, test = _halves(rest, y, groups, 0.5)
        self.X, self.y = X[fit], y[fit]
        self.X_keep, self.y_keep = X[keep], y[keep]
        self.test = X[test]
        self.groups = None if groups is None else groups[fit]

    @property
    def rows(self) -> Rows:
        """Test rows, those of the class left out last."""
        return np.concatenate([self.test, self.new])

    @property
    def is_new(self) -> Rows:
        """Which of these are of the class left out."""
        return np.arange(len(self.test) + len(self.new)) >= len(self.test)


def _halves(rows: Rows, y: Rows, groups: Rows | None, part: float) -> tuple[Rows, Rows]:
    """Split rows by class, and where there are groups so that none is in both parts."""
    if groups is None:
        first, second = train_test_split(rows, test_size=part, stratify=y[rows], random_state=0)
        return first, second
    folds = StratifiedGroupKFold(round(1 / part), shuffle=True, random_state=0)
    one, two = next(folds.split(rows, y[rows], groups[rows]))
    return rows[one], rows[two]


def _components(split: Split) -> tinykernel.IntegerModel:
    classifier = tinykernel.TernaryKernelClassifier(
        n_components=256, effort="quick", epochs=15, random_state=0
    )
    return classifier.fit(split.X, split.y).quantize()


def _windows(split: Split) -> tinykernel.IntegerModel:
    return tinykernel.train(
        split.X, split.y, budget="4KB", window_shape=(128, 6), groups=split.groups, random_state=0
    ).model


def ours(model: tinykernel.IntegerModel, split: Split) -> dict[str, Rows]:
    """Return what the model can tell; the first two are `IntegerModel.novelty`."""
    scores = model.scores(split.rows)
    watching = with_prototypes(model, split)
    prototypes = fit_prototypes(model, split.X, split.y)
    inputs = model.quantize_inputs(split.rows)
    return {
        "novelty with prototypes": watching.novelty(split.rows),
        "novelty of the scores": model.novelty(split.rows),
        "tried: the margin alone": -margins(scores)[1].astype(float),
        "tried: the distance alone": distances(inputs, prototypes),
    }


def with_prototypes(model: tinykernel.IntegerModel, split: Split) -> tinykernel.IntegerModel:
    """Return the model with prototypes of the training rows and any threshold.

    Thresholds need more rows than some sets have; the order of rows does not depend on them.
    """
    scores = model.scores(split.X_keep)
    fit = fit_novelty(model, split.X_keep, scores, (split.X, split.y))
    decision = tinykernel.calibrate(model, split.X_keep, split.y_keep).model.decision
    decision = replace(
        decision,
        novelty_threshold=int(np.median(fit.novelty)),
        prototypes=fit.prototypes,
        margin_line=fit.margin_line,
    )
    return replace(model, decision=decision)


def detectors(split: Split) -> dict[str, Rows]:
    """Return what the detectors of scikit-learn say, on standardized inputs."""
    scaler = StandardScaler().fit(split.X)
    some = np.random.default_rng(0).permutation(len(split.X))[:MOST_ROWS]
    X, y, rows = scaler.transform(split.X[some]), split.y[some], scaler.transform(split.rows)
    means = {label: X[y == label].mean(axis=0) for label in np.unique(y)}
    within = LedoitWolf(assume_centered=True).fit(X - np.stack([means[label] for label in y]))
    nearest = np.min([within.mahalanobis(rows - mean) for mean in means.values()], axis=0)
    return {
        "IsolationForest": -IsolationForest(random_state=0).fit(X).score_samples(rows),
        "OneClassSVM": -OneClassSVM(nu=0.05).fit(X).score_samples(rows),
        "Mahalanobis": LedoitWolf().fit(X).mahalanobis(rows),
        "Mahalanobis, nearest class": nearest,
    }


def alarms(model: tinykernel.IntegerModel, split: Split) -> tuple[str, tuple[float, float] | None]:
    """Return what became of a promised rate of false alarms: of known rows, and what is found."""
    try:
        found = tinykernel.calibrate(
            model, split.X_keep, split.y_keep, false_alarms=FALSE_ALARMS, known=(split.X, split.y)
        )
    except TinykernelError as error:
        return str(error).removeprefix("calibrate: "), None
    novel = found.model.is_novel(split.rows)
    return "", (float(novel[~split.is_new].mean()), float(novel[split.is_new].mean()))


def section(
    name: str, X: Rows, y: Rows, groups: Rows | None, train: Callable[[Split], Any]
) -> Iterator[str]:
    """Yield the tables of one set."""
    found: dict[str, list[float]] = {}
    rates = []
    refused = ""
    model = None
    for out in np.unique(y):
        split = Split(X, y, groups, out)
        model = train(split)
        scores = ours(model, split) | detectors(split)
        for kind, values in scores.items():
            found.setdefault(kind, []).append(roc_auc_score(split.is_new, values))
        refused, rate = alarms(model, split)
        rates += [] if rate is None else [rate]
    yield from area_table(name, X, np.unique(y).tolist(), found)
    yield promise(rates, refused, "known classes")
    yield from costs(model, Split(X, y, groups, np.unique(y)[-1]))


def promise(rates: list[tuple[float, float]], refused: str, what: str) -> str:
    """Say what became of the promised rate of false alarms: shares of false and of true ones."""
    wished = f"At most {100 * FALSE_ALARMS:g} % false alarms, with 95 % confidence:"
    if not rates:
        return f"{wished} refused, {refused}."
    false, true = 100 * np.array(rates).T
    return (
        f"{wished} {false.mean():.2f} % of test rows of {what} were taken for novel (at most "
        f"{false.max():.2f} % with one class left out), and {true.mean():.1f} % of the rows of the "
        f"class left out ({true.min():.1f} to {true.max():.1f} %)."
    )


def rows_of(name: str, folder: Path) -> tuple[Rows, Rows, Rows | None]:
    """Return rows, labels and groups of a set."""
    if name in ("digits", "wine", "tumours"):
        load = {"digits": load_digits, "wine": load_wine, "tumours": load_breast_cancer}[name]
        X, y = load(return_X_y=True)
        return X.astype(np.float32), y, None
    data = TableSource(folder / f"{name}.npz", Selection(groups="group")).train_rows()
    return data.X_train, data.y_train, data.group_train


def area_table(
    name: str, X: Rows, every: list[object], found: dict[str, list[float]]
) -> Iterator[str]:
    """Yield the title of a set, and the areas by the class that was left out."""
    yield f"## {name}"
    yield ""
    yield f"{len(X)} rows, {X.shape[1]} inputs; left out in turn: {len(every)} classes."
    yield ""
    yield "| AUROC | mean | worst | " + " | ".join(map(str, every)) + " |"
    yield "|---" * (3 + len(every)) + "|"
    for kind, areas in found.items():
        each = " | ".join(f"{area:.3f}" for area in areas)
        yield f"| {kind} | {np.mean(areas):.3f} | {min(areas):.3f} | {each} |"
    yield ""


def costs(model: tinykernel.IntegerModel, split: Split) -> Iterator[str]:
    """Yield what novelty adds on each core, and whether C and Python agree."""
    sure = with_prototypes(model, split)
    decision = sure.decision
    if decision.prototypes is None:
        yield ""
        yield "Prototypes tell less than the scores here, and are left out."
        return
    plain = replace(decision, prototypes=None, margin_line=None)
    scores, few = replace(model, decision=plain), split.rows[:3]
    bare = replace(model, decision=replace(plain, novelty_threshold=None))
    yield ""
    yield f"{decision.prototypes.shape[0]} prototypes of {model.n_features} inputs or counts."
    yield ""
    yield (
        "| core | flash before | with that of the scores | with prototypes | RAM "
        "| instructions before | more with prototypes | C and Python |"
    )
    yield "|---" * 8 + "|"
    for target in TARGETS:
        chain = find_toolchain(find_target(target))
        if chain is None:
            continue
        one = measure_footprint(bare, target, chain)
        two, three = (measure_footprint(other, target, chain) for other in (scores, sure))
        ram = three.static + three.scratch - one.static - one.scratch
        result = tinykernel.verify(sure, split.rows[-100:], target=target)
        pairs = ((bare, "decide"), (sure, "decide_novelty"))
        before, after = (
            tinykernel.bench(other, target, X=few, function=name).instructions
            for other, name in pairs
        )
        yield (
            f"| {target} | {one.flash} | +{two.flash - one.flash} | +{three.flash - one.flash} "
            f"| +{ram} | {before} | +{after - before} "
            f"| {result.differences} differences in {result.rows} rows |"
        )


def page(folder: Path, sets: list[str]) -> Iterator[str]:
    """Yield the lines of the page."""
    trains = {name: _windows if name == "har_raw" else _components for name in sets}
    sections = (section(name, *rows_of(name, folder), train) for name, train in trains.items())
    return rendered("novelty", sections=sections)


if __name__ == "__main__":
    given = page_arguments(__doc__, sets="digits,wine,gas_drift,har_raw").parse_args()
    print_page(page(given.data, given.sets.split(",")), given.write)
