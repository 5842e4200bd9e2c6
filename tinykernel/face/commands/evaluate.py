"""Judge a model on labelled rows, and compare its C and the counters of a device with it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.errors import ModelError, TinykernelError
from tinykernel.base.text import count, percent
from tinykernel.compile.targets import TARGETS
from tinykernel.face import arguments as args
from tinykernel.face import evaluation as judging
from tinykernel.face import output as out
from tinykernel.face.rows import ModelFile, open_model, rows_to_judge, without_training

if TYPE_CHECKING:
    from tinykernel.data.partition import Rows
    from tinykernel.judge.drift import Drift, Expected
    from tinykernel.model.integer import IntegerModel


def evaluate_command(
    model: Path = args.MODEL,
    data: str = args.DATA,
    label: str | None = args.LABEL,
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
    from tinykernel.judge.models import evaluate, evaluate_clips

    opened = open_model(model, label)
    integer = opened.model
    if integer.events is not None and _events(opened, data, train, as_json=as_json, quiet=quiet):
        return
    with out.showing_progress(quiet):
        judged = rows_to_judge(opened, data, train=train)
        rows, y = judged.rows, judged.y
        assert y is not None
        options: dict[str, Any] = {"groups": rows.group, "class_weight": judged.class_weight}
        result = evaluate(integer, rows.X, y, train=judged.train, **options)
    clips = None
    if rows.clip is not None:
        clips = evaluate_clips(integer, rows.X, y, rows.clip, rows.group)
    seen, calibrated = (opened.seen_share(rows.X, kind) for kind in ("training", "calibration"))
    if as_json:
        about: dict[str, Any] = {"data": rows.source, "part": rows.part, "notes": list(rows.notes)}
        about |= {"seen_in_training": seen, "seen_in_calibration": calibrated}
        out.print_json(about | {"clips": clips and clips.to_dict()} | result.to_dict())
        return
    if quiet:
        return
    out.print_pairs([("data", f"{rows.part} of {rows.source}")])
    judging.print_figures(result)
    judging.print_verdict(result)
    if clips is not None:
        right = f"{percent(clips.accuracy)} of {count(clips.rows, 'recording')}"
        typer.echo(f"one answer a recording, from the sum of its windows' scores: {right}")
    if opened.model.events is not None:
        typer.echo("hint: windows, not events, were judged; those of clips are for calibrate")
    judging.print_notes(note for note in rows.notes if note not in result.cautions)
    if seen:
        typer.echo(f"{judging.usage_in_words(seen)}: the accuracy on new ones may be lower")
    if calibrated:
        used = judging.usage_in_words(calibrated, "to calibrate")
        typer.echo(f"{used}, so they cannot confirm the promise")
    if judged.train is None:
        typer.echo("hint: --train DATA, with the training rows, adds the baselines")


def _events(file: ModelFile, data: str, train: str | None, *, as_json: bool, quiet: bool) -> bool:
    """Judge the events of long recordings; False of other data."""
    from tinykernel.judge import events

    with out.showing_progress(quiet):
        held = events.recordings_for(file.model, file.source(data))
        if held is None or not held.is_long:
            return False
        if train is not None:
            raise args.misuse("--train", "not for events of long recordings; leave it out")
        held = without_training(file, data, held)
        seen = file.seen_share(events.some_windows(file.model, held))
        assert file.model.events is not None
        every = zip(file.model.classes, file.model.events.thresholds.tolist(), strict=True)
        silent = tuple(label for label, threshold in every if not threshold)
        result = events.evaluate_events(file.model, events.streams_of(file.model, held, silent))
    cautions = events.over_promise(result, file.about)
    if as_json:
        out.print_json(
            {"data": held.source, "seen_in_training": seen} | result.to_dict() | cautions
        )
    elif not quiet:
        out.print_pairs([("data", held.source), *events.events_in_words(result)])
        columns = events.CURVE_COLUMNS
        out.print_table(columns, events.curve_in_words(result), right=columns)
        if seen:
            typer.echo(judging.usage_in_words(seen))
        judging.print_notes(held.notes)
        judging.print_notes(cautions["cautions"], "caution")
    return True


_LARGEST_FILE = 1 << 20
_DIFFERENCES = {
    "labels": "shares of the classes",
    "margin": "mean margin",
    "saturated": "saturated values",
}


def drift_command(
    model: Path = args.MODEL,
    counters: Path = args.argument(
        "COUNTERS", "file with the bytes of NAME_counters_t from the device"
    ),
    data: str | None = args.option(
        "DATA", "held-out rows to compare with", default="those of calibrate"
    ),
    false_alarms: Any = args.share_option("risk of a false alarm", value=0.01, default="1%"),
    independent: bool = args.flag(
        "--independent", "treat decisions as independent, e.g. parts on a belt"
    ),
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
) -> None:
    """Compare a device's counters with held-out rows.

    Ends with status 1 if they differ by more than chance, or if the device has too few decisions.
    """
    from tinykernel.judge.drift import Expected, drift, expected_counts
    from tinykernel.model.counters import Counters

    opened = open_model(model)
    with counters.open("rb") as stream:
        content = stream.read(_LARGEST_FILE)
    try:
        counted = Counters.from_bytes(opened.model, content)
    except TinykernelError as error:
        raise type(error)(f"{counters}: {error}") from None
    if data is None:
        known = Expected.from_dict(opened.about.get("held_out"), opened.model.n_classes)
        if known is None:
            raise ModelError(
                f"{model}: has no counts of held-out rows; calibrate it, or give such rows with "
                "--data"
            )
        expected = known
    else:
        rows = rows_to_judge(opened, data, needs_labels=False, unseen=True).rows
        expected = expected_counts(opened.model, rows.X)
    result = drift(counted, expected, false_alarm=false_alarms, independent=independent)
    if as_json:
        about = {"model": model, "counters": counters, "expected": expected.to_dict()}
        out.print_json(about | result.to_dict())
    elif not quiet:
        _print(opened.model, result, expected)
    if result.differs or not result.enough:
        raise typer.Exit(1)


def _print(model: IntegerModel, result: Drift, expected: Expected) -> None:
    """Print shares side by side, and the verdict."""
    from tinykernel.judge.drift import LEAST_DECISIONS

    verdict = "no difference beyond chance"
    if result.differs:
        verdict = "the device differs: " + ", ".join(_DIFFERENCES[name] for name in result.differs)
    if not result.enough:
        verdict = f"too few independent decisions: {LEAST_DECISIONS} are needed"
    names = [*map(str, model.classes), "refused"]
    pairs = zip(names, result.shares, result.shares_expected, strict=True)
    rows = [(name, percent(here), percent(there)) for name, here, there in pairs]
    rows.append(("mean margin", f"{result.margin:.1f}", f"{result.margin_expected:.1f}"))
    saturated = (result.saturated, result.saturated_expected)
    here, there = (f"{share:.3g}" for share in saturated)
    rows.append(("saturated values", here, there))
    columns = ("decision", "device", "held-out rows")
    out.print_table(columns, rows, right=columns[1:])
    typer.echo()
    count = f"{result.decisions}, which count as {result.independent:.0f} independent ones"
    chance = f"shares {result.p_labels:.2g}, margin {result.p_margin:.2g}, "
    freedom = f"{result.degrees} degrees of freedom"
    out.print_pairs(
        [
            ("decisions", count),
            ("held-out rows", str(expected.rows)),
            ("chi-square", f"{result.chi_square:.1f} with {freedom}"),
            ("by chance", f"{chance}saturated values {result.p_saturated:.2g}"),
            ("verdict", verdict),
        ]
    )


def verify_on_port(
    opened: ModelFile, data: str, port: str, most: int | None, *, as_json: bool, quiet: bool
) -> None:
    """Compare a board with Python, print the result, and exit with 1 on a difference."""
    from tinykernel.run.checking import verify_on_board
    from tinykernel.run.link import ConnectedBoard, Link, find_port

    integer = opened.model
    with out.showing_progress(quiet), Link(find_port(port)) as link:
        board = ConnectedBoard(link)
        judged = rows_to_judge(opened, data, needs_labels=False)
        chosen = _some(integer, replace(judged.rows, y=judged.y), most)
        recordings = chosen.streams or None
        result = verify_on_board(board, integer, chosen.X, chosen.y, recordings=recordings)
    part = chosen.part if most is None else f"{count(len(chosen.X), 'row')}: {chosen.part}"
    if as_json:
        out.print_json(
            judging.verification_json(result.verification)
            | {"part": part, "notes": list(chosen.notes)}
            | result.timing.to_dict()
            | {"stack": result.stack, "stack_promised": result.stack_promised}
        )
    elif not quiet:
        judging.print_verification([result.verification], f"{part} of {chosen.source}")
        promised = "" if result.stack_promised is None else f", {result.stack_promised} promised"
        stack = "not measured" if result.stack is None else f"{result.stack} bytes seen{promised}"
        timing = result.timing
        time = f"{timing.microseconds:.1f} microseconds" if timing.microseconds else ""
        out.print_pairs(
            [("inference", time), ("cycles", str(timing.cycles or "")), ("stack", stack)]
        )
    verification, problems = result.verification, list[str]()
    if not verification.ok:
        problems.append(
            f"{result.timing.name}: {count(verification.differences, 'difference')} between board "
            f"and Python; the first: {verification.first_difference}"
        )
    if not result.stack_holds:
        problems.append(
            f"{result.timing.name}: an inference took {result.stack} bytes of stack, more than "
            f"the {result.stack_promised} of the report; interrupts count, too"
        )
    out.fail_if_any(problems)


def _some(model: IntegerModel, rows: Rows, most: int | None) -> Rows:
    """Return at most `most` rows, stratified by class, and recordings of as many decisions."""
    import numpy as np

    from tinykernel.base.files import drawn_places

    if most is None:
        return rows
    streams, left = [], most
    for samples in rows.streams:
        needed = model.input.rows + (left - 1) * model.hop
        if left > 0 and len(samples) >= model.input.rows:
            streams.append(samples[:needed])
            left -= (len(streams[-1]) - model.input.rows) // model.hop + 1
    y = np.zeros(len(rows.X)) if rows.y is None else rows.y
    return replace(rows.at(np.sort(drawn_places(y, most, 0)[:most])), streams=tuple(streams))


def verify_command(
    model: Path = args.MODEL,
    data: str = args.DATA,
    label: str | None = args.LABEL,
    target: list[str] = args.TARGETS,
    port: str | None = args.BOARD,
    rows: str | None = args.option(
        "N|all", "rows to send with --port, stratified by class", default="200"
    ),
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
) -> None:
    """Run every row through the C and through Python, and compare.

    The default target is the host. Ends with status 1 if a score differs, or if a target is too
    small for the model. Uses the test part of DATA, or the held-out rows if the model was trained
    on DATA, or all rows.

    With --port a board that runs the export computes the scores, and reports time and stack.
    """
    if port is not None:
        if target:
            raise args.misuse("--target", "excludes --port; leave one out")
        rows = rows or "200"
        if not re.fullmatch(r"all|0*[1-9][0-9]{0,8}", rows):
            raise args.misuse("--rows", f"{rows!r}: give a number of rows, or all")
        most, opened = None if rows == "all" else int(rows), open_model(model, label)
        verify_on_port(opened, data, port, most, as_json=as_json, quiet=quiet)
        return
    if rows is not None:
        raise args.misuse("--rows", "needs --port; on other targets every row is compared")
    target = target or ["host"]
    names, several = args.expand_targets(
        target, [t.name for t in TARGETS.values() if t.family == "host" or t.machines]
    )
    from tinykernel.judge.models import evaluate
    from tinykernel.run.parity import verify

    opened = open_model(model, label)
    integer = opened.model
    with out.showing_progress(quiet):
        judged = rows_to_judge(opened, data, needs_labels=False)
        compared = replace(judged.rows, y=judged.y)
        recordings = compared.streams or None
        results, too_small = args.each_that_fits(
            names,
            target,
            lambda name: verify(
                integer, compared.X, compared.y, target=name, recordings=recordings
            ),
        )
    evaluation = None
    if compared.y is not None:
        evaluation = evaluate(integer, compared.X, compared.y, groups=compared.group)
    seen = opened.seen_share(compared.X)
    if as_json:
        extra: dict[str, Any] = {"part": compared.part, "notes": list(compared.notes)}
        extra |= {"seen_in_training": seen, "evaluation": evaluation and evaluation.to_dict()}
        answers = [judging.verification_json(result) | extra for result in results]
        out.print_json(answers if several else answers[0])
    elif results and not quiet:
        judging.print_verification(results, f"{compared.part} of {compared.source}")
        judging.print_notes(compared.notes)
        if evaluation is not None:
            out.print_pairs(evaluation.words())
        if seen:
            typer.echo(judging.usage_in_words(seen))
    wrong = [
        f"{result.target}: {count(result.differences, 'difference')} between C and Python; the "
        f"first: {result.first_difference}"
        for result in results
        if not result.ok
    ]
    out.fail_if_any(wrong + too_small)
