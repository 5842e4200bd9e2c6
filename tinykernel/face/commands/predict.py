"""Predict with the integer arithmetic of the firmware."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from tinykernel.base.text import count, visible
from tinykernel.data.paths import data_folder, find_data, kind_of
from tinykernel.face import arguments as args
from tinykernel.face import output as out
from tinykernel.face.evaluation import print_notes
from tinykernel.face.rows import open_model, rows_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.partition import Rows
    from tinykernel.judge.streams import StreamDecisions
    from tinykernel.model.integer import IntegerModel

_ROWS_SHOWN = 20
_CLASSES_SHOWN = 12
_Columns = list[tuple[str, Sequence[Any]]]


def predict_command(
    model: Path = args.MODEL,
    data: str | None = args.argument("DATA", "data as for train; or give --stream", value=None),
    output: Path | None = args.option(
        "--output -o FILE", "write row, label and scores to a .csv file"
    ),
    label: str | None = args.LABEL,
    stream: str | None = args.option(
        "FILE",
        "recording, folder of recordings, or - for a .wav or raw 16-bit samples at standard "
        "input; prints events, or a decision per hop",
    ),
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
) -> None:
    """Predict labels and scores in the firmware's arithmetic.

    Uses the test part of DATA if it has one, else all rows. A calibrated model also prints its
    decision (a label or "refused") and its confidence from 0 to 255.
    """
    source = stream if data is None else data
    if source is None or (data is not None and stream is not None):
        raise args.misuse("DATA", "give DATA or --stream FILE")
    if stream is not None and label is not None:
        raise args.misuse("--label", "excludes --stream; leave one out")
    if output is not None:
        is_as_written = source == "-" or data_folder(source) or kind_of(source) == "recordings"
        read = Path(source) if is_as_written else find_data(source)
        args.check_output_file(output, (".csv",), inputs=[read])
    opened = open_model(model, label)
    if stream is not None:
        from tinykernel.data.sources import reading_again
        from tinykernel.judge.streams import StreamDecisions

        reading = reading_again(opened.origin, opened.model)
        decisions = StreamDecisions(opened.model, reading, stream)
        _follow(decisions, output, data_folder(stream) is not None, as_json, quiet)
        return
    with out.showing_progress(quiet):
        rows = rows_for(opened, source, keep_all=True)
        scores = opened.model.scores(rows.X)
    answers = (_values if opened.model.is_regressor else _labels)(opened.model, rows, scores)
    if output is not None:
        header, columns = zip(*answers.columns, strict=True)
        out.write_csv(output, header, zip(*columns, strict=True))
    if as_json:
        out.print_json(answers.facts | {"notes": list(rows.notes)})
    elif not quiet:
        names, shown = [name for name, _ in answers.shown], answers.table()
        if len(scores) == 1:
            out.print_pairs(zip(names, shown[0], strict=True))
        else:
            left = ("picture", "label", "decision", "true" if opened.model.classes else "")
            out.print_table(names, shown, right=[name for name in names if name not in left])
        if len(scores) > _ROWS_SHOWN:
            place = f"{output} has them" if output else "-o FILE.csv or --json has them"
            typer.echo(f"... {len(scores)} rows in all; {place}")
        if answers.remark:
            typer.echo(answers.remark)
        print_notes(rows.notes)


class _Answers(NamedTuple):
    """Predictions as JSON, as columns of a .csv file, and as columns of a table."""

    facts: dict[str, Any]
    columns: _Columns
    shown: _Columns
    remark: str = ""

    def table(self) -> list[list[str]]:
        rows = islice(zip(*(column for _, column in self.shown), strict=True), _ROWS_SHOWN)
        return [[f"{x:.6g}" if isinstance(x, float) else str(x) for x in row] for row in rows]


def _values(model: IntegerModel, rows: Rows, scores: NDArray[Any]) -> _Answers:
    """Return the predictions of a regressor, with the true values if the file has them."""
    from tinykernel.model.answers import Values

    assert isinstance(model.answers, Values)
    values, names = scores * model.answers.unit, list(model.answers.names)
    facts = {"outputs": names, "values": values, "scores": scores}
    columns: _Columns = [("row", range(len(values)))]
    columns += zip(names, values.T.tolist(), strict=True)
    true = [] if rows.y is None else [("true", rows.y.tolist())]
    return _Answers(facts, columns, [*columns, *true])


def _labels(model: IntegerModel, rows: Rows, scores: NDArray[Any]) -> _Answers:
    """Return labels and scores, and the decisions of a calibrated model."""
    from tinykernel.judge.streams import decisions_of

    labels = [model.classes[i] for i in scores.argmax(axis=1)]
    facts: dict[str, Any] = {"labels": labels, "scores": scores}
    begin: _Columns = [("row", range(len(labels))), ("label", labels)]
    if rows.names is not None:
        unit = "picture" if rows.clip is None else "window"
        facts[f"{unit}s"], begin[0] = list(rows.names), (unit, rows.names)
    sure, true, remark = _Columns(), _Columns(), ""
    if model.decision is not None:
        decisions, confidence = decisions_of(model, scores).values()
        facts |= {"decisions": decisions, "confidence": confidence}
        sure = [("decision", list(map(_or_refusal, decisions))), ("confidence", confidence)]
        share = sum(label is not None for label in decisions) / max(1, len(labels))
        remark = f"answered {out.percent(share)} of {count(len(labels), 'row')}"
    if rows.y is not None:
        true = [("true", rows.y.tolist())]
    every = list(zip(map(str, model.classes), scores.T.tolist(), strict=True))
    few = every if model.n_classes <= _CLASSES_SHOWN else [("best score", scores.max(axis=1))]
    columns = [*begin, *sure, *((f"score_{name}", column) for name, column in every)]
    return _Answers(facts, columns, [*begin, *true, *sure, *few], remark)


def _or_refusal(label: object) -> str:
    return "refused" if label is None else str(label)


def _follow(
    source: StreamDecisions, output: Path | None, folder: bool, as_json: bool, quiet: bool
) -> None:
    """Print decisions, or the events among them, as they come, or write all to a file."""
    with out.showing_progress(quiet):  # functions are compiled for the first ones
        parts = iter(source)
        begin = next(parts)
    table = _StreamTable(source.model, begin[0], folder)

    lines = list[list[Any]]()

    def shown() -> Iterator[list[dict[str, Any]]]:
        with contextlib.suppress(KeyboardInterrupt):  # so a pipe may end
            for rows in chain([begin], parts):
                if not as_json and not quiet:
                    table.show(rows)
                if output is not None:
                    named = (row | {"decision": _or_refusal(row.get("decision"))} for row in rows)
                    lines.extend([row[name] for name in table.columns] for row in named)
                yield rows

    if as_json:
        out.print_json_list("decisions", shown())
    else:
        deque(shown(), maxlen=0)
    if output is not None:
        out.write_csv(output, table.columns, lines)
    for note in source.notes:
        typer.echo(f"note: {note}", err=True)
    if not as_json and not quiet and source.summary:
        typer.echo(source.summary)


class _StreamTable:
    """A table whose rows are printed as they come."""

    def __init__(self, model: IntegerModel, first: Mapping[str, Any], folder: bool) -> None:
        is_of_events = "event" in first
        where = ["recording"] * folder + ["sample" if first["time"] is None else "time"]
        more = [name for name in ("event", "decision", "confidence") if name in first]
        self.columns = [*where, "label", *more, *["true"] * (first["true"] is not None)]
        shown = [name for name in self.columns if name != "label" or not is_of_events]
        widest = max(len(str(label)) for label in (*model.classes, "refused"))
        widths = {"recording": len(first["recording"]), "time": 7, "sample": 9}
        self.widths = {name: max(len(name), widths.get(name, widest)) for name in shown}
        self.wanted, self.is_begun = "event" if is_of_events else "label", False

    def show(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Print a line a decision, or an event, below the names of the columns."""
        names = [] if self.is_begun else [{name: name for name in self.widths}]
        self.is_begun = True
        for row in (*names, *(row for row in rows if row[self.wanted] is not None)):
            cells = []
            for name, width in self.widths.items():
                x = row[name]
                text = f"{x:.2f}" if isinstance(x, float) else visible(_or_refusal(x))
                is_number = name in ("time", "sample", "confidence")
                cells.append(text.rjust(width) if is_number else text.ljust(width))
            typer.echo("    ".join(cells).rstrip())
