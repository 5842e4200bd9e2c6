"""Reasons why an accuracy may mean less than it seems."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.text import count, listed
from tinykernel.data.splits import digests
from tinykernel.judge.baselines import FEW_ROWS, drawn_rows
from tinykernel.judge.figures import LabelEvaluation
from tinykernel.learn.confidence import FEWEST_GROUPS, kish_of_sizes

_RARE = 0.05
_ENOUGH = 30  # test rows of a rare label, for its recall
_MOSTLY = 0.8  # of the rows of a label
_MOST_TRIED = 32  # inputs
_FEW_INPUTS, _LEAVES = 5, 8  # of a leak of several columns
_SHARP = 100.0  # weak regularization: labels that follow from a sum are separable
_Test = Callable[[Any, Sequence[int]], bool]
_listed = partial(listed, show=repr)


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
