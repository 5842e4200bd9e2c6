"""Reasons why an accuracy may mean less than it seems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.data.trained_rows import digests
from tinykernel.evaluation.baselines import FEW_ROWS, drawn_rows
from tinykernel.evaluation.figures import LabelEvaluation
from tinykernel.text import listed

_RARE = 0.05
_MOST_TRIED = 32  # inputs
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
        lines.append(_one_input(X_train, y_train, names))
    if X_test is not None:
        n = int(np.isin(digests(X_test), digests(X_train)).sum())
        text = (
            f"{n} of {len(X_test)} test rows ({100 * n / len(X_test):.1f} %) are also among the "
            "training rows: the accuracy on new rows may be lower"
        )
        lines += [text] if n else []
    return tuple(filter(None, lines))


def _rare(judged: LabelEvaluation, y_train: NDArray[Any]) -> str:
    """Name labels of few training rows, and the recall of a single one."""
    labels, counts = np.unique(y_train, return_counts=True)
    few = (counts < _RARE * len(y_train)) & (counts * len(labels) < len(y_train) / 2)
    rare = labels[few].tolist()
    if len(rare) > 1:
        return (
            f"rare labels, below 5 % of the training rows: {_listed(rare)}; "
            "judge them by their recall, not by the accuracy"
        )
    if not rare:
        return ""
    share = 100 * counts[few][0] / len(y_train)
    line = f"label {rare[0]!r} is rare, {share:.1f} % of the training rows"
    at = judged.classes.index(rare[0]) if rare[0] in judged.classes else -1
    if at < 0 or not judged.counts[at]:
        return f"{line}, and has no test row: its recall is unknown"
    return (
        f"{line}: the accuracy hides that {judged.confusion[at, at]} of its "
        f"{judged.counts[at]} test rows are found"
    )


def _one_input(X: NDArray[Any], y: NDArray[Any], names: Sequence[str] | None) -> str:
    """Name inputs that alone predict nearly everything, such as an id, a time, the label itself.

    A tree of twice as many leaves as labels is trained on half of the rows and tested on the rest.
    """
    from sklearn.tree import DecisionTreeClassifier

    X, y = drawn_rows(X, y, FEW_ROWS)
    half = np.arange(len(y)) % 2 > 0
    labels, counts = np.unique(y, return_counts=True)
    if len(y) < 20 or X.shape[1] < 2 or len(np.unique(y[half])) < 2:
        return ""
    enough = max(0.99, 1 - (1 - counts.max() / len(y)) / 20)
    # The inputs by which sorted rows have the most equal neighbouring labels.
    codes, suspects = np.unique(y, return_inverse=True)[1], []
    same = np.array([np.mean(np.diff(codes[np.argsort(column)]) == 0) for column in X.T])
    for column in sorted(np.argsort(-same, kind="stable")[:_MOST_TRIED].tolist()):
        tree = DecisionTreeClassifier(max_leaf_nodes=2 * len(labels), random_state=0)
        values = X[:, column : column + 1].astype(np.float64)
        if tree.fit(values[half], y[half]).score(values[~half], y[~half]) > enough:
            suspects.append(column if names is None else names[column])
    if not suspects:
        return ""
    alone = len(suspects) == 1
    return (
        f"{'input' if alone else 'inputs'} {_listed(suspects)} "
        f"alone {'predicts' if alone else 'predict'} nearly every label: check for an id, a time "
        "or the label itself"
        + ("; --set drop=NAMES leaves columns out" if names is not None else "")
    )
