"""The memory of a model without any compiler: exact tables, and code from measured sizes.

Tables are known to the byte from `tinykernel.codegen.plan`. The size of the code depends on few
properties of a model (`code_properties`), and nearly additively so; ``benchmarks/code_size.py``
links many models for every target, fits the contributions by least squares and writes them to
``code_sizes.json`` beside this file together with the largest error that remained.
"""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinykernel.codegen.pack.linear import weight_bits
from tinykernel.codegen.plan import pack
from tinykernel.codegen.targets import Target, find_target
from tinykernel.errors import TinykernelError
from tinykernel.measure.footprint import FLASH_PARTS, Footprint, flash_parts
from tinykernel.model import IntegerModel
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.readouts.trees import Trees
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.convolutions import Convolutions
from tinykernel.model.stages.dense import Dense
from tinykernel.model.stages.kernels import Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.separable import Separable

#: Targets that run the code of another one, of the same compiler and options.
SAME_CODE = {"cortex-m0plus": "cortex-m0", "esp32": "esp8266", "esp32s3": "esp8266"}
#: The property of models that are to have little code.
SMALL_CODE = "small code"
#: The beginning of all properties of models of one class.
ONE_CLASS = "one class"
#: The same of models with trees.
TREES = "trees"
# Beginnings of the properties of transforms and products, which take otherwise in small code.
_TRANSFORMS = ("2^", "further", "halving", "all halve", "no halving", "diagonal", "padding")
_MANY_INPUTS = 3
# Of the code of a stage before the levels; a spectrum takes 1130.
_UNMEASURED = 1536
# Of numbers beside a window; 36 to 192 were linked, on AVR 94 to 360.
_OF_NUMBERS = 192


@functools.cache
def _code_sizes() -> dict[str, Any]:
    """Read the measured sizes by target."""
    text = Path(__file__).with_name("code_sizes.json").read_text(encoding="utf-8")
    targets: dict[str, Any] = json.loads(text)["targets"]
    return targets


def code_properties(model: IntegerModel) -> dict[str, float]:
    """List what the size of the generated code depends on.

    0 or 1 for properties that a model has or not, else a count.
    """
    if model.stages[0].WHOLE:
        # Its code is beside that of the same samples as they are.
        raw, made = f", raw {model.raw_dtype}", f", raw {model.grids()[1].dtype}"
        found = {n.replace(made, raw): x for n, x in code_properties(_without_first(model)).items()}
        return found | {f"{model.stages[0].KIND}, stage": 1.0}
    packed = pack(model)
    value = {definition.name: definition.value for definition in packed.definitions}
    tables = {table.name for table in packed.tables}
    members = {name: text for s in packed.structs for name, text in s.members.items()}
    decides = _decision_properties(model, value)
    components = model.find(Components)
    if components is None or not model.input.is_table:
        return _other_properties(model, value, tables, members) | decides
    return _component_properties(model, components, value, tables) | decides


def _component_properties(
    model: IntegerModel, components: Components, value: dict[str, str], tables: set[str]
) -> dict[str, float]:
    """List the same for models of components on a table."""
    stages = components.log2_dimension
    first, second = sum(components.halve_first), sum(components.halve_second)
    properties: dict[str, float] = {
        "always": 1,
        f"raw {model.raw_dtype}": 1,
        "16-bit inputs": value["TK_INPUT_BITS"] == "16",
        "odd number of inputs": model.n_features % 2,
        "one input": model.n_features == 1,
        "padding": model.n_features < components.dimension,
        "signs": value["TK_SIGNS"] == "1",
        "constant inputs": value["TK_CONSTANTS"] == "1",
        f"permutation {components.permutation.kind}": 1,
        "diagonal of signs": value["TK_DIAGONAL_BITS"] == "1",
        "diagonal of 4 bits": value["TK_DIAGONAL_BITS"] == "4",
        "bitmap of kept rows": value["TK_KEPT"] == "1",
        "one block": value["TK_BLOCKS"] == "1u",
        "one scale a block": "TK_SCALE(block)" in value,
        "two starts": "TK_EVEN_START" in value,
        "one width": "TK_WIDTH" in value,
        "half turns": value.get("TK_WIDTH") == "128u",
        "half turns and no table": value.get("TK_WIDTH") == "128u" and "tk_windows" not in tables,
        "tails": "TK_TAIL(block)" in value,
        "blocks counted together": value["TK_BITS_WORDS"] != "0u",
        "masks of few words": value["TK_PLANES"] == "2" and stages < 8,
        "one plane": value["TK_PLANES"] == "1",
        "two classes": model.n_outputs < model.n_scores,
        f"2^{min(max(stages, 5), 12)} values": 1,
        "further stages": max(0, stages - 12),
        "halving first": first,
        "all halve first": first == stages,
        "halving second": second,
        "all halve second": second == stages,
        "no halving second": second == 0,
        "linear part beside components": model.find(Linear) is not None,
    }
    for name in (
        "tk_offsets",
        "tk_multipliers",
        "tk_spans",
        "tk_pre_shifts",
        "tk_words",
        "tk_scales",
        "tk_tails",
    ):
        kind = "float" if model.raw_dtype == "float32" else "integer"
        properties[f"table {name} {kind}"] = name in tables
    if components.small_code:
        transforms = [name for name in properties if name.startswith(_TRANSFORMS)]
        properties |= {f"{name} in {SMALL_CODE}": properties[name] for name in transforms}
        properties[SMALL_CODE] = 1
    return {name: float(number) for name, number in properties.items() if number}


def _decision_properties(model: IntegerModel, value: dict[str, str]) -> dict[str, float]:
    """List what decide and confidence add, of a model that has them."""
    if model.decision is None:
        return {}
    least = value.get("TK_THRESHOLD(i)", "")
    properties = {
        "decides between two": model.n_classes == 2,
        "decides among more": model.n_classes > 2,
        "refuses by one margin": least.endswith("u"),
        "refuses by a margin a class": least.startswith("tk_"),
        "tells what is novel": "TK_NOVELTY_THRESHOLD" in value and "TK_PROTOTYPES" not in value,
        "tells what is novel, by prototypes": "TK_PROTOTYPES" in value,
    }
    return {name: 1.0 for name, has in properties.items() if has}


def _other_properties(
    model: IntegerModel, value: dict[str, str], tables: set[str], members: dict[str, str]
) -> dict[str, float]:
    """List the same for models without components, or of signals and images."""
    kind = model.input.kind
    has_components = model.find(Components) is not None
    properties: dict[str, float] = {
        f"{kind}, components": has_components,
        f"{kind}, no components": not has_components,
        f"{kind}, raw {model.raw_dtype}": 1,
        f"{kind}, 16-bit inputs": value["TK_INPUT_BITS"] == "16",
    }
    levels, kernels = model.find(Levels), model.find(Kernels)
    if levels is not None:
        properties |= {
            f"{kind}, averaged": levels.average == 2,
            f"{kind}, {members['terms'].rstrip('u')} terms": 1,
            f"{kind}, wide counts": model.scaler.raw_dtype == "uint16",
            f"{kind}, lanes {members.get('lanes', '').rstrip('u')}": 1,
        }
    trees, first = model.find(Trees), model.stages[0]
    if model.find(Separable) is not None:
        properties |= {
            "several channels": model.input.channels > 1,
            "several blocks": members["blocks"] != "1u",
            f"linear part of {value.get('TK_LINEAR_BITS', '0')} bits": 1,
            "two classes": model.n_outputs < model.n_scores,
        }
        properties = {f"{Separable.KIND}, {n}": number for n, number in properties.items()}
    elif model.find(Convolutions) is not None:
        properties |= _convolution_properties(model, value, members)
        properties = {f"{Convolutions.KIND}, {n}": number for n, number in properties.items()}
    elif model.is_one_class:
        properties = _one_class_properties(model, value, tables, properties)
    elif trees is not None:
        properties = _tree_properties(model, trees, value, tables) | properties
        properties = {f"{TREES}, {name}": number for name, number in properties.items()}
    else:
        properties |= {
            f"linear part of {value.get('TK_LINEAR_BITS', '0')} bits": 1,
            "constant inputs of a linear part": value["TK_CONSTANTS"] == "1",
            "two classes": model.n_outputs < model.n_scores,
        }
        if first.GIVES == "rows":
            properties |= dict.fromkeys(first.code, 1) | {
                "several channels": model.input.channels > 1,
                "several cells": kernels is not None and kernels.cells[0] > 1,
            }
            properties = {f"{first.KIND}, {name}": number for name, number in properties.items()}
    return {name: float(number) for name, number in properties.items() if number}


def _convolution_properties(
    model: IntegerModel, value: dict[str, str], members: dict[str, str]
) -> dict[str, float]:
    """List what is beside the properties of an image, of a model with convolutions."""
    dense = model.find(Dense)
    hidden = 0 if dense is None else weight_bits(dense.weights)
    return {
        f"{members['tap_bits'].rstrip('u')}-bit taps": 1,
        "pooling": members["pools"] != "0u",
        "padding": members["padding"] != "0u",
        "hidden layer": hidden > 0,
        f"hidden layer of {hidden} bits": hidden > 0,
        f"linear part of {value.get('TK_LINEAR_BITS', '0')} bits": 1,
        "one class": model.is_one_class,
        "two classes": model.n_outputs < model.n_scores,
    }


def _tree_properties(
    model: IntegerModel, trees: Trees, value: dict[str, str], tables: set[str]
) -> dict[str, float]:
    """List what is beside the properties of a table, of a model with trees."""
    kind = "float" if model.scaler.is_float else "integer"
    found: dict[str, float] = {
        "linear part beside": model.find(Linear) is not None,
        f"leaves of {trees.bits} bits": 1,
        "more than 256 inputs": bool(trees.feature.max() > 255),
        "two classes": model.n_outputs < model.n_scores,
        "constant inputs": value["TK_CONSTANTS"] == "1",
        f"few inputs, {kind}": model.n_features < _MANY_INPUTS,
        "one tree": trees.size.size == 1,
    }
    for name in ("tk_offsets", "tk_multipliers", "tk_spans", "tk_pre_shifts"):
        found[f"table {name} {kind}"] = name in tables
    return found


def _one_class_properties(
    model: IntegerModel, value: dict[str, str], tables: set[str], shared: dict[str, float]
) -> dict[str, float]:
    """List the same for a model of one class, under names that no other model has.

    Its code is small, so that what others add on average is too coarse for it.
    """
    kind = "float" if model.scaler.is_float else "integer"
    kernels, few = model.find(Kernels), model.n_features < _MANY_INPUTS
    properties = shared | {
        "constant inputs": value["TK_CONSTANTS"] == "1",
        "several cells": kernels is not None and kernels.cells[0] > 1,
        # Compilers unroll the loops over these.
        f"few inputs, {kind}": few,
    }
    properties |= {
        f"table {name} {kind}": name in tables
        for name in ("tk_offsets", "tk_multipliers", "tk_spans", "tk_pre_shifts")
    }
    return {f"{ONE_CLASS}, {name}": number for name, number in properties.items()}


def _unmeasured(model: IntegerModel, sizes: dict[str, float]) -> str | None:
    """Return the word for a stage before the levels of which no model was measured."""
    first = model.stages[0]
    measured = any(name.startswith(f"{first.KIND}, ") for name in sizes)
    return None if measured or first.GIVES not in ("rows", "image") else first.KIND


def _without_first(model: IntegerModel) -> IntegerModel:
    hop = model.hop // model.stages[0].step
    return replace(model, input=model.grids()[1], stages=model.stages[1:], hop=hop)


def estimate_footprint(model: IntegerModel, target: str | Target) -> Footprint:
    """Estimate what `measure_footprint` would measure with the target's own GCC.

    The stack is the largest that was measured for any model.
    """
    row = find_target(target)
    measured = _code_sizes().get(SAME_CODE.get(row.name, row.name))
    if measured is None:
        raise TinykernelError(
            f"no code sizes were measured for target {row.name}; install a compiler for it, or add "
            "the target in benchmarks/code_size.py"
        )
    properties, notes = code_properties(model), list(row.notes)
    own = _unmeasured(model, measured["code"])
    if own is not None:
        # As without that stage.
        known = code_properties(_without_first(model))
        properties = {name: n for name, n in known.items() if name in measured["code"]}
        notes.append(f"the code of {own} was not measured: {_UNMEASURED} bytes are assumed")
    numbers = 0
    if model.beside is not None:
        numbers = 2 * _OF_NUMBERS if row.family == "avr" else _OF_NUMBERS
        notes.append(f"of numbers beside a window {numbers} bytes of code are assumed")
    for name in properties:
        matters = ", " in name or "linear part" in name or name == SMALL_CODE
        if matters and name not in measured["code"]:
            raise TinykernelError(
                f"the code of models like this one ({name}) was not measured for target "
                f"{row.name}; install a compiler for it"
            )
    packed = pack(model)
    parts = dict.fromkeys(FLASH_PARTS, 0) | packed.table_bytes()
    for part in ("code", "library"):
        sizes = measured[part]
        parts[part] = round(sum(sizes.get(name, 0.0) * n for name, n in properties.items()))
    parts["code"] += 0 if own is None else _UNMEASURED
    parts["code"] += numbers
    tables = sum(packed.table_bytes().values())
    return Footprint(
        parts={part: parts[part] for part in flash_parts(model)},
        static=tables if row.tables_in_ram else 0,
        scratch=4 * packed.scratch_words,
        # Either kind of input: which one is deeper differs from compiler to compiler.
        stack=max(measured["stack"].values()),
        chain=(),
        compiler="",
        notes=(*notes, f"code sizes were measured with {measured['compiler']}"),
    )
