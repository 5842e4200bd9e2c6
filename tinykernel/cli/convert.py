"""Convert a model file of another library."""

from pathlib import Path
from typing import Any

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.common.bars import showing_progress
from tinykernel.data.paths import find_data


def convert_command(
    model: Path = args.argument(
        "MODEL", "LightGBM's .txt, XGBoost's or CatBoost's .json, .onnx, .skops"
    ),
    output: Path = args.option("--output -o FILE", "model file to write: .tkm", ...),
    data: str | None = args.option("DATA", "rows as the model learned"),
    budget: Any = args.BUDGET,
    max_change: float = args.number_option(
        "SHARE", "largest share of rows with another label", 0.0, value=0.005
    ),
) -> None:
    """Turn a model of another library into a model file.

    Trees stay exact. All others need --data for the ranges of their inputs, budgets for labels.
    """
    args.check_output_file(output, args.MODEL_SUFFIXES, inputs=[model])
    from tinykernel.conversion import change_of, convert
    from tinykernel.conversion.files import input_names, read_model
    from tinykernel.data.load import load_inputs
    from tinykernel.modelfile import save

    with showing_progress(False):
        foreign = read_model(model)
        rows = None if data is None else load_inputs(find_data(data), input_names(foreign))
        task = foreign.usual_task(rows) if hasattr(foreign, "usual_task") else None
        converted = convert(foreign, rows, max_change=max_change, budget=budget, task=task)
    save(converted, output, {"converted": model.name})
    changed = "" if rows is None else f"; {change_of(foreign, converted, rows)}"
    typer.echo(f"{output}: {converted!r}{changed}{'; scores of classes' if task else ''}")
