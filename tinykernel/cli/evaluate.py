"""Judge a model on labelled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import (
    DataArgument,
    JsonOption,
    ModelArgument,
    QuietOption,
    flag,
)
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.evaluation import (
    near_in_words,
    print_all,
    print_cautions,
    print_inputs,
    print_notes,
    seen_in_words,
)
from tinykernel.cli.common.memory import remembered
from tinykernel.cli.common.output import percent, print_json, print_pairs
from tinykernel.cli.common.rows import rows_to_judge

if TYPE_CHECKING:
    from tinykernel.data.partition import Rows
    from tinykernel.evaluation import Importance
    from tinykernel.model import IntegerModel


def evaluate_command(
    model: ModelArgument,
    data: DataArgument,
    train: Annotated[
        str | None,
        typer.Option(
            "--train",
            metavar="DATA",
            help="the rows that the model was trained on, for the baselines; found by themselves "
            "where DATA holds them",
            show_default=False,
        ),
    ] = None,
    inputs: Annotated[
        bool,
        flag(
            "--inputs",
            words="also say which inputs matter, and which could be left out; takes a while",
        ),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = None,
) -> None:
    """Say how good a model is: by class, with an interval, beside simple models.

    Takes the test part of DATA, or the rows kept aside if the model was trained on DATA, or all
    rows. Label and groups are those of the training.
    """
    from tinykernel.evaluation import evaluate, input_importance
    from tinykernel.evaluation.clips import evaluate_clips
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    integer, memory = as_integer_model(load(model)), remembered(model)
    with showing_progress(quiet):
        judged = rows_to_judge(model, integer, data, train=train)
        rows, trained = judged.rows, judged.train
        given: dict[str, Any] = {"groups": rows.group, "class_weight": judged.class_weight}
        worth = None
        if judged.y is not None:
            found = evaluate(integer, rows.X, judged.y, train=trained, **given)
            if inputs:
                worth = input_importance(integer, rows.X, judged.y, **given)
    if judged.y is None:
        _show_answers(integer, rows, as_json=as_json, quiet=quiet)
        return
    clips = None
    if rows.clip is not None:
        clips = evaluate_clips(integer, rows.X, judged.y, rows.clip, rows.group)
    seen, calibrated = memory.share_seen(rows.X), memory.share_calibrated(rows.X)
    near = 0.0 if seen else memory.share_near(rows.X)
    if as_json:
        part = {
            "seen_in_training": seen,
            "seen_in_calibration": calibrated,
            "near_copies": near,
            "inputs": None if worth is None else worth.to_dict(),
            "clips": None if clips is None else clips.to_dict(),
        }
        print_json(_about(rows) | part | found.to_dict())
    elif not quiet:
        print_pairs([("data", f"{rows.part} of {rows.source}")])
        print_all(found)
        if clips is not None:
            right = f"{percent(clips.accuracy)} of {clips.rows} recordings"
            typer.echo(f"one answer a recording, from the sum of its windows' scores: {right}")
        if worth is not None:
            print_inputs(worth, saved_without(integer, worth, memory.target or "cortex-m4"))
        print_notes(rows)
        if seen:
            typer.echo(f"{seen_in_words(seen)}: the accuracy on new ones may be lower")
        if near:
            print_cautions([near_in_words(near)])
        if calibrated:
            typer.echo(
                f"{seen_in_words(calibrated, 'to calibrate')}: they say nothing new of the promise"
            )
        if trained is None:
            typer.echo("--train DATA, with the training rows, shows simple models beside it")


def saved_without(integer: IntegerModel, worth: Importance, target: str) -> str:
    """Say what a model of the same kind saves without the inputs that are spare, about."""
    import numpy as np

    from tinykernel.measure.report import report
    from tinykernel.model.readouts.linear import Linear

    share = len(worth.spare) / len(worth.inputs)
    linear = integer.find(Linear)
    flash = 0 if linear is None else share * linear.weights.size
    if not target.startswith("host"):
        flash += share * report(integer, target, compiler="none").flash_parts["scaler"]
    row = share * integer.n_inputs * np.dtype(integer.input.dtype).itemsize
    said = f"{row:.0f} B of every row"
    return f"{said} and about {flash:.0f} B of flash" if flash >= 1 else said


def _about(rows: Rows) -> dict[str, Any]:
    return {"data": rows.source, "part": rows.part, "notes": list(rows.notes)}


def _show_answers(integer: IntegerModel, rows: Rows, *, as_json: bool, quiet: bool | None) -> None:
    """Say how many rows are normal and novel, where no label says which of them should be."""
    answers = integer.predict(rows.X).tolist()
    counts = {str(name): answers.count(name) for name in integer.classes}
    if as_json:
        print_json(_about(rows) | {"rows": len(answers), "answers": counts})
    elif not quiet:
        said = [
            (name, f"{n} of {len(answers)} rows ({percent(n / len(answers))})")
            for name, n in counts.items()
        ]
        print_pairs([("data", f"{rows.part} of {rows.source}"), *said])
        print_notes(rows)
        typer.echo(f"to judge them, give labels {' and '.join(counts)}")
