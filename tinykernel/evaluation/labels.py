"""Labels of a model against true ones: how many of each are right, and within what interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.bounds import effective_rows, too_few_groups
from tinykernel.decisions.figures import DecisionFigures
from tinykernel.errors import TinykernelError

#: Confidence of intervals and comparisons.
LEVEL = 0.95


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
    better : bool
        Whether they say that it is better than the model.
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
    better: bool
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
    interval : tuple of float or None
        In which the accuracy on new rows (or, about, of new groups) lies, with 95 % confidence;
        None of fewer than 8 groups.
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
    interval: tuple[float, float] | None
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
            "interval": None if self.interval is None else list(self.interval),
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


def _shares(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    found = np.full(len(part), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


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


def interval_in_words(
    interval: tuple[float, float] | None, n_groups: int | None, digits: int | None = 1
) -> str:
    """Say in which interval a figure lies, or that nobody knows.

    A share is said in per cent with so many digits, anything else (None) with four.

    Examples
    --------
    >>> interval_in_words((0.915, 0.93), None), interval_in_words(None, 3)
    ('with 95 % confidence 91.5 to 93.0 %', 'too few groups for an interval')
    """
    if interval is None:
        return "too few groups for an interval"
    low, high = (
        f"{bound:.4g}" if digits is None else f"{100 * bound:.{digits}f}" for bound in interval
    )
    about = "" if n_groups is None else "about "
    return f"with {about}95 % confidence {low} to {high}{'' if digits is None else ' %'}"


def accuracy_interval(
    right: ArrayLike, groups: ArrayLike | None = None, level: float = LEVEL
) -> tuple[float, float] | None:
    """Return the interval of a share: which shares the rows leave open.

    Without groups it is the exact one of Clopper and Pearson (1934). With groups it is, about, that
    of Korn and Graubard (1998): the exact one of as many independent rows as tell as much as these,
    by the variance between groups and Student's t for their number, but of two rows a group at
    most, where unequal groups count as fewer (Kish 1965). `benchmarks/interval_coverage.py` says
    how often it holds.

    Parameters
    ----------
    right : array-like of bool, shape (n,)
    groups : array-like, shape (n,), optional
    level : float, default=0.95

    Returns
    -------
    low, high : float
        None of fewer than 8 groups, which say too little of new ones.

    Examples
    --------
    >>> low, high = accuracy_interval([True] * 90 + [False] * 10)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    >>> accuracy_interval([True] * 90 + [False] * 10, [0] * 50 + [1] * 50) is None
    True
    """
    from scipy.stats import beta

    if too_few_groups(groups):
        return None
    outcome = np.asarray(right, dtype=np.float64)
    share = float(outcome.mean())
    n = float(outcome.size) if groups is None else effective_rows(outcome, groups, level)
    good, tail = share * n, (1 - level) / 2
    low = 0.0 if share == 0 else float(beta.ppf(tail, good, n - good + 1))
    high = 1.0 if share == 1 else float(beta.ppf(1 - tail, good + 1, n - good))
    return low, high
