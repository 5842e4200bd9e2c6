"""Finished trials on disk, so that an interrupted tuning continues.

A folder with a header that identifies data and options, the options of the call as text, a file for
each trial, and a model file for each final training. The file of a trial is written last and
atomically.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinykernel.errors import FileError, FormatError, TinykernelError
from tinykernel.files import write_bytes_atomically
from tinykernel.measure.capacity import decisive_report
from tinykernel.modelfile import load, save
from tinykernel.tuning.trials import Outcome, Trial

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
