"""Storage of the scale: its arrays, the inputs that are ignored, and the signs of B.

An array whose values are equal for all inputs that are not constant becomes one literal, others the
smallest integer type that holds them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.definitions import Definition, Parts, Table, flag, pair_words, smallest_type
from tinykernel.codegen.literals import float_literal, integer_literal
from tinykernel.codegen.pack.front import Code, Facts, Work
from tinykernel.model.grid import Grid
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.scale import Scale


def _scaler_array(
    used: NDArray[np.bool_], array: NDArray[Any], macro: str, table: str, comment: str, cast: str
) -> Parts:
    """Store one array of the scaler as a literal or as a table; `cast` is the type of its use."""
    values = np.broadcast_to(array, used.shape)
    # What stands for a constant feature is never looked at, so it need not stand in the way.
    first = values[used][0] if np.any(used) else values[0]
    values = np.where(used, values, first)
    if np.all(values == first):
        literal = (
            float_literal(float(first))
            if cast == "float"
            else f"(({cast}){integer_literal(int(first), cast)})"
        )
        return [Definition(f"{macro}(i)", literal, comment)]
    c_type = "float" if cast == "float" else smallest_type(values)
    use = f"{table}[i]" if c_type == cast else f"(({cast}){table}[i])"
    return [
        Definition(f"{macro}(i)", use, comment),
        Table(table, c_type, values, "scaler", f"{comment}, for each input."),
    ]


def pack_scaler(scaler: Scale, used: NDArray[np.bool_], prefix: str = "") -> Parts:
    """Store offsets, multipliers, spans and shifts of the inputs; `used` says which matter.

    `prefix` stands in the names of macros and tables, e.g. ``"local_"``.
    """
    macro, table = f"TK_{prefix.upper()}", f"tk_{prefix}"
    parts: Parts = [flag(f"{macro}RAW_FLOAT", scaler.is_float)]
    offset, multiplier = ("float", "float") if scaler.is_float else ("int32_t", "uint32_t")
    parts += _scaler_array(
        used,
        scaler.offset,
        f"{macro}OFFSET",
        f"{table}offsets",
        "raw value of the lowest level",
        offset,
    )
    parts += _scaler_array(
        used,
        scaler.multiplier,
        f"{macro}MULTIPLIER",
        f"{table}multipliers",
        "levels per raw unit" if scaler.is_float else "levels per raw unit, times 2^16",
        multiplier,
    )
    if scaler.span is not None:
        wide = scaler.raw_dtype == "int32" or np.any(np.abs(scaler.offset.astype(np.int64)) > 2**30)
        parts.append(flag(f"{macro}RAW_WIDE", wide, "differences of raw values need 33 bits"))
        parts += _scaler_array(
            used,
            scaler.span,
            f"{macro}SPAN",
            f"{table}spans",
            "raw range above the offset",
            "uint32_t",
        )
        parts += _scaler_array(
            used,
            scaler.pre_shift,
            f"{macro}PRE_SHIFT",
            f"{table}pre_shifts",
            "bits dropped from wide ranges",
            "uint32_t",
        )
    return parts


def pack_scale(stage: Scale, constant: NDArray[np.bool_], components: Components | None) -> Parts:
    """Store the scaler, which inputs are ignored, and which change their sign, of a transform."""
    negative = np.zeros_like(constant) if components is None else components.sign < 0
    return [*pack_scaler(stage, ~constant), *_pack_signs(negative, constant)]


def _pack_signs(negative: NDArray[np.bool_], constant: NDArray[np.bool_]) -> Parts:
    parts: Parts = [flag("TK_SIGNS", np.any(negative)), flag("TK_CONSTANTS", np.any(constant))]
    if np.any(negative):
        parts.append(
            Table(
                "tk_signs",
                "uint32_t",
                pair_words(negative, even_high=False),
                "scaler",
                "Inputs that change their sign (B): a bit each, odd inputs high, even ones low.",
            )
        )
    if np.any(constant):
        parts.append(
            Table(
                "tk_constants",
                "uint32_t",
                pair_words(constant, even_high=False),
                "scaler",
                "Inputs that never varied and are ignored: odd inputs high, even ones low.",
            )
        )
    return parts


def _work(stage: Scale, given: Grid, facts: Facts) -> Work:
    kind = "float" if stage.is_float else "integer"
    each = ", a scaler each" if "tk_multipliers" in facts.tables else ""
    beside = "inputs" if facts.macros["TK_BLOCKS"] == "0" else "inputs of components"
    return {"scale": {f"{beside}, {kind}{each}": float(given.size), "scaler": 1.0}}


CODE = Code({"tk_input.h": "scale"}, _work)
