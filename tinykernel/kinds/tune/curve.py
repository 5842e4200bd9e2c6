"""The curve of accuracy against size, the smallest good model, and the result of a tuning."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import BudgetError
from tinykernel.base.text import percent
from tinykernel.kinds.tune.trials import Outcome
from tinykernel.learn.choice import standard_error
from tinykernel.model.integer import IntegerModel
from tinykernel.run.limits import parse_size
from tinykernel.run.report import Report

_KB = 1024


@dataclass(frozen=True)
class Point:
    """A size, the accuracy of its models on held-out rows, and the costs of the final one."""

    budget: int  # limit of flash in bytes
    # On the held-out rows of all folds; the mean recall of the classes if training weighted them
    # equally.
    accuracy: float
    standard_error: float  # the larger of that between folds and that of the rows, or groups
    folds: tuple[float, ...]  # accuracy of each
    flash: int  # bytes of the model trained on all training rows
    ram: int
    stack: int
    measured: str  # compiler of these, or "estimate"
    instructions: int | None  # of one inference, where known
    counted: str  # their source: an emulator, an estimate, or why there are none
    # Whether no other point is at least as good in accuracy, flash, RAM and instructions, and
    # better in one.
    on_front: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return {**vars(self), "folds": list(self.folds)}


def curve(outcomes: Iterable[Outcome], *, balanced: bool) -> list[Point]:
    """Return a point for each size with a final model, ascending, judged on the same folds.

    After an early end sizes with fewer folds than others are left out, as these tell too little.
    """
    finals, folds = dict[int, Outcome](), dict[int, dict[int, Outcome]]()
    every = list(outcomes)
    refused = {outcome.trial.size for outcome in every if outcome.refused}
    for outcome in every:
        trial = outcome.trial
        if trial.size in refused:
            continue
        if trial.is_final:
            finals[trial.size] = outcome
        else:
            folds.setdefault(trial.size, {})[trial.fold] = outcome
    sizes = sorted(size for size in finals if 0 in folds.get(size, {}))
    if not sizes:
        return []
    most = max(len(folds[size]) for size in sizes)
    sizes = [size for size in sizes if len(folds[size]) == most]
    common = sorted(set.intersection(*(set(folds[size]) for size in sizes)))
    points = [_point(finals[size], [folds[size][k] for k in common], balanced) for size in sizes]
    return [replace(point, on_front=_on_front(point, points)) for point in points]


def _point(final: Outcome, judged: Sequence[Outcome], balanced: bool) -> Point:
    assert final.memory is not None
    confusions = [np.array(outcome.confusion, dtype=np.float64) for outcome in judged]
    accuracy = _share(np.sum(confusions, axis=0), balanced)
    shares = [_share(confusion, balanced) for confusion in confusions]
    error = _error(np.sum(confusions, axis=0), judged, balanced)
    if len(shares) > 1:
        error = max(error, float(np.std(shares, ddof=1) / np.sqrt(len(shares))))
    memory = final.memory
    return Point(
        final.trial.size,
        accuracy,
        error,
        tuple(shares),
        memory.flash,
        memory.ram,
        memory.stack,
        memory.compiler or memory.source,
        final.instructions,
        final.counted,
    )


def _share(confusion: NDArray[np.float64], balanced: bool) -> float:
    """Return the accuracy, or the mean recall of the classes with rows."""
    right, rows = np.diag(confusion), confusion.sum(axis=1)
    if not balanced:
        return float(right.sum() / rows.sum())
    return float(np.mean(right[rows > 0] / rows[rows > 0]))


def _error(confusion: NDArray[np.float64], judged: Sequence[Outcome], balanced: bool) -> float:
    """Return the standard error; with groups that of a ratio (Cochran 1977, chapter 6)."""
    rows, right = confusion.sum(axis=1), np.diag(confusion)
    if balanced:
        rows, right = rows[rows > 0], right[rows > 0]
        recall = right / rows
        return float(np.sqrt(np.sum(recall * (1 - recall) / rows)) / rows.size)
    share, n = right.sum() / rows.sum(), rows.sum()
    if judged[0].groups is None:
        return float(np.sqrt(share * (1 - share) / n))
    of, good = np.concatenate([np.array(outcome.groups) for outcome in judged]).T
    return standard_error(good / of, of)


def _on_front(point: Point, points: Sequence[Point]) -> bool:
    # Instructions are known for all points or for none, as they come from the same tools.
    mine, *others = ((-p.accuracy, p.flash, p.ram, p.instructions or 0) for p in (point, *points))
    return not any(
        all(a <= b for a, b in zip(costs, mine, strict=True)) and costs != mine for costs in others
    )


def smallest_good(points: Sequence[Point]) -> tuple[Point, Point]:
    """Return the smallest point within one standard error of the best (Breiman 1984), and this."""
    best = max(points, key=lambda point: (point.accuracy, -point.flash))
    good = [p for p in points if p.accuracy >= best.accuracy - best.standard_error]
    return min(good, key=lambda point: (point.flash, -point.accuracy)), best


def kilobytes(n_bytes: int) -> str:
    """Format a size for a table."""
    return f"{n_bytes} B" if n_bytes < _KB else f"{n_bytes / _KB:.3g} KB"


@dataclass(frozen=True, eq=False)
class TuneResult:
    """The curve of accuracy against size, and the models on it.

    Parameters
    ----------
    points : tuple of Point
        One for each size, the smallest first.
    best : Point
        The recommended one: the smallest within one standard error of the most accurate.
    highest : Point
        The most accurate one.
    models : dict of int to IntegerModel
        By budget in bytes; trained on all training rows.
    reports : dict of int to Report
        Memory of the models.
    searches : dict of int to dict
        Choice and gain of the search of each model.
    target : str
    score : {"accuracy", "balanced accuracy"}
        The compared figure.
    n_folds : int
        Number of folds of every point.
    done, total : int
        Trials finished, and planned.
    stopped : str
        Why trials are missing: "the time was up", "interrupted", "nothing was trained", or empty.
    left_out : dict of int to str
        Sizes without a model, and why.
    """

    points: tuple[Point, ...]
    best: Point
    highest: Point
    models: dict[int, IntegerModel]
    reports: dict[int, Report]
    searches: dict[int, dict[str, Any]]
    target: str
    score: str
    n_folds: int
    done: int
    total: int
    stopped: str = ""
    left_out: dict[int, str] = field(default_factory=dict)

    @property
    def front(self) -> tuple[Point, ...]:
        """The points that no other one beats in accuracy, flash, RAM and instructions at once."""
        return tuple(point for point in self.points if point.on_front)

    @property
    def model(self) -> IntegerModel:
        """The recommended model."""
        return self.models[self.best.budget]

    @property
    def recommendation(self) -> str:
        """A sentence on which size to take, and why."""
        best, highest = self.best, self.highest
        figures = (
            f"{kilobytes(best.budget)}: {percent(best.accuracy)} {self.score} on held-out "
            f"rows (standard error {percent(best.standard_error)}) in {best.flash} bytes of "
            f"flash and {best.ram} of RAM ({best.measured})"
        )
        if self.stopped and self.n_folds == 1:
            # One fold tells two sizes apart by chance.
            return f"No size is recommended, as one fold alone was finished. So far {figures}."
        text = f"Take {figures}"
        if self.stopped and len(self.points) == 1:
            return f"{text}, the only size that was finished."
        if best == highest:
            return f"{text}, which no other {'finished ' * bool(self.stopped)}size surpasses."
        limit = percent(highest.standard_error)
        top = f"{percent(highest.accuracy)} at {kilobytes(highest.budget)}"
        return f"{text}, within one standard error ({limit}) of the best, {top}."

    def pick(self, size: str | int) -> Point:
        """Return the point of the largest size that is not above `size`.

        Parameters
        ----------
        size : str or int
            Such as ``"4KB"``.

        Raises
        ------
        TinykernelError
            If all models are larger.
        """
        limit = parse_size(size)
        fitting = [point for point in self.points if point.budget <= limit]
        if not fitting:
            sizes = ", ".join(kilobytes(point.budget) for point in self.points)
            raise BudgetError(f"no model has {kilobytes(limit)} or less; choose from {sizes}")
        return fitting[-1]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the models as JSON types."""
        return {
            "target": self.target,
            "score": self.score,
            "folds": self.n_folds,
            "best": self.best.to_dict(),
            "highest": self.highest.to_dict(),
            "recommendation": self.recommendation,
            "front": [point.to_dict() for point in self.front],
            "points": [point.to_dict() for point in self.points],
            "left_out": {str(size): why for size, why in self.left_out.items()},
            "trials": {"done": self.done, "total": self.total},
            "stopped": self.stopped or None,
        }
