"""Verify and time a model on a board."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.output import FAILED, fail, print_json, print_pairs
from tinykernel.cli.common.rows import ModelFile, open_model, rows_to_judge

_PATIENCE = 10.0  # seconds for the port of a board that was just flashed
_GENERATED = 20
#: Entry of model files: measurements on boards, by target.
MEASURED = "measured"

if TYPE_CHECKING:
    from tinykernel.board.checking import Timing
    from tinykernel.data.partition import Rows
    from tinykernel.model import IntegerModel


def verify_on_port(
    model: Path, data: str | None, port: str, rows: str, *, as_json: bool, quiet: bool
) -> None:
    """Compare a board with Python, print the result, and exit with 1 on a difference."""
    from tinykernel.board.checking import verify_on_board
    from tinykernel.board.link import ConnectedBoard, Link, find_port
    from tinykernel.cli.verify import print_verification, verification_json

    if rows != "all" and (not rows.isdigit() or int(rows) == 0):
        raise typer.BadParameter(f"{rows!r}: give a number of rows, or all", param_hint="--rows")
    most, opened = None if rows == "all" else int(rows), open_model(model)
    integer = opened.model
    with showing_progress(quiet), Link(find_port(port), patience=_PATIENCE) as link:
        board = ConnectedBoard(link)
        chosen = _some(integer, _rows(opened, data), most)
        recordings = chosen.streams or None
        result = verify_on_board(board, integer, chosen.X, chosen.y, recordings=recordings)
    part = chosen.part if most is None or data is None else f"{len(chosen.X)} rows: {chosen.part}"
    if as_json:
        print_json(
            verification_json(result.verification)
            | {"part": part, "notes": list(chosen.notes)}
            | result.timing.to_dict()
            | {"stack": result.stack, "stack_promised": result.stack_promised}
        )
    elif not quiet:
        print_verification([result.verification], f"{part} of {chosen.source}")
        promised = "" if result.stack_promised is None else f", {result.stack_promised} promised"
        stack = "not measured" if result.stack is None else f"{result.stack} bytes seen{promised}"
        print_pairs([*timing_in_words(result.timing), ("stack", stack)])
    verification = result.verification
    if not verification.ok:
        fail(
            f"{result.timing.name}: {verification.differences} scores of the board differ from "
            f"Python; the first: {verification.first_difference}"
        )
    if not result.stack_holds:
        fail(
            f"{result.timing.name}: an inference took {result.stack} bytes of stack, more than "
            f"the {result.stack_promised} of the report; interrupts count, too"
        )
    if not result.ok:
        raise typer.Exit(FAILED)


def bench_on_port(model: Path, port: str, *, save: bool, as_json: bool, quiet: bool) -> None:
    """Time a board on generated rows, print the result, and with `save` store it in the model."""
    from tinykernel.board.checking import time_on_board
    from tinykernel.board.link import ConnectedBoard, Link, find_port
    from tinykernel.codegen.projects import generated_inputs
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import about, load
    from tinykernel.modelfile import save as save_model

    loaded = load(model)
    integer = as_integer_model(loaded)
    with showing_progress(quiet), Link(find_port(port)) as link:
        timing = time_on_board(ConnectedBoard(link), integer, generated_inputs(integer, 5)[2:])
    if save:
        known = about(model)
        measured = known.get(MEASURED)
        boards = measured if isinstance(measured, dict) else {}
        record = timing.to_dict() | {"model": integer.fingerprint()}
        save_model(loaded, model, known | {MEASURED: boards | {timing.target: record}})
    if as_json:
        print_json(timing.to_dict())
    elif not quiet:
        typer.echo(f"{timing.name}, {timing.target}")
        print_pairs(timing_in_words(timing))


def measured_in_words(known: dict[str, Any], target: str, model: IntegerModel) -> str:
    """Describe the measurement of `bench --save` on a target; empty without one."""
    measured = known.get(MEASURED)
    record = measured.get(target) if isinstance(measured, dict) else None
    if not isinstance(record, dict) or record.get("model") != model.fingerprint():
        return ""
    cycles = record.get("cycles")
    more = f", {cycles} cycles" if isinstance(cycles, int) else ""
    microseconds = record.get("microseconds")
    if not isinstance(microseconds, int | float):
        return ""
    return f"{microseconds:.1f} microseconds an inference{more}, measured on {record.get('board')}"


def _rows(opened: ModelFile, data: str | None) -> Rows:
    """Load rows, or generate some from the ranges of the model."""
    from tinykernel.codegen.projects import generated_inputs
    from tinykernel.data.partition import Rows

    if data is None:
        rows = generated_inputs(opened.model, _GENERATED)
        return Rows(rows, None, opened.path.name, "made rows")
    judged = rows_to_judge(opened, data, needs_labels=False)
    return replace(judged.rows, y=judged.y)


def _some(model: IntegerModel, rows: Rows, most: int | None) -> Rows:
    """Return at most `most` rows, stratified by class, and recordings of as many decisions."""
    import numpy as np

    if most is None:
        return rows
    streams, left = [], most
    for samples in rows.streams:
        needed = model.input.rows + (left - 1) * model.hop
        if left > 0 and len(samples) >= model.input.rows:
            streams.append(samples[:needed])
            left -= (len(streams[-1]) - model.input.rows) // model.hop + 1
    order = np.random.RandomState(0).permutation(len(rows.X))
    if rows.y is not None and rows.y.ndim == 1 and not model.is_regressor:
        order = order[np.argsort(rows.y[order], kind="stable")]
    chosen = np.sort(order[np.unique(np.linspace(0, len(order) - 1, most).astype(int))])
    return replace(rows.at(chosen), streams=tuple(streams))


def timing_in_words(timing: Timing) -> list[tuple[str, str]]:
    """Return time, cycles and instructions of an inference for `print_pairs`."""
    time = f"{timing.microseconds:.1f} microseconds" if timing.microseconds else ""
    cycles = "" if timing.cycles is None else f"{timing.cycles}"
    if timing.cycles_per_instruction is not None:
        cycles += f", {timing.cycles_per_instruction:.2f} an instruction on this board"
    instructions = ""
    if timing.instructions is not None:
        instructions = f"{timing.instructions} ({timing.instructions_source})"
    return [("inference", time), ("cycles", cycles), ("instructions", instructions)]
