"""Predicted labels against true ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.figures import DecisionFigures
from tinykernel.errors import TinykernelError
from tinykernel.evaluation.comparison import Baseline, Evaluation
from tinykernel.evaluation.intervals import accuracy_interval

_MOST_ROWS = 2.0**53  # sums of so many are exact


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelEvaluation(Evaluation):
    """Accuracy of labels, in addition to the fields of `Evaluation`.

    Parameters
    ----------
    classes : tuple
        Labels: those of the model, then those that only the rows have.
    confusion : ndarray of int, shape (n_classes, n_classes)
        Number of rows by true label (row) and predicted label (column).
    decisions : DecisionFigures or None
        For a calibrated model.

    Examples
    --------
    >>> judged = compare(["ok", "ok", "bad", "bad"], ["ok", "ok", "ok", "bad"], ["bad", "ok"])
    >>> judged.accuracy, judged.recall.tolist(), judged.confusion.tolist()
    (0.75, [0.5, 1.0], [[1, 1], [0, 2]])
    """

    classes: tuple[Any, ...]
    confusion: NDArray[np.int64]
    decisions: DecisionFigures | None = None

    @property
    def rows(self) -> int:
        """Number of compared rows."""
        return int(self.confusion.sum())

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each label; shape (n_classes,)."""
        return np.asarray(self.confusion.sum(axis=1))

    @property
    def accuracy(self) -> float:
        """Share of rows with the right label."""
        return float(np.trace(self.confusion) / self.rows)

    @property
    def recall(self) -> NDArray[np.float64]:
        """Share of the rows of each label that get it; NaN without rows."""
        return _shares(np.diag(self.confusion), self.counts)

    @property
    def precision(self) -> NDArray[np.float64]:
        """Share of the predictions of each label that are right; NaN without predictions."""
        return _shares(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the labels that have rows."""
        return float(np.nanmean(self.recall))

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels with rows or predictions; 0 for one that is never right."""
        both = self.counts + self.confusion.sum(axis=0)
        return float(np.nanmean(_shares(2 * np.diag(self.confusion), both)))

    @property
    def figures(self) -> dict[str, float]:
        """Accuracy, balanced accuracy and macro F1."""
        names = ("accuracy", "balanced_accuracy", "macro_f1")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; every command prints these keys."""
        return super().to_dict() | {
            "classes": list(self.classes),
            "counts": self.counts.tolist(),
            "recall": self.recall.tolist(),
            "precision": self.precision.tolist(),
            "confusion": self.confusion.tolist(),
            **({} if self.decisions is None else {"decisions": self.decisions.to_dict()}),
        }

    def to_record(self) -> dict[str, Any]:
        """Return all but the decisions as JSON types, for `of_record`."""
        names = ("classes", "confusion", "groups", "interval", "baselines", "cautions")
        fields = self.to_dict()
        return {name: fields[name] for name in names}

    @staticmethod
    def of_record(record: Any) -> LabelEvaluation | None:
        """Read the unchecked record of a model file; None if it is not one."""
        try:
            confusion = np.array(record["confusion"], dtype=np.int64)
            n = len(record["classes"])
            if confusion.shape != (n, n) or confusion.min() < 0:
                return None
            if not 0 < confusion.sum(dtype=np.float64) < _MOST_ROWS:
                return None
            interval = record["interval"]
            if interval is not None:
                interval = float(interval[0]), float(interval[1])
            return LabelEvaluation(
                classes=tuple(record["classes"]),
                confusion=confusion,
                n_groups=None if record["groups"] is None else int(record["groups"]),
                interval=interval,
                baselines={
                    str(key): Baseline.of_dict(each) for key, each in record["baselines"].items()
                },
                cautions=tuple(map(str, record["cautions"])),
            )
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
            return None


def _shares(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


def compare(
    y: ArrayLike,
    predicted: ArrayLike,
    classes: Sequence[Any] | None = None,
    groups: ArrayLike | None = None,
) -> LabelEvaluation:
    """Compare true labels y (n,) with predictions.

    `classes` are the labels of the model in its order, by default all labels, sorted. Rows of a
    group are alike, so `groups` widen the interval.
    """
    true, answers = np.asarray(y), np.asarray(predicted)
    if true.ndim != 1 or true.shape != answers.shape or not true.size:
        raise TinykernelError(
            f"labels: {true.shape} of them and {answers.shape} predictions; give one each a row"
        )
    known = [] if classes is None else list(classes)
    _check_kinds(true.tolist(), [*answers.tolist(), *known])
    known += [label for label in np.union1d(true, answers).tolist() if label not in known]
    index = {label: number for number, label in enumerate(known)}
    places = [[index[label] for label in labels.tolist()] for labels in (true, answers)]
    confusion = np.zeros((len(known), len(known)), dtype=np.int64)
    np.add.at(confusion, tuple(places), 1)
    return LabelEvaluation(
        classes=tuple(known),
        confusion=confusion,
        n_groups=None if groups is None else len(np.unique(np.asarray(groups))),
        interval=accuracy_interval(true == answers, groups),
    )


def _check_kinds(true: Sequence[Any], known: Sequence[Any]) -> None:
    """Refuse text as labels if the model's are numbers, and the reverse."""
    kinds = [{isinstance(label, str) for label in labels} for labels in (true, known)]
    if len(kinds[0] | kinds[1]) > 1:
        names = {False: "numbers", True: "text"}
        of_rows, of_model = (" and ".join(names[kind] for kind in sorted(each)) for each in kinds)
        raise TinykernelError(
            f"labels: they are {of_rows} (the first is {true[0]!r}), those of the model "
            f"{of_model} ({known[0]!r}); give both the same"
        )
