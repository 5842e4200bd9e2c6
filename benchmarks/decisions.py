"""Promises and what became of them on test rows, and what decisions cost on a chip.

Run with ``python benchmarks/decisions.py --data DIR [--write FILE]``, where DIR holds
``mnist.npz`` and ``har_raw.npz``. Trains a model of each on one part of the training rows,
calibrates it on the other, and judges its decisions on the test rows, which nothing has seen.
``--picture FILE.svg`` draws errors against coverage of a model of scikit-learn's digits instead.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _data import split
from _environment import describe_machine
from _page import page_arguments, print_page, rendered
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedGroupKFold, train_test_split

import tinykernel
from tinykernel.base.errors import TinykernelError
from tinykernel.compile.targets import find_target
from tinykernel.data.load import TableSource
from tinykernel.data.tables import Selection
from tinykernel.face.pages.page import coverage_of
from tinykernel.judge.figures import accuracy_interval, error_by_coverage
from tinykernel.learn.confidence import calibration_error
from tinykernel.model.answers import margins, softmax
from tinykernel.run.footprint import measure_footprint
from tinykernel.run.program import find_toolchain

TARGETS = ("cortex-m0", "cortex-m4", "esp32c3")
WISHES: dict[str, tuple[dict[str, Any], ...]] = {
    "mnist": (
        {"max_error": 0.01},
        {"max_error": 0.005},
        {"max_error": 0.01, "per_class": True},
        {"coverage": 0.95},
    ),
    "har_raw": (
        {"max_error": 0.01},
        {"max_error": 0.01, "groups": None},
        {"max_error": 0.08},
        {"coverage": 0.8},
    ),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A trained model, rows to calibrate it on, and rows to judge it on."""

    name: str
    split: str
    model: tinykernel.IntegerModel
    X: NDArray[Any]
    y: NDArray[Any]
    groups: NDArray[Any] | None
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    group_test: NDArray[Any] | None

    @property
    def accuracy(self) -> float:
        """Of labels of the test rows, in percent."""
        return 100 * float(np.mean(self.model.predict(self.X_test) == self.y_test))


def mnist(folder: Path, epochs: int) -> Case:
    """Train on 50,000 of the training rows, with a budget of 8 KB."""
    data = TableSource(folder / "mnist.npz").train_rows()
    X, y = data.X_train, data.y_train
    kept, aside = train_test_split(np.arange(len(y)), test_size=1 / 6, stratify=y, random_state=0)
    trained = tinykernel.train(
        X[kept], y[kept], budget="8KB", image_shape=(28, 28), epochs=epochs, random_state=0
    )
    split = f"official; {len(aside)} training rows held out, stratified, seed 0; {epochs} epochs"
    return Case(
        "mnist", split, trained.model, X[aside], y[aside], None, data.X_test, data.y_test, None
    )


def har_raw(folder: Path) -> Case:
    """Train on windows of most persons, with a budget of 8 KB."""
    data = TableSource(folder / "har_raw.npz", Selection(groups="group")).train_rows()
    X, y, group = data.X_train, data.y_train, data.group_train
    parts = StratifiedGroupKFold(4, shuffle=True, random_state=0)
    kept, aside = next(parts.split(X, y, group))
    trained = tinykernel.train(
        X[kept], y[kept], budget="8KB", window_shape=(128, 6), groups=group[kept], random_state=0
    )
    persons = [len(np.unique(part)) for part in (group[kept], group[aside], data.group_test)]
    split = "by person: {} to train, {} to calibrate, {} to test".format(*persons)
    return Case(
        "har_raw",
        split,
        trained.model,
        X[aside],
        y[aside],
        group[aside],
        data.X_test,
        data.y_test,
        data.group_test,
    )


def _interval(wrong: NDArray[np.bool_], groups: NDArray[Any] | None) -> str:
    interval = accuracy_interval(wrong, groups)
    if interval is None:
        return "too few groups"
    low, high = interval
    return f"{100 * low:.2f} to {100 * high:.2f} %"


def promises(case: Case) -> Iterator[str]:
    """Print what was wished, what the rows promise, and what the test rows say."""
    yield "| wished | promise | margin | answered | wrong of these | 95 % interval |"
    yield "|---|---|---|---|---|---|"
    scores = case.model.scores(case.X_test)
    labels = np.searchsorted(np.array(case.model.classes), case.y_test)
    for wish in WISHES[case.name]:
        groups = case.groups if "groups" not in wish else None
        said = ", ".join(_words(wish, case.groups is not None))
        try:
            found = tinykernel.calibrate(case.model, case.X, case.y, **{**wish, "groups": groups})
        except TinykernelError as error:
            yield f"| {said} | {str(error).removeprefix('calibrate: ')} | | | | |"
            continue
        decision = found.model.decision
        answers = decision.decide(scores)
        answered, wrong = answers >= 0, answers != labels
        by = None if groups is None else case.group_test[answered]
        least = ", ".join(map(str, decision.thresholds.tolist()))
        yield (
            f"| {said} | at most {100 * found.bound:.2f} % | {least} "
            f"| {100 * answered.mean():.1f} % | {100 * wrong[answered].mean():.2f} % "
            f"| {_interval(wrong[answered], by)} |"
        )


def _words(wish: dict[str, Any], has_groups: bool) -> Iterator[str]:
    for name, value in wish.items():
        if name == "max_error":
            yield f"error of {100 * value:g} %"
        elif name == "coverage":
            yield f"{100 * value:g} % answered"
        elif name == "per_class":
            yield "each class"
    if has_groups:
        yield "same persons" if "groups" in wish else "new persons"


def probabilities(case: Case) -> Iterator[str]:
    """Print the calibration errors on the test rows, and the error by coverage."""
    model = tinykernel.calibrate(case.model, case.X, case.y, groups=case.groups).model
    scores = model.scores(case.X_test)
    right = np.asarray(np.array(model.classes)[scores.argmax(axis=1)] == case.y_test)
    decision = model.decision
    floats = scores.astype(np.float64) * model.decision_scale
    before = calibration_error(softmax(floats).max(axis=1), right)
    after = calibration_error(softmax(floats, decision.temperature).max(axis=1), right)
    chip = calibration_error((decision.confidence(scores) + 0.5) / 256, right)
    yield f"Expected calibration error on the test rows: softmax {before:.4f}, with the"
    yield f"temperature {after:.4f}, of the confidence on the chip {chip:.4f}."
    yield ""
    curve = error_by_coverage(margins(scores)[1], right)
    yield "| answered | " + " | ".join(f"{100 * share:g} %" for share, _ in curve) + " |"
    yield "|---" * (len(curve) + 1) + "|"
    yield "| wrong of these | " + " | ".join(f"{100 * error:.2f} %" for _, error in curve) + " |"


def deciding(case: Case) -> tuple[tinykernel.IntegerModel, tinykernel.IntegerModel]:
    """Return models that answer at least 80 % of the rows: by one margin, and by one a class."""
    one = tinykernel.calibrate(case.model, case.X, case.y, coverage=0.8, groups=case.groups).model
    decision = one.decision
    # Few rows may not promise a margin for each class: these only have its size and its code.
    many = np.resize(decision.thresholds, one.n_classes) + np.arange(one.n_classes)
    each = dataclasses.replace(one, decision=dataclasses.replace(decision, thresholds=many))
    return one, each


def costs(case: Case) -> Iterator[str]:
    """Print what decisions add on each core."""
    one, each = deciding(case)
    row = case.X_test[:1]
    ways = {
        "decide": (one, ("decide",)),
        "a margin a class": (each, ("decide",)),
        "and confidence": (one, ("decide", "confidence")),
    }
    yield f"| core | predict: bytes, instructions | {' | '.join(ways)} |"
    yield "|---|---|---|---|---|"
    for name in TARGETS:
        chain = find_toolchain(find_target(name))
        base = measure_footprint(case.model, name, chain)
        without = tinykernel.bench(case.model, name, X=row).instructions
        cells = [f"{base.flash}, {without}"]
        for model, entries in ways.values():
            found = measure_footprint(model, name, chain, entries)
            calls = [
                tinykernel.bench(model, name, X=row, function=entry).instructions
                for entry in entries
            ]
            assert found.static + found.scratch == base.static + base.scratch
            assert found.stack <= base.stack + 8
            cells.append(f"+{found.flash - base.flash}, +{sum(calls) - without}")
        yield f"| {name} | {' | '.join(cells)} |"


def agreement(case: Case) -> Iterator[str]:
    """Print whether C and Python agree on every test row, refusals included."""
    models, wrong = deciding(case), 0
    for name in ("host", *TARGETS):
        found = [tinykernel.verify(model, case.X_test, target=name) for model in models]
        wrong += sum(one.differences for one in found)
    refused = [str(int(np.sum(model.decide(case.X_test) < 0))) for model in models]
    yield f"C and Python compute the same on host, {', '.join(TARGETS)}: {wrong} differences in all"
    yield f"test rows, of which one margin refuses {refused[0]}, a margin a class {refused[1]}."


def page(folder: Path, epochs: int, sets: list[str]) -> Iterator[str]:
    """Yield the lines of the page."""
    cases = (mnist(folder, epochs) if name == "mnist" else har_raw(folder) for name in sets)
    parts = (promises, probabilities, costs, agreement)
    return rendered("decisions", machine=describe_machine(), cases=cases, parts=parts)


def picture(file: Path) -> None:
    """Draw which error remains when fewer rows are answered, and what was promised of it."""
    import matplotlib
    from matplotlib.figure import Figure

    whole = split(*load_digits(return_X_y=True), 0.3)
    data, X_test, y_test = split(whole.X, whole.y, 0.4), whole.X_test, whole.y_test
    trained = tinykernel.train(data.X, data.y, budget="2KB", random_state=0)
    found = tinykernel.calibrate(trained.model, data.X_test, data.y_test, max_error=0.02)
    curve = coverage_of(found.model, X_test, y_test, np.linspace(0.01, 1, 100))
    share, error = 100 * np.array(curve).T[1:]
    answers = found.model.decide(X_test)
    answered = answers >= 0
    wrong = float(np.mean(answers[answered] != y_test[answered]))
    with matplotlib.rc_context({"svg.hashsalt": "tinykernel", "svg.fonttype": "none"}):
        figure = Figure((6.6, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.step(share[::-1], error[::-1], where="post", label="test rows")
        axes.axhline(100 * found.bound, ls=":", color="0.4", label="promised with 95 % confidence")
        axes.plot(100 * answered.mean(), 100 * wrong, "o", label="at the margin that was chosen")
        axes.set(
            xlabel="answered rows, %", ylabel="wrong among them, %", xlim=(0, 100), ylim=(0, None)
        )
        axes.grid(lw=0.4)
        axes.legend(loc="upper left")
        figure.savefig(file, metadata={"Date": None, "Creator": None})
    print(f"digits, {len(data.y)} rows to train, {len(y_test)} to test, 2 KB: {found.statement};")
    print(f"answered {100 * answered.mean():.1f} % of the test rows, wrong {100 * wrong:.2f} % of")
    print(f"these; all answered, wrong {error[0]:.2f} %")


def main() -> None:
    """Run everything and print or write the page."""
    parser = page_arguments(__doc__, sets="mnist,har_raw")
    parser.add_argument("--epochs", type=int, default=6, help="of the training on MNIST")
    parser.add_argument("--picture", type=Path, help="only draw the picture of docs/decisions.md")
    given = parser.parse_args()
    if given.picture is not None:
        picture(given.picture)
        return
    print_page(page(given.data, given.epochs, given.sets.split(",")), given.write)


if __name__ == "__main__":
    main()
