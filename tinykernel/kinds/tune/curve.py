"""The trials of a tuning, here or at a Dask scheduler, and the curve of accuracy against size."""

import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import parallel_config
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from tinykernel.base import progress
from tinykernel.base.errors import BudgetError, RowsError, TargetError, TinykernelError, ToolError
from tinykernel.base.text import percent
from tinykernel.kinds.train.fitting import TrainResult, train
from tinykernel.learn.choice import standard_error
from tinykernel.model.integer import IntegerModel
from tinykernel.run.bench import cost_on
from tinykernel.run.limits import Limits, parse_size
from tinykernel.run.report import Report

SECONDS = 10  # to wait for an answer of the scheduler


def is_remote() -> bool:
    """Return whether ``joblib.parallel_config`` names a backend that shares no memory."""
    backend, _ = get_active_backend(prefer="threads")
    return not getattr(backend, "supports_sharedmem", False)


@contextmanager
def scheduler(address: str | None) -> Iterator[None]:
    """Run the trials of `tune` at a Dask scheduler; without an address, in threads here."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ToolError("backend: install Dask: pip install distributed") from None
    try:
        client = Client(address, timeout=SECONDS)  # type: ignore[no-untyped-call,unused-ignore]
    except (OSError, ValueError) as error:
        raise ToolError(
            f"backend {address}: no scheduler answers ({error}); give an address such as "
            "tcp://127.0.0.1:8786, and start 'dask scheduler' there"
        ) from None
    with client, parallel_config(backend="dask"):
        yield


class Stopped(BaseException):
    """Ends a training that is no longer needed."""


@dataclass(frozen=True, order=True)
class Trial:
    """A budget in bytes, and the held-out fold; -1 for none."""

    size: int
    fold: int

    @property
    def is_final(self) -> bool:
        """Whether it trains on all training rows."""
        return self.fold < 0


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a trial: of a fold, or of the final training."""

    trial: Trial
    seconds: float
    refused: str = ""  # why there is no model of that size.
    # Of a fold: confusion matrix, and rows and right answers of each group.
    confusion: list[list[int]] | None = None
    groups: list[list[int]] | None = None
    # Of a final training.
    memory: Report | None = None
    instructions: int | None = None
    counted: str = ""
    search: dict[str, Any] | None = None
    model: IntegerModel | None = None


@dataclass(frozen=True, eq=False)
class Work:
    """Data and options of all trials."""

    X: NDArray[Any]
    y: NDArray[Any]
    groups: NDArray[Any] | None
    folds: NDArray[np.int64]
    target: str
    limits: Limits
    parameters: Mapping[str, Any]


def deal_folds(
    y: NDArray[Any], groups: NDArray[Any] | None, n_folds: int, seed: int
) -> NDArray[np.int64]:
    """Return the fold of each row, stratified by labels; groups stay whole."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    most = int(np.unique(y, return_counts=True)[1].max())
    if groups is None:
        kind: Any = StratifiedKFold
    else:
        kind, most = StratifiedGroupKFold, min(most, np.unique(groups).size)
    if most < 2:
        problem = "rows have one label each" if groups is None else "all rows are in one group"
        raise RowsError(f"{problem}: nothing can be held out; give more data")
    folds = np.empty(len(y), dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds
        dealer = kind(min(n_folds, most), shuffle=True, random_state=seed)
        for number, (_, out) in enumerate(dealer.split(np.zeros(len(y)), y, groups)):
            folds[out] = number
    return folds


def run_trial(work: Work, trial: Trial, stop: threading.Event | None = None) -> Outcome:
    """Train a model, and judge it on the held-out rows, or measure the final one."""
    started = time.perf_counter()

    def look(_: progress.Progress) -> None:
        if stop is not None and stop.is_set():
            raise Stopped

    try:
        with progress.observing(look):
            trained = _train(work, trial)
            done = (_final if trial.is_final else _judge)(work, trial, trained)
    except TinykernelError as error:
        done = Outcome(trial, 0.0, refused=str(error))
    return replace(done, seconds=time.perf_counter() - started)


def _train(work: Work, trial: Trial) -> TrainResult:
    inside = work.folds != trial.fold
    groups = None if work.groups is None else work.groups[inside]
    if groups is not None and np.unique(groups).size < 2:
        groups = None  # a single one cannot be split
    trained = train(
        work.X[inside],
        work.y[inside],
        budget=replace(work.limits, flash=trial.size),
        target=work.target,
        groups=groups,
        link=False,
        **work.parameters,
    )
    if trained.interrupted or (_search(trained) or {}).get("interrupted"):
        raise KeyboardInterrupt  # an incomplete training does not represent its size
    return trained


def _search(trained: TrainResult) -> dict[str, Any] | None:
    """Return the choice and gain of a search, if there was one."""
    return getattr(trained.classifier, "search_", None) or None


def _judge(work: Work, trial: Trial, trained: TrainResult) -> Outcome:
    """Count the answers of the model on the held-out fold."""
    from sklearn.metrics import confusion_matrix

    out = work.folds == trial.fold
    X, y = work.X[out], work.y[out]
    answered = trained.model.predict(X)
    confusion = confusion_matrix(y, answered, labels=np.unique(work.y))
    groups = None
    if work.groups is not None:
        index = np.unique(work.groups[out], return_inverse=True)[1]
        rows, right = np.bincount(index), np.bincount(index, weights=y == answered)
        groups = np.stack([rows, right.astype(np.int64)], axis=1).tolist()
    return Outcome(trial, 0.0, confusion=confusion.tolist(), groups=groups)


def _final(work: Work, trial: Trial, trained: TrainResult) -> Outcome:
    sizes = trained.sizes or trained.memory
    if sizes is None:
        raise TargetError(f"the size of a model on {work.target} is not known")
    cost = cost_on(trained.model, work.target)
    return Outcome(
        trial,
        0.0,
        memory=sizes,
        search=_search(trained),
        instructions=cost.instructions,
        counted=cost.source,
        model=trained.model,
    )


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
