"""Models for next to nothing, on the same rows: the majority class and a linear model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.bounds import is_positive
from tinykernel.evaluation.labels import LEVEL, Baseline, compare

#: A linear model learns from so many rows at most; more hardly change it, and take long.
_LINEAR_ROWS = 20_000
_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
#: Rows by which the penalty is chosen, and by which single inputs are tried.
FEW_ROWS = 2_000


def baselines(
    X_train: NDArray[Any],
    y_train: NDArray[Any],
    X_test: NDArray[Any],
    y_test: NDArray[Any],
    predicted: NDArray[Any],
    *,
    groups: ArrayLike | None = None,
    class_weight: str | None = None,
) -> dict[str, Baseline]:
    """Train the majority class and a linear model, and compare a model's labels with theirs.

    The linear model is a logistic regression on standardized inputs, its penalty chosen by
    trial on rows left out, its weights rounded to int8 with one scale an output. A baseline is
    called as good unless a one-sided test says at the level of 5 % that the model is better: the
    exact test of McNemar, with groups or balanced classes the t test of the differences. It is
    called better where the same test says that of it.

    Parameters
    ----------
    X_train, y_train, X_test, y_test : ndarray
        Rows, and labels of one kind.
    predicted : ndarray, shape (n_test,)
        By the model that is judged.
    groups : array-like, shape (n_test,), optional
        Of the test rows.
    class_weight : {None, "balanced"}
        As the judged model had it. With "balanced" all classes count the same in the comparison.

    Returns
    -------
    dict of str to Baseline
        "majority" and "linear".
    """
    labels, counts = np.unique(y_train, return_counts=True)
    most = labels[counts.argmax()]
    outputs = 1 if len(labels) == 2 else len(labels)
    linear, rows = _linear_labels(X_train, y_train, X_test, class_weight)
    right, balanced = predicted == y_test, class_weight == "balanced"
    by = "balanced_accuracy" if balanced else "accuracy"
    weight = _equal_classes(y_test) if balanced else None

    def compared(name: str, n_bytes: int, answers: NDArray[Any], n_rows: int) -> Baseline:
        found = compare(y_test, answers)
        its = answers == y_test
        worse = _is_better(right, its, groups, weight)
        better = _is_better(its, right, groups, weight)
        return Baseline(
            name, n_bytes, found.accuracy, found.balanced_accuracy, not worse, better, by, n_rows
        )

    always = np.full(len(y_test), most)
    return {
        "majority": compared(f"always answering {str(most)!r}", 0, always, len(y_train)),
        "linear": compared("a linear model", X_train.shape[1] * outputs, linear, rows),
    }


def _linear_labels(
    X: NDArray[Any], y: NDArray[Any], X_test: NDArray[Any], class_weight: str | None
) -> tuple[NDArray[Any], int]:
    """Return the labels that a linear model gives, and of how many rows it learned."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    X, y = drawn_rows(X, y, _LINEAR_ROWS)
    scaler = StandardScaler().fit(np.asarray(X, dtype=np.float64))
    rows = scaler.transform(np.asarray(X, dtype=np.float64))

    def fitted(X: NDArray[Any], y: NDArray[Any], penalty: float) -> Any:
        model = LogisticRegression(C=1 / (penalty * len(y)), class_weight=class_weight)
        return model.fit(X, y)

    # Threads of so small products wait for each other: on a busy machine twenty times longer.
    with threadpool_limits(1), warnings.catch_warnings():
        # A hundred steps are enough for a baseline.
        warnings.simplefilter("ignore", ConvergenceWarning)
        few, labels = drawn_rows(rows, y, FEW_ROWS)
        half = np.arange(len(labels)) % 3 > 0
        scores = [0.0]
        if len(np.unique(labels[half])) > 1 and not half.all():
            scores = [
                fitted(few[half], labels[half], penalty).score(few[~half], labels[~half])
                for penalty in _PENALTIES
            ]
        # Of equals the stronger penalty.
        best = _PENALTIES[len(scores) - 1 - int(np.argmax(scores[::-1]))]
        model = fitted(rows, y, best)
    unit = np.abs(model.coef_).max(axis=1, keepdims=True) / 127
    model.coef_ = np.rint(model.coef_ / np.where(unit > 0, unit, 1)) * unit
    return model.predict(scaler.transform(np.asarray(X_test, dtype=np.float64))), len(y)


def _equal_classes(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return weights of mean 1 with which all classes count the same."""
    _, index, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.asarray(len(y) / (len(counts) * counts[index]), dtype=np.float64)


def _is_better(
    a: NDArray[Any],
    b: NDArray[Any],
    groups: ArrayLike | None,
    weight: NDArray[np.float64] | None = None,
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
    order = np.random.default_rng(0).permutation(len(y))
    first = np.unique(y[order], return_index=True)[1]
    kept = np.unique(np.concatenate([first, np.arange(min(most, len(y)))]))
    return X[order[kept]], y[order[kept]]
