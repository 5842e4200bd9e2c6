"""The memory of a model without any compiler: exact tables, and code from measured sizes.

``benchmarks/code_size.py`` links many models for every core, fits the size of each stage, part and
property by least squares, and writes ``code_sizes.json``.
"""

import functools
import json
from pathlib import Path
from typing import Any

from tinykernel.codegen.plan import pack
from tinykernel.codegen.targets import Target, find_target
from tinykernel.errors import TargetError
from tinykernel.measure.footprint import FLASH_PARTS, Footprint, flash_parts
from tinykernel.measure.instructions import SAME
from tinykernel.model import IntegerModel
from tinykernel.model.stages import Components, Separable

#: The measured sizes, by core.
SIZES = Path(__file__).with_name("code_sizes.json")
# Arrays of a scaler that are tables where inputs have one each.
_SCALER_TABLES = ("tk_offsets", "tk_multipliers", "tk_spans", "tk_pre_shifts")
# Of the code of a stage that was never measured; a spectrum takes 1130.
_UNMEASURED = 1536


@functools.cache
def _code_sizes() -> dict[str, Any]:
    cores: dict[str, Any] = json.loads(SIZES.read_text(encoding="utf-8"))["cores"]
    return cores


def least_code(target: str) -> int:
    """Return bytes of code that no model is below on a target; 0 where none were measured."""
    name = find_target(target).name
    sizes: dict[str, float] = _code_sizes().get(SAME.get(name, name), {}).get("code", {})
    of_rows = sum(sizes.get(piece, 0.0) for piece in ("table", "scale", "two classes"))
    return int(of_rows + min(sizes.get(part, 0.0) for part in ("linear", "trees", "prototypes")))


def code_properties(model: IntegerModel) -> dict[str, float]:
    """List the properties that determine the size of the code, and how often each counts."""
    packed = pack(model)
    value = {definition.name: definition.value for definition in packed.definitions}
    names = {table.name for table in packed.tables}
    n_tables = sum(name in names for name in _SCALER_TABLES)
    counts: dict[str, float] = {
        **dict.fromkeys((piece.KIND for piece in (*model.stages, *model.readout.parts)), 1),
        model.input.kind: 1,
        "float inputs": model.raw_dtype == "float32",
        "int32 inputs": model.raw_dtype == "int32",
        "several channels": not model.input.is_table and model.input.channels > 1,
        "averaging": any(getattr(stage, "average", 1) > 1 for stage in model.stages),
        "tables of integer scalers": 0 if model.scaler.is_float else n_tables,
        "tables of float scalers": n_tables if model.scaler.is_float else 0,
        "constant inputs": value["TK_CONSTANTS"] == "1",
        "two classes": model.n_outputs < model.n_scores,
        "decision": model.decision is not None,
        "prototypes of a decision": model.decision is not None and "TK_PROTOTYPES" in value,
        "events": model.events is not None,
    }
    separable = model.find(Separable)
    if separable is not None:
        counts["separable of mixed layers"] = all(form[0] for form in separable.block_forms)
        counts["separable with forms"] = separable.forms is not None
        counts["separable with patches"] = any(layer.pool != (1, 1) for layer in separable.layers)
        counts["separable, flat"] = separable.flat
        counts["separable with a border"] = separable.border > 0
        counts["separable of one channel"] = separable.given == 1
        counts["separable in a stream"] = separable.row_strides is not None
        counts["separable with events"] = model.events is not None
    components = model.find(Components)
    if components is not None:
        counts |= _component_properties(components, value)
    return {name: float(count) for name, count in counts.items() if count}


def _component_properties(components: Components, value: dict[str, str]) -> dict[str, float]:
    """List what changes the code of components; loops of fast transforms are unrolled."""
    stages, second = components.log2_dimension, sum(components.halve_second)
    counts: dict[str, float] = {
        f"permutation {components.permutation.kind}": 1,
        "one block": value["TK_BLOCKS"] == "1u",
        "one scale a block": "TK_SCALE(block)" in value,
        "one width": "TK_WIDTH" in value,
        "one plane": value["TK_PLANES"] == "1",
        "packed weights": value["TK_PLANES"] == "8",
        "windows in four bits": "TK_WINDOW_BITS" in value,
        "bitmap of kept rows": value["TK_KEPT"] == "1",
        "blocks counted together": value["TK_BITS_WORDS"] != "0u",
        "few values": stages < 8,
    }
    if components.small_code:
        return counts | {"small code": 1}
    return counts | {
        f"transform of 2^{min(max(stages, 5), 11)}": 1,
        "further stages": max(0, stages - 11),
        "halving stages": sum(components.halve_first) + second,
        "all stages halve first": all(components.halve_first),
    }


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
            code += _UNMEASURED
            unknown = f"the code of {piece.KIND} was not measured"
            notes.append(f"{unknown}: {_UNMEASURED} bytes are assumed")
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
        scratch=4 * packed.scratch_words,
        stack=measured["stack"],
        chain=(),
        compiler="",
        notes=tuple(notes),
    )
