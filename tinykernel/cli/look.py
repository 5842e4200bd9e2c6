"""Commands that look at a model: predict and inspect."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.options import (
    DataArgument,
    GroupsOption,
    JsonOption,
    LabelOption,
    ModelArgument,
    QuietOption,
    check_output_file,
)
from tinykernel.cli.output import percent, print_json, print_pairs, print_table, size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.load import Rows
    from tinykernel.model import IntegerModel

__all__ = ["inspect_command", "predict_command"]

_ROWS_SHOWN = 20
_CLASSES_SHOWN = 12

_DIAGONALS = {"sign": "signs", "int4": "4 bits", "int8": "8 bits"}


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
    write_bytes_atomically(path, text.getvalue().encode("utf-8"))


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


def inspect_command(model: ModelArgument, as_json: JsonOption = False) -> None:
    """Show what a model is: sizes, arithmetic, and the proved range of every stage."""
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    integer = as_integer_model(load(model))
    facts = _facts(integer)
    ranges = integer.ranges()
    if as_json:
        stages = [
            {
                "stage": stage.stage,
                "low": stage.low,
                "high": stage.high,
                "limit_low": stage.limit_low,
                "limit_high": stage.limit_high,
            }
            for stage in ranges
        ]
        print_json({"model": model.name, **facts, "ranges": stages})
        return
    print_pairs([("model", model.name), *_in_words(integer, model.stat().st_size)])
    typer.echo("\nProved for every possible input:")
    print_table(
        ("stage", "lowest", "highest", "limit", "used"),
        (
            (
                stage.stage,
                str(stage.low),
                str(stage.high),
                f"{stage.limit_low}..{stage.limit_high}",
                percent(max(stage.low / stage.limit_low, stage.high / stage.limit_high)),
            )
            for stage in ranges
        ),
        right=["lowest", "highest", "limit", "used"],
    )


def _facts(integer: IntegerModel) -> dict[str, Any]:
    """Return what ``inspect --json`` says of a model."""
    weights = integer.weights
    return {
        "features": integer.n_features,
        "classes": list(integer.classes),
        "components": integer.n_components,
        "blocks": integer.n_blocks,
        "dimension": integer.dimension,
        "raw_input": integer.raw_dtype,
        "quantized_input": str(integer.input_dtype),
        "permutation": integer.permutation.kind,
        "diagonal": integer.diagonal_kind,
        "halvings_first": [int(halve) for halve in integer.halve_first],
        "halvings_second": [int(halve) for halve in integer.halve_second],
        "zero_weights": float((weights == 0).mean()),
        "constant_features": int((integer.sign == 0).sum()),
        "fingerprint": integer.fingerprint(),
    }


def _in_words(integer: IntegerModel, file_size: int) -> list[tuple[str, str]]:
    facts = _facts(integer)
    names = ", ".join(map(str, integer.classes[:_CLASSES_SHOWN]))
    names += ", ..." if integer.n_classes > _CLASSES_SHOWN else ""
    constant = facts["constant_features"]
    blocks = f"{integer.n_blocks} block{'s' if integer.n_blocks > 1 else ''}"
    return [
        ("file", size(file_size)),
        ("inputs", f"{integer.n_features} x {integer.raw_dtype}, used as {integer.input_dtype}"),
        ("", ""),
        ("constant inputs", str(constant) if constant else ""),
        ("classes", f"{integer.n_classes}: {names}"),
        ("components", f"{integer.n_components} of {blocks} of {integer.dimension}"),
        ("weights", f"ternary, {percent(facts['zero_weights'])} zero"),
        ("diagonal G", _DIAGONALS[integer.diagonal_kind]),
        ("permutation P", integer.permutation.kind),
        (
            "halved stages",
            f"first {_stages(integer.halve_first)}, second {_stages(integer.halve_second)}",
        ),
        ("fingerprint", integer.fingerprint()[:16]),
    ]


def _stages(schedule: tuple[bool, ...]) -> str:
    return f"{sum(schedule)} of {len(schedule)}"
