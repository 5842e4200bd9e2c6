"""Model files of other libraries, read by these; boosters in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import FileError, FormatError, ToolError
from tinykernel.conversion import dumps
from tinykernel.conversion.checks import first_line, intact

#: Seconds of a processor; a busy machine may take six times as long.
SECONDS = {"read": 15, "predict": 200}
# Windows has neither.
_LATE = [getattr(signal, name) for name in ("SIGXCPU", "SIGKILL") if hasattr(signal, name)]


class SavedBooster:
    """A model file of LightGBM or XGBoost: its dump, and what the library predicts by it."""

    def __init__(self, path: Path, library: str) -> None:
        self.path, self.library = path, library
        answer = self._asked("read")
        self.take(path, library, answer["dump"], answer.get("rounds", (0, 0)))

    def take(self, path: Path, library: str, dump: Any, rounds: tuple[int, int]) -> None:
        """Take what a file holds, and check what else than its trees is read."""
        self.path, self.library, self.dump, self._rounds = path, library, dump, rounds
        light = library == "lightgbm"
        with intact(f"{path}: the model of {library}"):
            about = dump if light else dump["learner_model_param"]
            n = int(about["max_feature_idx"]) + 1 if light else int(about["num_feature"])
            self.n_features_in_ = n
            self.feature_names = tuple(map(str, dump.get("feature_names") or ()))
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
                answer = json.loads(result.read_text(encoding="utf-8"))
            except subprocess.TimeoutExpired:
                raise late from None
            except FormatError:
                raise
            except (OSError, ValueError, RecursionError):
                raise FormatError(f"{failed}: it ended the process") from None
        if "error" in answer:
            raise FormatError(f"{failed}: {answer['error']}")
        return dict(answer)


#: By suffix: the library that reads the file.
_LIBRARIES = {".txt": "lightgbm", ".json": "xgboost", ".ubj": "xgboost", ".skops": "skops"} | {
    ".onnx": "onnx",
    ".tflite": "tflite",
}
#: By suffix of another file: what writes one of these.
_WRITERS = dict.fromkeys((".keras", ".h5"), "tf.lite.TFLiteConverter writes .tflite") | {
    ".cbm": "save_model(..., format='json') writes .json",
    ".pt": "torch.onnx.export writes .onnx",
}
_LARGEST = 64 << 20  # of a network, far more than a microcontroller has


_POINTER = b"version https://git-lfs"


def read_model(path: Path) -> Any:
    """Read the model of a file."""
    suffix = path.suffix.lower()
    if suffix in (".pkl", ".pickle", ".joblib"):
        raise FormatError(
            f"{path}: reading a pickle of another library runs code from it; in Python, write "
            "'import joblib, tinykernel' and "
            f"'tinykernel.save(tinykernel.convert(joblib.load({path.name!r})), \"x.tkm\")'"
        )
    if suffix not in _LIBRARIES:
        way = f"; {_WRITERS[suffix]}" if suffix in _WRITERS else ""
        raise FormatError(f"{path}: not a file of {', '.join(_LIBRARIES)}{way}")
    if not path.exists():
        raise FileError(f"{path}: no such file")
    try:
        with path.open("rb") as stream:
            pointer = stream.read(len(_POINTER))
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from None
    if pointer == _POINTER:
        raise FormatError(f"{path}: stands for a file of Git LFS; 'git lfs pull' fetches that")
    if suffix == ".json" and _is_of_catboost(path):
        return import_module("tinykernel.conversion.catboost").SavedModel(path.read_bytes())
    library = _LIBRARIES[suffix]
    if find_spec(library) is None:
        raise ToolError(f"{path}: needs {library}; pip install {library}")
    if library in ("onnx", "tflite"):
        beside = path.with_name(f"{path.name}.data")
        size = sum(each.stat().st_size for each in (path, beside) if each.exists())
        if size > _LARGEST:
            raise FormatError(
                f"{path}: {size >> 20} MB of weights, where 64 MB are read; train a smaller network"
            )
        module = import_module(f"tinykernel.conversion.networks.{library}")
        return getattr(module, f"of_{library}")(path)
    if library != "skops":
        return SavedBooster(path, library)
    try:
        skops = import_module("skops.io")
        names = skops.get_untrusted_types(file=path)  # trees and losses, which are compiled
        return skops.load(path, trusted=[name for name in names if name.startswith("sklearn.")])
    except Exception as error:  # each library has errors of its own
        raise FormatError(f"{path}: {library} cannot read it: {first_line(error)}") from None


def input_names(model: Any) -> tuple[str, ...]:
    """Return the names of the inputs of a fitted model; none if it has none."""
    for attribute in ("feature_name", "feature_names", "feature_names_in_", "feature_names_"):
        names = getattr(model, attribute, None)
        if names is not None:
            return tuple(map(str, names() if callable(names) else names))
    return ()


def _is_of_catboost(path: Path) -> bool:
    """Say whether a JSON file is of CatBoost or of XGBoost; others are refused by their name."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise FormatError(f"{path}: not JSON, or cut off; save the model again") from None
    keys = content.keys() if isinstance(content, dict) else set()
    if "tree_info" in keys:
        raise FormatError(
            f"{path}: a dump of LightGBM; give the file that booster.save_model('model.txt') writes"
        )
    if "features_info" in keys and "trees" in keys:
        raise FormatError(
            f"{path}: unsymmetric trees of CatBoost are not supported; train with "
            "grow_policy='SymmetricTree'"
        )
    if not keys & {"oblivious_trees", "learner"}:
        raise FormatError(f"{path}: not a model of XGBoost or CatBoost")
    return "oblivious_trees" in keys
