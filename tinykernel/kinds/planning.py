"""Which share of their epochs trainings have: by their work, or by the speed of pilots."""

from collections.abc import Sequence
from dataclasses import replace

from tinykernel.base import progress
from tinykernel.base.text import listed
from tinykernel.kinds.kind import AnyKind, Spec
from tinykernel.kinds.pace import Pace, end_of, time_in
from tinykernel.kinds.problem import Problem
from tinykernel.learn.effort import NAMED

# Epochs and rows of a training that measures the speed.
_PILOT_EPOCHS, _PILOT_ROWS = 2, 256
# Work that a training takes at most where nobody says how much: of signals and images, which take
# two cores ten minutes, and of tables.
_WORK, _WORK_OF_TABLES = 1200.0, 120.0


def usual_pace(problem: Problem) -> Pace:
    """Return the pace of an effort with a name: a plan by work, which is the same everywhere."""
    if problem.options.epochs or problem.options.effort not in NAMED:
        return Pace(problem.effort)
    return Pace(problem.effort, work=_WORK_OF_TABLES if problem.shape is None else _WORK)


def plan_search(pace: Pace, tasks: Sequence[tuple[AnyKind, Spec]], problem: Problem) -> None:
    """Choose the share of the epochs by which kinds are compared."""
    if pace.seconds is None and pace.work is None:
        return
    if pace.seconds is not None:
        progress.report("measuring the speed", 0, None)
    first = {kind.name: (kind, spec) for kind, spec in reversed(tasks)}
    times = {name: _time(pace, *task, problem) for name, task in first.items()}
    left = pace.begin_search()
    pace.shorten_trials({name: first[name][0].trial_share * times[name] for name in times})
    if len(tasks) > 1:
        finals = sum(first[name][0].share * seconds for name, seconds in times.items())
        pace.shorten_search(max(times.values()) + (3.0 if problem.is_few else 0.75) * finals)
    if pace.seconds is None:
        return
    doing = f"{listed(list(first))} compete, then the best one trains"
    if len(first) == 1:
        doing = f"{next(iter(first))}: settings are searched, then it trains"
    ends = f", until {time_in(left)} at the latest"
    if not left:
        ends = "; the time is over, so each step is as short as it can be"
    progress.report(progress.PLAN, 0, None, doing + ends)


def plan_final(pace: Pace, kind: AnyKind, spec: Spec, problem: Problem) -> None:
    """Choose the share of the epochs of the final training."""
    if pace.seconds is None and pace.work is None:
        return
    epochs, seconds = kind.epochs(spec, problem), _time(pace, kind, spec, problem)
    if not (epochs and seconds):
        return
    pace.shorten_final(seconds, epochs)
    planned = f"{pace.final_epochs(epochs)} of {epochs} epochs"
    if pace.seconds is not None:
        planned += f", until about {end_of(pace.effort.final * seconds)}"
    if pace.seconds is not None or pace.effort.final < 1:
        progress.report(progress.PLAN, 0, None, f"{spec}: {planned}")


def _time(pace: Pace, kind: AnyKind, spec: Spec, problem: Problem) -> float:
    """Return how long all epochs take, by the clock or by their work."""
    return problem.once(_work if pace.seconds is None else _seconds, kind, spec)


def _work(problem: Problem, kind: AnyKind, spec: Spec) -> float:
    return kind.work(spec, problem)


def _seconds(problem: Problem, kind: AnyKind, spec: Spec) -> float:
    """Return how long all epochs take, by two epochs of few rows; 0 of what has none."""
    n_epochs = kind.epochs(spec, problem)
    if not n_epochs:
        return 0.0
    few = problem.few(_PILOT_ROWS)
    options = replace(few.options, effort="quick", epochs=_PILOT_EPOCHS, teachers=0)
    few = replace(few, options=options)
    with progress.observing(None):
        result = kind.fit(kind.resized(spec, spec.size, few), few, Pace(few.effort))
        result.machine.scores(few.data.X[:1])  # compiled now, as its rows will be predicted
    if result.history.interrupted:
        raise KeyboardInterrupt  # which ended this short training only
    seconds = result.history.epochs[-1]["seconds"]
    return seconds * n_epochs * len(problem.data.X) / len(few.data.X)
