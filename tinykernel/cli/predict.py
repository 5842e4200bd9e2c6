"""Predict with the integer arithmetic of the firmware."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import (
    JsonOption,
    ModelArgument,
    QuietOption,
    check_output_file,
)
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.evaluation import print_all, print_notes, seen_in_words
from tinykernel.cli.common.memory import remembered
from tinykernel.cli.common.output import percent, print_json, print_table, write_csv
from tinykernel.cli.common.rows import in_batches, labels_to_judge_by, rows_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.partition import Rows
    from tinykernel.data.stream import FalseAlarms
    from tinykernel.evaluation import Evaluation
    from tinykernel.model import IntegerModel

_ROWS_SHOWN = 20
_CLASSES_SHOWN = 12


def predict_command(
    model: ModelArgument,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]", help="as for train; not with --stream", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="write row, label and scores to a .csv file"),
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(
            "--stream",
            metavar="FILE",
            help="a recording, or a folder: a decision every hop, with its time",
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            "--last",
            min=1,
            metavar="K",
            help="with --stream: smooth by the majority of the last K decisions",
            show_default="5",
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = None,
) -> None:
    """Predict labels and scores with the integer arithmetic of the firmware.

    Takes the test part of DATA where it has one, all its rows otherwise. A calibrated model also
    says what it decides, a label or "unknown", and how sure it is, 0 to 255.
    """
    source = stream if data is None else data
    if source is None or (data is not None and stream is not None):
        raise typer.BadParameter("give DATA or --stream FILE", param_hint="DATA")
    if stream is None and last is not None:
        raise typer.BadParameter("goes with --stream", param_hint="--last")
    if output is not None:
        check_output_file(output, (".csv",), inputs=[_source(source)])
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    integer, memory = as_integer_model(load(model)), remembered(model)
    if stream is not None:
        with showing_progress(quiet):
            table, alarms = _decisions(model, integer, stream, 5 if last is None else last)
        _show_decisions(integer.classes, table, alarms, output, as_json, quiet)
        return
    with showing_progress(quiet):
        rows = rows_for(model, integer, source, keep_all=True)
        true = labels_to_judge_by(integer, source, rows.y)
        scores = integer.scores(rows.X)
    if integer.is_regressor:
        _predict_values(integer, rows, scores, output, as_json, quiet)
        return
    labels = [integer.classes[i] for i in scores.argmax(axis=1)]
    decided = _decided(integer, scores)
    if output is not None:
        _write_scores(output, integer, rows, labels, scores, decided)
    found, seen = _evaluation(integer, true, rows.group, labels), memory.share_seen(rows.X)
    if as_json:
        judged = {"evaluation": None if found is None else found.to_dict()}
        said = {"notes": list(rows.notes), "seen_in_training": seen}
        sure = {} if decided is None else {"decisions": decided[0], "confidence": decided[1]}
        unit, names = _names(rows)
        pictures = {} if rows.names is None else {f"{unit}s": list(names)}
        print_json({"labels": labels, "scores": scores} | pictures | sure | said | judged)
    elif not quiet:
        _print_predictions(integer, rows, labels, scores, decided)
        _print_answered(decided)
        print_notes(rows)
        if found is not None:
            typer.echo(f"\nOn {rows.part} of {rows.source}:")
            print_all(found)
        if seen:
            typer.echo(seen_in_words(seen))


def _decided(integer: IntegerModel, scores: NDArray[Any]) -> tuple[list[Any], list[int]] | None:
    """Return label and confidence of each row, None for a refused label; None without decisions."""
    if integer.decision is None:
        return None
    chosen = integer.decision.decide(scores).tolist()
    labels = [None if i < 0 else integer.classes[i] for i in chosen]
    return labels, integer.decision.confidence(scores).tolist()


def _or_unknown(label: object) -> str:
    return "unknown" if label is None else str(label)


def _print_answered(decided: tuple[list[Any], list[int]] | None) -> None:
    """Say how many rows are answered, of a model that refuses some."""
    if decided is not None:
        rows = len(decided[0])
        answered = sum(label is not None for label in decided[0])
        typer.echo(f"answered {percent(answered / max(1, rows))} of {rows} rows")


def _evaluation(
    integer: IntegerModel, true: NDArray[Any] | None, group: NDArray[Any] | None, labels: list[Any]
) -> Evaluation | None:
    """Compare the labels with those of the file, where it has some."""
    import numpy as np

    from tinykernel.evaluation import compare

    if true is None:
        return None
    return compare(true, np.array(labels), integer.classes, group)


def _predict_values(
    integer: IntegerModel,
    rows: Rows,
    scores: NDArray[Any],
    output: Path | None,
    as_json: bool,
    quiet: bool | None,
) -> None:
    """Print or write what a regressor predicts, beside the true values where the file has them."""
    from tinykernel.evaluation import evaluate
    from tinykernel.model.answers.values import Values

    assert isinstance(integer.answers, Values)
    values, names = scores * integer.answers.unit, list(integer.answers.names)
    if output is not None:
        table = [[row, *each] for row, each in enumerate(values.tolist())]
        write_csv(output, ["row", *names], table)
    found = None if rows.y is None else evaluate(integer, rows.X, rows.y, groups=rows.group)
    if as_json:
        judged = {"evaluation": None if found is None else found.to_dict()}
        print_json({"outputs": names, "values": values, "scores": scores} | judged)
    elif not quiet:
        true = [] if rows.y is None else ["true"]
        table = []
        for row, each in enumerate(values[:_ROWS_SHOWN].tolist()):
            known = [] if rows.y is None else [f"{rows.y[row]:.6g}"]
            table.append([str(row), *(f"{value:.6g}" for value in each), *known])
        print_table(["row", *names, *true], table, right=["row", *names, *true])
        if len(values) > _ROWS_SHOWN:
            typer.echo(f"... {len(values)} rows in all; -o FILE.csv writes them")
        if found is not None:
            typer.echo(f"\nOn {rows.part} of {rows.source}:")
            print_all(found)


def _source(path: str) -> Path:
    """Return the file that is read, or the folder as it was given."""
    from tinykernel.data.paths import data_folder, find_data, is_recording

    return Path(path) if data_folder(path) or is_recording(path) else find_data(path)


def _decisions(
    model: Path, integer: IntegerModel, stream: str, last: int
) -> tuple[list[dict[str, Any]], dict[str, FalseAlarms]]:
    """Decide at every hop of recordings; false alarms are those of each kind of decision."""
    import numpy as np

    from tinykernel.data.signals import cut_for, remembered
    from tinykernel.data.stream import decisions, false_alarms
    from tinykernel.errors import TinykernelError
    from tinykernel.modelfile import about

    cutting = remembered(about(model), integer)
    if cutting is None:
        raise TinykernelError(f"{model}: is no model of signals; --stream needs one")
    # No window is left out for its labels, as a stream leaves out none.
    cut = cut_for(stream, integer, cutting, mixed="majority")
    for note in cut.notes:
        typer.echo(f"note: {note}", err=True)
    decided = None
    if integer.decision is None:
        labels = in_batches(integer.predict, cut.inputs)
    else:
        scores = in_batches(integer.scores, cut.inputs)
        labels = np.array(integer.classes)[scores.argmax(axis=1)]
        decided = _decided(integer, scores)
    true = [None] * len(labels) if cut.y is None else cut.y.tolist()
    table = [
        {
            "recording": one.recording,
            "sample": one.sample,
            "time": one.time,
            "label": one.label,
            "smoothed": one.smoothed,
            "true": is_,
        }
        for one, is_ in zip(decisions(cut, labels, last), true, strict=True)
    ]
    if decided is not None:
        for row, decision, confidence in zip(table, *decided, strict=True):
            row |= {"decision": decision, "confidence": confidence}
    kinds = [kind for kind in ("label", "smoothed", "decision") if kind in table[0]]
    counted = {kind: false_alarms(cut, [row[kind] for row in table]) for kind in kinds}
    return table, {kind: one for kind, one in counted.items() if one is not None}


def _show_decisions(
    classes: Sequence[object],
    table: list[dict[str, Any]],
    alarms: dict[str, FalseAlarms],
    output: Path | None,
    as_json: bool,
    quiet: bool | None,
) -> None:
    """Print decisions, or write them to a file."""
    labelled = table[0]["true"] is not None
    timed = table[0]["time"] is not None
    several = len({row["recording"] for row in table}) > 1
    columns = ["recording"] * several + ["time" if timed else "sample", "label", "smoothed"]
    columns += ["decision", "confidence"] * ("decision" in table[0]) + ["true"] * labelled
    if "decision" in table[0] and not as_json:
        table = [row | {"decision": _or_unknown(row["decision"])} for row in table]
    if output is not None:
        write_csv(output, columns, ([row[name] for name in columns] for row in table))
    if as_json:
        counted = {kind: {**vars(one), "an_hour": one.an_hour} for kind, one in alarms.items()}
        print_json({"decisions": table, "false_alarms": counted or None})
    elif not quiet:
        shown = [[_cell(row[name]) for name in columns] for row in table]
        print_table(columns, shown, right=("time", "sample", "confidence"))
        judged = [row for row in table if row["true"] in classes]
        for name in ("label", "smoothed") if judged else ():
            share = sum(row[name] == row["true"] for row in judged) / len(judged)
            typer.echo(f"{name} right in {percent(share)} of {len(judged)} decisions")
        for kind, one in alarms.items():
            typer.echo(
                f"{kind}: {one.count} false alarms in {60 * one.hours:.1f} minutes of background, "
                f"{one.an_hour:.1f} an hour"
            )


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _write_scores(
    path: Path,
    integer: IntegerModel,
    rows: Rows,
    labels: list[Any],
    scores: NDArray[Any],
    decided: tuple[list[Any], list[int]] | None,
) -> None:
    sure = [] if decided is None else ["decision", "confidence"]
    unit, names = _names(rows)
    found = enumerate(zip(names, labels, scores.tolist(), strict=True))
    write_csv(
        path,
        [unit, "label", *sure, *(f"score_{name}" for name in integer.classes)],
        ([name, label, *_sure(decided, i), *values] for i, (name, label, values) in found),
    )


def _names(rows: Rows) -> tuple[str, Sequence[Any]]:
    """Return what a row is called, and the name of each: a number, or of a file, with its start."""
    if rows.names is None:
        return "row", range(len(rows.X))
    return "picture" if rows.clip is None else "window", rows.names


def _sure(decided: tuple[list[Any], list[int]] | None, row: int) -> list[str]:
    """Return decision and confidence of a row as cells, none without decisions."""
    return [] if decided is None else [_or_unknown(decided[0][row]), str(decided[1][row])]


def _print_predictions(
    integer: IntegerModel,
    rows: Rows,
    labels: list[Any],
    scores: NDArray[Any],
    decided: tuple[list[Any], list[int]] | None,
) -> None:
    shown = scores[:_ROWS_SHOWN]
    few = integer.n_classes <= _CLASSES_SHOWN
    sure = [] if decided is None else ["decision", "confidence"]
    unit, names = _names(rows)
    words = ("picture", "label", "true", "decision")
    columns = [unit, "label", *sure, *(map(str, integer.classes) if few else ["best score"])]
    if rows.y is not None:
        columns.insert(2, "true")
    table = []
    for row, values in enumerate(shown.tolist()):
        true = [] if rows.y is None else [str(rows.y[row])]
        numbers = values if few else [max(values)]
        table.append(
            [str(names[row]), str(labels[row]), *true, *_sure(decided, row), *map(str, numbers)]
        )
    print_table(columns, table, right=[name for name in columns if name not in words])
    if len(scores) > _ROWS_SHOWN:
        typer.echo(f"... {len(scores)} rows in all; -o FILE.csv writes them, --json prints them")
