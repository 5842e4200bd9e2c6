"""`tune`: train over a range of sizes, in a journal, judge on held-out rows, recommend one."""

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib import hash as hash_of
from numpy.typing import ArrayLike

from tinykernel.base import progress
from tinykernel.base.checks import as_groups, check_count, check_positive
from tinykernel.base.errors import (
    BudgetError,
    FileError,
    FormatError,
    OptionError,
    ShapeError,
    TargetError,
    TinykernelError,
)
from tinykernel.base.files import write_bytes_atomically
from tinykernel.base.frames import without_codes
from tinykernel.base.text import column_names, percent
from tinykernel.compile.targets import find_target
from tinykernel.kinds.tune import curve as curves
from tinykernel.learn.options import SIZE_OPTIONS
from tinykernel.model.file import load, save
from tinykernel.run.limits import Limits, parse_limits, parse_size
from tinykernel.run.report import decisive_report

#: Default sizes in KB, up to the budget, which is tried, too.
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 30)
_LARGEST = "30KB"
_KB = 1024
# Options that follow from the size, or are not for classifiers.
_NOT_TUNED = {*SIZE_OPTIONS, *("validation", "sample_weight", "n_jobs", "task", "loss")}


def tune(
    X: ArrayLike,
    y: ArrayLike,
    *,
    target: str = "cortex-m4",
    budget: str | int | Limits | None = None,
    sizes: Sequence[str | int] | None = None,
    groups: ArrayLike | None = None,
    n_folds: int = 4,
    max_time: float | None = None,
    journal: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    **parameters: Any,
) -> curves.TuneResult:
    """Find how accuracy grows with size, and the smallest model that is good enough.

    For each size a model is trained on all but one fold of the rows and judged on that fold, for
    every fold, and one model is trained on all rows. The recommended one is the smallest whose
    accuracy is within one standard error of the best.

    Parameters
    ----------
    X, y, target
        As for `tinykernel.train`, but numbers alone; ``tinykernel tune table.csv`` takes text and
        gaps. Rows to test on do not belong here.
    budget : str, int or Limits, optional
        Largest size, ``"30KB"`` by default; what it limits beside flash holds for every size.
    sizes : sequence of str or int, optional
        Bytes of flash to try instead of 1, 2, 3, 4, 6, 8, 12, 16, 24 and 30 KB up to the budget.
    groups : array-like, shape (n,), optional
        Which person, record or batch each row belongs to. Whole groups are held out.
    n_folds : int, default=4
    max_time : float, optional
        Time limit in seconds; trials that would end later are not begun.
    journal : path-like, optional
        Folder for finished trials, which do not run again.
    n_jobs : int, optional
        Trials at a time, one a processor by default and for -1, one less for -2 and so on. The
        result is the same. 0 trains nothing and uses the trials of the journal. In
        ``joblib.parallel_config(backend="dask")`` trials run on the workers of a Dask cluster, one
        a thread; the journal stays here.
    **parameters
        As for `tinykernel.train`; ``random_state`` is 0 by default.

    Returns
    -------
    TuneResult

    Raises
    ------
    TinykernelError
        If an argument is wrong, no size has a model, the journal is damaged or of another tuning,
        or nothing was finished in time. KeyboardInterrupt is raised only in the last case.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> result = tune(X, y, sizes=["2KB", "3KB"], n_folds=2, epochs=5, effort="quick", n_jobs=1)
    >>> [point.budget for point in result.points], result.model.n_classes
    ([2048, 3072], 3)
    """
    from tinykernel.base.files import package_version

    options = {name: value for name, value in parameters.items() if value is not None}
    is_learned = options.get("method", "learned") == "learned"
    for name in options.keys() & (_NOT_TUNED if is_learned else _NOT_TUNED - {"loss"}):
        raise OptionError(
            f"{name}: not an option of tune, which compares sizes of classifiers; leave it out"
        )
    check_count("n_folds", n_folds, 2)
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
        raise OptionError(f"n_jobs must be a whole number; got {n_jobs!r}")
    if max_time is not None:
        check_positive("max_time, in seconds,", max_time)
    if hasattr(X, "columns"):
        options.setdefault("feature_names", column_names(X.columns))
    rows, labels = np.asarray(without_codes(X)), np.asarray(y)
    if labels.shape != (len(rows),):
        raise ShapeError(f"y: shape {labels.shape}; give one value per row of X")
    named = as_groups(groups, len(rows))
    if find_target(target).family == "host":
        raise TargetError(f"target {target} has no flash to measure; choose a microcontroller")
    # Without a seed trials could not be compared, nor the journal continued.
    seed = options.setdefault("random_state", 0)
    folds = curves.deal_folds(labels, named, n_folds, seed)
    limits = Limits() if budget is None else parse_limits(budget)
    tried = _sizes(limits.flash, sizes)
    # All trainings of a size before the next one: few folds of many sizes tell little.
    rest = range(1, int(folds.max()) + 1)
    trials = [curves.Trial(size, fold) for size in _spread(tried) for fold in (0, -1, *rest)]
    store: Journal | None = None
    before: dict[curves.Trial, curves.Outcome] = {}
    if journal is not None:
        fixed = {"target": target, "folds": n_folds, "limits": str(replace(limits, flash=None))}
        # Neither the order of an array in memory nor the width of its text is other data.
        columns = [None if column is None else column.tolist() for column in (labels, named)]
        about = {
            "data": hash_of((np.ascontiguousarray(rows), columns)),
            "version": package_version(),
        }
        store = Journal(Path(journal), about | {"options": options | fixed})
        before = {o.trial: o for o in store.read() if o.trial in set(trials)}
    n_processors = os.cpu_count() or 1
    n_jobs = -1 if n_jobs is None else n_jobs
    if n_jobs < 0:
        n_jobs = (
            effective_n_jobs(n_jobs) if curves.is_remote() else max(1, n_processors + 1 + n_jobs)
        )
    threads = 1 if curves.is_remote() else max(1, n_processors // max(1, n_jobs))
    work = curves.Work(rows, labels, named, folds, target, limits, {**options, "n_jobs": threads})
    run = Run(work, trials, before, store, max_time)
    if n_jobs == 0:
        run.stopped = "nothing was trained"
    else:
        run.go(n_jobs)
    return _result(run, target, balanced=options.get("class_weight") == "balanced")


def _sizes(budget: int | None, sizes: Sequence[str | int] | None) -> list[int]:
    limit = parse_size(_LARGEST) if budget is None else budget
    if sizes is None:
        return sorted({size * _KB for size in SIZES if size * _KB < limit} | {limit})
    tried = sorted({parse_size(size) for size in sizes})
    over = [size for size in tried if budget is not None and size > limit]
    if over or not tried:
        problem = f"{curves.kilobytes(over[0])} is above the budget" if over else "none given"
        raise OptionError(f"sizes: {problem}; give sizes up to the budget")
    return tried


def _spread(sizes: Sequence[int]) -> list[int]:
    """Order sizes so that the first few span the range: by the reversed bits of their places."""
    places = range(len(sizes))
    width = len(sizes).bit_length()
    order = sorted(places, key=lambda place: f"{place:0{width}b}"[::-1])
    return [sorted(sizes)[-1 - place] for place in order]


def _result(run: "Run", target: str, *, balanced: bool) -> curves.TuneResult:
    points, refused = curves.curve(run.outcomes.values(), balanced=balanced), run.refused
    if not points:  # no size has a model and a figure
        if run.stopped == "interrupted":
            raise KeyboardInterrupt
        if refused and not run.stopped:
            raise BudgetError(refused[max(refused)])
        where = "" if run.journal is None else f"; {run.journal.folder} keeps what is finished"
        raise BudgetError(
            f"{run.stopped} before the first size was finished{where}; give more time"
        )
    best, highest = curves.smallest_good(points)
    finals = {point.budget: run.outcomes[curves.Trial(point.budget, -1)] for point in points}
    done, total = run.counts
    return curves.TuneResult(
        tuple(points),
        best,
        highest,
        models={size: final.model for size, final in finals.items() if final.model is not None},
        reports={size: final.memory for size, final in finals.items() if final.memory is not None},
        searches={size: final.search for size, final in finals.items() if final.search is not None},
        target=target,
        score="balanced accuracy" if balanced else "accuracy",
        n_folds=len(points[0].folds),
        done=done,
        total=total,
        stopped=run.stopped if done < total else "",
        left_out=refused,
    )


_HEADER, _CALL, _FORMAT = "journal.json", "call.json", "tinykernel-tune"
_ADVICE = "delete the folder, or write to another one"
_STORED = ("seconds", "confusion", "groups", "instructions", "counted", "search")


class Journal:
    """The folder of finished trials; `about` (data, options, version) must be that of the run."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self._header = json.loads(json.dumps({"format": _FORMAT, **about}, default=repr))

    def read(self) -> list[curves.Outcome]:
        """Return the stored outcomes; TinykernelError if damaged or of another tuning."""
        if self.folder.exists() and not self.folder.is_dir():
            raise FileError(f"{self.folder}: is a file; remove it, as the journal needs a folder")
        if not self.folder.exists() or not any(self.folder.iterdir()):
            return []
        self._check_header()
        return [self._outcome(file) for file in sorted(self.folder.glob("trial-*.json"))]

    def write(self, outcome: curves.Outcome) -> None:
        """Store an outcome, unless its size was refused; such a trial runs again."""
        if outcome.refused:
            return
        if not (self.folder / _HEADER).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(self.folder / _HEADER, self._header)
        trial = outcome.trial
        if outcome.model is not None:
            save(outcome.model, self._model_file(trial))
        fields = {name: getattr(outcome, name) for name in _STORED}
        fields["fingerprint"] = None if outcome.model is None else outcome.model.fingerprint()
        name = f"trial-{trial.size}-{'all' if trial.is_final else trial.fold}.json"
        _write(self.folder / name, {"size": trial.size, "fold": trial.fold, **fields})

    def _model_file(self, trial: curves.Trial) -> Path:
        return self.folder / f"model-{trial.size}.tkm"

    def _check_header(self) -> None:
        file = self.folder / _HEADER
        if not file.exists():
            raise FormatError(f"{self.folder}: not a journal of tinykernel tune; {_ADVICE}")
        before, now = _read(file), self._header
        names = _differing(before, now)
        old, new = before.get("options", {}), now["options"]
        problems = [f"other {name}" for name in names if name != "options"] + [
            f"{name} was {old.get(name, 'not given')}, is {new.get(name, 'not given')}"
            for name in _differing(old, new)
        ]
        if names:
            raise FormatError(
                f"{self.folder}: is the journal of another tuning: {', '.join(problems)}; repeat "
                f"its options, {_ADVICE}"
            )

    def _outcome(self, file: Path) -> curves.Outcome:
        content = _read(file)
        fingerprint = content.pop("fingerprint", None)
        try:
            outcome = curves.Outcome(
                curves.Trial(content.pop("size"), content.pop("fold")), **content
            )
        except (KeyError, TypeError):
            raise _damage(file) from None
        if not outcome.trial.is_final:
            return outcome
        model_file = self._model_file(outcome.trial)
        try:
            model = load(model_file)
        except TinykernelError:
            raise _damage(model_file) from None
        if model.fingerprint() != fingerprint:
            raise _damage(model_file)
        memory = decisive_report(model, self._header["options"]["target"])
        return replace(outcome, model=model, memory=memory)


def read_call(folder: Path) -> dict[str, str]:
    """Return the options of the last call of the command, as text; empty if unknown."""
    file = folder / _CALL
    return _read(file) if file.exists() else {}


def write_call(folder: Path, texts: Mapping[str, str]) -> None:
    """Store the options of a call beside its trials, so that `--pick` repeats them."""
    if (folder / _HEADER).exists():
        _write(folder / _CALL, texts)


def _write(file: Path, content: Mapping[str, Any]) -> None:
    content = {"check": _check(content), **content}
    write_bytes_atomically(file, json.dumps(content, sort_keys=True).encode())


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.pop("check", "") != _check(content):
        raise _damage(file)
    return content


def _damage(file: Path) -> TinykernelError:
    return FormatError(f"{file}: this part of the journal is damaged; {_ADVICE}")


def _check(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a file says."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Return the keys with different values in two mappings."""
    return sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))


class Run:
    """The planned trials and their outcomes."""

    def __init__(
        self,
        work: curves.Work,
        trials: Sequence[curves.Trial],
        before: Mapping[curves.Trial, curves.Outcome],
        journal: Journal | None,
        max_time: float | None,
    ) -> None:
        self.work, self.trials, self.journal, self._jobs = work, trials, journal, 1
        self.outcomes = dict(before)
        self.stopped = ""
        self._left = [trial for trial in trials if trial not in before]
        self._started = time.monotonic()
        self._max_time = max_time
        self._here, self._begun = 0, False

    def go(self, n_jobs: int) -> None:
        """Run the remaining trials; Ctrl-C ends this, finished ones stay."""
        self._jobs = n_jobs
        self._say("")
        stop = None if curves.is_remote() else threading.Event()
        # One trial at a time is requested, to keep the time limit.
        jobs = Parallel(
            n_jobs,
            prefer="threads",
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",
        )
        outcomes = jobs(delayed(curves.run_trial)(self.work, trial, stop) for trial in self._next())
        try:
            try:
                for outcome in outcomes:
                    self._take(outcome)
            finally:
                if stop is not None:
                    stop.set()  # else Ctrl-C waits for the end of the trials
                outcomes.close()
        except (KeyboardInterrupt, curves.Stopped):
            self.stopped = "interrupted"

    @property
    def refused(self) -> dict[int, str]:
        """Sizes without a model, and why, from the first of their trials."""
        refused = {}
        for trial in reversed(self.trials):
            if trial in self.outcomes and self.outcomes[trial].refused:
                refused[trial.size] = self.outcomes[trial].refused
        return dict(sorted(refused.items()))

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of finished and of all trials, except those of refused sizes."""
        refused = self.refused
        done = sum(trial.size not in refused for trial in self.outcomes)
        return done, sum(trial.size not in refused for trial in self.trials)

    def _next(self) -> Iterator[curves.Trial]:
        while True:
            refused = self.refused
            self._left = [trial for trial in self._left if trial.size not in refused]
            if not self._left:
                return
            trial = next((trial for trial in self._left if self._in_time(trial)), None)
            if trial is None:
                self.stopped = "the time was up"
                return
            self._left.remove(trial)
            self._begun = True
            yield trial

    def _in_time(self, trial: curves.Trial) -> bool:
        """Say whether a trial would probably end within the time."""
        if self._max_time is None or not self._begun:
            return True  # one always runs, so that repeated runs make progress
        return time.monotonic() - self._started + self._expect(trial) < self._max_time

    def _expect(self, trial: curves.Trial) -> float:
        """Estimate the seconds of a trial from that of the closest size."""
        nearest = [
            (abs(o.trial.size - trial.size), -o.seconds * max(1, trial.size / o.trial.size))
            for o in list(self.outcomes.values())
            if not o.refused
        ]
        return -min(nearest)[1] if nearest else 0.0

    def _take(self, outcome: curves.Outcome) -> None:
        self.outcomes[outcome.trial] = outcome
        if self.journal is not None:
            self.journal.write(outcome)
        self._here += 1
        size = curves.kilobytes(outcome.trial.size)
        if outcome.refused:
            text = f"{size}: no model"
        elif outcome.trial.is_final:
            text = f"{size}: model of {outcome.memory.flash if outcome.memory else 0} bytes"
        else:
            confusion = np.array(outcome.confusion)
            text = f"{size}, fold {outcome.trial.fold + 1}: "
            text += percent(np.trace(confusion) / confusion.sum())
        self._say(text)

    def _say(self, text: str) -> None:
        done, total = self.counts
        if self._here and done < total:
            passed = time.monotonic() - self._started
            waiting = [trial for trial in self.trials if trial not in self.outcomes]
            refused, limit = self.refused, self._max_time
            expected = [self._expect(trial) for trial in waiting if trial.size not in refused]
            left = max(max(expected), sum(expected) / self._jobs)
            text += f", about {left:.0f} s left"
            if limit is not None and limit - passed < left:
                text += f", {max(0.0, limit - passed):.0f} s until the limit"
        progress.report("tuning", done, total, text)
