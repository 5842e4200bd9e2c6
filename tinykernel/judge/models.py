"""Judge a model on labelled rows, with baselines and cautions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.checks import as_groups
from tinykernel.base.errors import ShapeError
from tinykernel.base.frames import in_numbers
from tinykernel.base.resizing import area_sums
from tinykernel.base.text import count, join
from tinykernel.data.splits import digests
from tinykernel.judge import figures
from tinykernel.judge.baselines import FEW_ROWS, drawn_rows, label_baselines, value_baselines
from tinykernel.judge.figures import LabelEvaluation, accuracy_interval, decision_figures
from tinykernel.judge.ranges import outside
from tinykernel.learn.confidence import FEWEST_GROUPS, kish_of_sizes
from tinykernel.model.answers import Values
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage

# Values that simple models learn from, of images; and how many of these are resized at a time.
_MOST_VALUES, _IMAGES_AT_ONCE = 1024, 256


def evaluate(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    train: tuple[ArrayLike, ...] | None = None,
    class_weight: str | None = None,
) -> figures.Evaluation:
    """Judge a model in the arithmetic of the firmware.

    Parameters
    ----------
    model : IntegerModel or what `tinykernel.quantize` takes
    X : array-like, shape (n, n_features)
        Rows that the model was not trained on.
    y : array-like, shape (n,)
        Their labels, or values.
    groups : array-like, shape (n,), optional
        Which person, record or batch each row belongs to.
    train : (X, y) or (X, y, groups), optional
        The training rows, for the baselines and cautions. Where the model begins with a spectrum,
        the baselines learn from its levels; of images of more values from 1024 means of areas.
    class_weight : {None, "balanced"}
        Class weights of the training, for the baselines.

    Returns
    -------
    LabelEvaluation, or ValueEvaluation of a regressor

    Raises
    ------
    TinykernelError
        If the rows are not of the model's width, or there are none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tinykernel import TernaryKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TernaryKernelClassifier(n_components=64, effort="quick", random_state=0)
    >>> judged = evaluate(model.fit(X[::2], y[::2]), X[1::2], y[1::2], train=(X[::2], y[::2]))
    >>> judged.accuracy > 0.9, judged.baselines["linear"].n_bytes
    (True, 12)
    """
    # The baselines see what the model sees, and no digit more.
    integer = as_integer_model(model)
    X = integer.as_raw(in_numbers(model, X))
    # The names of the channels of a signal are not in the model; the command line knows them.
    doubts = () if integer.input.is_signal else outside(integer, X)
    group = as_groups(groups, len(X))
    judged: figures.Evaluation
    if integer.is_regressor:
        judged = _of_values(integer, X, np.asarray(y, dtype=np.float64), group)
    else:
        true, predicted = np.asarray(y), integer.predict(X)
        judged = figures.compare(true, predicted, integer.classes, group)
        if group is not None:
            doubts += from_few_groups(true, group) + far_groups(true == predicted, group)
        decisions = decision_figures(
            integer,
            X,
            true,
            lambda rows, wrong: accuracy_interval(wrong, None if group is None else group[rows]),
        )
        judged = replace(judged, decisions=decisions)
    judged = replace(judged, cautions=doubts)
    if train is None:
        return judged
    if len(train) not in (2, 3) or np.shape(train[1]) != np.shape(train[0])[:1]:
        raise ShapeError("train: give (X, y) or (X, y, groups), of as many labels as rows")
    train = in_numbers(model, train[0]), *train[1:]
    return with_baselines(judged, integer, X, y, train, groups=group, class_weight=class_weight)


def with_baselines(
    judged: figures.Evaluation,
    model: IntegerModel,
    X: ArrayLike,
    y: ArrayLike,
    train: tuple[ArrayLike, ...],
    *,
    groups: ArrayLike | None = None,
    class_weight: str | None = None,
) -> figures.Evaluation:
    """Return what `evaluate` found without `train`, with the baselines and cautions of these."""
    X, y, rows = model.as_raw(X), np.asarray(y), model.as_raw(train[0])
    view, truth = _View(model), np.asarray(train[1])
    simple, tested = view.of(rows), view.of(X)
    if isinstance(judged, figures.ValueEvaluation):
        floats = (simple, truth.astype(np.float64)), (tested, y.astype(np.float64))
        baselines = value_baselines(*floats, _middle(model, X), groups=groups)
        return replace(judged, baselines=view.name_baselines(baselines))
    assert isinstance(judged, figures.LabelEvaluation)
    options: dict[str, Any] = {"groups": groups, "class_weight": class_weight}
    baselines = label_baselines((simple, truth), (tested, y), model.predict(X), **options)
    is_table, names = model.input.is_table, model.feature_names
    doubts = cautions(judged, rows, truth, X, names=names, samples=not is_table)
    of_train = as_groups(train[2], len(truth)) if len(train) > 2 else None
    if of_train is not None:
        doubts += from_few_groups(truth, of_train, "training ")
    return replace(
        judged, baselines=view.name_baselines(baselines), cautions=(*judged.cautions, *doubts)
    )


def _of_values(
    model: IntegerModel, X: NDArray[Any], y: NDArray[np.float64], groups: ArrayLike | None
) -> figures.ValueEvaluation:
    """Compare values; of several quantiles the middle one."""
    assert isinstance(model.answers, Values)
    judged = figures.compare_values(y, _middle(model, X), groups)
    outputs = np.asarray(model.predict(X)).reshape(len(y), -1)
    if outputs.shape[1] > 1:
        below = zip(model.answers.names, outputs.T, strict=True)
        judged = replace(judged, coverage={name: float(np.mean(y <= at)) for name, at in below})
    return judged


def _middle(model: IntegerModel, X: NDArray[Any]) -> NDArray[np.float64]:
    """Return the predicted values, of several quantiles the middle one."""
    outputs = np.asarray(model.predict(X)).reshape(len(X), -1)
    middle: NDArray[np.float64] = outputs[:, outputs.shape[1] // 2]
    return middle


@dataclass(frozen=True)
class _View:
    """What simple models learn from: levels of a spectrum, few pixels, or rows as they are.

    A linear model of 16,000 samples says nothing about words, and takes long; so does one of the
    bytes of a frame.
    """

    model: IntegerModel

    @cached_property
    def first(self) -> Stage | None:
        """The stage in front of the simple models."""
        first = self.model.stages[0] if self.model.stages else None
        return None if first is None or first.SIMPLER is None else first

    @cached_property
    def size(self) -> tuple[Grid, int, int]:
        """The values behind it, and the rows and columns of pixels that are left of them."""
        grid = self.model.input if self.first is None else self.first.gives(self.model.input)
        side = grid.size if grid.size <= _MOST_VALUES else isqrt(_MOST_VALUES // grid.channels)
        return grid, min(grid.rows, side), min(grid.columns, side)

    def of(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows as the simple models see them."""
        grid, rows, columns = self.size
        X = X if self.first is None else np.asarray(self.first.run(X, self.model.input))
        if grid.kind != "image" or (rows, columns) == (grid.rows, grid.columns):
            return X
        small = []
        for part in np.array_split(X, -(-len(X) // _IMAGES_AT_ONCE)):
            pixels = part.reshape(-1, grid.rows, grid.columns, grid.channels)
            sums = area_sums(pixels.transpose(1, 2, 0, 3), rows).transpose(1, 2, 0, 3)
            small.append(area_sums(sums, columns).transpose(1, 2, 0, 3).reshape(len(part), -1))
        return np.concatenate(small)

    def name_baselines(self, simple: dict[str, figures.Baseline]) -> dict[str, figures.Baseline]:
        """Say of baselines what they learn from."""
        grid, rows, columns = self.size
        is_small = grid.kind == "image" and (rows, columns) != (grid.rows, grid.columns)
        where = f"on {columns} x {rows} pixels, " if is_small else ""
        where = (self.first and self.first.SIMPLER) or where
        return {
            key: replace(each, name=f"{where}{each.name}") if each.n_bytes else each
            for key, each in simple.items()
        }


def evaluate_clips(
    model: IntegerModel,
    X: ArrayLike,
    y: ArrayLike,
    clip: NDArray[np.int64],
    groups: ArrayLike | None = None,
) -> figures.LabelEvaluation | None:
    """Judge one answer a clip, by the sum of scores; None without several windows a clip."""
    true = np.asarray(y)
    _, first, where = np.unique(clip, return_index=True, return_inverse=True)
    if len(first) == len(clip) or (true != true[first][where]).any():
        return None
    scores = model.scores(X)
    total = np.zeros((len(first), scores.shape[1]), np.int64)
    np.add.at(total, where, scores.astype(np.int64))
    answers = np.array(model.classes)[total.argmax(axis=1)]
    group = None if groups is None else np.asarray(groups)[first]
    return figures.compare(true[first], answers, model.classes, group)


_RARE = 0.05
_ENOUGH = 30  # test rows of a rare label, for its recall
_MOSTLY = 0.8  # of the rows of a label
_MOST_TRIED = 32  # inputs
_FEW_INPUTS, _LEAVES = 5, 8  # of a leak of several columns
_SHARP = 100.0  # weak regularization: labels that follow from a sum are separable
_Test = Callable[[Any, Sequence[int]], bool]
_listed = partial(join, show=repr)


def cautions(
    judged: LabelEvaluation,
    X_train: NDArray[Any],
    y_train: NDArray[Any],
    X_test: NDArray[Any] | None = None,
    *,
    names: Sequence[str] | None = None,
    samples: bool = False,
) -> tuple[str, ...]:
    """Return reasons why the accuracy may mislead; `samples`: inputs are pixels or samples."""
    trained, rows = set(y_train.tolist()), zip(judged.classes, judged.counts, strict=True)
    unseen = {label: count for label, count in rows if count and label not in trained}
    text = (
        f"{sum(unseen.values())} of {judged.rows} test rows have labels that do not occur in "
        f"training, and count as wrong: {_listed(list(unseen))}"
    )
    lines = [text if unseen else "", _rare(judged, y_train)]
    if np.all(X_train == X_train[0]):
        lines.append("all inputs are constant: nothing can be learned from them")
    elif not samples:
        lines.append(_leaks(X_train, y_train, names))
    if X_test is not None:
        n = int(np.isin(digests(X_test), digests(X_train)).sum())
        text = (
            f"{n} of {len(X_test)} test rows ({100 * n / len(X_test):.1f} %) are also among the "
            "training rows: the accuracy on new rows may be lower"
        )
        lines += [text] if n else []
    return tuple(filter(None, lines))


def from_few_groups(labels: NDArray[Any], groups: NDArray[Any], of: str = "") -> tuple[str, ...]:
    """Name labels whose rows count as less than 8 groups, and half of those of other labels.

    Unequal groups count as by `shares.kish`. `of` says which rows they are.

    >>> labels, groups = np.repeat(["N", "S"], 90), np.arange(180) % 20
    >>> from_few_groups(labels, groups), from_few_groups(labels, np.where(labels == "S", 3, groups))
    ((), ("100 % of the rows of 'S' come from 1 of 20 groups: of others its recall is unknown",))
    """
    names, place = np.unique(groups, return_inverse=True)
    every, lines = np.bincount(place), list[str]()
    for label in np.unique(labels).tolist() if len(names) >= FEWEST_GROUPS else ():
        sizes = np.bincount(place[labels == label], minlength=len(names))
        others = every - sizes
        is_known = kish_of_sizes(sizes) >= min(FEWEST_GROUPS, kish_of_sizes(others) / 2)
        if sizes.sum() < _ENOUGH or is_known or not others.any():
            continue
        shares = np.sort(sizes)[::-1].cumsum() / sizes.sum()
        most = int(np.argmax(shares >= _MOSTLY))
        lines.append(
            f"{100 * shares[most]:.0f} % of the {of}rows of {label!r} come from {most + 1} of "
            f"{len(names)} groups: of others its recall is unknown"
        )
    return tuple(lines)


def far_groups(right: NDArray[np.bool_], groups: NDArray[Any]) -> tuple[str, ...]:
    """Name groups, a sixth at most, that are far worse than all others.

    Intervals follow how groups differ; they cannot follow how rare such a group is.

    >>> groups = np.repeat(np.arange(12), 40)
    >>> far_groups((groups != 3) | (np.arange(480) % 2 > 0), groups)[0][:52]
    'group 3 has 50 % accuracy, the 11 others 100 %: such'
    """
    names, index, rows = np.unique(groups, return_inverse=True, return_counts=True)
    wrong = np.bincount(index, ~right) / rows
    worst = np.argsort(-wrong, kind="stable")[: max(1, len(names) // 6)]
    usual = float(1 - right[~np.isin(index, worst)].mean()) if len(names) >= FEWEST_GROUPS else 1.0
    far = np.sort(worst[wrong[worst] > usual + 0.1 + 4 * np.sqrt((usual + 0.05) / rows[worst])])
    if not far.size:
        return ()
    accuracy = 100 * right[np.isin(index, far)].mean()
    others = 100 * right[~np.isin(index, far)].mean()
    which = f"group{'s' * (far.size > 1)} {_listed(names[far].tolist())}"
    return (
        f"{which} {'has' if far.size == 1 else 'have'} {accuracy:.0f} % accuracy, the "
        f"{len(names) - far.size} others {others:.0f} %: such groups may be more frequent "
        "elsewhere than the interval allows for",
    )


def _rare(judged: LabelEvaluation, y_train: NDArray[Any]) -> str:
    """Name labels of few training rows, but for those whose recall is known not to be low."""
    labels, counts = np.unique(y_train, return_counts=True)
    few = (counts < _RARE * len(y_train)) & (counts * len(labels) < len(y_train) / 2)
    tested = dict(zip(judged.classes, zip(judged.counts, judged.recall, strict=True), strict=True))

    def is_doubtful(label: object) -> bool:
        rows, recall = tested.get(label, (0, 0.0))
        return bool(rows < _ENOUGH or recall < judged.accuracy)

    rare = [label for label in labels[few].tolist() if is_doubtful(label)]
    if len(rare) > 1:
        return (
            f"rare labels, below 5 % of the training rows: {_listed(rare)}; "
            "judge them by their recall, not by the accuracy"
        )
    if not rare:
        return ""
    share = 100 * counts[labels == rare[0]][0] / len(y_train)
    line = f"label {rare[0]!r} is rare, {share:.1f} % of the training rows"
    rows, recall = tested.get(rare[0], (0, 0.0))
    if not rows:
        return f"{line}, and has no test row: its recall is unknown"
    if recall >= judged.accuracy:
        return f"{line}: {count(rows, 'test row')} of it say little about its recall"
    return (
        f"{line}: the accuracy hides that {round(recall * rows)} of its {rows} test rows are found"
    )


def _leaks(X: NDArray[Any], y: NDArray[Any], names: Sequence[str] | None) -> str:
    """Name inputs, such as an id or the label itself, by which small models tell nearly all."""
    X, y = drawn_rows(X, y, FEW_ROWS)
    half = np.arange(len(y)) % 2 > 0
    counts = np.unique(y, return_counts=True)[1]
    if len(y) < 20 or X.shape[1] < 2 or len(np.unique(y[half])) < 2:
        return ""
    enough = max(0.99, 1 - (1 - counts.max() / len(y)) / 20)

    values = X.astype(np.float64) - X.mean(axis=0)
    values /= np.maximum(np.abs(values).max(axis=0), 1e-300)

    def is_enough(model: Any, columns: Sequence[int]) -> bool:
        part = values[:, columns]
        return bool(model.fit(part[half], y[half]).score(part[~half], y[~half]) > enough)

    advice = "; leave such columns out" if names is not None else ""
    for chosen, means in (_one_input(X, y, is_enough), _few_inputs(X, y, is_enough)):
        if chosen:
            inputs = [column if names is None else names[column] for column in chosen]
            return f"{'input' if len(chosen) == 1 else 'inputs'} {_listed(inputs)} {means}{advice}"
    return ""


def _one_input(X: NDArray[Any], y: NDArray[Any], is_enough: _Test) -> tuple[list[int], str]:
    """Return the inputs by each of which a tree of twice as many leaves as labels is right."""
    from sklearn.tree import DecisionTreeClassifier

    # The inputs by which sorted rows have the most equal neighbouring labels.
    labels, codes = np.unique(y, return_inverse=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=2 * len(labels), random_state=0)
    same = np.array([np.mean(np.diff(codes[np.argsort(column)]) == 0) for column in X.T])
    likely = sorted(np.argsort(-same, kind="stable")[:_MOST_TRIED].tolist())
    chosen = [column for column in likely if is_enough(tree, [column])]
    verb = "predicts" if len(chosen) == 1 else "predict"
    return chosen, f"alone {verb} nearly every label: check for an id, a time or the label itself"


def _few_inputs(X: NDArray[Any], y: NDArray[Any], is_enough: _Test) -> tuple[list[int], str]:
    """Return two to five inputs, but not all, by which a small tree or a linear model is right."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    n = X.shape[1]
    leaves = max(_LEAVES, 2 * len(np.unique(y)))
    tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
    models: list[tuple[Any, str]] = [(tree, "a few splits")]
    if n <= _MOST_TRIED:
        models.append((LogisticRegression(C=_SHARP, max_iter=1000), "a linear model"))
    for model, how in models:
        if not is_enough(model, list(range(n))):
            continue
        worth = tree.feature_importances_ if model is tree else np.abs(model.coef_).max(axis=0)
        order = np.argsort(-worth, kind="stable")
        for number in range(2, min(_FEW_INPUTS, n - 1) + 1):
            chosen = sorted(order[:number].tolist())
            if is_enough(model, chosen):
                return chosen, (
                    f"together predict nearly every label by {how}: check whether they are "
                    "written after it or made of it"
                )
    return [], ""
