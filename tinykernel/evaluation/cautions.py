"""What makes an accuracy mean less than it seems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.evaluation.baselines import FEW_ROWS, drawn_rows
from tinykernel.evaluation.labels import LabelEvaluation
from tinykernel.text import listed

_RARE = 0.05
# Inputs that are tried.
_CANDIDATES = 32
_listed = partial(listed, show=repr)


def cautions(
    found: LabelEvaluation,
    X_train: NDArray[Any],
    y_train: NDArray[Any],
    X_test: NDArray[Any] | None = None,
    *,
    names: Sequence[str] | None = None,
    samples: bool = False,
) -> tuple[str, ...]:
    """Say what makes the accuracy on test rows mean less than it seems, one line each.

    `samples` says whether inputs are samples of a window or pixels, of which one alone is no
    suspect.
    """
    lines = [*_unseen(found, y_train), *_rare(found, y_train)]
    if np.all(X_train == X_train[0]):
        lines.append("all inputs are constant: nothing can be learned from them")
    elif not samples:
        lines += _one_input(X_train, y_train, names)
    if X_test is not None:
        lines += _repeated(X_train, X_test)
    return tuple(lines)


def _unseen(found: LabelEvaluation, y_train: NDArray[Any]) -> list[str]:
    seen = set(y_train.tolist())
    unseen = [
        (label, int(count))
        for label, count in zip(found.classes, found.counts, strict=True)
        if count and label not in seen
    ]
    if not unseen:
        return []
    rows = sum(count for _, count in unseen)
    return [
        f"{rows} of {found.rows} test rows have labels that training never saw, and count as "
        f"wrong: {_listed([label for label, _ in unseen])}"
    ]


def _rare(found: LabelEvaluation, y_train: NDArray[Any]) -> list[str]:
    labels, counts = np.unique(y_train, return_counts=True)
    rare = [
        (label, int(count))
        for label, count in zip(labels.tolist(), counts, strict=True)
        if count < _RARE * len(y_train) and count * len(labels) < len(y_train) / 2
    ]
    if not rare:
        return []
    if len(rare) > 1:
        return [
            f"rare labels, below 5 % of the training rows: {_listed([name for name, _ in rare])}; "
            "the accuracy hardly shows them, their recall does"
        ]
    label, count = rare[0]
    line = f"label {label!r} is rare, {100 * count / len(y_train):.1f} % of the training rows"
    at = found.classes.index(label) if label in found.classes else -1
    if at < 0 or not found.counts[at]:
        return [f"{line}, and has no test row: nobody knows how well it is found"]
    right, rows = int(found.confusion[at, at]), int(found.counts[at])
    return [f"{line}: the accuracy hardly shows that {right} of its {rows} test rows are found"]


def _one_input(X: NDArray[Any], y: NDArray[Any], names: Sequence[str] | None) -> list[str]:
    """Find an input that alone predicts nearly everything: an id, a time, the label itself.

    Each input gets a tree of twice as many leaves as there are labels, learns from half of the
    rows and is tried on the others.
    """
    from sklearn.tree import DecisionTreeClassifier

    X, y = drawn_rows(X, y, FEW_ROWS)
    half = np.arange(len(y)) % 2 > 0
    labels, counts = np.unique(y, return_counts=True)
    if len(y) < 20 or X.shape[1] < 2 or len(np.unique(y[half])) < 2:
        return []
    majority = counts.max() / len(y)
    suspects = []
    for column in _candidates(X, y):
        tree = DecisionTreeClassifier(max_leaf_nodes=2 * len(labels), random_state=0)
        values = X[:, column : column + 1].astype(np.float64)
        accuracy = tree.fit(values[half], y[half]).score(values[~half], y[~half])
        if accuracy > max(0.99, 1 - (1 - majority) / 20):
            suspects.append(column)
    if not suspects:
        return []
    named = [names[i] if names is not None else i for i in suspects]
    what = "input" if len(suspects) == 1 else "inputs"
    each = "alone tells" if len(suspects) == 1 else "each alone tell"
    return [
        f"{what} {_listed(named)} {each} nearly every label: an id, a time or the answer itself?"
        + (" --set drop=NAMES leaves columns out" if names is not None else "")
    ]


def _candidates(X: NDArray[Any], y: NDArray[Any]) -> list[int]:
    """Return the inputs whose order says most of the labels.

    In the order of a good input equal labels stand side by side.
    """
    same = np.array(
        [
            float(np.mean(np.diff(np.unique(y, return_inverse=True)[1][np.argsort(column)]) == 0))
            for column in X.T
        ]
    )
    return sorted(int(i) for i in np.argsort(-same, kind="stable")[:_CANDIDATES])


def _repeated(X_train: NDArray[Any], X_test: NDArray[Any]) -> list[str]:
    from tinykernel.data.trained_rows import digests

    n = int(np.isin(digests(X_test), digests(X_train)).sum())
    if not n:
        return []
    share = 100 * n / len(X_test)
    return [
        f"{n} of {len(X_test)} test rows ({share:.1f} %) are also among the training rows: the "
        "accuracy on new rows may be lower"
    ]
