"""Run trials in parallel within the time limit, and store finished ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.text import percent
from tinykernel.tuning.curve import kilobytes
from tinykernel.tuning.journal import Journal
from tinykernel.tuning.trials import Outcome, Stopped, Trial, Work, run_trial

#: Backends of this computer; others are addresses of Dask schedulers.
LOCAL = ("threading", "loky")


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
        self.work, self.trials, self.journal = work, trials, journal
        self.outcomes = dict(before)
        self.stopped = ""
        self._left = [trial for trial in trials if trial not in before]
        self._started = time.monotonic()
        self._max_time = max_time
        self._here, self._begun = 0, False

    def go(self, backend: str, n_jobs: int) -> None:
        """Run the remaining trials; Ctrl-C ends this, finished ones stay."""
        self._say("")
        try:
            with _parallel(backend, n_jobs) as parallel:
                if backend != "threading":
                    # Numba's cache mixes up entries when processes compile the same at once, so
                    # the first trial compiles alone.
                    for trial in self._next(1):
                        self._take(run_trial(self.work, trial))
                for outcome in parallel(self.work, self._next()):
                    self._take(outcome)
        except KeyboardInterrupt:
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

    def _next(self, most: int | None = None) -> Iterator[Trial]:
        """Yield trials while there is time for them."""
        begun = 0
        while begun != most:
            refused = self.refused
            self._left = [trial for trial in self._left if trial.size not in refused]
            if not self._left:
                return
            trial = next((each for each in self._left if self._in_time(each)), None)
            if trial is None:
                self.stopped = "the time was up"
                return
            self._left.remove(trial)
            begun, self._begun = begun + 1, True
            yield trial

    def _in_time(self, trial: Trial) -> bool:
        """Estimate the seconds of a trial from that of the closest size."""
        if self._max_time is None or not self._begun:
            return True  # one always runs, so that repeated runs make progress
        known = [
            (abs(o.trial.size - trial.size), -o.seconds * max(1, trial.size / o.trial.size))
            for o in list(self.outcomes.values())
            if not o.refused
        ]
        expected = -min(known)[1] if known else 0.0
        return time.monotonic() - self._started + expected < self._max_time

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
            left = (time.monotonic() - self._started) / self._here * (total - done)
            if self._max_time is not None:
                left = min(left, self._max_time - (time.monotonic() - self._started))
            text += f", about {max(0.0, left):.0f} s left"
        progress.report("tuning", done, total, text)


@contextmanager
def _parallel(
    backend: str, n_jobs: int
) -> Iterator[Callable[[Work, Iterable[Trial]], Iterator[Outcome]]]:
    """Return a function that runs trials by joblib and yields outcomes, in any order."""
    from joblib import Parallel, delayed, parallel_config

    stop = threading.Event() if backend == "threading" else None

    def run(work: Work, trials: Iterable[Trial]) -> Iterator[Outcome]:
        # One trial at a time is requested, to keep the time limit.
        jobs = Parallel(batch_size=1, pre_dispatch="n_jobs", return_as="generator_unordered")
        outcomes = jobs(delayed(run_trial)(work, trial, stop) for trial in trials)
        try:
            yield from outcomes
        except BaseException:
            if stop is not None:
                stop.set()  # else Ctrl-C waits for the end of the trials
            raise
        finally:
            outcomes.close()

    name = backend if backend in LOCAL else "dask"
    client = nullcontext() if backend in LOCAL else _client(backend)
    try:
        with client, parallel_config(name, n_jobs=n_jobs):
            yield run
    except Stopped:
        raise KeyboardInterrupt from None


def _client(address: str) -> AbstractContextManager[Any]:
    """Connect to the scheduler of a Dask cluster."""
    if "://" not in address:
        raise TinykernelError(
            f"backend: {address!r}; give {', '.join(LOCAL)}, or the address of a Dask scheduler, "
            "such as tcp://127.0.0.1:8786"
        )
    try:
        import distributed
    except ImportError:
        raise TinykernelError(
            f"backend {address}: Dask is missing; install it with: pip install distributed"
        ) from None
    try:
        client: AbstractContextManager[Any] = distributed.Client(address, timeout="10s")  # type: ignore[no-untyped-call,unused-ignore]
    except (OSError, ValueError) as error:
        raise TinykernelError(
            f"backend {address}: no scheduler answers ({error}); start 'dask scheduler' there"
        ) from None
    return client
