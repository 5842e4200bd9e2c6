"""What of a packed model is its shape, and what is data that another model may bring.

In a usual source much of a model is literals: a scaler that all inputs share, the scale of a block.
Here all that training decides is in tables, so that a model that was trained again has the same
macros. Those and the sizes of the tables are its shape. The tables are members of one structure, of
fixed types, the widest first, so that it has no gaps.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.definitions import Definition, Parts, Table, flag, pair_words
from tinykernel.codegen.pack.components import block_scales
from tinykernel.codegen.pack.kernels import sort_kernels
from tinykernel.codegen.plan import PackedModel, pack
from tinykernel.errors import TinykernelError
from tinykernel.model.answers.decision import Decision
from tinykernel.model.answers.values import Values
from tinykernel.model.integer import IntegerModel
from tinykernel.model.readouts.prototypes import most_steps
from tinykernel.model.readouts.trees import Trees
from tinykernel.model.stage import Part, Stage
from tinykernel.model.stages.beside import Beside
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.convolutions import Convolutions
from tinykernel.model.stages.kernels import Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.scale import Scale

# Array of a scaler: macro, table, the type that it is used as, and that it is stored as.
_SCALER = (
    ("offset", "OFFSET", "offsets", "int32_t", "int32_t"),
    ("multiplier", "MULTIPLIER", "multipliers", "uint32_t", "uint32_t"),
    ("span", "SPAN", "spans", "uint32_t", "uint32_t"),
    ("pre_shift", "PRE_SHIFT", "pre_shifts", "uint32_t", "uint8_t"),
)

# No code checks yet that loaded nodes stay inside their tables; the bytes of a layer differ; no
# function that takes a model takes numbers, too.
NEVER_DATA: tuple[type[Stage | Part], ...] = (Trees, Convolutions, Beside)


def pack_as_data(model: IntegerModel) -> PackedModel:
    """Pack a model so that its macros say what shape it has, and nothing of what it learned."""
    for piece in NEVER_DATA:
        if model.find(piece) is not None:
            raise TinykernelError(f"a model of {piece.KIND} cannot be data; export it as code")
    if sum(isinstance(stage, Kernels) for stage in model.stages) > 1:
        # Nor that a second stage of kernels looks at channels that there are.
        raise TinykernelError("a model of two stages of kernels cannot be data; export it as code")
    packed = pack(model)
    model = sort_kernels(model)
    names = {definition.name for definition in packed.definitions}
    components, levels = model.find(Components), model.find(Levels)
    constant = model.scaler.constant(model.n_features)
    parts = [*_scaler(model.scaler, ~constant), *_inputs(constant, components)]
    parts += [] if model.decision is None else _decision(model.decision, model.n_classes)
    if levels is not None:
        channels = np.ones(levels.mix.shape[1], dtype=bool)
        parts += _scaler(levels.scaler, channels, "levels_")
    if components is not None and "TK_SCALE(block)" in names:
        parts += _scales(components)
    if components is not None and components.permutation.kind == "orbit":
        parts += _orbit(components)
    return _with_parts(packed, parts)


def _with_parts(packed: PackedModel, parts: Parts) -> PackedModel:
    """Put macros and tables in the place of those with the same names, or at the end."""
    definitions: dict[str, Definition] = {d.name: d for d in packed.definitions}
    tables: dict[str, Table] = {table.name: table for table in packed.tables}
    for part in parts:
        if isinstance(part, Table):
            tables[part.name] = part
        elif isinstance(part, Definition):
            before = definitions.get(part.name, part)
            definitions[part.name] = replace(part, comment=part.comment or before.comment)
    return replace(packed, definitions=tuple(definitions.values()), tables=tuple(tables.values()))


def _scaler(scaler: Scale, used: NDArray[np.bool_], prefix: str = "") -> Parts:
    """Store a scaler: one value an array if no input that is used has another one, else all."""
    arrays = {name: np.broadcast_to(a, used.shape) for name, a in scaler.arrays.items()}
    first = int(np.argmax(used))
    arrays = {name: np.where(used, values, values[first]) for name, values in arrays.items()}
    shared = all(np.all(values == values[0]) for values in arrays.values())
    parts: Parts = []
    for name, macro, table, cast, stored in _SCALER:
        if name not in arrays or (scaler.is_float and name == "pre_shift"):
            continue
        if scaler.is_float:
            cast = stored = "float"
        values = arrays[name][:1] if shared else arrays[name]
        place = f"tk_{prefix}{table}[{0 if shared else 'i'}]"
        use = place if cast == stored else f"(({cast}){place})"
        parts += [
            Definition(f"TK_{prefix.upper()}{macro}(i)", use),
            Table(f"tk_{prefix}{table}", stored, values, "scaler", f"Scaler: {name}."),
        ]
    return parts


def _inputs(constant: NDArray[np.bool_], components: Components | None) -> Parts:
    """Store signs and constant inputs, whether there are any or not."""
    ignored = pair_words(constant, even_high=False)
    parts: Parts = [
        flag("TK_CONSTANTS", True),
        Table("tk_constants", "uint32_t", ignored, "scaler", "Inputs that are ignored."),
    ]
    if components is not None:
        negative = pair_words(components.sign < 0, even_high=False)
        parts += [
            flag("TK_SIGNS", True),
            Table("tk_signs", "uint32_t", negative, "scaler", "Inputs that change their sign (B)."),
        ]
    return parts


def _scales(components: Components) -> Parts:
    """Store the scale of each block, shifted already."""
    scales = block_scales(components)
    assert scales is not None
    shifted = (scales.astype(np.uint64) << np.uint64(components.phase_shift)) & np.uint64(
        0xFFFFFFFF
    )
    return [
        Definition("TK_PHASE_SHIFT", "0", "is done already"),
        Definition("TK_SCALE(block)", "tk_scales[block]"),
        Table(
            "tk_scales",
            "uint32_t",
            shifted & np.uint64(0xFFFFFFFF),
            "windows",
            "Phase scale of each block, shifted.",
        ),
    ]


def _orbit(components: Components) -> Parts:
    permutation = components.permutation
    numbers = np.array([permutation.multiplier, permutation.increment])
    return [
        Definition("TK_ORBIT_MULTIPLIER", "tk_orbit[0]"),
        Definition("TK_ORBIT_INCREMENT", "tk_orbit[1]"),
        Table(
            "tk_orbit",
            "uint32_t",
            numbers & (components.dimension - 1),
            "transform",
            "Multiplier and increment of the permutation P.",
        ),
    ]


def _decision(decision: Decision, n_classes: int) -> Parts:
    parts: Parts = [
        Definition("TK_CONFIDENCE_SHIFT", "tk_confidence_shift[0]"),
        Table(
            "tk_confidence_shift",
            "uint8_t",
            np.array([decision.shift]),
            "decision",
            "From margins to places in the table of confidences.",
        ),
    ]
    if decision.novelty_threshold is not None:
        least = np.array([decision.novelty_threshold])
        parts += [
            Definition("TK_NOVELTY_THRESHOLD", "tk_novelty_threshold[0]"),
            Table(
                "tk_novelty_threshold", "int32_t", least, "decision", "Largest novelty of a class."
            ),
        ]
    if decision.margin_line is not None:
        bias, gain, steps = decision.margin_line
        line = np.array([bias, gain, steps, most_steps(gain)])
        names = ("BIAS", "GAIN", "STEPS", "TOP")
        uses = ("(int32_t)tk_novelty_line[0]", *(f"tk_novelty_line[{i}]" for i in (1, 2, 3)))
        parts += [
            Definition(f"TK_NOVELTY_{name}", f"({use})")
            for name, use in zip(names, uses, strict=True)
        ]
        parts.append(
            Table(
                "tk_novelty_line",
                "uint32_t",
                line,
                "decision",
                "What a margin is worth as a distance.",
            )
        )
    if decision.rejects:
        margins = np.broadcast_to(decision.thresholds, (n_classes,))
        parts += [
            Definition("TK_THRESHOLD(i)", "tk_thresholds[i]"),
            Table(
                "tk_thresholds",
                "uint32_t",
                margins,
                "decision",
                "Least margin of an answer, by label.",
            ),
        ]
    return parts


def tables_of(packed: PackedModel) -> list[Table]:
    """List the tables in the order of the structure."""
    return sorted(packed.tables, key=lambda table: -table.n_bytes // table.values.size)


def shape_lines(model: IntegerModel, packed: PackedModel) -> list[str]:
    """Say all that two models have in common when one can take the place of the other."""
    lines = [f"{d.name} {d.value}" for d in packed.definitions]
    lines += [f"{t.name} {t.c_type} {t.values.size}" for t in tables_of(packed)]
    lines += [f"{s.name} {s.text}" for s in packed.structs]
    lines.append(f"raw {model.raw_dtype} {model.n_inputs}")
    if packed.structs:
        lines.append(f"hop {model.hop}")
    if isinstance(model.answers, Values):
        lines.append(f"scale_shift {model.answers.shift}")
    return lines


def shape_number(lines: list[str]) -> int:
    """Return the 32 bits by which a program knows the shape."""
    digest = hashlib.sha256("\n".join(lines).encode()).digest()
    return int.from_bytes(digest[:4], "little")


def difference(old: IntegerModel, new: IntegerModel) -> str:
    """Say by what the shape of a model differs from that of another one; empty if by nothing."""
    had, has = (
        dict(line.split(" ", 1) for line in shape_lines(model, pack_as_data(model)))
        for model in (old, new)
    )
    for name in {**had, **has}:
        if had.get(name) != has.get(name):
            return f"{name} is {has.get(name, 'missing')}, was {had.get(name, 'missing')}"
    return ""
