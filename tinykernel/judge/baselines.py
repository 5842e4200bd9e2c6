"""Simple models of few bytes, trained on the same rows, for comparison."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.files import drawn_places
from tinykernel.base.progress import report as say
from tinykernel.judge.figures import Baseline, compare, compare_values
from tinykernel.learn.confidence import LEVEL, is_positive

_LINEAR_ROWS = 20_000  # of a linear model; more hardly change it
_LINEAR_WORK = 2e8  # rows times weights at most, which take seconds
_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
_RIDGE_PENALTIES = np.logspace(-3, 4, 15)
#: A decision tree of 63 splits at most, each of an input, a threshold and two steps.
_DEPTH, _BYTES_A_SPLIT = 6, 8
_TREE_VALUES, _TREE_ROWS = 500_000, 1_000  # enough for so few splits, and fast
#: Rows that choose the penalty, and that single inputs are tried on.
FEW_ROWS = 2_000

#: Inputs, and labels or values.
Rows = tuple[NDArray[Any], NDArray[Any]]
#: Name, bytes, training rows and answers on the test rows of a simple model.
_Simple = tuple[str, int, int, NDArray[Any]]


def label_baselines(
    train: Rows,
    test: Rows,
    predicted: NDArray[Any],
    *,
    groups: ArrayLike | None = None,
    class_weight: str | None = None,
) -> dict[str, Baseline]:
    """Compare the labels of a model, `predicted`, with those of simple models: by name.

    "majority" is the most frequent label, "linear" a logistic regression on standardized inputs
    with weights rounded to int8, "tree" a decision tree of depth 6 (CART: Breiman et al. 1984). A
    baseline is as good unless a one-sided test at the level of 5 % says that the model is better:
    the exact test of McNemar; with groups or `class_weight="balanced"` the t test of the
    differences. It is better if the test is significant.
    """
    from sklearn.utils.class_weight import compute_sample_weight

    (X, y), (X_test, true) = train, test
    labels, counts = np.unique(y, return_counts=True)
    most = labels[counts.argmax()]
    outputs = 1 if len(labels) == 2 else len(labels)
    drawn = drawn_rows(X, y, _linear_rows(X.shape[1] * outputs))
    linear = _linear_answers(*drawn, X_test, lambda X, y: _logistic(X, y, class_weight))
    balanced = class_weight == "balanced"
    weight = compute_sample_weight("balanced", true) if balanced else None
    few = drawn_rows(*drawn, _tree_rows(X))
    return _compare(
        {
            "majority": (f"always answering {str(most)!r}", 0, len(y), np.full(len(true), most)),
            "linear": ("a linear model", X.shape[1] * outputs, len(drawn[1]), linear),
            "tree": _tree(*few, X_test, class_weight=class_weight),
        },
        predicted,
        lambda answers: compare(true, answers).figures,
        lambda a, b: _more_often_right(a == true, b == true, groups, weight),
        "balanced_accuracy" if balanced else "accuracy",
    )


def value_baselines(
    train: Rows, test: Rows, predicted: NDArray[np.float64], *, groups: ArrayLike | None = None
) -> dict[str, Baseline]:
    """Compare the values of a model with those of the "mean", a "linear" model and a "tree".

    The linear model is a ridge regression with weights rounded to int8, the tree a regression tree
    of depth 6. Squared errors are compared by a one-sided t test at the level of 5 %, by groups of
    the test rows where there are any.
    """
    from sklearn.linear_model import RidgeCV

    (X, y), (X_test, true) = train, test
    drawn = drawn_rows(X, y, _linear_rows(X.shape[1]))
    linear = _linear_answers(*drawn, X_test, RidgeCV(_RIDGE_PENALTIES).fit)
    few = _tree_rows(X)
    return _compare(
        {
            "mean": ("the mean", 0, len(y), np.full(len(true), y.mean())),
            "linear": ("a linear model", X.shape[1], len(drawn[1]), linear),
            "tree": _tree(drawn[0][:few], drawn[1][:few], X_test),
        },
        predicted,
        lambda answers: compare_values(true, answers).figures,
        lambda a, b: is_positive(np.square(b - true) - np.square(a - true), groups),
        "rmse",
    )


def _compare(
    simple: dict[str, _Simple],
    predicted: NDArray[Any],
    figures_of: Callable[[NDArray[Any]], dict[str, float]],
    is_better: Callable[[NDArray[Any], NDArray[Any]], bool],
    by: str,
) -> dict[str, Baseline]:
    """Compare the answers of simple models with those of the judged model."""
    judged, baselines = figures_of(predicted)[by], {}
    for key, (name, n_bytes, training_rows, answers) in simple.items():
        figures = figures_of(answers)
        baselines[key] = Baseline(
            name,
            n_bytes,
            training_rows,
            figures,
            by,
            made_of="splits" if key == "tree" else "weights",
            worse=figures[by] > judged if by == "rmse" else figures[by] < judged,
            as_good=not is_better(predicted, answers),
            better=is_better(answers, predicted),
        )
    return baselines


def _linear_answers(
    X: NDArray[Any], y: NDArray[Any], X_test: NDArray[Any], fitted: Callable[..., Any]
) -> NDArray[Any]:
    """Return the answers of a linear model on standardized inputs, with int8 weights."""
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    say("comparing with a linear model", 0, None)
    scaler = StandardScaler().fit(np.asarray(X, dtype=np.float64))
    # Threads of such small products wait for each other: 20 times longer on a busy machine.
    with threadpool_limits(1):
        model = fitted(scaler.transform(np.asarray(X, dtype=np.float64)), y)
    unit = np.abs(model.coef_).max(axis=-1, keepdims=True) / 127
    model.coef_ = np.rint(model.coef_ / np.where(unit > 0, unit, 1)) * unit
    return np.asarray(model.predict(scaler.transform(np.asarray(X_test, dtype=np.float64))))


def _linear_rows(n_weights: int) -> int:
    return int(np.clip(_LINEAR_WORK // n_weights, FEW_ROWS, _LINEAR_ROWS))


def _tree_rows(X: NDArray[Any]) -> int:
    return int(np.clip(_TREE_VALUES // X.shape[1], _TREE_ROWS, _LINEAR_ROWS))


def _tree(X: NDArray[Any], y: NDArray[Any], X_test: NDArray[Any], **options: Any) -> _Simple:
    """Train a small decision tree; for values (floats) a regression tree."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    kind = DecisionTreeRegressor if y.dtype.kind == "f" else DecisionTreeClassifier
    tree = kind(max_depth=_DEPTH, random_state=0, **options).fit(X, y)
    n_bytes = _BYTES_A_SPLIT * (int(tree.get_n_leaves()) - 1)
    return "a decision tree", n_bytes, len(y), np.asarray(tree.predict(X_test))


def _logistic(X: NDArray[Any], y: NDArray[Any], class_weight: str | None) -> Any:
    """Fit a logistic regression; every third of a few rows chooses the penalty."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    def fitted(X: NDArray[Any], y: NDArray[Any], penalty: float) -> Any:
        return LogisticRegression(C=1 / (penalty * len(y)), class_weight=class_weight).fit(X, y)

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
        # Of a tie the strongest penalty.
        return fitted(X, y, _PENALTIES[len(scores) - 1 - int(np.argmax(scores[::-1]))])


def _more_often_right(
    a: NDArray[Any], b: NDArray[Any], groups: ArrayLike | None, weight: NDArray[np.float64] | None
) -> bool:
    """Whether `a` is right significantly more often than `b`."""
    from scipy.stats import binomtest

    gain = a.astype(np.float64) - b
    if weight is not None:
        return is_positive(gain * weight, groups)
    if groups is not None:
        return is_positive(gain, groups)
    if gain.sum() <= 0:
        return False
    wins = int((gain > 0).sum())
    chance = binomtest(wins, int((gain != 0).sum()), alternative="greater").pvalue
    return bool(chance < 1 - LEVEL)


def drawn_rows(X: NDArray[Any], y: NDArray[Any], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return at most `most` rows in a fixed random order, with rows of every label."""
    places = drawn_places(y, most, 0)
    return X[places], y[places]
