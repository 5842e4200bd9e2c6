"""Run trials in parallel within the time limit, and keep finished ones on disk.

A folder with a header that identifies data and options, the options of the call as text, a file for
each trial, and a model file for each final training. The file of a trial is written last and
atomically.
"""

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from tinykernel.base import progress
from tinykernel.base.errors import FileError, FormatError, TinykernelError
from tinykernel.base.files import write_bytes_atomically
from tinykernel.base.text import percent
from tinykernel.kinds.tune.curve import kilobytes
from tinykernel.kinds.tune.trials import Outcome, Stopped, Trial, Work, is_remote, run_trial
from tinykernel.model.file import load, save
from tinykernel.run.capacity import decisive_report

_HEADER, _CALL, _FORMAT = "journal.json", "call.json", "tinykernel-tune"
_ADVICE = "delete the folder, or write to another one"
_STORED = ("seconds", "confusion", "groups", "instructions", "counted", "search")


class Journal:
    """The folder of finished trials; `about` (data, options, version) must be that of the run."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self._header = json.loads(json.dumps({"format": _FORMAT, **about}, default=repr))

    def read(self) -> list[Outcome]:
        """Return the stored outcomes; TinykernelError if damaged or of another tuning."""
        if self.folder.exists() and not self.folder.is_dir():
            raise FileError(f"{self.folder}: is a file; remove it, as the journal needs a folder")
        if not self.folder.exists() or not any(self.folder.iterdir()):
            return []
        self._check_header()
        return [self._outcome(file) for file in sorted(self.folder.glob("trial-*.json"))]

    def write(self, outcome: Outcome) -> None:
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

    def _model_file(self, trial: Trial) -> Path:
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

    def _outcome(self, file: Path) -> Outcome:
        content = _read(file)
        fingerprint = content.pop("fingerprint", None)
        try:
            outcome = Outcome(Trial(content.pop("size"), content.pop("fold")), **content)
        except (KeyError, TypeError):
            raise _damaged(file) from None
        if not outcome.trial.is_final:
            return outcome
        model_file = self._model_file(outcome.trial)
        try:
            model = load(model_file)
        except TinykernelError:
            raise _damaged(model_file) from None
        if model.fingerprint() != fingerprint:
            raise _damaged(model_file)
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
        raise _damaged(file)
    return content


def _damaged(file: Path) -> TinykernelError:
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
