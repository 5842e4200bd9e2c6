"""The curve of accuracy against size, its front, and the smallest model that is good enough."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.training.choice import standard_error
from tinykernel.tuning.trials import Outcome

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
