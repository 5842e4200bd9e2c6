"""Memory and instructions without any compiler: exact tables, and work times a price.

``benchmarks/instruction_counts.py`` counts them in an emulator for many models, fits the price of
each piece of work on a core, and writes ``instruction_counts.json``.

``benchmarks/code_size.py`` links many models for every core, fits the size of each stage, part and
property by least squares, and writes ``code_sizes.json``.
"""

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinykernel.base.errors import TargetError
from tinykernel.compile.plan import pack
from tinykernel.compile.targets import TARGETS, Target, find_target
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.catalogue import code_of
from tinykernel.pieces.packing import Facts
from tinykernel.pieces.trees.spec import Trees
from tinykernel.run.footprint import FLASH_PARTS, Footprint, flash_parts

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
def _measurements() -> dict[str, Any]:
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
    grids = (*model.grids()[:-1], *[model.quantized_grid] * len(model.readout.parts))
    for piece, grid in zip((*model.stages, *model.readout.parts), grids, strict=True):
        for name, pieces in code_of(piece.KIND).work_of(piece, grid, facts).items():
            line = work.setdefault(name, {})
            for unit, times in pieces.items():  # a chain has several layers of a kind
                line[unit] = line.get(unit, 0.0) + times
    return work


def check_counted(target: str | Target) -> dict[str, dict[str, float]]:
    """Return the prices of a target; a TinykernelError says that its core was not measured."""
    row = find_target(target)
    if row.name not in _measurements():
        raise TargetError(
            f"no instructions were counted for target {row.name}; leave time and instructions out "
            "of the budget, or add the target in benchmarks/instruction_counts.py"
        )
    return dict(_measurements()[row.name]["prices"])


def instruction_margin(target: str | Target) -> float:
    """Return by which share a count may exceed its estimate, on a measured target."""
    excess: float = _measurements()[find_target(target).name]["largest_excess"]
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
    streams = any(stage.streams for stage in model.stages)
    images = not streams and any(grid.kind == "image" for grid in model.grids())
    total, prices = 0.0, check_counted(row)
    for stage, pieces in work_of(model).items():
        # A decision computes layers of an image again; a stream computes all else once.
        once = stage == "spectrum" or (stage == "local" and not images)
        times = rate / model.input.rows if once else a_second
        counted = prices.get(stage, {})
        total += times * sum(_price(model, row, counted, n) * x for n, x in pieces.items())
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
    return round(
        sum(
            times * _price(model, row, prices.get(stage, {}), piece)
            for stage, pieces in work_of(model).items()
            for piece, times in pieces.items()
        )
    )


def _price(model: IntegerModel, target: Target, counted: Mapping[str, float], work: str) -> float:
    """Return the instructions of a piece of work as counted, else as the model's pieces say."""
    if work in counted:
        return counted[work]
    assumed = {k: n for piece in model.pieces for k, n in code_of(piece.KIND).prices.items()}
    if work not in assumed:
        raise TargetError(
            f"instructions of models like this one ({work}) were not counted for target "
            f"{target.name}; leave time and instructions out of the budget"
        )
    return assumed[work]


#: The measured sizes, by core.
SIZES = Path(__file__).with_name("code_sizes.json")
# Arrays of a scaler that are tables where inputs have one each.
_SCALER_TABLES = ("tk_offsets", "tk_multipliers", "tk_spans", "tk_pre_shifts")


@functools.cache
def _code_sizes() -> dict[str, Any]:
    cores: dict[str, Any] = json.loads(SIZES.read_text(encoding="utf-8"))["cores"]
    return cores


def least_code(target: str) -> int:
    """Return bytes of code that no trained model is below on a target; 0 where none were measured.

    Converted trees of raw values may take less.
    """
    name = find_target(target).name
    sizes: dict[str, float] = _code_sizes().get(SAME.get(name, name), {}).get("code", {})
    of_rows = sum(sizes.get(piece, 0.0) for piece in ("table", "scale", "two classes"))
    return int(of_rows + min(sizes.get(part, 0.0) for part in ("linear", "trees", "prototypes")))


def _properties_of_trees(model: IntegerModel, packed: Any) -> dict[str, float]:
    """List what changes the code of trees that compare raw values; nothing of other models.

    Compilers unroll loops over short tables and leave these out, which is no sum of stages.
    """
    value = {definition.name: definition.value for definition in packed.definitions}
    trees, scaler, is_copied = model.readout.parts[-1], model.scaler, "TK_TREES_RAW" not in value
    is_whole = not scaler.is_float and {*scaler.multiplier.tolist()} <= {0, 1 << 16}
    is_plain = len(model.pieces) == 2 and model.decision is None and model.events is None
    if not is_plain or not isinstance(trees, Trees) or not (is_whole or scaler.bits == 32):
        return {}
    n_outputs, is_node = trees.multiplier.size, trees.test.size == 1
    constants = sum(table.n_bytes for table in packed.tables if table.name == "tk_constants")
    return {
        "trees alone": 1,
        "trees of copies": is_copied,
        "trees of copies, constant inputs": is_copied and constants > 0,
        "trees, bytes of constant inputs": 0 if is_copied else constants,
        "trees of floats": scaler.is_float,
        "trees, outputs": n_outputs,
        "trees of one output": n_outputs == 1,
        "trees of many outputs": n_outputs > 4,
        "trees of two classes": model.n_outputs < model.n_scores,
        "one tree": trees.size.size == 1,
        "trees of one node": is_node,
        "trees of missing values": "TK_MISSING" in value,
        "trees of missing values, one node": is_node and "TK_MISSING" in value,
        "trees of vectors": "TK_VECTORS" in value,
        "trees of votes": "TK_VOTES" in value,
        "trees of leaves of 4 bits": value["TK_LEAF_BITS"] == "4",
        "trees of a curve": bool(getattr(model.answers, "curve", "")),
    }


def code_properties(model: IntegerModel) -> dict[str, float]:
    """List the properties that determine the size of the code, and how often each counts."""
    packed = pack(model)
    value = {definition.name: definition.value for definition in packed.definitions}
    if of_trees := _properties_of_trees(model, packed):
        return {name: float(count) for name, count in of_trees.items() if count}
    names = {table.name for table in packed.tables}
    n_tables = sum(name in names for name in _SCALER_TABLES)
    counts: dict[str, float] = {
        **dict.fromkeys((piece.KIND for piece in (*model.stages, *model.readout.parts)), 1),
        model.input.kind: 1,
        "float inputs": model.raw_dtype == "float32" and model.scaler.bits < 32,
        "int32 inputs": model.raw_dtype == "int32",
        "several channels": not model.input.is_table and model.input.channels > 1,
        "averaging": any(getattr(stage, "average", 1) > 1 for stage in model.stages),
        "tables of integer scalers": 0 if model.scaler.is_float else n_tables,
        "tables of float scalers": n_tables if model.scaler.is_float else 0,
        "constant inputs": value["TK_CONSTANTS"] == "1" and "TK_TREES_RAW" not in value,
        "two classes": model.n_outputs < model.n_scores,
        "decision": model.decision is not None,
        "prototypes of a decision": model.decision is not None and "TK_PROTOTYPES" in value,
        "events": model.events is not None,
    }
    for piece in model.pieces:
        properties = code_of(piece.KIND).properties
        counts |= {} if properties is None else properties(piece, value)
    return {name: float(count) for name, count in counts.items() if count}


def estimate_footprint(model: IntegerModel, target: str | Target) -> Footprint:
    """Estimate what `measure_footprint` would measure with the target's own GCC."""
    # Library code counts as code. The stack is the largest of all measured models.
    row = find_target(target)
    measured = _code_sizes().get(SAME.get(row.name, row.name))
    if measured is None:
        raise TargetError(
            f"no code sizes were measured for target {row.name}; install a compiler for it, or add "
            "the target in benchmarks/code_size.py"
        )
    sizes, notes, properties = measured["code"], list(row.notes), code_properties(model)
    code = sum(sizes.get(name, 0.0) * count for name, count in properties.items())
    pieces = (*model.stages, *model.readout.parts)
    unmeasured = properties.keys() - sizes.keys() - {piece.KIND for piece in pieces}
    if unmeasured:
        part = ", ".join(sorted(unmeasured))
        notes.append(f"code sizes were not measured for: {part}; 0 bytes are assumed")
    for piece in pieces:
        if piece.KIND not in sizes:
            assumed = code_of(piece.KIND).flash
            code += assumed
            unknown = f"the code of {piece.KIND} was not measured"
            notes.append(f"{unknown}: {assumed} bytes are assumed")
    packed = pack(model)
    tables = packed.table_bytes()
    parts = dict.fromkeys(FLASH_PARTS, 0) | tables | {"code": round(code)}
    notes.append(
        f"code sizes were measured with {measured['compiler']}: of 20 models 19 were within "
        f"{measured['error']} bytes"
    )
    return Footprint(
        parts={part: parts[part] for part in flash_parts(model)},
        static=sum(tables.values()) if row.tables_in_ram else 0,
        scratch=packed.buffers()["scratch"],
        stack=measured["stack"],
        chain=(),
        compiler="",
        notes=tuple(notes),
    )
