"""Run trials in parallel within the time limit, and store finished ones."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from joblib import Parallel, delayed

from tinykernel import progress
from tinykernel.text import percent
from tinykernel.tuning.backend import is_remote
from tinykernel.tuning.curve import kilobytes
from tinykernel.tuning.journal import Journal
from tinykernel.tuning.trials import Outcome, Stopped, Trial, Work, run_trial


class Run:
    """The planned trials and their outcomes."""

    def __init__(
        self,
        work: Work,
        trials: Sequence[Trial],
        before: Mapping[Trial, Outcome],
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
        stop = None if is_remote() else threading.Event()
        # One trial at a time is requested, to keep the time limit.
        jobs = Parallel(
            n_jobs,
            prefer="threads",
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",
        )
        outcomes = jobs(delayed(run_trial)(self.work, trial, stop) for trial in self._next())
        try:
            try:
                for outcome in outcomes:
                    self._take(outcome)
            finally:
                if stop is not None:
                    stop.set()  # else Ctrl-C waits for the end of the trials
                outcomes.close()
        except (KeyboardInterrupt, Stopped):
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

    def _next(self) -> Iterator[Trial]:
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

    def _in_time(self, trial: Trial) -> bool:
        """Say whether a trial would probably end within the time."""
        if self._max_time is None or not self._begun:
            return True  # one always runs, so that repeated runs make progress
        return time.monotonic() - self._started + self._expected(trial) < self._max_time

    def _expected(self, trial: Trial) -> float:
        """Estimate the seconds of a trial from that of the closest size."""
        nearest = [
            (abs(o.trial.size - trial.size), -o.seconds * max(1, trial.size / o.trial.size))
            for o in list(self.outcomes.values())
            if not o.refused
        ]
        return -min(nearest)[1] if nearest else 0.0

    def _take(self, outcome: Outcome) -> None:
        self.outcomes[outcome.trial] = outcome
        if self.journal is not None:
            self.journal.write(outcome)
        self._here += 1
        size = kilobytes(outcome.trial.size)
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
            expected = [self._expected(trial) for trial in waiting if trial.size not in refused]
            left = max(max(expected), sum(expected) / self._jobs)
            text += f", about {left:.0f} s left"
            if limit is not None and limit - passed < left:
                text += f", {max(0.0, limit - passed):.0f} s until the limit"
        progress.report("tuning", done, total, text)
