"""Models for next to nothing, trained on the same rows: what a model must be better than."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.shares import is_positive
from tinykernel.evaluation.comparison import LEVEL, Baseline
from tinykernel.evaluation.labels import compare
from tinykernel.evaluation.values import compare_values
from tinykernel.progress import report as say
from tinykernel.stored import drawn_places

#: A linear model learns from so many rows at most; more hardly change it, and take long.
_LINEAR_ROWS = 20_000
_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
_RIDGE_PENALTIES = np.logspace(-3, 4, 15)
#: A decision tree of 63 splits at most, each of an input, a threshold and two steps.
_DEPTH, _BYTES_A_SPLIT = 6, 8
#: Values that a tree learns from at most: of wide rows some are enough for so few splits, and all
#: would take longer than a tenth of the training.
_TREE_VALUES, _TREE_ROWS = 500_000, 1_000
#: Rows by which the penalty is chosen, and by which single inputs are tried.
FEW_ROWS = 2_000

#: Inputs, and labels or values.
Rows = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class _Simple:
    """A simple model, and what it answers on the test rows."""

    name: str
    n_bytes: int
    training_rows: int
    answers: NDArray[Any]
    made_of: str = "weights"


def label_baselines(
    train: Rows,
    test: Rows,
    predicted: NDArray[Any],
    *,
    groups: ArrayLike | None = None,
    class_weight: str | None = None,
) -> dict[str, Baseline]:
    """Train simple models on the same rows, and compare a model's labels with theirs.

    The linear model is a logistic regression on standardized inputs, its penalty chosen by
    trial on rows left out, its weights rounded to int8 with one scale an output. The tree is a
    decision tree of depth 6 (CART: Breiman et al. 1984). A baseline is
    called as good unless a one-sided test says at the level of 5 % that the model is better: the
    exact test of McNemar, with groups or balanced classes the t test of the differences. It is
    called better where the same test says that of it.

    Parameters
    ----------
    train, test : (X, y)
        Rows, flat, and labels of one kind.
    predicted : ndarray, shape (n_test,)
        By the model that is judged.
    groups : array-like, shape (n_test,), optional
        Of the test rows.
    class_weight : {None, "balanced"}
        As the judged model had it. With "balanced" all classes count the same in the comparison.

    Returns
    -------
    dict of str to Baseline
        "majority", "linear" and "tree".
    """
    (X, y), (X_test, true) = train, test
    labels, counts = np.unique(y, return_counts=True)
    most = labels[counts.argmax()]
    outputs = 1 if len(labels) == 2 else len(labels)
    some = drawn_rows(X, y, _LINEAR_ROWS)
    linear = _linear_answers(*some, X_test, lambda X, y: _logistic(X, y, class_weight))
    balanced = class_weight == "balanced"
    weight = equal_classes(true) if balanced else None
    return _compared(
        {
            "majority": _Simple(
                f"always answering {str(most)!r}", 0, len(y), np.full(len(true), most)
            ),
            "linear": _Simple("a linear model", X.shape[1] * outputs, len(some[1]), linear),
            "tree": _tree(*drawn_rows(*some, _tree_rows(X)), X_test, class_weight=class_weight),
        },
        predicted,
        lambda answers: compare(true, answers).figures,
        lambda a, b: _more_often_right(a == true, b == true, groups, weight),
        "balanced_accuracy" if balanced else "accuracy",
    )


def value_baselines(
    train: Rows, test: Rows, predicted: NDArray[np.float64], *, groups: ArrayLike | None = None
) -> dict[str, Baseline]:
    """Train the mean, a linear model and a tree, and compare a model's values with theirs.

    The linear model is a ridge regression, its weights rounded to int8, the tree a regression tree
    of depth 6. Squared errors are compared by a one-sided t test at the level of 5 %, of groups of
    the test rows where there are some. Rows are flat; returned are "mean", "linear" and "tree".
    """
    (X, y), (X_test, true) = train, test
    some = drawn_rows(X, y, _LINEAR_ROWS)
    linear = _linear_answers(*some, X_test, _ridge)
    return _compared(
        {
            "mean": _Simple("the mean", 0, len(y), np.full(len(true), y.mean())),
            "linear": _Simple("a linear model", X.shape[1], len(some[1]), linear),
            "tree": _tree(some[0][: _tree_rows(X)], some[1][: _tree_rows(X)], X_test),
        },
        predicted,
        lambda answers: compare_values(true, answers).figures,
        lambda a, b: is_positive(np.square(b - true) - np.square(a - true), groups, LEVEL),
        "rmse",
    )


def _compared(
    simple: dict[str, _Simple],
    predicted: NDArray[Any],
    figures_of: Callable[[NDArray[Any]], dict[str, float]],
    is_better: Callable[[NDArray[Any], NDArray[Any]], bool],
    by: str,
) -> dict[str, Baseline]:
    """Compare the answers of simple models with those of the model that is judged."""
    own, found = figures_of(predicted)[by], {}
    for key, model in simple.items():
        figures = figures_of(model.answers)
        found[key] = Baseline(
            model.name,
            model.n_bytes,
            model.training_rows,
            figures,
            by,
            made_of=model.made_of,
            worse=figures[by] > own if by == "rmse" else figures[by] < own,
            as_good=not is_better(predicted, model.answers),
            better=is_better(model.answers, predicted),
        )
    return found


def _linear_answers(
    X: NDArray[Any], y: NDArray[Any], X_test: NDArray[Any], fitted: Callable[..., Any]
) -> NDArray[Any]:
    """Return what a linear model on standardized inputs answers, its weights rounded to int8."""
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    say("comparing with a linear model", 0, None)
    scaler = StandardScaler().fit(np.asarray(X, dtype=np.float64))
    # Threads of so small products wait for each other: on a busy machine twenty times longer.
    with threadpool_limits(1):
        model = fitted(scaler.transform(np.asarray(X, dtype=np.float64)), y)
    unit = np.abs(model.coef_).max(axis=-1, keepdims=True) / 127
    model.coef_ = np.rint(model.coef_ / np.where(unit > 0, unit, 1)) * unit
    return np.asarray(model.predict(scaler.transform(np.asarray(X_test, dtype=np.float64))))


def _tree_rows(X: NDArray[Any]) -> int:
    return int(np.clip(_TREE_VALUES // X.shape[1], _TREE_ROWS, _LINEAR_ROWS))


def _tree(X: NDArray[Any], y: NDArray[Any], X_test: NDArray[Any], **options: Any) -> _Simple:
    """Return what a small decision tree answers; of values, which are floats, a regression tree."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    kind = DecisionTreeRegressor if y.dtype.kind == "f" else DecisionTreeClassifier
    found = kind(max_depth=_DEPTH, random_state=0, **options).fit(X, y)
    splits = int(found.get_n_leaves()) - 1
    answers = np.asarray(found.predict(X_test))
    return _Simple("a decision tree", _BYTES_A_SPLIT * splits, len(y), answers, "splits")


def _ridge(X: NDArray[Any], y: NDArray[Any]) -> Any:
    from sklearn.linear_model import RidgeCV

    return RidgeCV(_RIDGE_PENALTIES).fit(X, y)


def _logistic(X: NDArray[Any], y: NDArray[Any], class_weight: str | None) -> Any:
    """Fit a logistic regression, its penalty chosen on every third of some rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    def fitted(X: NDArray[Any], y: NDArray[Any], penalty: float) -> Any:
        model = LogisticRegression(C=1 / (penalty * len(y)), class_weight=class_weight)
        return model.fit(X, y)

    with warnings.catch_warnings():
        # A hundred steps are enough for a baseline.
        warnings.simplefilter("ignore", ConvergenceWarning)
        few, labels = drawn_rows(X, y, FEW_ROWS)
        half = np.arange(len(labels)) % 3 > 0
        scores = [0.0]
        if len(np.unique(labels[half])) > 1 and not half.all():
            scores = [
                fitted(few[half], labels[half], penalty).score(few[~half], labels[~half])
                for penalty in _PENALTIES
            ]
        # Of equals the stronger penalty.
        best = _PENALTIES[len(scores) - 1 - int(np.argmax(scores[::-1]))]
        return fitted(X, y, best)


def equal_classes(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return weights of mean 1 with which all classes count the same."""
    _, index, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.asarray(len(y) / (len(counts) * counts[index]), dtype=np.float64)


def _more_often_right(
    a: NDArray[Any], b: NDArray[Any], groups: ArrayLike | None, weight: NDArray[np.float64] | None
) -> bool:
    """Say whether `a` is right more often than `b`, by more than chance explains."""
    from scipy.stats import binomtest

    gain = a.astype(np.float64) - b
    if weight is not None:
        return is_positive(gain * weight, groups, LEVEL)
    if groups is not None:
        return is_positive(gain, groups, LEVEL)
    if gain.sum() <= 0:
        return False
    wins = int((gain > 0).sum())
    chance = binomtest(wins, int((gain != 0).sum()), alternative="greater").pvalue
    return bool(chance < 1 - LEVEL)


def drawn_rows(X: NDArray[Any], y: NDArray[Any], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows in a random order, the same each time: at most so many, of every label some."""
    places = drawn_places(y, most, 0)
    return X[places], y[places]
