"""Show what a model is, and convert one of another library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.files import write_bytes_atomically
from tinykernel.base.text import listed, percent, size
from tinykernel.data.paths import find_data
from tinykernel.face import arguments as args
from tinykernel.face.arguments import JSON, MODEL, check_output_file, option
from tinykernel.face.output import print_json, print_pairs, print_table, showing_progress
from tinykernel.face.rows import open_model

if TYPE_CHECKING:
    from tinykernel.model.integer import IntegerModel

_CLASSES_SHOWN = 12


def inspect_command(
    model: Path = MODEL,
    proof: Path | None = option(
        "FILE",
        "write the proved bounds, and inputs that reach them, as JSON; check_proof.py checks "
        "it against the exported C",
    ),
    as_json: bool = JSON,
) -> None:
    """Show sizes, arithmetic and proved ranges of a model."""
    from tinykernel.compile.plan import pack
    from tinykernel.face.pages.page import training_in_words

    if proof is not None:
        check_output_file(proof, (".json",), [model])
    opened = open_model(model)
    integer, ranges = opened.model, opened.model.ranges()
    if proof is not None:
        from tinykernel.base.files import folder
        from tinykernel.compile.certificate import certificate

        write_bytes_atomically(proof, certificate(integer))
        checker = folder("firmware") / "check_proof.py"  # needs nothing of this package
        typer.echo(f"{proof} holds the proof; {checker} checks it against the C", err=True)
    facts = _facts(integer)
    tables = pack(integer).tables
    if as_json:
        lists = {
            "tables": [{"bytes": table.n_bytes, "what": table.comment} for table in tables],
            "ranges": [vars(stage) for stage in ranges],
        }
        print_json({"model": model.name, **facts, **lists, "about": opened.about})
        return
    print_pairs([("model", model.name), *_in_words(integer, model.stat().st_size)])
    if opened.about:
        typer.echo("\nTraining, as recorded in the file:")
        print_pairs(training_in_words(opened.about))
    typer.echo("\nTables in flash:")
    lines = [(f"{table.n_bytes:,}", table.comment) for table in tables]
    print_table(("bytes", "what they hold"), lines, right=("bytes",))
    typer.echo("\nProved for every possible input:")
    rows = []
    for stage in ranges:
        ends = ((stage.low, stage.limit_low), (stage.high, stage.limit_high))
        used = max(end / limit for end, limit in ends if limit)  # the share of its type
        limits = f"{stage.limit_low}..{stage.limit_high}"
        rows.append((stage.stage, str(stage.low), str(stage.high), limits, percent(used)))
    columns = ("stage", "lowest", "highest", "limit", "used")
    print_table(columns, rows, right=columns[1:])


def _facts(integer: IntegerModel) -> dict[str, Any]:
    """Return the ``inspect --json`` of a model."""
    from tinykernel.compile.enums import seen_shape
    from tinykernel.judge.decisions import decision_facts

    return {
        "classes": list(integer.classes),
        "shape": list(seen_shape(integer)),
        "stages": [stage.KIND for stage in integer.stages],
        "readout": [part.KIND for part in integer.readout.parts],
        "fingerprint": integer.fingerprint(),
        **_structure(integer),
        **decision_facts(integer),
        **({} if integer.events is None else {"events": integer.events.facts()}),
    }


def _structure(integer: IntegerModel) -> dict[str, Any]:
    """Return the numbers that describe a model."""
    from tinykernel.model.answers import Values
    from tinykernel.pieces.components.spec import Components
    from tinykernel.pieces.prototypes.spec import Prototypes

    facts: dict[str, Any] = {
        "features": integer.n_features,
        "raw_input": integer.raw_dtype,
        "quantized_input": str(integer.input_dtype),
        "components": 0,
    }
    if isinstance(integer.answers, Values):
        facts |= {"values": list(integer.answers.names), "scale_shift": integer.answers.shift}
    prototypes, components = integer.find(Prototypes), integer.find(Components)
    if prototypes is not None:
        facts["prototypes"] = len(prototypes.levels)
        facts["novel_above"] = -int(integer.readout.offset[0])
    if components is not None:
        facts |= {"components": components.n_components, "blocks": components.n_blocks}
        orbit, size = components.permutation, components.dimension
        if orbit.kind == "orbit":
            facts["permutation"] = (
                f"j -> {orbit.multiplier} j + {orbit.increment} modulo {size} (P)"
            )
    return facts


def _in_words(integer: IntegerModel, file_size: int) -> list[tuple[str, str]]:
    from tinykernel.compile.enums import consists_of, seen_shape
    from tinykernel.face.pages.page import plain
    from tinykernel.judge.decisions import decision_in_words

    inputs, grid = f"{integer.n_inputs} of {integer.raw_dtype}", integer.input
    if not grid.is_table:
        unit = "samples and channels" if grid.is_signal else "pixels"
        beside = "" if integer.beside is None else f" and {integer.beside.title}"
        shapes = dict.fromkeys((grid.shape, seen_shape(integer)))  # frames are resized
        size_of = ", resized to ".join(" x ".join(map(str, shape)) for shape in shapes)
        inputs = f"{size_of} {unit}{beside} of {grid.dtype}"
    classes = f"{integer.n_classes}: {listed(integer.classes, _CLASSES_SHOWN)}"
    facts = {name: value for name, value in _structure(integer).items() if value}
    return [
        ("file", size(file_size)),
        ("consists of", consists_of(integer)),
        ("inputs", inputs),
        ("classes", classes if integer.classes else ""),
        *((name.replace("_", " "), plain(value)) for name, value in facts.items()),
        *decision_in_words(integer.decision),
        *([] if integer.events is None else integer.events.in_words(integer.classes)),
        ("fingerprint", integer.fingerprint()[:16]),
    ]


def convert_command(
    model: Path = args.argument(
        "MODEL", "LightGBM's .txt, XGBoost's or CatBoost's .json, .onnx, .skops"
    ),
    output: Path = args.option("--output -o FILE", "model file to write: .tkm", ...),
    data: str | None = args.option("DATA", "rows as the model learned"),
    budget: Any = args.BUDGET,
    max_change: float = args.number_option(
        "SHARE", "largest share of rows with another label", 0.0, value=0.005
    ),
) -> None:
    """Turn a model of another library into a model file.

    Trees stay exact. All others need --data for the ranges of their inputs, budgets for labels.
    """
    args.check_output_file(output, args.MODEL_SUFFIXES, inputs=[model])
    from tinykernel.conversion import boosters
    from tinykernel.conversion.files import SavedBooster, input_names, read_model
    from tinykernel.conversion.models import change_of, convert
    from tinykernel.data.load import load_inputs
    from tinykernel.model.file import save

    with showing_progress(False):
        foreign = read_model(model)
        coding = boosters.coding_of(foreign) if isinstance(foreign, SavedBooster) else None
        names, with_axes = input_names(foreign), hasattr(foreign, "rows_of")
        file = None if data is None else find_data(data)
        rows = None if file is None else load_inputs(file, names, coding, with_axes=with_axes)
        task = foreign.usual_task(rows) if hasattr(foreign, "usual_task") else None
        converted = convert(foreign, rows, max_change=max_change, budget=budget, task=task)
    save(converted, output, {"converted": model.name})
    changed = "" if rows is None else f"; {change_of(foreign, converted, rows)}"
    typer.echo(f"{output}: {converted!r}{changed}{'; scores of classes' if task else ''}")
