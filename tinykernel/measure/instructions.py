"""Instructions of an inference without compiler or emulator: work times a price.

``benchmarks/instruction_counts.py`` counts them in an emulator for many models, fits the price of
each piece of work on a core, and writes ``instruction_counts.json``.
"""

import functools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinykernel.codegen.pack import Facts, code_of
from tinykernel.codegen.plan import pack
from tinykernel.codegen.targets import TARGETS, Target, find_target
from tinykernel.errors import TargetError
from tinykernel.model import IntegerModel
from tinykernel.model.readouts.trees import Trees
from tinykernel.model.stages.separable import Separable

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
# Events are decided this often at least, in seconds, by at most this share of the processor.
_BETWEEN_EVENTS, _MOST_LOAD = 0.1, 0.5


@functools.cache
def _measured() -> dict[str, Any]:
    """Read the measured prices and their errors by target."""
    # Stages of whole numbers run the same instructions with an FPU: they were counted without.
    targets: dict[str, Any] = json.loads(PRICES.read_text(encoding="utf-8"))["targets"]
    targets |= {name: targets[counted] for name, counted in SAME.items()}
    for name, entry in targets.items():
        if TARGETS[name].soft:
            soft = targets[TARGETS[name].soft]
            excess = max(entry["largest_excess"], soft["largest_excess"])
            prices = soft["prices"] | entry["prices"]
            targets[name] = entry | {"largest_excess": excess, "prices": prices}
    return targets


def work_of(model: IntegerModel) -> dict[str, dict[str, float]]:
    """List the work of an inference: by stage of `bench`, the number of each operation."""
    packed = pack(model)
    facts = Facts(
        {definition.name: definition.value for definition in packed.definitions},
        frozenset(table.name for table in packed.tables),
        model.n_outputs,
    )
    work: dict[str, dict[str, float]] = {"other": {"call": 1.0}, "scores": {}}
    if not model.is_one_class and model.find(Trees) is None:
        work["scores"]["outputs"] = float(model.n_outputs)
    grids = (*model.grids()[:-1], *[model.quantized_grid] * len(model.readout.parts))
    for piece, grid in zip((*model.stages, *model.readout.parts), grids, strict=True):
        for name, pieces in code_of(piece.KIND).work_of(piece, grid, facts).items():
            work[name] = work.get(name, {}) | pieces
    return work


def check_counted(target: str | Target) -> dict[str, dict[str, float]]:
    """Return the prices of a target; a TinykernelError says that its core was not measured."""
    row = find_target(target)
    if row.name not in _measured():
        raise TargetError(
            f"no instructions were counted for target {row.name}; leave time and instructions out "
            "of the budget, or add the target in benchmarks/instruction_counts.py"
        )
    return dict(_measured()[row.name]["prices"])


def instruction_margin(target: str | Target) -> float:
    """Return by which share a count may exceed its estimate, on a measured target."""
    excess: float = _measured()[find_target(target).name]["largest_excess"]
    return max(_LEAST_MARGIN, excess)


def steps_within(model: IntegerModel, target: str | Target, most: float) -> int:
    """Return how many steps trees may take in so many instructions, margin included."""
    # A tree counts as one more step. Everything else is as in `model`, which has few trees.
    prices, margin = check_counted(target)["scores"], 1 + instruction_margin(target)
    trees = model.find(Trees)
    assert trees is not None
    pieces = {
        n: x for n, x in trees.work(model.quantized_grid).items() if n in ("tree step", "tree")
    }
    rest = estimate_instructions(model, target)
    rest -= round(sum(prices[piece] * times for piece, times in pieces.items()))
    return int((most / margin - rest) / max(prices[piece] for piece in pieces))


def stream_load(model: IntegerModel, target: str | Target, rate: float) -> float:
    """Estimate the share of a target's default board that a stream takes, at `rate` samples a s."""
    row, a_second = find_target(target), rate / model.hop
    separable = model.find(Separable)
    images = separable is not None and separable.row_strides is None
    total = 0.0
    for stage, pieces in work_of(model).items():
        # A decision computes layers of an image again; a stream computes all else once.
        once = stage == "spectrum" or (stage == "local" and not images)
        times = rate / model.input.rows if once else a_second
        total += times * sum(check_counted(row)[stage][n] * x for n, x in pieces.items())
    return total * row.cycles[1] / (row.board.clock or math.inf)


def hop_for_events(model: IntegerModel, target: str | Target, rate: float) -> int:
    """Return the hop of a stream that looks for events: that of the model if it is short already.

    Else that of 0.1 s, or the shortest that takes half of the processor, of `stream_load`.
    """
    step = math.prod(stage.step for stage in model.stages)
    hop = max(1, int(_BETWEEN_EVENTS * rate) // step) * step
    while hop < model.hop and stream_load(replace(model, hop=hop), target, rate) > _MOST_LOAD:
        hop += step
    return min(hop, model.hop)


def estimate_instructions(model: IntegerModel, target: str | Target) -> int:
    """Estimate the count of `bench`, for a row that takes the longest."""
    row = find_target(target)
    prices = check_counted(row)
    total = 0.0
    for stage, pieces in work_of(model).items():
        for piece, times in pieces.items():
            if piece not in prices.get(stage, {}):
                raise TargetError(
                    f"instructions of models like this one ({piece}) were not counted for target "
                    f"{row.name}; leave time and instructions out of the budget"
                )
            total += times * prices[stage][piece]
    return round(total)
