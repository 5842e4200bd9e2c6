"""Predict with the integer arithmetic of the firmware."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.evaluation import print_all, print_notes, seen_in_words
from tinykernel.cli.common.memory import ModelFile, open_model
from tinykernel.cli.common.output import percent, print_json, print_pairs, print_table, write_csv
from tinykernel.cli.common.rows import in_batches, labels_to_judge_by, rows_for
from tinykernel.data.paths import data_folder, find_data, is_recording
from tinykernel.errors import TinykernelError
from tinykernel.text import count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.partition import Rows
    from tinykernel.evaluation import Evaluation
    from tinykernel.model import IntegerModel

_ROWS_SHOWN = 20
_CLASSES_SHOWN = 12


def predict_command(
    model: args.ModelArgument,
    data: Annotated[str | None, args.argument("[DATA]", "data, as for train; or --stream")] = None,
    output: Annotated[
        Path | None, args.option("--output -o FILE", "write row, label and scores to a .csv file")
    ] = None,
    stream: Annotated[
        str | None,
        args.option(
            "FILE",
            "recording, or a folder of them: print events, or a decision every hop",
            show_default=False,
        ),
    ] = None,
    as_json: args.JsonOption = False,
    quiet: args.QuietOption = None,
) -> None:
    """Predict labels and scores in the firmware's arithmetic.

    Uses the test part of DATA if it has one, else all rows. A calibrated model also prints its
    decision, a label or "refused", and its confidence, 0 to 255.
    """
    source = stream if data is None else data
    if source is None or (data is not None and stream is not None):
        raise typer.BadParameter("give DATA or --stream FILE", param_hint="DATA")
    if output is not None:
        is_as_written = data_folder(source) or is_recording(source)
        read = Path(source) if is_as_written else find_data(source)
        args.check_output_file(output, (".csv",), inputs=[read])
    opened = open_model(model)
    if stream is not None:
        with showing_progress(quiet):
            table = _decisions(opened, stream)
        _show_decisions(opened.model.classes, table, output, as_json, quiet)
        return
    with showing_progress(quiet):
        rows = rows_for(opened, source, keep_all=True)
        labels = labels_to_judge_by(opened.model, source, rows.y)
        scores = opened.model.scores(rows.X)
    rows, seen = replace(rows, y=labels), opened.share_seen(rows.X)
    answers = (_values if opened.model.is_regressor else _labels)(opened.model, rows, scores)
    evaluation = answers.evaluation
    if output is not None:
        write_csv(output, answers.header, answers.cells)
    if as_json:
        judged = None if evaluation is None else evaluation.to_dict()
        more = {"notes": list(rows.notes), "seen_in_training": seen, "evaluation": judged}
        print_json(answers.facts | more)
    elif not quiet:
        if len(scores) == 1:
            print_pairs(list(zip(answers.columns, answers.table[0], strict=True)))
        else:
            print_table(answers.columns, answers.table, right=answers.right)
        if len(scores) > _ROWS_SHOWN:
            typer.echo(
                f"... {len(scores)} rows in all; -o FILE.csv writes them, --json prints them"
            )
        if answers.remark:
            typer.echo(answers.remark)
        print_notes(rows.notes)
        if evaluation is not None and len(scores) > 1:
            typer.echo(f"\nOn {rows.part} of {rows.source}:")
            print_all(evaluation)
        if seen:
            typer.echo(seen_in_words(seen) if len(scores) > 1 else "this row was used in training")


class _Answers(NamedTuple):
    """Predictions for a .csv file, as JSON, and the first rows as a table."""

    header: list[str]
    cells: Iterable[Sequence[object]]
    facts: dict[str, Any]
    columns: list[str]
    table: list[list[str]]
    right: list[str]
    evaluation: Evaluation | None
    remark: str = ""


def _values(model: IntegerModel, rows: Rows, scores: NDArray[Any]) -> _Answers:
    """Return the predictions of a regressor, with the true values if the file has them."""
    from numpy import column_stack

    from tinykernel.evaluation import evaluate
    from tinykernel.model.answers.values import Values

    assert isinstance(model.answers, Values)
    values, names = scores * model.answers.unit, list(model.answers.names)
    header, shown, evaluation = ["row", *names], values[:_ROWS_SHOWN], None
    columns = header
    if rows.y is not None:
        evaluation = evaluate(model, rows.X, rows.y, groups=rows.group)
        columns, shown = [*header, "true"], column_stack((shown, rows.y[:_ROWS_SHOWN]))
    cells = ([row, *each] for row, each in enumerate(values.tolist()))
    table = [[str(i), *(f"{value:.6g}" for value in row)] for i, row in enumerate(shown.tolist())]
    facts = {"outputs": names, "values": values, "scores": scores}
    return _Answers(header, cells, facts, columns, table, columns, evaluation)


def _labels(model: IntegerModel, rows: Rows, scores: NDArray[Any]) -> _Answers:
    """Return labels and scores, and the decisions of a calibrated model."""
    import numpy as np

    from tinykernel.evaluation import compare

    labels = [model.classes[i] for i in scores.argmax(axis=1)]
    facts: dict[str, Any] = {"labels": labels, "scores": scores}
    unit, names = "row", list[object](range(len(rows.X)))
    if rows.names is not None:
        unit, names = "picture" if rows.clip is None else "window", list(rows.names)
        facts[f"{unit}s"] = names
    decided, remark = _decided(model, scores), ""
    sure: list[tuple[object, ...]] = [()] * len(labels)
    decision = ["decision", "confidence"] if decided is not None else []
    if decided is not None:
        facts |= {"decisions": decided[0], "confidence": decided[1]}
        sure = [(_or_refused(label), level) for label, level in zip(*decided, strict=True)]
        share = sum(label is not None for label in decided[0]) / max(1, len(labels))
        remark = f"answered {percent(share)} of {count(len(labels), 'row')}"
    header = [unit, "label", *decision, *(f"score_{name}" for name in model.classes)]
    every = zip(names, labels, sure, scores.tolist(), strict=True)
    cells = ([name, label, *pair, *each] for name, label, pair, each in every)
    few = model.n_classes <= _CLASSES_SHOWN
    numbers = scores if few else scores.max(axis=1, keepdims=True)
    true: list[tuple[object, ...]] = [()] * len(labels)
    evaluation = None
    if rows.y is not None:
        true = [(label,) for label in rows.y.tolist()]
        evaluation = compare(rows.y, np.array(labels), model.classes, rows.group)
    columns = [unit, "label", *(["true"] if rows.y is not None else []), *decision]
    columns += map(str, model.classes) if few else ["best score"]
    shown = islice(zip(names, labels, true, sure, numbers.tolist(), strict=True), _ROWS_SHOWN)
    table = [
        [str(cell) for cell in (name, label, *known, *pair, *each)]
        for name, label, known, pair, each in shown
    ]
    right = [name for name in columns if name not in ("picture", "label", "true", "decision")]
    return _Answers(header, cells, facts, columns, table, right, evaluation, remark)


def _decided(model: IntegerModel, scores: NDArray[Any]) -> tuple[list[Any], list[int]] | None:
    """Return labels (None if refused) and confidences; None for a model without decisions."""
    if model.decision is None:
        return None
    chosen = model.decision.decide(scores).tolist()
    labels = [None if i < 0 else model.classes[i] for i in chosen]
    return labels, model.decision.confidence(scores).tolist()


def _or_refused(label: object) -> str:
    return "refused" if label is None else str(label)


def _decisions(opened: ModelFile, stream: str) -> list[dict[str, Any]]:
    """Decide at every hop of recordings; events are those of each stretch without gaps."""
    import numpy as np

    from tinykernel.data.signals import cut_for, remembered

    model = opened.model
    cutting = remembered(opened.about, model)
    if cutting is None:
        raise TinykernelError(f"{opened.path}: not a model of signals; --stream needs one")
    # A stream decides on every window, also on those of several labels.
    cut = cut_for(stream, model, cutting, mixed="majority")
    for note in cut.notes:
        typer.echo(f"note: {note}", err=True)
    n, scores = len(cut.X), None if model.is_regressor else in_batches(model.scores, cut.inputs)
    labels = (
        in_batches(model.predict, cut.inputs)
        if scores is None
        else (np.array(model.classes)[scores.argmax(axis=1)])
    )
    columns: dict[str, Any] = {
        "recording": [cut.recordings[i] for i in cut.recording],
        "sample": (cut.starts + cut.X.shape[1] - 1).tolist(),
        "time": [None] * n if cut.end_times is None else cut.end_times.tolist(),
        "label": list(labels),
        "true": [None] * n if cut.y is None else cut.y.tolist(),
    }
    if model.events is not None and scores is not None:
        ends = np.flatnonzero(np.diff(cut.segments)) + 1
        events = [model.events.follow(part) for part in np.split(scores, ends)]
        at = np.concatenate(events).tolist()
        columns["event"] = [None if i < 0 else model.classes[i] for i in at]
    if scores is not None and model.decision is not None:
        columns["decision"], columns["confidence"] = _decided(model, scores) or ([], [])
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _show_decisions(
    classes: Sequence[object],
    table: list[dict[str, Any]],
    output: Path | None,
    as_json: bool,
    quiet: bool | None,
) -> None:
    """Print decisions, or the events among them, or write all to a file."""
    first, several = table[0], len({row["recording"] for row in table}) > 1
    where = ["recording"] * several + ["sample" if first["time"] is None else "time"]
    more = [name for name in ("event", "decision", "confidence") if name in first]
    columns = [*where, "label", *more, *(["true"] * (first["true"] is not None))]
    if output is not None:
        named = [row | {"decision": _or_refused(row.get("decision"))} for row in table]
        write_csv(output, columns, ([row[name] for name in columns] for row in named))
    if as_json:
        print_json({"decisions": table})
    elif not quiet:
        events = [row for row in table if row.get("event") is not None]
        if "event" in first:
            columns = [*where, "event", *columns[len(where) + 2 :]]
        shown = []
        for row in events if "event" in first else table:
            cells = (row[name] for name in columns)
            shown.append([f"{x:.2f}" if isinstance(x, float) else _or_refused(x) for x in cells])
        print_table(columns, shown, right=("time", "sample", "confidence"))
        judged = [row for row in table if row["true"] in classes]
        if "event" in first:
            typer.echo(f"{len(events)} events in {len(table)} decisions")
        elif judged:
            share = sum(row["label"] == row["true"] for row in judged) / len(judged)
            typer.echo(f"label right in {percent(share)} of {len(judged)} decisions")
