"""The time of a training: an effort that ends in time, laid out by measured speeds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import floor
from typing import TYPE_CHECKING

from tinykernel.base import progress
from tinykernel.base.text import listed
from tinykernel.learn.options import NAMED, Effort

if TYPE_CHECKING:
    from tinykernel.kinds.kind import AnyKind, Spec
    from tinykernel.kinds.problem import Problem

# Shares of the time: until when settings are searched, for finalists and the final training, and
# until when that should end, as speeds vary.
_SEARCH, _REST, _END = 0.45, 0.4, 0.92
# Longest last steps: packing, and linking where there is a compiler; and predicting all rows, in
# epochs.
_LAST_SECONDS, _LAST_EPOCHS = 2.0, 0.4
#: Trials of the settings of each kind, after its first one, with effort="quick".
QUICK_TRIALS = 8
# Epochs and rows of a training that measures the speed.
_PILOT_EPOCHS, _PILOT_ROWS = 2, 256
_clock = time.monotonic


@dataclass(eq=False)
class Pace:
    """An effort, and the time that limits it.

    Without a limit the effort decides alone, and the clock is never read. With one, `effort` ends
    as the numbers by which the same bytes can be made again.
    """

    effort: Effort = NAMED["normal"]
    seconds: float | None = None
    n_trials: int = 0
    whole: Effort = NAMED["normal"]  # before the time shortened it.
    is_settled: bool = False  # whether a final training has ended: others have its epochs.
    _end: float = 0.0
    _last: float = 0.0
    _span: float = 0.0  # of the shares: what compiling and measuring have left.
    _of_kind: Counter[str] = field(default_factory=Counter)
    _times: dict[tuple[str, Spec], float] = field(default_factory=dict)  # of all epochs.

    def limit(self, seconds: float) -> None:
        """Limit the time from now on."""
        self.seconds, self.whole = seconds, self.effort
        self._last = _clock()
        self._end, self._span = self._last + seconds, seconds

    @property
    def is_limiting(self) -> bool:
        """Whether the time has shortened something."""
        return self.seconds is not None and self.effort != self.whole

    @property
    def is_cut(self) -> bool:
        """Whether no more trials of settings are made."""
        return self.n_trials >= self.effort.trials

    def goes_on(self, kind: str) -> bool:
        """Whether one more trial of settings of a kind is made."""
        if self.is_cut or (self.effort.is_quick and self._of_kind[kind] >= QUICK_TRIALS):
            return False
        if self.seconds is not None:
            now = _clock()
            if 2 * now - self._last > self._end - (1 - _SEARCH) * self._span:
                self.effort = replace(self.effort, trials=self.n_trials)
                return False
            self._last = now
        self.n_trials += 1
        self._of_kind[kind] += 1
        return True

    def lay_out(self, tasks: Sequence[tuple[AnyKind, Spec]], problem: Problem) -> None:
        """Choose the share of the epochs by which kinds are compared."""
        if self.seconds is None:
            return
        progress.report("measuring the speed", 0, None)
        first = {kind.name: (kind, spec) for kind, spec in reversed(tasks)}
        times = {name: self._measured(*task, problem) for name, task in first.items()}
        self._last = _clock()
        self._span = max(self._end - self._last, 0.0)
        if len(tasks) > 1:
            finals = sum(first[name][0].share * seconds for name, seconds in times.items())
            whole = max(times.values()) + (3.0 if problem.is_few else 0.75) * finals
            share = _rounded(_REST * self._span / whole) if whole else 1.0
            self.effort = replace(self.effort, share=min(self.effort.share, share))
        doing = f"{listed(list(first))} compete, then the best one trains"
        if len(first) == 1:
            doing = f"{next(iter(first))}: settings are searched, then it trains"
        ends = f", until {_at(self._span)} at the latest"
        if not self._span:
            ends = "; the time is over, so each step is as short as it can be"
        progress.report(progress.PLAN, 0, None, doing + ends)

    def last(self, kind: AnyKind, spec: Spec, problem: Problem) -> None:
        """Choose the share of the epochs of the final training."""
        if self.seconds is None:
            return
        epochs, seconds = kind.epochs(spec, problem), self._measured(kind, spec, problem)
        if seconds:
            left = self._end - (1 - _END) * self._span - _clock()
            left -= _LAST_SECONDS + _LAST_EPOCHS * seconds / epochs
            share = min(self.effort.final, _rounded(left / seconds))
            self.effort = replace(self.effort, final=share)
            planned = f"{max(1, round(share * epochs))} of {epochs} epochs"
            ends = _at(share * seconds + _LAST_SECONDS)
            progress.report(progress.PLAN, 0, None, f"{spec}: {planned}, until about {ends}")

    def _measured(self, kind: AnyKind, spec: Spec, problem: Problem) -> float:
        key = kind.name, spec
        if key not in self._times:
            self._times[key] = _seconds(kind, spec, problem)
        return self._times[key]

    def replanned(self, done: int, total: int, seconds: float) -> int:
        """Return the epochs of a final training in all, after so many of `seconds` each.

        They are fewer where they would end too late, but at least one, in which steps get small.
        """
        cuts = dict(self.effort.cuts)
        total = min(total, cuts.get(done, total))
        if self.seconds is None or self.is_settled:
            return total
        left = self._end - _LAST_SECONDS - _LAST_EPOCHS * seconds - _clock()
        most = max(done + 1, done + int(left / max(seconds, 1e-9)))
        if most >= total:
            return total
        before = ((at, planned) for at, planned in self.effort.cuts if at < done)
        self.effort = replace(self.effort, cuts=(*before, (done, most)))
        ends = _at((most - done) * seconds + _LAST_SECONDS)
        message = f"{most} of {total} epochs, as they take longer, until about {ends}"
        progress.report(progress.PLAN, 0, None, message)
        return most

    def leaves(self, seconds: float) -> bool:
        """Whether so much time is left."""
        return self.seconds is None or _clock() + seconds + _LAST_SECONDS < self._end


def _at(left: float) -> str:
    """Return the time of day in so many seconds."""
    # Some systems have no later times.
    return time.strftime("%H:%M:%S", time.localtime(min(time.time() + left, 2.0**31)))


def _rounded(share: float) -> float:
    """Round a share down, so that few digits tell it."""
    return min(1.0, max(0.01, floor(share * 100) / 100))


def _seconds(kind: AnyKind, spec: Spec, problem: Problem) -> float:
    """Return how long all epochs take, by two epochs of few rows; 0 of what has none."""
    n_epochs = kind.epochs(spec, problem)
    if not n_epochs:
        return 0.0
    few = problem.few(_PILOT_ROWS)
    few = replace(
        few, options=replace(few.options, effort="quick", epochs=_PILOT_EPOCHS, teachers=0)
    )
    with progress.observing(None):
        result = kind.fit(kind.resized(spec, spec.size, few), few)
        result.machine.scores(few.data.X[:1])  # compiled now, as its rows will be predicted
    if result.history.interrupted:
        raise KeyboardInterrupt  # which ended this short training only
    seconds = result.history.epochs[-1]["seconds"]
    return seconds * n_epochs * len(problem.data.X) / len(few.data.X)
