"""One training of a tuning, and where trainings run: here, or on a Dask scheduler."""

import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import parallel_config
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from tinykernel.base import progress
from tinykernel.base.errors import RowsError, TargetError, TinykernelError, ToolError
from tinykernel.kinds.train.fitting import TrainResult, train
from tinykernel.model.integer import IntegerModel
from tinykernel.run.bench import cost_on
from tinykernel.run.limits import Limits
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
