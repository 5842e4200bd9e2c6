"""Convert a model file of another library."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.common.bars import showing_progress
from tinykernel.data.paths import find_data
from tinykernel.errors import FileError, FormatError, ToolError

#: By suffix: the library that reads the file.
_LIBRARIES = {".txt": "lightgbm", ".json": "xgboost", ".ubj": "xgboost", ".skops": "skops"}


def convert_command(
    model: Annotated[
        Path, args.argument("MODEL", "LightGBM's .txt, XGBoost's or CatBoost's .json, .skops")
    ],
    output: Annotated[Path, args.option("--output -o FILE", "model file to write: .tkm")],
    data: Annotated[str | None, args.option("DATA", "rows as the model learned")] = None,
    budget: args.BudgetOption = None,
    max_change: Annotated[
        float, args.number_option("SHARE", "largest share of rows with another label", 0.0)
    ] = 0.005,
) -> None:
    """Turn a model of another library into a model file.

    Trees keep their thresholds exactly. Linear models need --data for the ranges of their inputs,
    and a budget for the labels that each step changes.
    """
    args.check_output_file(output, args.MODEL_SUFFIXES, inputs=[model])
    from tinykernel.conversion import change_of, convert
    from tinykernel.data.load import load_data
    from tinykernel.modelfile import save

    foreign = _read(model)
    with showing_progress(False):
        rows = None if data is None else load_data(find_data(data), test_size=0).X_train
        converted = convert(foreign, rows, max_change=max_change, budget=budget)
    save(converted, output, {"converted": model.name})
    changed = "" if rows is None else f"; {change_of(foreign, converted, rows)}"
    typer.echo(f"{output}: {converted!r}{changed}")


def _read(path: Path) -> Any:
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
    try:
        if library != "skops":
            return import_module(library).Booster(model_file=str(path))
        skops = import_module("skops.io")
        names = skops.get_untrusted_types(file=path)  # trees and losses, which are compiled
        return skops.load(path, trusted=[name for name in names if name.startswith("sklearn.")])
    except Exception as error:  # each library has errors of its own
        line = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error)
        raise FormatError(f"{path}: {library} cannot read it: {line}") from None
