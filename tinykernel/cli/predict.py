"""Predict with the integer arithmetic of the firmware."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli._options import (
    DataArgument,
    GroupsOption,
    JsonOption,
    LabelOption,
    ModelArgument,
    QuietOption,
    check_output_file,
)
from tinykernel.cli._output import percent, print_json, print_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.load import Rows
    from tinykernel.model import IntegerModel

__all__ = ["in_batches", "predict_command"]

_ROWS_A_BATCH = 4096
_ROWS_SHOWN = 20
_CLASSES_SHOWN = 12


def in_batches(
    function: Callable[[NDArray[Any]], NDArray[Any]], rows: NDArray[Any]
) -> NDArray[Any]:
    """Apply a function to some rows at a time, so that memory does not grow with their number."""
    import numpy as np

    starts = range(0, len(rows), _ROWS_A_BATCH)
    return np.concatenate([function(rows[at : at + _ROWS_A_BATCH]) for at in starts])


def predict_command(
    model: ModelArgument,
    data: DataArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="write row, label and scores to a .csv file"),
    ] = None,
    label: LabelOption = None,
    groups: GroupsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict labels and scores with the integer arithmetic of the firmware.

    Takes the test part of DATA where it has one, all its rows otherwise.
    """
    from tinykernel.data import find_data, load_rows

    if output is not None:
        check_output_file(output, (".csv",), inputs=[find_data(data)])
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    integer = as_integer_model(load(model))
    rows = load_rows(
        data, label=label, groups=groups, n_features=integer.n_features,
        feature_names=integer.feature_names, classes=integer.classes,
    )  # fmt: skip
    scores = integer.scores(rows.X)
    labels = [integer.classes[i] for i in scores.argmax(axis=1)]
    if output is not None:
        _write_csv(output, integer, labels, scores)
    if as_json:
        print_json({"labels": labels, "scores": scores})
    elif not quiet:
        _print_predictions(integer, rows, labels, scores)


def _write_csv(path: Path, integer: IntegerModel, labels: list[Any], scores: NDArray[Any]) -> None:
    from tinykernel.files import write_bytes_atomically

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "label", *(f"score_{name}" for name in integer.classes)])
    for row, (label, values) in enumerate(zip(labels, scores.tolist(), strict=True)):
        writer.writerow([row, label, *values])
    write_bytes_atomically(path, text.getvalue().encode("utf-8", "backslashreplace"))


def _print_predictions(
    integer: IntegerModel, rows: Rows, labels: list[Any], scores: NDArray[Any]
) -> None:
    shown = scores[:_ROWS_SHOWN]
    few = integer.n_classes <= _CLASSES_SHOWN
    columns = ["row", "label", *(map(str, integer.classes) if few else ["best score"])]
    if rows.y is not None:
        columns.insert(2, "true")
    table = []
    for row, values in enumerate(shown.tolist()):
        true = [] if rows.y is None else [str(rows.y[row])]
        numbers = values if few else [max(values)]
        table.append([str(row), str(labels[row]), *true, *map(str, numbers)])
    print_table(columns, table, right=[name for name in columns if name not in ("label", "true")])
    if len(scores) > _ROWS_SHOWN:
        typer.echo(f"... {len(scores)} rows in all; -o FILE.csv writes them, --json prints them")
    if rows.y is not None:
        right = sum(a == b for a, b in zip(labels, rows.y.tolist(), strict=True))
        typer.echo(f"accuracy {percent(right / len(labels))} on {rows.part} of {rows.source}")
