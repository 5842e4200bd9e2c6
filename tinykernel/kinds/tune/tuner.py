"""`tune`: train over a range of sizes, judge them on held-out rows, recommend one."""

import os
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from joblib import hash as hash_of
from numpy.typing import ArrayLike

from tinykernel.base.checks import as_groups, check_count, check_positive
from tinykernel.base.errors import BudgetError, OptionError, ShapeError, TargetError
from tinykernel.base.frames import uncoded
from tinykernel.base.text import column_names
from tinykernel.compile.targets import find_target
from tinykernel.kinds.tune.curve import TuneResult, curve, kilobytes, smallest_good
from tinykernel.kinds.tune.run import Journal, Run
from tinykernel.kinds.tune.trials import Outcome, Trial, Work, deal_folds, is_remote
from tinykernel.learn.options import SIZE_OPTIONS
from tinykernel.run.limits import Limits, parse_limits, parse_size

#: Default sizes in KB, up to the budget, which is tried, too.
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 30)
_LARGEST = "30KB"
_KB = 1024
# Options that follow from the size, or are not for classifiers.
_NOT_TUNED = {
    *SIZE_OPTIONS,
    *("validation", "sample_weight", "n_jobs", "task", "loss"),
}


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
) -> TuneResult:
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
    rows, labels = np.asarray(uncoded(X)), np.asarray(y)
    if labels.shape != (len(rows),):
        raise ShapeError(f"y: shape {labels.shape}; give one value per row of X")
    named = as_groups(groups, len(rows))
    if find_target(target).family == "host":
        raise TargetError(f"target {target} has no flash to measure; choose a microcontroller")
    # Without a seed trials could not be compared, nor the journal continued.
    seed = options.setdefault("random_state", 0)
    folds = deal_folds(labels, named, n_folds, seed)
    limits = Limits() if budget is None else parse_limits(budget)
    tried = _sizes(limits.flash, sizes)
    # All trainings of a size before the next one: few folds of many sizes tell little.
    rest = range(1, int(folds.max()) + 1)
    trials = [Trial(size, fold) for size in _spread(tried) for fold in (0, -1, *rest)]
    store: Journal | None = None
    before: dict[Trial, Outcome] = {}
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
        n_jobs = effective_n_jobs(n_jobs) if is_remote() else max(1, n_processors + 1 + n_jobs)
    threads = 1 if is_remote() else max(1, n_processors // max(1, n_jobs))
    work = Work(rows, labels, named, folds, target, limits, {**options, "n_jobs": threads})
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
        problem = f"{kilobytes(over[0])} is above the budget" if over else "none given"
        raise OptionError(f"sizes: {problem}; give sizes up to the budget")
    return tried


def _spread(sizes: Sequence[int]) -> list[int]:
    """Order sizes so that the first few span the range: by the reversed bits of their places."""
    places = range(len(sizes))
    width = len(sizes).bit_length()
    order = sorted(places, key=lambda place: f"{place:0{width}b}"[::-1])
    return [sorted(sizes)[-1 - place] for place in order]


def _result(run: Run, target: str, *, balanced: bool) -> TuneResult:
    points, refused = curve(run.outcomes.values(), balanced=balanced), run.refused
    if not points:  # no size has a model and a figure
        if run.stopped == "interrupted":
            raise KeyboardInterrupt
        if refused and not run.stopped:
            raise BudgetError(refused[max(refused)])
        where = "" if run.journal is None else f"; {run.journal.folder} keeps what is finished"
        raise BudgetError(
            f"{run.stopped} before the first size was finished{where}; give more time"
        )
    best, highest = smallest_good(points)
    finals = {point.budget: run.outcomes[Trial(point.budget, -1)] for point in points}
    done, total = run.counts
    return TuneResult(
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
