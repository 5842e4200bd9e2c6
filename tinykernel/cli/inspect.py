"""Show what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import JsonOption, ModelArgument, check_output_file
from tinykernel.cli.common.output import percent, print_json, print_pairs, print_table, size
from tinykernel.text import listed

if TYPE_CHECKING:
    from tinykernel.model import IntegerModel
    from tinykernel.model.answers.decision import Decision
    from tinykernel.model.proof import Range

_CLASSES_SHOWN = 12
_CURVE = ("budget", "flash", "held out", "standard error", "")
_DIAGONALS = {"sign": "signs", "int4": "4 bits", "int8": "8 bits"}


def inspect_command(
    model: ModelArgument,
    proof: Annotated[
        Path | None,
        typer.Option(
            "--proof",
            metavar="FILE",
            help="write the bounds and inputs that reach them, as JSON that check_proof.py checks "
            "against the exported C",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a model is: sizes, arithmetic, and the proved range of every stage."""
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import about, load
    from tinykernel.reporting.training import training_in_words

    if proof is not None:
        check_output_file(proof, (".json",), [model])
    integer = as_integer_model(load(model))
    if proof is not None:
        _write_proof(integer, proof)
    facts, said = _facts(integer), about(model)
    ranges = integer.ranges()
    if as_json:
        stages = [vars(stage) for stage in ranges]
        print_json({"model": model.name, **facts, "ranges": stages, "about": said})
        return
    print_pairs([("model", model.name), *_in_words(integer, model.stat().st_size)])
    if said:
        typer.echo("\nWhat the file says of its training:")
        print_pairs(training_in_words(said))
        _print_curve(said.get("tune"))
    typer.echo("\nProved for every possible input:")
    print_table(
        ("stage", "lowest", "highest", "limit", "used"),
        (
            (
                stage.stage,
                str(stage.low),
                str(stage.high),
                f"{stage.limit_low}..{stage.limit_high}",
                percent(_used(stage)),
            )
            for stage in ranges
        ),
        right=["lowest", "highest", "limit", "used"],
    )


def _print_curve(said: object) -> None:
    """Print accuracy against size; nothing where the file says none."""
    points = said.get("curve") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(points, list) or not points:
        return
    if not all(isinstance(row, list) and len(row) == 4 for row in points):
        return
    if not all(type(value) in (int, float) for row in points for value in row):
        return
    typer.echo(f"\nTuned, {said.get('score')} on rows held out:")
    rows = [
        (
            size(budget),
            str(flash),
            percent(share),
            percent(error),
            "recommended" if budget == said.get("recommended") else "",
        )
        for budget, flash, share, error in points
    ]
    print_table(_CURVE, rows, right=_CURVE[:4])


def _used(stage: Range) -> float:
    """Return which share of its type a stage may use; a limit of 0 is no share."""
    ends = ((stage.low, stage.limit_low), (stage.high, stage.limit_high))
    return max(end / limit for end, limit in ends if limit)


def _write_proof(integer: IntegerModel, proof: Path) -> None:
    from tinykernel.codegen.certificate import certificate
    from tinykernel.files import write_bytes_atomically

    write_bytes_atomically(proof, certificate(integer))
    typer.echo(f"{proof} holds the proof; {checker()} checks it against the C", err=True)


def checker() -> Path:
    """Return the program that checks proofs, which needs nothing of this package."""
    from tinykernel.resources import folder

    return folder("firmware") / "check_proof.py"


def _facts(integer: IntegerModel) -> dict[str, Any]:
    """Return what ``inspect --json`` says of a model."""
    from tinykernel.model.answers.values import Values
    from tinykernel.model.readouts.prototypes import Prototypes

    found: dict[str, Any] = {}
    if isinstance(integer.answers, Values):
        found = {"values": list(integer.answers.names), "scale_shift": integer.answers.shift}
    prototypes = integer.find(Prototypes)
    if prototypes is not None:
        found["prototypes"] = len(prototypes.levels)
    return found | {
        "features": integer.n_features,
        "classes": list(integer.classes),
        "stages": [stage.KIND for stage in integer.stages],
        "readout": [part.KIND for part in integer.readout.parts],
        "raw_input": integer.raw_dtype,
        "quantized_input": str(integer.input_dtype),
        "constant_features": len(integer.quantized_grid.constant),
        "fingerprint": integer.fingerprint(),
        **_components(integer),
        **_decision(integer),
    }


def _components(integer: IntegerModel) -> dict[str, Any]:
    """Return how the components are made, where there are some."""
    from tinykernel.model.readouts.ternary import Ternary
    from tinykernel.model.stages.components import Components

    found, part = integer.find(Components), integer.find(Ternary)
    if found is None or part is None:
        return {"components": 0}
    return {
        "components": found.n_components,
        "blocks": found.n_blocks,
        "dimension": found.dimension,
        "permutation": found.permutation.kind,
        "diagonal": found.diagonal_kind,
        "halvings_first": [int(halve) for halve in found.halve_first],
        "halvings_second": [int(halve) for halve in found.halve_second],
        "small_code": found.small_code,
        "zero_weights": float((part.weights == 0).mean()),
    }


def _decision(integer: IntegerModel) -> dict[str, Any]:
    """Return the decision part, where there is one."""
    found = integer.decision
    if found is None:
        return {}
    return {
        "decision": {
            "thresholds": found.thresholds.tolist(),
            "confidences": found.table.tolist(),
            "confidence_shift": found.shift,
            "temperature": found.temperature,
            "statement": found.statement,
            "novelty_threshold": found.novelty_threshold,
            "prototypes": found.n_prototypes,
        }
    }


def _in_words(integer: IntegerModel, file_size: int) -> list[tuple[str, str]]:
    from tinykernel.codegen.description import consists_of

    facts, unit = _facts(integer), f"{integer.raw_dtype}, used as {integer.input_dtype}"
    names = listed(integer.classes, _CLASSES_SHOWN)
    constant = facts["constant_features"]
    inputs = f"{integer.n_features} x {unit}"
    given = integer.input
    if not given.is_table:
        shape = " x ".join(map(str, given.shape))
        what = "samples and channels" if given.is_signal else "pixels"
        beside = "" if integer.beside is None else f" and {integer.beside.words}"
        inputs = f"{shape} {what}{beside} of {given.dtype}"
        unit = f"{integer.scaler.raw_dtype}, used as {integer.input_dtype}"
    return [
        ("file", size(file_size)),
        ("consists of", consists_of(integer)),
        ("inputs", inputs),
        ("counts", "" if given.is_table else f"{integer.n_features} x {unit}"),
        ("constant inputs", str(constant) if constant else ""),
        ("classes", f"{integer.n_classes}: {names}" if integer.classes else ""),
        ("values", _values(integer)),
        ("prototypes", _prototypes(integer, facts)),
        *_components_in_words(facts),
        *_decision_in_words(integer),
        ("fingerprint", integer.fingerprint()[:16]),
    ]


def _components_in_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Say how the components are made, where there are some."""
    if not facts["components"]:
        return []
    n_blocks, zeros = facts["blocks"], facts["zero_weights"]
    blocks = f"{n_blocks} block{'s' if n_blocks > 1 else ''}"
    return [
        ("components", f"{facts['components']} of {blocks} of {facts['dimension']}"),
        ("their weights", f"1 and -1, {percent(zeros)} zero" if zeros else "1 and -1"),
        ("code", "small" if facts["small_code"] else ""),
        ("diagonal G", _DIAGONALS[facts["diagonal"]]),
        ("permutation P", facts["permutation"]),
        (
            "halved stages",
            f"first {_stages(facts['halvings_first'])}, second {_stages(facts['halvings_second'])}",
        ),
    ]


def _prototypes(integer: IntegerModel, facts: dict[str, Any]) -> str:
    """Say of a model of one class what is novel to it."""
    if not integer.is_one_class:
        return ""
    return f"{facts['prototypes']}; novel above a distance of {-int(integer.readout.offset[0])}"


def _novel_words(decision: Decision) -> str:
    """Say above which novelty a row looks like no class, and by what that is told."""
    if decision.novelty_threshold is None:
        return ""
    n = decision.n_prototypes
    by = f", by the distance to {n} prototypes and the margin" if n else ""
    return f"{decision.novelty_threshold}{by}"


def _decision_in_words(integer: IntegerModel) -> list[tuple[str, str]]:
    found = integer.decision
    if found is None:
        return []
    least = listed(found.thresholds.tolist(), _CLASSES_SHOWN)
    return [
        ("least margin", least if found.rejects else "none: every row is answered"),
        (
            "confidence",
            f"{found.table[0]} to {found.table[-1]}, a step every {1 << found.shift} of the margin",
        ),
        ("novel above", _novel_words(found)),
        ("promise", found.statement),
    ]


def _values(integer: IntegerModel) -> str:
    from tinykernel.model.answers.values import Values

    values = integer.answers
    if not isinstance(values, Values):
        return ""
    return f"{', '.join(values.names)}; in C times 2^{values.shift}, a step is {values.unit:.3g}"


def _stages(schedule: tuple[bool, ...]) -> str:
    return f"{sum(schedule)} of {len(schedule)}"
