"""How good a model is, what chance leaves open, and what a model for next to nothing does.

`evaluate` judges a model, `compare` its labels. `baselines` trains the majority class and a linear
model on the same rows; `cautions` looks for what makes a high accuracy mean little.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.bounds import by_group, effective_rows
from tinykernel.decisions.figures import DecisionFigures, decision_figures
from tinykernel.errors import TinykernelError
from tinykernel.residuals import ValueEvaluation, evaluate_values

__all__ = [
    "Baseline",
    "Evaluation",
    "Judged",
    "accuracy_interval",
    "baselines",
    "cautions",
    "compare",
    "evaluate",
]

_RARE = 0.05
_LEVEL = 0.95
#: A linear model learns from so many rows at most; more hardly change it, and take long.
_LINEAR_ROWS = 20_000
_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
#: Rows by which the penalty is chosen, and by which single inputs are tried.
_FEW_ROWS = 2_000
_FLOAT_GAP = 0.05


@dataclass(frozen=True, eq=False)
class Baseline:
    """A model that costs next to nothing, on the same rows.

    Parameters
    ----------
    name : str
        What it is, in words.
    n_bytes : int
        Of its table, as int8.
    accuracy, balanced_accuracy : float
        0 to 1, on the test rows.
    as_good : bool
        Whether the test rows leave it open that it is as good as the model.
    by : {"accuracy", "balanced_accuracy"}
        In what: balanced where the model was trained so.
    training_rows : int
        It was trained on.
    """

    name: str
    n_bytes: int
    accuracy: float
    balanced_accuracy: float
    as_good: bool
    by: str
    training_rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a model gets right on labelled rows.

    Parameters
    ----------
    classes : tuple
        Labels: those of the model, then those that only the rows have.
    confusion : ndarray of int, shape (n_classes, n_classes)
        How many rows of each true label (row) got each label (column).
    n_groups : int or None
        How many people, records or batches the rows come from, where that is known.
    interval : tuple of float
        In which the accuracy on new rows (or of new groups) lies, with 95 % confidence.
    baselines : dict of str to Baseline
        "majority" and "linear"; empty where the training rows were not at hand.
    cautions : tuple of str
        One line each.
    decisions : DecisionFigures or None
        Of a model that was calibrated.

    Examples
    --------
    >>> found = compare(["ok", "ok", "bad", "bad"], ["ok", "ok", "ok", "bad"], ["bad", "ok"])
    >>> found.accuracy, found.recall.tolist(), found.confusion.tolist()
    (0.75, [0.5, 1.0], [[1, 1], [0, 2]])
    """

    classes: tuple[Any, ...]
    confusion: NDArray[np.int64]
    n_groups: int | None
    interval: tuple[float, float]
    baselines: dict[str, Baseline] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()
    decisions: DecisionFigures | None = None

    @property
    def rows(self) -> int:
        """How many rows were compared."""
        return int(self.confusion.sum())

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each label; shape (n_classes,)."""
        return np.asarray(self.confusion.sum(axis=1))

    @property
    def accuracy(self) -> float:
        """Share of rows that are labelled right."""
        return float(np.trace(self.confusion) / self.rows)

    @property
    def recall(self) -> NDArray[np.float64]:
        """Share of the rows of each label that are found; NaN where there are none."""
        return _shares(np.diag(self.confusion), self.counts)

    @property
    def precision(self) -> NDArray[np.float64]:
        """Share of the answers of each label that are right; NaN where there are none."""
        return _shares(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the labels that have rows."""
        return float(np.nanmean(self.recall))

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels that have rows or are answered; 0 where one is never right."""
        both = self.counts + self.confusion.sum(axis=0)
        return float(np.nanmean(_shares(2 * np.diag(self.confusion), both)))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; every command prints these keys."""
        return {
            "rows": self.rows,
            "groups": self.n_groups,
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "balanced_accuracy": self.balanced_accuracy,
            "macro_f1": self.macro_f1,
            "classes": list(self.classes),
            "counts": self.counts.tolist(),
            "recall": self.recall.tolist(),
            "precision": self.precision.tolist(),
            "confusion": self.confusion.tolist(),
            "baselines": {name: found.to_dict() for name, found in self.baselines.items()},
            "cautions": list(self.cautions),
            **({} if self.decisions is None else {"decisions": self.decisions.to_dict()}),
        }


#: What `evaluate` finds, of a classifier or of a regressor.
Judged: TypeAlias = Evaluation | ValueEvaluation


def _shares(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    found = np.full(len(part), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


def evaluate(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    class_weight: str | None = None,
    float_accuracy: float | None = None,
) -> Judged:
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
    train : (X, y), optional
        The training rows: the baselines are trained on them, and the cautions look at them.
    class_weight : {None, "balanced"}
        Of the linear model, as the judged model had it.
    float_accuracy : float, optional
        Of the float machine on the same rows, to be compared.

    Returns
    -------
    Evaluation, or ValueEvaluation of a regressor

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
    >>> found = evaluate(model.fit(X[::2], y[::2]), X[1::2], y[1::2], train=(X[::2], y[::2]))
    >>> found.accuracy > 0.9, found.baselines["linear"].n_bytes
    (True, 12)
    """
    from tinykernel.model import as_integer_model

    integer = as_integer_model(model)
    if integer.values is not None:
        return evaluate_values(integer, X, y, groups=groups, train=train)
    true, predicted = np.asarray(y), integer.predict(X)
    found = compare(true, predicted, integer.classes, groups)
    group = None if groups is None else np.asarray(groups)
    figures = decision_figures(
        integer, X, true,
        lambda rows, wrong: accuracy_interval(wrong, None if group is None else group[rows]),
    )  # fmt: skip
    found = replace(found, decisions=figures)
    if train is None:
        return found
    rows, labels = np.asarray(train[0]), np.asarray(train[1])
    flat, test = rows.reshape(len(rows), -1), np.asarray(X).reshape(len(true), -1)
    beside = baselines(
        flat, labels, test, true, predicted, groups=groups, class_weight=class_weight
    )  # fmt: skip
    lines = cautions(
        found, flat, labels, test, names=integer.feature_names, float_accuracy=float_accuracy
    )
    return replace(found, baselines=beside, cautions=lines)


def compare(
    y: ArrayLike,
    predicted: ArrayLike,
    classes: Sequence[Any] | None = None,
    groups: ArrayLike | None = None,
) -> Evaluation:
    """Compare labels with predictions.

    Parameters
    ----------
    y, predicted : array-like, shape (n,)
        True and predicted labels.
    classes : sequence, optional
        Labels of the model in its order; by default all there are, sorted.
    groups : array-like, shape (n,), optional
        Which person, record or batch each row belongs to. Rows of one group are alike, so that
        the interval is wider.

    Returns
    -------
    Evaluation

    Raises
    ------
    TinykernelError
        If there are no rows, the lengths differ, or one has text and the other numbers.
    """
    true, got = np.asarray(y), np.asarray(predicted)
    if true.ndim != 1 or true.shape != got.shape or not true.size:
        raise TinykernelError(f"to compare: {true.shape} labels and {got.shape} predictions")
    _check_kinds(true.tolist(), got.tolist() if classes is None else [*got.tolist(), *classes])
    known = list(np.union1d(true, got).tolist() if classes is None else classes)
    known += [label for label in np.union1d(true, got).tolist() if label not in known]
    index = {label: number for number, label in enumerate(known)}
    rows = [index[label] for label in true.tolist()]
    columns = [index[label] for label in got.tolist()]
    confusion = np.zeros((len(known), len(known)), dtype=np.int64)
    np.add.at(confusion, (rows, columns), 1)
    n_groups = None if groups is None else len(np.unique(np.asarray(groups)))
    interval = accuracy_interval(true == got, groups)
    return Evaluation(tuple(known), confusion, n_groups, interval)


def _check_kinds(true: Sequence[Any], known: Sequence[Any]) -> None:
    """Refuse text as labels where the model's are numbers, and the reverse."""
    kinds = [{isinstance(label, str) for label in labels} for labels in (true, known)]
    if len(kinds[0] | kinds[1]) > 1:
        names = {False: "numbers", True: "text"}
        said = [" and ".join(names[kind] for kind in sorted(found)) for found in kinds]
        raise TinykernelError(
            f"to compare: the labels are {said[0]} (the first is {true[0]!r}), those of the model "
            f"{said[1]} ({known[0]!r}); give both the same"
        )


def accuracy_interval(
    right: ArrayLike, groups: ArrayLike | None = None, level: float = _LEVEL
) -> tuple[float, float]:
    """Return the interval of a share: which shares the rows leave open.

    Without groups it is the exact one of Clopper and Pearson (1934). With groups it is that of
    Korn and Graubard (1998): the exact one of as many independent rows as tell as much as these,
    by the variance between groups and Student's t for their number. Where all rows are right, or
    none, the groups do not tell how alike their rows are: each then counts as one row.

    Parameters
    ----------
    right : array-like of bool, shape (n,)
    groups : array-like, shape (n,), optional
    level : float, default=0.95

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> low, high = accuracy_interval([True] * 90 + [False] * 10)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    from scipy.stats import beta

    outcome = np.asarray(right, dtype=np.float64)
    share = float(outcome.mean())
    n = float(outcome.size) if groups is None else effective_rows(outcome, groups, level)
    good, tail = share * n, (1 - level) / 2
    low = 0.0 if share == 0 else float(beta.ppf(tail, good, n - good + 1))
    high = 1.0 if share == 1 else float(beta.ppf(1 - tail, good + 1, n - good))
    return low, high


# -------------------------------------------------------------------------------------- baselines


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
    exact test of McNemar, with groups or balanced classes the t test of the differences.

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
        better = _is_better(right, answers == y_test, groups, weight)
        return Baseline(
            name, n_bytes, found.accuracy, found.balanced_accuracy, not better, by, n_rows
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

    X, y = _some(X, y, _LINEAR_ROWS)
    scaler = StandardScaler().fit(np.asarray(X, dtype=np.float64))
    rows = scaler.transform(np.asarray(X, dtype=np.float64))

    def fitted(X: NDArray[Any], y: NDArray[Any], penalty: float) -> Any:
        model = LogisticRegression(C=1 / (penalty * len(y)), class_weight=class_weight)
        return model.fit(X, y)

    # Threads of so small products wait for each other: on a busy machine twenty times longer.
    with threadpool_limits(1), warnings.catch_warnings():
        # A hundred steps are enough for a baseline.
        warnings.simplefilter("ignore", ConvergenceWarning)
        few, labels = _some(rows, y, _FEW_ROWS)
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


def _some(X: NDArray[Any], y: NDArray[Any], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows in a random order, the same each time: at most so many, of every label some."""
    order = np.random.default_rng(0).permutation(len(y))
    first = np.unique(y[order], return_index=True)[1]
    kept = np.unique(np.concatenate([first, np.arange(min(most, len(y)))]))
    return X[order[kept]], y[order[kept]]


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
    from scipy.stats import binomtest, t

    gain = a.astype(np.float64) - b
    if weight is not None:
        gain = gain * weight
        groups = np.arange(len(gain)) if groups is None else groups
    if gain.sum() <= 0:
        return False
    if groups is None:
        wins = int((gain > 0).sum())
        chance = binomtest(wins, int((gain != 0).sum()), alternative="greater").pvalue
        return bool(chance < 1 - _LEVEL)
    excess = by_group(gain - gain.mean(), groups)
    if len(excess) < 2:
        return False
    deviation = np.sqrt(len(excess) / (len(excess) - 1) * float(excess @ excess)) / len(gain)
    return bool(gain.mean() > t.ppf(_LEVEL, len(excess) - 1) * deviation)


# --------------------------------------------------------------------------------------- cautions


def cautions(
    found: Evaluation,
    X_train: NDArray[Any],
    y_train: NDArray[Any],
    X_test: NDArray[Any] | None = None,
    *,
    names: Sequence[str] | None = None,
    float_accuracy: float | None = None,
) -> tuple[str, ...]:
    """Say what makes an accuracy mean less than it seems, one line each.

    Parameters
    ----------
    found : Evaluation
        On the test rows.
    X_train, y_train : ndarray
    X_test : ndarray, optional
    names : sequence of str, optional
        Of the inputs.
    float_accuracy : float, optional
        Of the float machine on the same rows.

    Returns
    -------
    tuple of str
    """
    lines = [*_unseen(found, y_train), *_rare(found, y_train)]
    if np.all(X_train == X_train[0]):
        lines.append("all inputs are constant: nothing can be learned from them")
    else:
        lines += _one_input(X_train, y_train, names)
    if X_test is not None:
        lines += _repeated(X_train, X_test)
    if float_accuracy is not None and abs(float_accuracy - found.accuracy) > _FLOAT_GAP:
        lines.append(
            f"{100 * float_accuracy:.1f} % in floats but {100 * found.accuracy:.1f} % in integers: "
            "quantization changed the model; more components or another seed may help"
        )
    return tuple(lines)


def _unseen(found: Evaluation, y_train: NDArray[Any]) -> list[str]:
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


def _rare(found: Evaluation, y_train: NDArray[Any]) -> list[str]:
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


def _listed(labels: Sequence[Any], most: int = 6) -> str:
    return ", ".join(map(repr, labels[:most])) + (", ..." if len(labels) > most else "")


def _one_input(X: NDArray[Any], y: NDArray[Any], names: Sequence[str] | None) -> list[str]:
    """Find an input that alone predicts nearly everything: an id, a time, the label itself.

    Each input gets a tree of twice as many leaves as there are labels, learns from half of the
    rows and is tried on the others.
    """
    from sklearn.tree import DecisionTreeClassifier

    X, y = _some(X, y, _FEW_ROWS)
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
        f"{what} {_listed(named)} {each} nearly every label: an id, a time or the answer itself? "
        "--drop leaves columns out"
    ]


def _candidates(X: NDArray[Any], y: NDArray[Any], most: int = 32) -> list[int]:
    """Return the inputs whose order says most of the labels.

    In the order of a good input equal labels stand side by side.
    """
    same = np.array([
        float(np.mean(np.diff(np.unique(y, return_inverse=True)[1][np.argsort(column)]) == 0))
        for column in X.T
    ])  # fmt: skip
    return sorted(int(i) for i in np.argsort(-same, kind="stable")[:most])


def _repeated(X_train: NDArray[Any], X_test: NDArray[Any]) -> list[str]:
    from tinykernel.data.seen import digests

    n = int(np.isin(digests(X_test), digests(X_train)).sum())
    if not n:
        return []
    share = 100 * n / len(X_test)
    return [
        f"{n} of {len(X_test)} test rows ({share:.1f} %) are also among the training rows: the "
        "accuracy on new rows may be lower"
    ]
