"""Model files of other libraries, read by these."""

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tinykernel.base.errors import FileError, FormatError, ToolError

#: By suffix: the library that reads the file.
_LIBRARIES = {".txt": "lightgbm", ".json": "xgboost", ".ubj": "xgboost", ".skops": "skops"} | {
    ".onnx": "onnx"
}

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
        raise FormatError(f"{path}: not a file of {', '.join(_LIBRARIES)}")
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
    if library == "onnx":
        return import_module("tinykernel.conversion.networks.onnx").of_onnx(path)
    if library != "skops":
        return import_module("tinykernel.conversion.savedboosters").SavedBooster(path, library)
    try:
        skops = import_module("skops.io")
        names = skops.get_untrusted_types(file=path)  # trees and losses, which are compiled
        return skops.load(path, trusted=[name for name in names if name.startswith("sklearn.")])
    except Exception as error:  # each library has errors of its own
        line = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error)
        raise FormatError(f"{path}: {library} cannot read it: {line}") from None


def input_names(model: Any) -> tuple[str, ...]:
    """Return the names of the inputs of a fitted model; none if it has none."""
    for attribute in ("feature_name", "feature_names", "feature_names_in_"):
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
