"""What each learned part of a kernel machine gives, and how B and P are best chosen.

Run with ``python benchmarks/ablation.py [--data DIR] [--sets all] [--seeds 3] [--into DIR]``. DIR
holds ``tables/*.csv``. Results are kept in ``numbers/ablation.json`` of the folder, so that a run
can be continued; there it also writes ``ablation.md`` and ``ablation.png``. It takes about ten
minutes of a processor. Every machine has as many components as its layout has room for in the same
bytes of tables. It learns from 70 % of the rows, drawn by the seed, and is judged on the others in
the integers of the firmware.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from _data import digits, label_of, letters
from _environment import describe_machine
from _mixing import Guided
from _page import page_arguments, print_page, rendered
from _rows import FinishedRows
from sklearn.model_selection import train_test_split

from tinykernel.base.hadamard import padded_dimension
from tinykernel.data.load import TableSource
from tinykernel.data.tables import Selection
from tinykernel.learn.choice import trial_folds
from tinykernel.learn.components.learner import Learner, MixedRows
from tinykernel.learn.components.passes import Arithmetic
from tinykernel.learn.inputs import (
    SharedTransform,
    choose_scaling,
    components_within,
    draw_transform,
    layout_of,
)
from tinykernel.learn.loop import Recipe
from tinykernel.learn.loss import Truth
from tinykernel.learn.trainset import TrainSet, prepare
from tinykernel.pieces.proof import choose_schedules

#: Bytes of tables: G, windows and weights.
BYTES = 800
#: Sigma over the distance of near rows: the best of a half, 1 and 2 by the log loss of seed 100.
SIGMA = {"digits": 2.0, "kr_vs_kp": 1.0, "segment": 1.0, "credit_g": 2.0, "letters": 1.0}
SIGMA |= {"usps": 1.0, "covtype7": 1.0}
EPOCHS, TRIAL_EPOCHS, DRAWS = 25, 8, 4
ALL = "g4-b4-t4-ternary"


@dataclass(frozen=True)
class Variant:
    """A machine: its layout, what is not learned, and how B and P are chosen."""

    title: str
    layout: str = ALL
    fixed: tuple[str, ...] = ()  # names of parameters of the learner.
    signs: str = "trials"  # how B is chosen: "drawn", by "trials"
    places: str = "trials"  # how P is chosen: the same.
    guided: str = ""  # changes of B and P in a pilot, see `Guided.improve`.
    folds: int = 1  # that a trial is judged on.
    smoothing: float = 0.0  # share of the labels that is spread over all classes.
    epochs: int = EPOCHS
    redraws: bool = False  # whether trials choose the first G and W in place of B and P.


PARTS = (
    Variant("all learned"),
    Variant("B drawn", signs="drawn"),
    Variant("P drawn", places="drawn"),
    Variant("B and P drawn", signs="drawn", places="drawn"),
    Variant("G drawn", fixed=("diagonal",)),
    Variant("G of signs, learned", layout="g1-b4-t4-ternary"),
    Variant("S fixed", fixed=("rate",)),
    Variant("b drawn", fixed=("centre",)),
    Variant("t drawn", fixed=("level",)),
    Variant("t = 0: half a turn", layout="g4-b4-ternary"),
    Variant("t = 0, b of two constants", layout="g4-ternary"),
    Variant("weights -1 and 1", layout="g4-b4-t4"),
    Variant("compact: t = 0, b of two constants, weights -1 and 1", layout="g4"),
    Variant("phases", layout="g8-b8"),
    Variant("windows", layout="g8-b8-t8-rows-ternary"),
)
_DRAWN = replace(PARTS[3], layout="g4")
MIXING = (
    replace(_DRAWN, title="drawn"),
    replace(_DRAWN, title="B and P: best of 4 in trials", signs="trials", places="trials"),
    replace(_DRAWN, title="the same, of 3 folds", signs="trials", places="trials", folds=3),
    replace(_DRAWN, title="P: best of 4 orbits in trials", places="trials"),
    replace(_DRAWN, title="P: exchanges, guided", guided="exchanges"),
    replace(_DRAWN, title="B: flips, guided", guided="flips"),
    replace(_DRAWN, title="flips and exchanges, guided", guided="flips, exchanges"),
    replace(_DRAWN, title="B: straight-through", guided="straight"),
    replace(_DRAWN, title="control: best of 4 first G and W in trials", redraws=True),
    replace(_DRAWN, title="control: twice the epochs", epochs=2 * EPOCHS),
    replace(_DRAWN, title="labels smoothed by 0.05", smoothing=0.05),
    replace(_DRAWN, title="labels smoothed by 0.1", smoothing=0.1),
)


class FixedLearner(Learner):
    """A learner of which some parameters keep their first values."""

    fixed: tuple[str, ...] = ()

    def _move(self, steps: Any, factor: Any) -> None:
        super()._move(dict(steps) | dict.fromkeys(self.fixed, 0.0), factor)


@cache
def rows_of(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels."""
    if name == "digits":
        return digits()
    if name == "letters":
        X, y = letters()
        return X.astype(np.float32), y
    if name in ("usps", "covtype7"):
        found = np.load(folder / f"{name}.npz")
        X, y = (found[part if part in found else f"{part}_train"] for part in "Xy")
        _, X, _, y = train_test_split(X, y, test_size=3000, stratify=y, random_state=0)
        return X, y
    file = folder / "tables" / f"{name}.csv"
    found = TableSource(file, Selection(label=label_of(file))).train_rows(0)
    return np.asarray(found.X_train), np.asarray(found.y_train)


def learner_of(
    data: TrainSet, rows: np.ndarray, transform: SharedTransform, recipe: Recipe, exact: bool
) -> FixedLearner:
    """Return a learner of some rows, for trials without the integers of the firmware."""

    def arithmetic(levels: Any) -> Arithmetic:
        parts = transform.live_sign, transform.scaler.bits, transform.permutation, levels
        kind = layout_of(recipe.layout).diagonal_kind
        return Arithmetic(transform.unit, choose_schedules(*parts, kind)[1])

    raw, learned = data.X[rows], (data.targets()[rows], data.weight[rows], data.truth[rows])
    mixed = MixedRows(transform.mix(raw), *learned, transform.scaler.quantize(raw))
    return FixedLearner(mixed, recipe, arithmetic if exact else None)


def trial(data: TrainSet, transform: SharedTransform, recipe: Recipe, variant: Variant) -> float:
    """Return the log loss of short trainings on the rows that folds hold out."""
    losses = []
    # Redraws differ in the thousands of the seed, and are judged on the same rows.
    for fold in trial_folds(data.codes, data.groups, recipe.seed % 1000)[-variant.folds :]:
        short = replace(recipe, epochs=TRIAL_EPOCHS, peak_step=2 * recipe.peak_step)
        learner = learner_of(data, fold.inside, transform, short, exact=False)
        learner.fixed = variant.fixed
        learner.run()
        decisions = learner.decide(transform.mix(data.X[fold.outside]))
        losses.append(data.truth_of(fold.outside).judge(decisions)[0])
    return float(np.mean(losses))


def measure(variant: Variant, name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train a variant; return its accuracy and log loss on the rows that chose nothing."""
    X, y = rows_of(name, folder)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    classes, data = prepare(X, y)
    bits, scaling = choose_scaling(data.X, data.raw_dtype, "auto", "auto")
    draws = [
        draw_transform(scaling, bits, data.raw_dtype, np.random.default_rng([seed, draw]))
        for draw in range(DRAWS)
    ]
    layout = layout_of(variant.layout)
    size = padded_dimension(X.shape[1]), data.targets().shape[1]
    recipe = Recipe(
        layout=variant.layout,
        n_components=components_within(BYTES, layout, *size),
        epochs=variant.epochs,
        batch_rows=64,
        seed=seed,
        sigma_multiple=SIGMA[name],
    )
    transform, tried = draws[0], 0
    if "trials" in (variant.signs, variant.places):
        candidates = [
            replace(
                (each if variant.signs == "trials" else draws[0]),
                permutation=(each if variant.places == "trials" else draws[0]).permutation,
            )
            for each in draws
        ]
        transform = min(candidates, key=lambda each: trial(data, each, recipe, variant))
        tried = DRAWS
    if variant.redraws:
        others = [replace(recipe, seed=1000 * draw + seed) for draw in range(DRAWS)]
        recipe = min(others, key=lambda each: trial(data, transform, each, variant))
    if variant.guided:
        # A pilot of the read-out: G, S, b and t stay as drawn while B and P are improved.
        pilot = replace(recipe, epochs=TRIAL_EPOCHS)
        learner = learner_of(data, np.arange(len(data.X)), transform, pilot, exact=False)
        learner.fixed = ("diagonal", "rate", "centre", "level")
        guided = Guided(learner, transform, transform.scaler.quantize(data.X))
        for epoch in range(TRIAL_EPOCHS):
            learner.epoch(epoch)
            if epoch < TRIAL_EPOCHS // 2:
                guided.improve(variant.guided)
        transform, tried = guided.transform, guided.kept
    learner = learner_of(data, np.arange(len(data.X)), transform, recipe, exact=True)
    learner.fixed = variant.fixed
    share = variant.smoothing
    learner.targets = learner.targets * (1 - share) + np.float32(share / max(size[1], 2))
    learner.run()
    codes = np.searchsorted(classes, y_test)
    truth = Truth(codes, np.ones(codes.size, np.float32))
    loss, right = truth.judge(learner.decide(transform.mix(X_test)))
    return {
        "accuracy": round(100 * right, 3),
        "loss": round(loss, 4),
        "components": recipe.n_components,
        "kept": tried,
    }


def differences(rows: FinishedRows, group: str, first: str, title: str, key: str) -> np.ndarray:
    """Return what a variant has more than the first one, of the same table and seed."""
    found = []
    for name, row in rows.items():
        part, variant, rest = name.split(" | ", 2)
        if part == group and variant == title:
            found.append(row[key] - rows[f"{group} | {first} | {rest}"][key])
    return np.array(found)


def table(rows: FinishedRows, group: str, variants: tuple[Variant, ...], names: list[str]) -> Any:
    """Yield lines of a table: accuracies by data set, and what the variant has less than all."""
    first = variants[0].title
    yield f"| | {' | '.join(names)} | more than the first row | log loss |"
    yield "|---|" + "---:|" * (len(names) + 2)
    for variant in variants:
        cells = []
        for name in names:
            start = f"{group} | {variant.title} | {name} | "
            each = [row["accuracy"] for key, row in rows.items() if key.startswith(start)]
            cells.append(f"{np.mean(each):.2f}")
        gaps = []
        for key in ("accuracy", "loss"):
            more = differences(rows, group, first, variant.title, key)
            error = more.std(ddof=1) / np.sqrt(more.size)
            digits = 2 if key == "accuracy" else 4
            gaps.append(f"{more.mean():+.{digits}f} ± {error:.{digits}f}")
        yield f"| {variant.title} | {' | '.join(cells)} | {' | '.join(gaps)} |"


def page(rows: FinishedRows, names: list[str], seeds: int) -> Iterator[str]:
    """Yield the lines of the page."""
    changes = {}
    for variant in MIXING:
        if variant.guided:
            start = f"mixing | {variant.title} | "
            kept = [row["kept"] for key, row in rows.items() if key.startswith(start)]
            changes[variant.title] = np.mean(kept)
    yield from rendered(
        "ablation",
        machine=describe_machine(),
        tables={"parts": table(rows, "parts", PARTS, names)}
        | {"mixing": table(rows, "mixing", MIXING, names)},
        changes=changes,
        **{"n_bytes": BYTES, "epochs": EPOCHS, "draws": DRAWS, "seeds": seeds},
    )


def plot(rows: FinishedRows, file: Path) -> None:
    """Draw the differences of the parts, with one standard error."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    first, titles = PARTS[0].title, [each.title for each in PARTS[1:]][::-1]
    more = [differences(rows, "parts", first, title, "accuracy") for title in titles]
    means = [each.mean() for each in more]
    errors = [each.std(ddof=1) / np.sqrt(each.size) for each in more]
    figure, axes = plt.subplots(figsize=(8, 5))
    axes.barh(titles, means, xerr=errors, color="tab:blue")
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("accuracy, points more than with all learned, at equal bytes")
    figure.tight_layout()
    figure.savefig(file, dpi=100)


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = page_arguments(__doc__, ",".join(SIGMA))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--into", type=Path, help="folder of the page, its figure and numbers")
    arguments = parser.parse_args()
    names = arguments.sets.split(",")
    rows = FinishedRows(arguments.into, "ablation")
    for group, variants in (("mixing", MIXING), ("parts", PARTS)):
        for seed in range(arguments.seeds):
            for name in names:
                for variant in variants:
                    key = f"{group} | {variant.title} | {name} | {seed}"
                    rows.measure(key, measure, variant, name, seed, arguments.data)
    file = None if arguments.into is None else arguments.into / "ablation.md"
    print_page(page(rows, names, arguments.seeds), file)
    if arguments.into is not None:
        plot(rows, arguments.into / "ablation.png")


if __name__ == "__main__":
    main()
