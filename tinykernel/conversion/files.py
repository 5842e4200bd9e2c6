"""Model files of other libraries, read by these."""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tinykernel.base.errors import FileError, FormatError, ToolError

#: By suffix: the library that reads the file.
_LIBRARIES = {".txt": "lightgbm", ".json": "xgboost", ".ubj": "xgboost", ".skops": "skops"} | {
    ".onnx": "onnx"
}


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
    if suffix == ".json" and b'"oblivious_trees"' in path.read_bytes():
        return import_module("tinykernel.conversion.catboost").SavedModel(path.read_bytes())
    library = _LIBRARIES[suffix]
    if find_spec(library) is None:
        raise ToolError(f"{path}: needs {library}; pip install {library}")
    if library == "onnx":
        return import_module("tinykernel.conversion.networks.onnx").of_onnx(path)
    try:
        if library == "lightgbm":
            return _of_lightgbm(path.read_text(encoding="utf-8"))
        if library != "skops":
            return import_module(library).Booster(model_file=str(path))
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


def _of_lightgbm(text: str) -> Any:
    """Read a model as text; a ValueError says that trees are missing."""
    if re.search(r"\n(end of trees|feature.importances:)", text) is None:
        raise ValueError("its trees have no end")
    # With their sizes, trees are read in threads, where a fault ends the process.
    sizes = "".join(re.findall(r"\ntree_sizes=(.*)", text)).split()
    rest = re.sub(r"\ntree_sizes=.*", "", text)
    booster = import_module("lightgbm").Booster(model_str=rest)
    if sizes and booster.num_trees() != len(sizes):
        raise ValueError(f"{booster.num_trees()} of {len(sizes)} trees are left")
    return booster
