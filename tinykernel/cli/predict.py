"""Predict with the integer arithmetic of the firmware."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli._judging import print_all, seen_in_words
from tinykernel.cli._options import (
    DataArgument,
    GroupsOption,
    JsonOption,
    LabelOption,
    ModelArgument,
    QuietOption,
    check_output_file,
)
from tinykernel.cli._output import print_json, print_table
from tinykernel.cli._remembered import remembered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.load import Rows
    from tinykernel.evaluation import Evaluation
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

    integer, memory = as_integer_model(load(model)), remembered(model)
    rows = load_rows(
        data, n_features=integer.n_features, feature_names=integer.feature_names,
        classes=integer.classes, **memory.names(data, label, groups),
    )  # fmt: skip
    scores = integer.scores(rows.X)
    labels = [integer.classes[i] for i in scores.argmax(axis=1)]
    if output is not None:
        _write_csv(output, integer, labels, scores)
    found, seen = _evaluation(integer, rows, labels), memory.share_seen(rows.X)
    if as_json:
        judged = {"evaluation": None if found is None else found.to_dict()}
        print_json({"labels": labels, "scores": scores, "seen_in_training": seen} | judged)
    elif not quiet:
        _print_predictions(integer, rows, labels, scores)
        if found is not None:
            typer.echo(f"\nOn {rows.part} of {rows.source}:")
            print_all(found)
        if seen:
            typer.echo(seen_in_words(seen))


def _evaluation(integer: IntegerModel, rows: Rows, labels: list[Any]) -> Evaluation | None:
    """Compare the labels with those of the file, where it has some."""
    import numpy as np

    from tinykernel.evaluation import compare

    if rows.y is None:
        return None
    return compare(rows.y, np.array(labels), integer.classes, rows.group)


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
