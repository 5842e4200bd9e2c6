"""Finished trials on disk, so that an interrupted tuning continues.

A folder with a header that identifies data and options, a file for each trial, and a model file for
each final training. The file of a trial is written last and atomically.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.files import write_bytes_atomically
from tinykernel.measure.limits import Limits
from tinykernel.measure.report import Report
from tinykernel.model import IntegerModel
from tinykernel.modelfile import load, save
from tinykernel.tuning.trials import Outcome, Trial

_HEADER, _FORMAT = "journal.json", "tinykernel-tune"
_ADVICE = "delete the folder, or write to another one"


def digest_of(*arrays: NDArray[Any] | None) -> str:
    """Return a hash of types, shapes and values."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        # The bytes of objects and strings are addresses, or padded to the longest.
        is_text = array.dtype.kind in "OUST"
        digest.update(f"{'text' if is_text else array.dtype.str} {array.shape}".encode())
        if is_text:
            digest.update(json.dumps(array.tolist(), default=str).encode())
        else:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Return the keys with different values in two mappings."""
    return sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))


class Journal:
    """The folder of finished trials; `about` (data, options, version) must be that of the run."""

    def __init__(self, folder: Path, about: Mapping[str, Any], n_classes: int) -> None:
        self.folder = folder
        self._header = {"format": _FORMAT, **about}
        self._n_classes = n_classes

    def read(self) -> list[Outcome]:
        """Return the stored outcomes; TinykernelError if damaged or of another tuning."""
        if not self.folder.exists():
            return []
        if not self.folder.is_dir():
            raise TinykernelError(
                f"{self.folder}: is a file; remove it, as the journal needs a folder"
            )
        if not any(self.folder.iterdir()):
            return []
        self._check_header()
        return [self._outcome(file) for file in sorted(self.folder.glob("trial-*.json"))]

    def write(self, outcome: Outcome) -> None:
        """Store an outcome, unless its size was refused; such a trial runs again."""
        if outcome.refused:
            return
        if not (self.folder / _HEADER).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                self._write(self.folder / _HEADER, self._header)
            except BaseException:  # as on a full disk
                with contextlib.suppress(OSError):
                    self.folder.rmdir()
                raise
        fields = {
            name: getattr(outcome, name)
            for name in ("seconds", "confusion", "groups", "instructions", "counted", "search")
        }
        if outcome.memory is not None:
            fields["memory"] = dataclasses.asdict(outcome.memory)
        if outcome.model is not None:
            save(outcome.model, self.model_file(outcome.trial.size))
            fields["fingerprint"] = outcome.model.fingerprint()
        trial = outcome.trial
        name = f"trial-{trial.size}-{'all' if trial.is_final else trial.fold}.json"
        self._write(self.folder / name, {"size": trial.size, "fold": trial.fold, **fields})

    def model_file(self, size: int) -> Path:
        """Return the model file of a size."""
        return self.folder / f"model-{size}.tkm"

    def _write(self, file: Path, content: Mapping[str, Any]) -> None:
        """Write JSON with a checksum of itself."""
        text = json.dumps(content, sort_keys=True)
        check = hashlib.sha256(text.encode()).hexdigest()
        write_bytes_atomically(file, f"{text}\n{check}\n".encode())

    def _read(self, file: Path) -> dict[str, Any]:
        try:
            text, check = file.read_text(encoding="utf-8").splitlines()
            content = json.loads(text)
        except (OSError, ValueError, RecursionError):
            raise self._damaged(file) from None
        if hashlib.sha256(text.encode()).hexdigest() != check or not isinstance(content, dict):
            raise self._damaged(file)
        return content

    def _damaged(self, file: Path) -> TinykernelError:
        return TinykernelError(f"{file}: this part of the journal is damaged; {_ADVICE}")

    def _check_header(self) -> None:
        file = self.folder / _HEADER
        if not file.exists():
            raise TinykernelError(f"{self.folder}: not a journal of tinykernel tune; {_ADVICE}")
        header, here = self._read(file), json.loads(json.dumps(self._header))
        names = _differing(here, header)
        if not names:
            return
        problem = f"other {', '.join(names)}"
        if names == ["options"]:
            now, before = here["options"], header["options"]
            texts = []
            for name in _differing(now, before):
                values = (each.get(name) for each in (before, now))
                old, new = ("not given" if value is None else value for value in values)
                texts.append(f"{name} was {old}, is {new}")
            problem = ", ".join(texts)
        raise TinykernelError(
            f"{self.folder}: is the journal of another tuning: {problem}; repeat its options, "
            f"{_ADVICE}"
        )

    def _outcome(self, file: Path) -> Outcome:
        content = self._read(file)
        try:
            trial = Trial(content.pop("size"), content.pop("fold"))
            fingerprint = content.pop("fingerprint", None)
            model = memory = None
            if trial.is_final:
                model, fields = self._model(trial, fingerprint), content.pop("memory")
                lists = {key: tuple(value) for key, value in fields.items() if type(value) is list}
                limits = fields["limits"] and Limits(**fields["limits"])
                memory = Report(**fields | lists | {"limits": limits})
            outcome = Outcome(trial, memory=memory, model=model, **content)
        except (KeyError, TypeError):
            raise self._damaged(file) from None
        shape = (self._n_classes, self._n_classes)
        if not trial.is_final and np.array(outcome.confusion).shape != shape:
            raise self._damaged(file)
        return outcome

    def _model(self, trial: Trial, fingerprint: str | None) -> IntegerModel:
        file = self.model_file(trial.size)
        try:
            model = load(file)
        except TinykernelError:
            raise self._damaged(file) from None
        if not isinstance(model, IntegerModel) or model.fingerprint() != fingerprint:
            raise self._damaged(file)
        return model
