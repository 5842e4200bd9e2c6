"""Lossless layout of an `IntegerModel`: its tables, and the memory that its chain needs.

Each stage of a chain and each part of a read-out has its file in `tinykernel.codegen.pack`, which
decides formats; `CODE` of ``KIND.py`` is what is known of a kind. ``tk_contract.h`` of the runtime
names the same macros and tables, and its kernels read them. Nothing of this changes a value of the
arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.decision import pack_decision
from tinykernel.codegen.definitions import WORD, Definition, Parts, Struct, Table
from tinykernel.codegen.pack import code_of
from tinykernel.codegen.pack.components import Layout, choose_layout, pack_components
from tinykernel.codegen.pack.front import Packed, Place
from tinykernel.codegen.pack.kernels import sort_kernels
from tinykernel.codegen.pack.linear import pack_linear
from tinykernel.codegen.pack.prototypes import pack_prototypes
from tinykernel.codegen.pack.scale import pack_scale
from tinykernel.codegen.pack.ternary import pack_ternary
from tinykernel.codegen.pack.trees import pack_trees
from tinykernel.errors import TinykernelError
from tinykernel.model.integer import IntegerModel
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.readouts.prototypes import Prototypes
from tinykernel.model.readouts.ternary import Ternary
from tinykernel.model.readouts.trees import Trees
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.scale import Scale

#: Number of the contract between a generated model and the runtime, TK_RUNTIME_FORMAT there. It
#: goes up whenever a macro or a table changes its meaning: then a model and another runtime do not
#: compile.
FORMAT = 4


@dataclass(frozen=True)
class PackedModel:
    """Everything of a model that the C source needs, in the order in which it is written.

    Parameters
    ----------
    definitions : tuple of Definition
    tables : tuple of Table
    structs : tuple of Struct
        Of the stages before the machine.
    n_words : ndarray of int64, shape (n_stored_blocks,)
        Words of 32 components of each stored block; none without components.
    headers : tuple of str
        Of the runtime, those of the stages before the machine.
    places : dict of str to int
        Where the state of a stage begins in that of a stream, by the name of its structure.
    scratch_words : int
        RAM that the caller of the firmware owns, in words.
    state_words : int
        RAM of a stream; 0 for models without one.
    window_start_words : int
        Those of them that are cleared where a window begins.
    window_words : int
        Those of them that a whole window needs, too.
    stream_words : int
        Scratch of the functions that decide from the state of a stream.
    """

    definitions: tuple[Definition, ...]
    tables: tuple[Table, ...]
    structs: tuple[Struct, ...]
    n_words: NDArray[np.int64]
    headers: tuple[str, ...]
    places: dict[str, int]
    scratch_words: int
    state_words: int
    window_start_words: int
    window_words: int
    stream_words: int

    def table_bytes(self) -> dict[str, int]:
        """Return the flash of the tables by part."""
        sizes = dict.fromkeys(("weights", "kernels", "windows", "transform", "scaler"), 0)
        for table in self.tables:
            sizes[table.part] = sizes.get(table.part, 0) + table.n_bytes
        return sizes


def pack(model: IntegerModel) -> PackedModel:
    """Choose the formats of a model and fill its tables.

    Returns
    -------
    PackedModel
        Depends on the model only: equal models give equal tables.

    Raises
    ------
    TinykernelError
        If there is no C for a stage of such a shape.
    """
    model = sort_kernels(model)
    machine, layout, machine_words = _pack_machine(model)
    front = _pack_front(model)
    if front:
        kind = ("2", "signals") if model.input.is_signal else ("1", "images")
        kind = ("3", "frames of a camera") if model.stages[0].GIVES == "image" else kind
        machine += [Definition("TK_STAGES", *kind), *(p for stage in front for p in stage.parts)]
    first = max(machine_words, sum(stage.first_words for stage in front))
    parts = [*machine, Definition("TK_FIRST_WORDS", f"{first}u", "of scratch")]
    beside = layout is not None or model.find(Trees) is not None
    dots = model.n_outputs if beside and model.find(Linear) is not None else 0
    # Of signals it is the same memory, in which counts are joined.
    words = (max if model.input.is_signal else sum)([stage.words for stage in front] or [0])
    stream = first + dots + model.n_scores + words
    state = sum(stage.state_words for stage in front)
    window = state - sum(stage.kept_words for stage in front)
    return PackedModel(
        tuple(part for part in parts if isinstance(part, Definition)),
        tuple(part for part in parts if isinstance(part, Table)),
        tuple(part for part in parts if isinstance(part, Struct)),
        np.zeros(0, dtype=np.int64) if layout is None else layout.n_words,
        tuple(stage.header for stage in front),
        _places(front),
        stream + window,
        state,
        sum(stage.state_words for stage in front if not stage.persists),
        window,
        stream,
    )


def _pack_machine(model: IntegerModel) -> tuple[Parts, Layout | None, int]:
    """Pack the scale and what follows it; return the layout of components, and words of scratch."""
    components, weights, scale = model.find(Components), model.find(Ternary), model.scaler
    parts = [
        *_shape(model, scale),
        *pack_scale(scale, scale.constant(model.n_features), components),
    ]
    if components is not None and weights is not None:
        layout = choose_layout(components, weights)
        parts += pack_components(components, layout)
        parts += pack_ternary(weights, model.readout.offset, layout)
        words = components.dimension + layout.bit_words
    else:
        layout = None
        parts += _offsets(model)
        words = -(-model.n_features * scale.bits // WORD)
    linear, trees = model.find(Linear), model.find(Trees)
    parts += [] if linear is None else pack_linear(linear)
    parts += [] if trees is None else pack_trees(trees)
    parts += [] if model.decision is None else pack_decision(model.decision)
    return parts, layout, words


def _pack_front(model: IntegerModel) -> list[Packed]:
    """Pack the stages before the scale."""
    stages = model.stages[: model.stages.index(model.scaler)]
    ports = [stage.GIVES for stage in stages]
    packed, hop, calls = [], model.hop, model.stages[0].calls(model.input)
    for index, (stage, given) in enumerate(zip(stages, model.grids(), strict=False)):
        # The levels have number 0, and so has what stands before them.
        number = max(index - ports.index("levels"), 0)
        following = model.stages[index + 1]
        place = Place(number, given, hop or given.rows, calls, model.hop > 0, following)
        pack_stage = code_of(stage.KIND).pack
        if pack_stage is None or (stage.side_input and not model.input.is_signal):
            raise TinykernelError(f"no C for {stage.KIND} in a chain of {model.input.kind}s")
        packed.append(pack_stage(stage, place))
        # The rows of whole windows are counted anew for each.
        hop = 0 if stage.WHOLE else hop // stage.step
    return packed


def _places(front: list[Packed]) -> dict[str, int]:
    """Return where the state of each stage begins: the last stage comes first.

    Those that persist come behind these, and at the end what has words that a whole window does not
    need.
    """
    places: dict[str, int] = {}
    at = 0
    backwards = front[::-1]
    for stage in sorted(backwards, key=lambda stage: (stage.kept_words > 0, stage.persists)):
        names = (part.name for part in stage.parts if isinstance(part, Struct))
        places |= dict.fromkeys(names, at)
        at += stage.state_words
    return places


def _shape(model: IntegerModel, scale: Scale) -> Parts:
    return [
        Definition("TK_FORMAT", str(FORMAT), "of macros and tables, see tk_contract.h"),
        Definition("TK_FEATURES", f"{model.n_features}u", "inputs"),
        Definition("TK_CLASSES", str(model.n_scores)),
        Definition("TK_OUTPUTS", f"{model.n_outputs}u"),
        Definition("TK_INPUT_BITS", str(scale.bits), "width of quantized inputs"),
    ]


def _offsets(model: IntegerModel) -> Parts:
    """Store what is left of a machine without components."""
    what, parts, prototypes = "Score of inputs that are all 0.", [], model.find(Prototypes)
    if prototypes is not None:
        what = "Score of an input that is a prototype."
        parts = [Definition("TK_ONE_CLASS", "1"), *pack_prototypes(prototypes.levels, "weights")]
    return [
        Definition("TK_BLOCKS", "0", "no components"),
        Table("tk_biases", "int32_t", model.readout.offset, "weights", what),
        *parts,
    ]
