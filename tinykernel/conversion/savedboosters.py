"""Boosters of files, which their libraries read in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import FormatError
from tinykernel.conversion import dumps

#: Seconds of a processor; a busy machine may take six times as long.
SECONDS = {"read": 20, "predict": 200}
# Windows has neither.
_LATE = [getattr(signal, name) for name in ("SIGXCPU", "SIGKILL") if hasattr(signal, name)]


class SavedBooster:
    """A model file of LightGBM or XGBoost: its dump, and what the library predicts by it."""

    def __init__(self, path: Path, library: str) -> None:
        self.path, self.library = path, library
        said = self._asked("read")
        self.take(path, library, said["dump"], said.get("rounds", (0, 0)))

    def take(self, path: Path, library: str, dump: Any, rounds: tuple[int, int]) -> None:
        """Take what a file holds, and check what else than its trees is read."""
        self.path, self.library, self.dump, self._rounds = path, library, dump, rounds
        light = library == "lightgbm"
        try:
            about = dump if light else dump["learner_model_param"]
            n = int(about["max_feature_idx"]) + 1 if light else int(about["num_feature"])
            self.n_features_in_ = n
            self.feature_names = tuple(map(str, dump.get("feature_names") or ()))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise FormatError(f"{path}: the model of {library} is damaged; save it again") from None
        self._known: tuple[bytes, NDArray[Any]] = (b"", np.zeros(0))

    @property
    def notes(self) -> tuple[str, ...]:
        """What nobody can know from the file, or had to choose."""
        if self.library == "lightgbm":
            return ()
        notes = [
            f"{self.path}: NaN is taken for the missing value; files of XGBoost do not hold "
            "another one (missing=), which the fitted model has: convert that"
        ]
        first, rounds = self._rounds
        if first < rounds:
            notes.append(
                f"{self.path}: the first {first} of {rounds} rounds are converted, "
                "since the training was stopped early"
            )
        return tuple(notes)

    def predict(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Predict as the Booster does, from rows with the codes of categories."""
        rows = np.ascontiguousarray(rows, np.float64)
        digest = sha256(rows.tobytes()).digest()
        if self._known[0] != digest:
            self._known = digest, np.array(self._asked("predict", rows)["answers"])
        return self._known[1]

    def _asked(self, way: str, rows: NDArray[Any] | None = None) -> dict[str, Any]:
        """Ask a process of its own, since a loader of another library can end or hold it."""
        failed = f"{self.path}: {self.library} could not {way} it"
        with TemporaryDirectory() as folder:
            result, table = Path(folder) / "result.json", Path(folder) / "rows.npy"
            if rows is not None:
                np.save(table, rows)
            task = [result, self.library, self.path.resolve(), *([] if rows is None else [table])]
            late = FormatError(f"{failed} within {SECONDS[way]} seconds")
            # The text of the script: beside its file lie modules with names of libraries.
            script = Path(dumps.__file__).read_text(encoding="utf-8")
            try:
                ended = subprocess.run(
                    [sys.executable, "-c", script, *map(str, [*task, SECONDS[way]])],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=6 * SECONDS[way],
                    cwd=folder,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
                if -ended.returncode in _LATE:
                    raise late
                said = json.loads(result.read_text(encoding="utf-8"))
            except subprocess.TimeoutExpired:
                raise late from None
            except FormatError:
                raise
            except (OSError, ValueError, RecursionError):
                raise FormatError(f"{failed}: it ended the process") from None
        if "error" in said:
            raise FormatError(f"{failed}: {said['error']}")
        return dict(said)
