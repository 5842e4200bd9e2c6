"""Show what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import JsonOption, ModelArgument, check_output_file, option
from tinykernel.cli.common.output import percent, print_json, print_pairs, print_table, size
from tinykernel.files import write_bytes_atomically
from tinykernel.text import listed

if TYPE_CHECKING:
    from tinykernel.model import IntegerModel

_CLASSES_SHOWN = 12
_DIAGONALS = {"sign": "signs", "int4": "4 bits", "int8": "8 bits"}


def inspect_command(
    model: ModelArgument,
    proof: Annotated[
        Path | None,
        option(
            "FILE",
            "write the bounds and inputs that reach them, as JSON that check_proof.py checks "
            "against the exported C",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show sizes, arithmetic and proved ranges of a model."""
    from tinykernel.cli.common.memory import open_model
    from tinykernel.reporting.training import training_in_words

    if proof is not None:
        check_output_file(proof, (".json",), [model])
    opened = open_model(model)
    integer, ranges = opened.model, opened.model.ranges()
    if proof is not None:
        from tinykernel.codegen.certificate import certificate
        from tinykernel.resources import folder

        write_bytes_atomically(proof, certificate(integer))
        checker = folder("firmware") / "check_proof.py"  # needs nothing of this package
        typer.echo(f"{proof} holds the proof; {checker} checks it against the C", err=True)
    facts = _facts(integer)
    if as_json:
        stages = [vars(stage) for stage in ranges]
        print_json({"model": model.name, **facts, "ranges": stages, "about": opened.about})
        return
    print_pairs([("model", model.name), *_in_words(integer, facts, model.stat().st_size)])
    if opened.about:
        typer.echo("\nWhat the file says of its training:")
        print_pairs(training_in_words(opened.about))
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
    from tinykernel.decisions.words import decision_facts
    from tinykernel.model.answers.values import Values
    from tinykernel.model.readouts.prototypes import Prototypes

    facts: dict[str, Any] = {}
    if isinstance(integer.answers, Values):
        facts = {"values": list(integer.answers.names), "scale_shift": integer.answers.shift}
    prototypes = integer.find(Prototypes)
    if prototypes is not None:
        facts["prototypes"] = len(prototypes.levels)
    return facts | {
        "features": integer.n_features,
        "classes": list(integer.classes),
        "stages": [stage.KIND for stage in integer.stages],
        "readout": [part.KIND for part in integer.readout.parts],
        "raw_input": integer.raw_dtype,
        "quantized_input": str(integer.input_dtype),
        "constant_features": len(integer.quantized_grid.constant),
        "fingerprint": integer.fingerprint(),
        **_components(integer),
        **decision_facts(integer),
        **({} if integer.events is None else {"events": integer.events.facts()}),
    }


def _components(integer: IntegerModel) -> dict[str, Any]:
    """Return the structure of the components, if any."""
    from tinykernel.model.readouts.ternary import Ternary
    from tinykernel.model.stages.components import Components

    stage, part = integer.find(Components), integer.find(Ternary)
    if stage is None or part is None:
        return {"components": 0}
    return {
        "components": stage.n_components,
        "blocks": stage.n_blocks,
        "dimension": stage.dimension,
        "permutation": stage.permutation.kind,
        "diagonal": stage.diagonal_kind,
        "halvings_first": [int(halve) for halve in stage.halve_first],
        "halvings_second": [int(halve) for halve in stage.halve_second],
        "small_code": stage.small_code,
        "zero_weights": float((part.weights == 0).mean()),
    }


def _in_words(
    integer: IntegerModel, facts: dict[str, Any], file_size: int
) -> list[tuple[str, str]]:
    from tinykernel.codegen.description import consists_of
    from tinykernel.decisions.words import decision_in_words
    from tinykernel.model.answers.values import Values

    unit = f"{integer.raw_dtype}, used as {integer.input_dtype}"
    inputs, counts, values, novel = f"{integer.n_features} x {unit}", "", "", ""
    grid, answers = integer.input, integer.answers
    if not grid.is_table:
        shape = " x ".join(map(str, grid.shape))
        unit_of_shape = "samples and channels" if grid.is_signal else "pixels"
        beside = "" if integer.beside is None else f" and {integer.beside.title}"
        inputs = f"{shape} {unit_of_shape}{beside} of {grid.dtype}"
        counts = f"{integer.n_features} x {integer.scaler.raw_dtype}, used as {integer.input_dtype}"
    if isinstance(answers, Values):
        names = ", ".join(answers.names)
        values = f"{names}; in C times 2^{answers.shift}, a step is {answers.unit:.3g}"
    if integer.is_one_class:
        distance = -int(integer.readout.offset[0])
        novel = f"{facts['prototypes']}; novel above a distance of {distance}"
    classes = f"{integer.n_classes}: {listed(integer.classes, _CLASSES_SHOWN)}"
    return [
        ("file", size(file_size)),
        ("consists of", consists_of(integer)),
        ("inputs", inputs),
        ("counts", counts),
        ("constant inputs", str(facts["constant_features"] or "")),
        ("classes", classes if integer.classes else ""),
        ("values", values),
        ("prototypes", novel),
        *_components_in_words(facts),
        *decision_in_words(integer.decision),
        *([] if integer.events is None else integer.events.in_words(integer.classes)),
        ("fingerprint", integer.fingerprint()[:16]),
    ]


def _components_in_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Describe the structure of the components, if any."""
    if not facts["components"]:
        return []
    n_blocks, zeros = facts["blocks"], facts["zero_weights"]
    blocks = f"{n_blocks} block{'s' if n_blocks > 1 else ''}"
    first, second = (
        f"{sum(facts[name])} of {len(facts[name])}"
        for name in ("halvings_first", "halvings_second")
    )
    return [
        ("components", f"{facts['components']} of {blocks} of {facts['dimension']}"),
        ("their weights", f"1 and -1, {percent(zeros)} zero" if zeros else "1 and -1"),
        ("code", "small" if facts["small_code"] else ""),
        ("diagonal G", _DIAGONALS[facts["diagonal"]]),
        ("permutation P", facts["permutation"]),
        ("halved stages", f"first {first}, second {second}"),
    ]
