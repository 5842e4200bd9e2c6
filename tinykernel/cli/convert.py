"""Convert a model file of another library."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.errors import TinykernelError

#: By suffix: the library that reads the file.
_LIBRARIES = {".txt": "lightgbm", ".json": "xgboost", ".ubj": "xgboost", ".skops": "skops"}


def convert_command(
    model: Annotated[
        Path, args.argument("MODEL", "LightGBM's .txt, XGBoost's .json or .ubj, or .skops")
    ],
    output: Annotated[Path, args.option("--output -o FILE", "model file to write: .tkm")],
) -> None:
    """Turn a model of another library into a model file.

    Trees keep their thresholds exactly. Linear models need rows: convert them in Python.
    """
    args.check_output_file(output, args.MODEL_SUFFIXES, inputs=[model])
    from tinykernel.conversion import convert
    from tinykernel.modelfile import save

    converted = convert(_read(model))
    save(converted, output, {"converted": model.name})
    typer.echo(f"{output}: {converted!r}")


def _read(path: Path) -> Any:
    """Read the model of a file."""
    suffix = path.suffix.lower()
    if suffix in (".pkl", ".pickle", ".joblib"):
        raise TinykernelError(
            f"{path}: reading a pickle of another library runs code from it; in Python, write "
            "'import joblib, tinykernel' and "
            f"'tinykernel.save(tinykernel.convert(joblib.load({path.name!r})), \"x.tkm\")'"
        )
    if suffix not in _LIBRARIES:
        raise TinykernelError(f"{path}: not a file of {', '.join(_LIBRARIES)}")
    if not path.exists():
        raise TinykernelError(f"{path}: no such file")
    library = _LIBRARIES[suffix]
    if find_spec(library) is None:
        raise TinykernelError(f"{path}: needs {library}; pip install {library}")
    try:
        if library == "lightgbm":
            return import_module(library).Booster(model_file=str(path))
        if library == "xgboost":
            booster = import_module(library).Booster()
            booster.load_model(path)
            return booster
        return import_module("skops.io").load(path)
    except Exception as error:  # each library has errors of its own
        line = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error)
        raise TinykernelError(f"{path}: {library} cannot read it: {line}") from None
