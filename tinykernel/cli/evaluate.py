"""Judge a model on labelled rows."""

from pathlib import Path
from typing import Any

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.common import evaluation as judging
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.output import percent, print_json, print_pairs, print_table
from tinykernel.cli.common.rows import ModelFile, open_model, rows_to_judge, without_training
from tinykernel.text import count


def evaluate_command(
    model: Path = args.MODEL,
    data: str = args.DATA,
    label: str | None = args.option("COLUMN", "column, array or file of the labels"),
    train: str | None = args.option(
        "DATA", "training rows, to train the baselines; not needed if DATA holds them"
    ),
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
) -> None:
    """Evaluate a model on labelled rows, next to baselines.

    Prints accuracy with its confidence interval, and recall by class. Uses the test part of DATA,
    or the held-out rows if the model was trained on DATA, or all rows. Label and groups are by
    default those of the training.
    """
    from tinykernel.evaluation import evaluate
    from tinykernel.evaluation.models import evaluate_clips

    opened = open_model(model) if label is None else open_model(model).with_label(label)
    integer = opened.model
    if integer.events is not None and _events(opened, data, train, as_json=as_json, quiet=quiet):
        return
    with showing_progress(quiet):
        judged = rows_to_judge(opened, data, train=train)
        rows, y = judged.rows, judged.y
        assert y is not None
        options: dict[str, Any] = {"groups": rows.group, "class_weight": judged.class_weight}
        result = evaluate(integer, rows.X, y, train=judged.train, **options)
    clips = None
    if rows.clip is not None:
        clips = evaluate_clips(integer, rows.X, y, rows.clip, rows.group)
    seen, calibrated = (opened.share_seen(rows.X, kind) for kind in ("training", "calibration"))
    if as_json:
        about: dict[str, Any] = {"data": rows.source, "part": rows.part, "notes": list(rows.notes)}
        about |= {"seen_in_training": seen, "seen_in_calibration": calibrated}
        print_json(about | {"clips": clips and clips.to_dict()} | result.to_dict())
        return
    if quiet:
        return
    print_pairs([("data", f"{rows.part} of {rows.source}")])
    judging.print_figures(result)
    judging.print_verdict(result)
    if clips is not None:
        right = f"{percent(clips.accuracy)} of {count(clips.rows, 'recording')}"
        typer.echo(f"one answer a recording, from the sum of its windows' scores: {right}")
    judging.print_notes(note for note in rows.notes if note not in result.cautions)
    if seen:
        typer.echo(f"{judging.seen_in_words(seen)}: the accuracy on new ones may be lower")
    if calibrated:
        used = judging.seen_in_words(calibrated, "to calibrate")
        typer.echo(f"{used}, so they cannot confirm the promise")
    if judged.train is None:
        typer.echo("hint: --train DATA, with the training rows, adds the baselines")


def _events(file: ModelFile, data: str, train: str | None, *, as_json: bool, quiet: bool) -> bool:
    """Judge the events of long recordings; False of other data."""
    from tinykernel.evaluation import events

    with showing_progress(quiet):
        held = events.recordings_for(file.model, file.about, data)
        if held is None or not held.is_long:
            return False
        if train is not None:
            raise args.misuse("--train", "not for events of long recordings; leave it out")
        held = without_training(file, data, held)
        seen = file.share_seen(events.some_windows(file.model, held))
        assert file.model.events is not None
        every = zip(file.model.classes, file.model.events.thresholds.tolist(), strict=True)
        silent = tuple(label for label, threshold in every if not threshold)
        result = events.evaluate_events(file.model, events.streams_of(file.model, held, silent))
    cautions = events.over_promise(result, file.about)
    if as_json:
        print_json({"data": held.source, "seen_in_training": seen} | result.to_dict() | cautions)
    elif not quiet:
        print_pairs([("data", held.source), *events.events_in_words(result)])
        columns = events.CURVE_COLUMNS
        print_table(columns, events.curve_in_words(result), right=columns)
        if seen:
            typer.echo(judging.seen_in_words(seen))
        judging.print_notes(cautions["cautions"], "caution")
    return True
