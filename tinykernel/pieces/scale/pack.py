"""Storage of the scale: offsets, multipliers, and which inputs are ignored."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces import tables
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.packing import Code, Facts, Packed, Place, Work
from tinykernel.pieces.scale.spec import Scale

_WORTH = 8  # steps of trees that take as long as one input is quantized


def _scaler_array(
    used: NDArray[np.bool_], array: NDArray[Any], macro: str, table: str, comment: str, cast: str
) -> tables.Parts:
    """Store one array of the scaler as a literal or as a table; `cast` is the type of its use."""
    values = np.broadcast_to(array, used.shape)
    # What stands for a constant feature is never looked at, so it need not stand in the way.
    first = values[used][0] if np.any(used) else values[0]
    values = np.where(used, values, first)
    if np.all(values == first):
        literal = (
            tables.float_literal(float(first))
            if cast == "float"
            else f"(({cast}){tables.integer_literal(int(first), cast)})"
        )
        return [tables.Definition(f"{macro}(i)", literal, comment)]
    c_type = "float" if cast == "float" else tables.smallest_c_type(values)
    use = f"{table}[i]" if c_type == cast else f"(({cast}){table}[i])"
    return [
        tables.Definition(f"{macro}(i)", use, comment),
        tables.Table(table, c_type, values, "scaler", f"{comment}, for each input."),
    ]


def pack_scaler(scaler: Scale, used: NDArray[np.bool_], prefix: str = "") -> tables.Parts:
    """Store offsets, multipliers, spans and shifts of the inputs; `used` marks which matter."""
    macro, table = f"TK_{prefix.upper()}", f"tk_{prefix}"
    parts: tables.Parts = [tables.flag(f"{macro}RAW_FLOAT", scaler.is_float)]
    if scaler.bits == 32:  # raw values in their order: the arrays serve people
        return parts
    offset, multiplier = ("float", "float") if scaler.is_float else ("int32_t", "uint32_t")
    slope = "levels per raw unit" if scaler.is_float else "levels per raw unit, times 2^16"

    def store(name: str, array: NDArray[Any], comment: str, cast: str) -> tables.Parts:
        return _scaler_array(
            used, array, f"{macro}{name.upper()}", f"{table}{name}s", comment, cast
        )

    parts += store("offset", scaler.offset, "raw value of the lowest level", offset)
    parts += store("multiplier", scaler.multiplier, slope, multiplier)
    if scaler.span is not None:
        wide = scaler.raw_dtype == "int32" or np.any(np.abs(scaler.offset.astype(np.int64)) > 2**30)
        parts.append(
            tables.flag(f"{macro}RAW_WIDE", wide, "differences of raw values need 33 bits")
        )
        parts += store("span", scaler.span, "raw range above the offset", "uint32_t")
        dropped = "bits dropped from wide ranges"
        parts += store("pre_shift", scaler.pre_shift, dropped, "uint32_t")
    return parts


def _read_raw(
    stage: Scale, place: Place, used: NDArray[np.bool_]
) -> tuple[tables.Parts, int | None]:
    """Say whether trees read raw values, and by how much these are above quantized ones."""
    # They read few, or nothing has to be computed of them: then the thresholds are those of these.
    if not getattr(place.reader, "owns_thresholds", False):
        return [], None
    steps, zero = place.reader.steps, None
    if not stage.is_float and stage.bits < 32 and not stage.pre_shift.any():
        offset = np.broadcast_to(stage.offset, used.shape)[used]
        whole = np.broadcast_to(stage.multiplier, used.shape)[used] == 1 << 16
        if whole.all() and np.ptp(offset) == 0:
            zero = int(offset[0]) + (1 << (stage.bits - 1))
    if steps > place.grid.size * (1 if zero is None else _WORTH):
        return [], None
    parts: tables.Parts = [tables.flag("TK_TREES_RAW", True, "which read few inputs")]
    return parts, zero


def pack(stage: Scale, place: Place) -> Packed:
    """Store the scaler, and which inputs are ignored or change their sign before a transform."""
    constant = stage.constant(place.grid.size)
    negative = np.zeros_like(constant)
    if place.following is not None and place.following.negative is not None:
        negative = place.following.negative
    ends = "odd inputs high, even ones low."
    parts = pack_scaler(stage, ~constant)
    parts += [
        tables.flag("TK_SIGNS", np.any(negative)),
        tables.flag("TK_CONSTANTS", np.any(constant)),
    ]
    for name, bits, comment in (
        ("tk_signs", negative, f"Inputs that change their sign (B): a bit each, {ends}"),
        ("tk_constants", constant, f"Inputs that never varied and are ignored: {ends}"),
    ):
        if np.any(bits):
            packed = tables.pair_words(bits, even_high=False)
            parts.append(tables.Table(name, "uint32_t", packed, "scaler", comment))
    of_trees, zero = _read_raw(stage, place, ~constant)
    return Packed(parts + of_trees, -(-constant.size * stage.bits // tables.WORD), layout=zero)


def _work(stage: Scale, grid: Grid, facts: Facts) -> Work:
    if "TK_TREES_RAW" in facts.macros:
        return {}
    kind = "float" if stage.is_float else "integer"
    each = ", a scaler each" if "tk_multipliers" in facts.tables else ""
    kind = f"{kind} in order" if stage.bits == 32 else kind
    beside = "inputs" if facts.macros["TK_BLOCKS"] == "0" else "inputs of components"
    return {"scale": {f"{beside}, {kind}{each}": float(grid.size), "scaler": 1.0}}


CODE = Code({"tk_input.h": "scale"}, pack, _work)
