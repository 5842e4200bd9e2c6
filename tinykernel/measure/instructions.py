"""Instructions of an inference without compiler or emulator: what a model does, times a price.

What a model does follows from its shapes (`work_of`); ``benchmarks/instruction_counts.py`` counts
the instructions of many models one by one in an emulator, fits what each piece of work costs on a
core, and writes that to ``instruction_counts.json`` beside this file, with the largest error that
remained.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinykernel.codegen.pack.linear import weight_bits
from tinykernel.codegen.plan import pack
from tinykernel.codegen.targets import TARGETS, Target, find_target
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel
from tinykernel.model.grid import Grid
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.readouts.prototypes import Prototypes
from tinykernel.model.readouts.ternary import Ternary
from tinykernel.model.readouts.trees import Trees
from tinykernel.model.stage import Stage
from tinykernel.model.stages import FIRST
from tinykernel.model.stages.beside import Beside
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.convolutions import Convolutions
from tinykernel.model.stages.dense import Dense
from tinykernel.model.stages.kernels import Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.scale import Scale

PRICES = Path(__file__).with_name("instruction_counts.json")
#: Cores that run the same instructions as the one that was counted.
SAME = {
    "cortex-m0plus": "cortex-m0",
    "cortex-m7": "cortex-m4",
    "cortex-m33": "cortex-m4",
    "cortex-m7f": "cortex-m4f",
    "cortex-m33f": "cortex-m4f",
    "esp32": "esp8266",
    "esp32s3": "esp8266",
}
_LEAST_MARGIN = 0.2
_WORD = 32


@functools.cache
def _measured() -> dict[str, Any]:
    """Read the measured prices and their errors by target.

    Stages of whole numbers run the same instructions with an FPU: they were counted without.
    """
    targets: dict[str, Any] = json.loads(PRICES.read_text(encoding="utf-8"))["targets"]
    targets |= {name: targets[counted] for name, counted in SAME.items()}
    for name, own in targets.items():
        if TARGETS[name].soft:
            soft = targets[TARGETS[name].soft]
            excess = max(own["largest_excess"], soft["largest_excess"])
            prices = soft["prices"] | own["prices"]
            targets[name] = own | {"largest_excess": excess, "prices": prices}
    return targets


def work_of(model: IntegerModel) -> dict[str, dict[str, float]]:
    """List what an inference does: by stage of `bench`, how often a piece of work is done."""
    packed = pack(model)
    table = _Packed(
        {definition.name: definition.value for definition in packed.definitions},
        frozenset(table.name for table in packed.tables),
        model.n_outputs,
    )
    work: dict[str, dict[str, float]] = {"other": {"call": 1.0}, "scores": {}}
    for stage, given in zip(model.stages, model.grids(), strict=False):
        for name, pieces in _STAGES[type(stage)](stage, given, table).items():
            work[name] = work.get(name, {}) | pieces
    if not model.is_one_class and model.find(Trees) is None:
        work["scores"]["outputs"] = float(model.n_outputs)
    for part in model.readout.parts:
        for name, pieces in _PARTS[type(part)](part, model.quantized_grid, table).items():
            work[name] = work.get(name, {}) | pieces
    return work


@dataclass(frozen=True)
class _Packed:
    """What work depends on besides the stages: macros by name, names of tables, outputs."""

    values: dict[str, str]
    tables: frozenset[str]
    n_outputs: int


_Work = dict[str, dict[str, float]]


def _scale(stage: Scale, given: Grid, packed: _Packed) -> _Work:
    kind = "float" if stage.is_float else "integer"
    each = ", a scaler each" if "tk_multipliers" in packed.tables else ""
    beside = "inputs" if packed.values["TK_BLOCKS"] == "0" else "inputs of components"
    return {"scale": {f"{beside}, {kind}{each}": float(given.size), "scaler": 1.0}}


def _components(stage: Components, given: Grid, packed: _Packed) -> _Work:
    d, blocks = float(stage.dimension), stage.n_blocks
    first, second = sum(stage.halve_first), sum(stage.halve_second)
    transform = {
        "stages": d * (stage.log2_dimension + blocks * stage.log2_dimension),
        "stages that halve": d * (first + blocks * second),
        f"products, {stage.diagonal_kind}": d * blocks,
        f"permutation, {stage.permutation.kind}": d,
        "blocks": float(blocks),
    }
    if stage.small_code:
        # Passes of the transform, and the products between them, are others.
        transform = {f"small code, {name}": n for name, n in transform.items()}
    values = packed.values
    kind = (
        "all" if "TK_WIDTH" not in values else "starts" if "TK_EVEN_START" not in values else "two"
    )
    windows = {f"windows, {kind}": float(stage.n_components), "blocks": float(blocks)}
    if values["TK_KEPT"] == "1":
        windows["rows with a bitmap"] = blocks * d
    scores = {
        f"words, {values['TK_PLANES']} planes": float(
            -(-stage.n_components // _WORD) * packed.n_outputs
        ),
        "blocks and outputs": float(blocks * packed.n_outputs),
    }
    return {"scale": {"values": d}, "transform": transform, "windows": windows, "scores": scores}


def _first(stage: Stage, given: Grid, packed: _Packed) -> _Work:
    return {stage.KIND: {f"{name}s": float(n) for name, n in stage.work(given).items()}}


def _levels(stage: Levels, given: Grid, packed: _Packed) -> _Work:
    kind, raw = _kind(given), "float" if stage.scaler.is_float else "integer"
    made = stage.gives(given)
    positions = float(made.rows * made.columns)
    return {
        "local": {
            f"{kind}, raw values, {raw}": float(given.size),
            f"{kind}, positions and channels": positions * len(stage.mix),
        }
    }


def _kernels(stage: Kernels, given: Grid, packed: _Packed) -> _Work:
    kind, positions = _kind(given), float(given.rows * given.columns)
    # Kernels that look at the same values follow each other.
    looks = len(set(zip(stage.dilation.tolist(), stage.channel.tolist(), strict=True)))
    return {
        "local": {
            f"{kind}, positions and looks": positions * looks,
            f"{kind}, positions and kernels": positions * stage.n_kernels,
            f"{kind}, positions and taps": positions * float((stage.taps != 0).sum()),
            f"{kind}, kernels": float(stage.n_kernels),
            f"{kind}, counts": float(stage.n_counts),
        }
    }


def _convolutions(stage: Convolutions, given: Grid, packed: _Packed) -> _Work:
    return {"local": {f"convolutions, {name}s": n for name, n in stage.work(given).items()}}


def _dense(stage: Dense, given: Grid, packed: _Packed) -> _Work:
    work = stage.work(given)
    products = f"convolutions, products of {weight_bits(stage.weights)} bits"
    return {"local": {products: work["multiply"], "convolutions, units": work["unit"]}}


def _beside(stage: Beside, given: Grid, packed: _Packed) -> _Work:
    # In the place of those of the kernels: all counts are copied, too.
    return {"local": {"signal, counts": float(2 * given.size + len(stage.source))}}


def _kind(given: Grid) -> str:
    return "signal" if given.is_signal else "image"


def _linear(part: Linear, given: Grid, packed: _Packed) -> _Work:
    pieces = f"weights of {weight_bits(part.weights)} bits"
    return {"scores": {pieces: float(given.size * packed.n_outputs)}}


def _prototypes(part: Prototypes, given: Grid, packed: _Packed) -> _Work:
    size = float(part.levels.size)
    work = {"scores": {"prototypes": float(len(part.levels)), "levels of prototypes": size}}
    if given.constant:
        # Each distance leaves constant inputs out by a function of the scaler.
        work["scale"] = {"levels of prototypes, constant inputs": size}
    return work


# Work by the class of a stage; the ternary weights are counted with the components.
_STAGES: dict[type, Callable[[Any, Grid, _Packed], _Work]] = {
    **dict.fromkeys(FIRST, _first),
    Scale: _scale,
    Components: _components,
    Levels: _levels,
    Kernels: _kernels,
    Convolutions: _convolutions,
    Dense: _dense,
    Beside: _beside,
}
_PARTS: dict[type, Callable[[Any, Grid, _Packed], _Work]] = {
    Ternary: lambda part, given, packed: {},
    Linear: _linear,
    Prototypes: _prototypes,
    Trees: lambda part, given, packed: {"scores": part.work(given)},
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


def steps_within(model: IntegerModel, target: str | Target, most: float) -> int:
    """Return how many steps trees may take in so many instructions, margin included.

    A tree counts as one more step. All else is as in `model`, which has few trees.
    """
    prices, margin = check_counted(target)["scores"], 1 + instruction_margin(target)
    trees = model.find(Trees)
    assert trees is not None
    pieces = {
        n: x for n, x in trees.work(model.quantized_grid).items() if n in ("tree step", "tree")
    }
    rest = estimate_instructions(model, target)
    rest -= round(sum(prices[piece] * times for piece, times in pieces.items()))
    return int((most / margin - rest) / max(prices[piece] for piece in pieces))


def estimate_instructions(model: IntegerModel, target: str | Target) -> int:
    """Estimate what `bench` would count, for a row that takes the longest.

    A TinykernelError says that the core was not measured.
    """
    row = find_target(target)
    prices = check_counted(row)
    total = 0.0
    for stage, pieces in work_of(model).items():
        for piece, times in pieces.items():
            if piece not in prices.get(stage, {}):
                raise TinykernelError(
                    f"instructions of models like this one ({piece}) were not counted for target "
                    f"{row.name}; leave time and instructions out of the budget"
                )
            total += times * prices[stage][piece]
    return round(total)
