"""How much of a search and of a training is done: by a plan in work, or by a limit of seconds."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import floor, inf

from tinykernel.base import progress
from tinykernel.learn.options import NAMED, Effort

# Shares of the time: until when settings are searched, for finalists and the final training, and
# until when that should end, as speeds vary.
_SEARCH, _REST, _END = 0.45, 0.4, 0.92
# Longest last steps: packing, and linking where there is a compiler; and predicting all rows, in
# epochs.
_LAST_SECONDS, _LAST_EPOCHS = 2.0, 0.4
# Trials that each kind has at least.
_FEWEST_TRIALS = 6
#: Trials of the settings of each kind, after its first one, with effort="quick".
QUICK_TRIALS = 8
_clock = time.monotonic


@dataclass(eq=False)
class Pace:
    """An effort, and the work or the time that limits it.

    Without a limit of time the clock is never read: the effort decides alone, or a plan by the
    `work` that it may take. With a limit, `effort` ends as the numbers by which the same bytes can
    be made again.
    """

    effort: Effort = NAMED["normal"]
    seconds: float | None = None
    work: float | None = None  # in seconds of a usual processor.
    n_trials: int = 0
    whole: Effort = NAMED["normal"]  # before the time shortened it.
    is_settled: bool = False  # whether a final training has ended: others have its epochs.
    _end: float = 0.0
    _last: float = 0.0
    _span: float = 0.0  # of the shares: what compiling and measuring have left.
    _of_kind: Counter[str] = field(default_factory=Counter)
    #: Most trials of each kind, by the plan.
    _most: Mapping[str, float] = field(default_factory=dict)
    _refuses: bool = False

    def __post_init__(self) -> None:
        self._end = self._span = self.work or 0.0

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

    @property
    def is_short(self) -> bool:
        """Whether some kind has had fewer trials of settings than it asked for."""
        return self.is_cut or self._refuses

    def may_try(self, kind: str) -> bool:
        """Whether one more trial of settings of a kind is made."""
        most = QUICK_TRIALS if self.effort.is_quick else inf
        if self.is_cut or self._of_kind[kind] >= min(most, self._most.get(kind, inf)):
            self._refuses = True
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

    def begin_search(self) -> float:
        """Begin the search after what compiling and measuring took; return the seconds left."""
        if self.work is not None:
            return self.work
        self._last = _clock()
        self._span = max(self._end - self._last, 0.0)
        return self._span

    def shorten_trials(self, times: Mapping[str, float]) -> None:
        """Choose the most trials of each kind, by the work of one."""
        if self.work is not None:
            fewest, all_of_them = _FEWEST_TRIALS, _SEARCH * self.work
            self._most = {
                kind: max(fewest, int(all_of_them / time)) for kind, time in times.items() if time
            }

    def shorten_search(self, seconds: float) -> None:
        """Choose the share of the epochs in trainings that compare: whole ones take `seconds`."""
        share = _round_down(_REST * self._span / seconds) if seconds else 1.0
        self.effort = replace(self.effort, share=min(self.effort.share, share))
        if self.work is not None:
            self._end -= self.effort.share * seconds

    def shorten_final(self, seconds: float, epochs: int) -> None:
        """Choose the share of the epochs of the final training: a whole one takes `seconds`."""
        left = self._end - (1 - _END) * self._span
        if self.work is None:
            left -= _clock() + _LAST_SECONDS + _LAST_EPOCHS * seconds / epochs
        self.effort = replace(
            self.effort, final=min(self.effort.final, _round_down(left / seconds))
        )

    def final_epochs(self, epochs: int) -> int:
        """Return how many of so many epochs the final training has."""
        return max(1, round(self.effort.final * epochs))

    def replan(self, done: int, total: int, seconds: float) -> int:
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
        ends = end_of((most - done) * seconds)
        message = f"{most} of {total} epochs, as they take longer, until about {ends}"
        progress.report(progress.PLAN, 0, None, message)
        return most

    def leaves(self, seconds: float) -> bool:
        """Whether so much time is left."""
        return self.seconds is None or _clock() + seconds + _LAST_SECONDS < self._end


def time_in(left: float) -> str:
    """Return the time of day in so many seconds."""
    # Some systems have no later times.
    return time.strftime("%H:%M:%S", time.localtime(min(time.time() + left, 2.0**31)))


def end_of(seconds: float) -> str:
    """Return the time of day at which a final training of so many seconds ends."""
    return time_in(seconds + _LAST_SECONDS)


def _round_down(share: float) -> float:
    """Round a share down, so that few digits tell it."""
    return min(1.0, max(0.01, floor(share * 100) / 100))
