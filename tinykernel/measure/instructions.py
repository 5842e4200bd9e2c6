"""Instructions of an inference without compiler or emulator: what a model does, times a price.

What a model does follows from its shapes (`work_of`); ``benchmarks/instruction_counts.py`` counts
the instructions of many models one by one in an emulator, fits what each piece of work costs on a
core, and writes that to ``instruction_counts.json`` beside this file, with the largest error that
remained.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from tinykernel.codegen.packing import pack
from tinykernel.codegen.packing_linear import weight_bits
from tinykernel.codegen.targets import Target, find_target
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel
from tinykernel.model.compat import LocalStage

PRICES = Path(__file__).with_name("instruction_counts.json")
_LEAST_MARGIN = 0.2
_WORD = 32


@functools.cache
def _measured() -> dict[str, Any]:
    """Read the measured prices and their errors by target."""
    targets: dict[str, Any] = json.loads(PRICES.read_text(encoding="utf-8"))["targets"]
    return targets


def work_of(model: IntegerModel) -> dict[str, dict[str, float]]:
    """List what an inference does: by stage of `bench`, how often a piece of work is done."""
    work = {"scale": _scaling(model), "scores": _scores(model), "other": {"call": 1.0}}
    if model.n_blocks:
        work |= {"transform": _transforms(model), "windows": _windows(model)}
    if model.small_code:
        # Passes of the transform, and the products between them, are others.
        work["transform"] = {f"small code, {name}": n for name, n in work["transform"].items()}
    if model.local is not None:
        work["local"] = _local(model.local)
    return work


def _scaling(model: IntegerModel) -> dict[str, float]:
    tables = {table.name for table in pack(model).tables}
    kind = "float" if model.scaler.is_float else "integer"
    each = ", a scaler each" if "tk_multipliers" in tables else ""
    beside = "inputs of components" if model.n_blocks else "inputs"
    work = {f"{beside}, {kind}{each}": float(model.n_features), "scaler": 1.0}
    if model.n_blocks:
        work["values"] = float(model.dimension)
    if model.prototypes is not None and not model.sign.all():
        # Each distance leaves constant inputs out by a function of the scaler.
        work["levels of prototypes, constant inputs"] = float(model.prototypes.size)
    return work


def _transforms(model: IntegerModel) -> dict[str, float]:
    d, blocks = float(model.dimension), model.n_blocks
    first, second = sum(model.halve_first), sum(model.halve_second)
    stages = model.log2_dimension
    return {
        "stages": d * (stages + blocks * stages),
        "stages that halve": d * (first + blocks * second),
        f"products, {model.diagonal_kind}": d * blocks,
        f"permutation, {model.permutation.kind}": d,
        "blocks": float(blocks),
    }


def _windows(model: IntegerModel) -> dict[str, float]:
    values = {definition.name: definition.value for definition in pack(model).definitions}
    rows = float(model.n_blocks * model.dimension)
    kind = (
        "all" if "TK_WIDTH" not in values else "starts" if "TK_EVEN_START" not in values else "two"
    )
    work = {f"windows, {kind}": float(model.n_components), "blocks": float(model.n_blocks)}
    if values["TK_KEPT"] == "1":
        work["rows with a bitmap"] = rows
    return work


def _scores(model: IntegerModel) -> dict[str, float]:
    if model.prototypes is not None:
        return {
            "prototypes": float(len(model.prototypes)),
            "levels of prototypes": float(model.prototypes.size),
        }
    outputs = float(len(model.weights))
    work = {"outputs": outputs}
    if model.n_blocks:
        values = {definition.name: definition.value for definition in pack(model).definitions}
        words = -(-model.n_components // _WORD)
        work[f"words, {values['TK_PLANES']} planes"] = words * outputs
        work["blocks and outputs"] = model.n_blocks * outputs
    if model.linear is not None:
        work[f"weights of {weight_bits(model.linear)} bits"] = model.n_features * outputs
    return work


def _local(stage: LocalStage) -> dict[str, float]:
    kind = "signal" if stage.is_signal else "image"
    raw = "float" if stage.scaler.is_float else "integer"
    positions = float(stage.rows * stage.columns)
    # Kernels that look at the same values follow each other.
    looks = len(set(zip(stage.dilation.tolist(), stage.channel.tolist(), strict=True)))
    taps = float((stage.taps != 0).sum())
    return {
        f"{kind}, raw values, {raw}": float(stage.n_inputs),
        f"{kind}, positions and channels": positions * len(stage.mix),
        f"{kind}, positions and looks": positions * looks,
        f"{kind}, positions and kernels": positions * stage.n_kernels,
        f"{kind}, positions and taps": positions * taps,
        f"{kind}, kernels": float(stage.n_kernels),
        f"{kind}, counts": float(stage.n_counts),
    }


def check_counted(target: str | Target) -> dict[str, dict[str, float]]:
    """Return the prices of a target; a TinykernelError says that its core was not measured."""
    row = find_target(target)
    if row.name not in _measured():
        raise TinykernelError(
            f"no instructions were counted for target {row.name}; leave time and instructions out "
            "of the budget, or add the target in benchmarks/instruction_counts.py"
        )
    prices: dict[str, dict[str, float]] = _measured()[row.name]["prices"]
    return prices


def instruction_margin(target: str | Target) -> float:
    """Return by what share a count may exceed its estimate on a target that was measured."""
    excess: float = _measured()[find_target(target).name]["largest_excess"]
    return max(_LEAST_MARGIN, excess)


def estimate_instructions(model: IntegerModel, target: str | Target) -> int:
    """Estimate what `bench` would count, for a row that takes the longest.

    A TinykernelError says that the core was not measured.
    """
    row = find_target(target)
    prices = check_counted(row)
    total = 0.0
    for stage, pieces in work_of(model).items():
        for piece, times in pieces.items():
            if piece not in prices[stage]:
                raise TinykernelError(
                    f"instructions of models like this one ({piece}) were not counted for target "
                    f"{row.name}; leave time and instructions out of the budget"
                )
            total += times * prices[stage][piece]
    return round(total)
