"""What fits: the largest spec whose untrained model is within the limits, and how long it trains.

The share of their epochs that trainings have follows from their work, or the speed of pilots.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinykernel.base import progress
from tinykernel.base.errors import BudgetError, TinykernelError
from tinykernel.base.text import join
from tinykernel.compile.targets import find_target
from tinykernel.kinds.kind import AnyKind, Problem, Spec, table_bytes, too_small
from tinykernel.kinds.pace import Pace, end_of, time_in
from tinykernel.learn.options import NAMED
from tinykernel.model.integer import IntegerModel
from tinykernel.run.estimate import estimate_instructions, instruction_margin
from tinykernel.run.limits import Limits
from tinykernel.run.report import Report, allowed_bytes, decisive_report, needed_bytes

_MOST_MEASUREMENTS = 24


@dataclass(frozen=True)
class Usage:
    """The used share of the tightest limit, and what that is."""

    share: float
    text: str
    n_bytes: int = 0  # of flash over the budget.

    def excess(self, model: IntegerModel) -> int:
        """Return the bytes by which tables should shrink: work is about in proportion to them."""
        return self.n_bytes or int(np.ceil(table_bytes(model) * (1 - 1 / self.share)))


def usage(
    model: IntegerModel,
    limits: Limits | None,
    target: str,
    sizes: Report | None = None,
    *,
    slack: bool = False,
) -> Usage:
    """Return the used share of the tightest limit.

    `sizes` are those that decide, with a margin for compilers, unless the final ones are given: a
    report that knows the limits. With `slack` an untrained model leaves bytes for the training.
    """
    if limits is None:
        return Usage(0.0, "")
    sizes, row = sizes or decisive_report(model, target), find_target(target)
    used = [Usage(0.0, "")]
    if limits.flash is not None:
        is_final = sizes.limits is not None
        needed = sizes.flash if is_final else needed_bytes(sizes)
        allowed = allowed_bytes(limits.flash) if slack else limits.flash
        over = needed - allowed
        text = f"{needed} bytes of flash on {sizes.target} ("
        text += f"{sizes.source}{'' if is_final else ' and margin'}), "
        text += f"{over} over the budget of {limits.flash}"
        used.append(Usage(needed / max(allowed, 1), text, max(over, 0)))
    memory = (("RAM", sizes.ram, limits.ram), ("stack", sizes.stack, limits.stack))
    for name, needed, limit in memory:
        if limit is not None:
            used.append(Usage(needed / limit, f"{needed} bytes of {name} of {limit}"))
    most = limits.most_instructions(row.cycles[1])
    if most is not None:
        needed = round(estimate_instructions(model, row) * (1 + instruction_margin(row)))
        text = f"about {needed} instructions of {most}, margin included"
        used.append(Usage(needed / most, text))
    return max(used, key=lambda use: use.share)


@dataclass(frozen=True)
class Sized:
    """The largest specs within the limits, and the least usage of those that are not."""

    specs: Sequence[Spec]
    least: Usage | None = None
    unknown: TinykernelError | None = None


def size_specs(kind: AnyKind, problem: Problem) -> Sized:
    """Return each spec of a kind at the largest size within the limits."""
    if problem.limits is None:
        return Sized(kind.specs(problem))
    fitting, over, unknown = dict[Spec, None](), list[Usage](), None
    try:
        specs = kind.specs(problem)
    except TinykernelError as error:
        if problem.options.model != "auto":
            raise
        return Sized([], None, error)
    for spec in specs:
        try:
            with progress.observing(None):  # what few rows take is short
                largest, used = _largest(kind, spec, problem)
        except TinykernelError as error:
            # The size of one form may be unknown without a compiler; others may go on.
            if problem.options.size:
                fitting[spec] = None
            unknown = error
            continue
        if largest is None:
            over.append(used)
        else:
            fitting[largest] = None
    least = min(over, key=lambda used: used.share, default=None)
    return Sized(kind.contenders(list(fitting), problem), least, unknown)


def _largest(kind: AnyKind, spec: Spec, problem: Problem) -> tuple[Spec | None, Usage]:
    """Bisect the size of a spec by the sizes of untrained models; or make it smaller otherwise."""
    limits, target = problem.limits, problem.target

    def used(candidate: Spec) -> Usage:
        return usage(kind.skeleton(candidate, problem), limits, target, slack=True)

    first = used(spec)
    if first.share <= 1 or problem.options.size:
        exact = usage(kind.skeleton(spec, problem), limits, target)
        return (None if exact.share > 1 else spec), exact
    if not spec.SIZE:
        while first.share > 1:
            model = kind.skeleton(spec, problem)
            smaller = kind.smaller(spec, first.n_bytes, model, problem)
            if smaller is None:
                return None, first
            spec, first = smaller, used(smaller)
        return spec, first
    step, high, low = spec.STEP, spec.size, spec.FEWEST
    above, below = first.share, used(kind.resize(spec, low, problem))
    if below.share > 1:
        return None, below
    share = below.share
    for number in range(_MOST_MEASUREMENTS):
        if high - low <= step:
            break
        # The share grows about in proportion; every third step halves, in case it does not.
        guess = (low + high) // 2
        if number % 3 < 2:
            guess = low + int((high - low) * (1 - share) / max(above - share, 1e-9))
        guess = min(max(guess // step * step, low + step), high - step)
        measured = used(kind.resize(spec, guess, problem)).share
        if measured <= 1:
            low, share = guess, measured
            if share > _NEARLY:
                break
        else:
            high, above = guess, measured
    return kind.resize(spec, low, problem), below


# From this share of a limit on, nothing larger is tried.
_NEARLY = 0.995


def no_room(problem: Problem, sizes: Sequence[Sized]) -> TinykernelError:
    """Return the error about limits that no spec keeps to."""
    limits, options, target = problem.limits, problem.options, problem.target
    unknown = [size.unknown for size in sizes if size.unknown is not None]
    over = [size.least for size in sizes if size.least is not None]
    if not over and unknown:
        return unknown[0]
    least = min(over, key=lambda used: used.share, default=Usage(1.0, "more"))
    assert limits is not None
    if name := options.size:
        return BudgetError(
            f"a model of {getattr(options, name)} {name.removeprefix('n_')} needs {least.text}; "
            f"use fewer {{{name}}} or a larger budget",
            **{name: None},
        )
    if least.n_bytes and limits.flash is not None:
        return too_small(problem, limits.flash + least.n_bytes)
    return BudgetError(
        f"no model for this data is within {limits} on {target}: the last one tried needs "
        f"{least.text}; give a larger budget"
    )


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
    doing = f"{join(list(first))} compete, then the best one trains"
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
        result = kind.fit(kind.resize(spec, spec.size, few), few, Pace(few.effort))
        result.machine.scores(few.data.X[:1])  # compiled now, as its rows will be predicted
    if result.history.interrupted:
        raise KeyboardInterrupt  # which ended this short training only
    seconds = result.history.epochs[-1]["seconds"]
    return seconds * n_epochs * len(problem.data.X) / len(few.data.X)
