"""Lossless layout of an `IntegerModel`: the tables that ``tk_contract.h`` names, and the memory."""

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinykernel.base.errors import ModelError, RangeError
from tinykernel.base.files import package_version
from tinykernel.model.answers import POWERS, Decision, Values
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.catalogue import code_of
from tinykernel.pieces.packing import Packed, Place
from tinykernel.pieces.piece import Readout, score_range
from tinykernel.pieces.proof import Range
from tinykernel.pieces.prototypes.pack import pack_prototypes
from tinykernel.pieces.prototypes.spec import most_steps
from tinykernel.pieces.tables import WORD, Definition, Parts, Struct, Table, integer_literal

#: Version of the macros and tables, TK_RUNTIME_FORMAT of the runtime: a model does not compile with
#: a runtime of another one.
FORMAT = 9


@dataclass(frozen=True)
class PackedModel:
    """Everything of a model that the C source needs, in the order in which it is written."""

    definitions: tuple[Definition, ...]
    tables: tuple[Table, ...]
    structs: tuple[Struct, ...]  # of the stages before the machine.
    headers: tuple[str, ...]  # of the runtime, those of the stages before the machine.
    # Each stage and part, in their order, and where it stands.
    places_of: tuple[tuple[Any, Place], ...]
    # Where the state of a stage begins in that of a stream, by the name of its structure.
    places: dict[str, int]
    scratch_words: int  # RAM that the caller of the firmware provides, in words.
    state_words: int  # RAM of a stream; 0 for models without one.
    window_start_words: int  # those of them that are cleared where a window begins.
    window_words: int  # those of them that a whole window needs, too.
    stream_words: int  # scratch of the functions that decide from the state of a stream.

    def buffers(self) -> dict[str, int]:
        """Return the bytes that the caller provides; state and scratch of streams are beside."""
        words = {"scratch": self.scratch_words}
        if self.state_words:
            words |= {"state": self.state_words, "stream_scratch": self.stream_words}
        return {name: 4 * n for name, n in words.items()}

    def table_bytes(self) -> dict[str, int]:
        """Return the flash of the tables by part."""
        sizes = dict.fromkeys(("weights", "kernels", "windows", "transform", "scaler"), 0)
        for table in self.tables:
            sizes[table.part] = sizes.get(table.part, 0) + table.n_bytes
        return sizes


def pack(model: IntegerModel) -> PackedModel:
    """Choose the formats of a model and fill its tables: equal models give equal ones."""
    model = sort_kernels(model)
    before = model.stages.index(model.scaler)
    places_of = list[tuple[Any, Place]]()
    front = _pack_front(model, places_of)
    parts, machine_words = _pack_machine(model, places_of)
    headers = (next(iter(code_of(stage.KIND).headers)) for stage in model.stages[:before])
    if front:
        kind = ("2", "signals") if model.input.is_signal else ("1", "images and tables")
        kind = ("3", "frames of a camera") if model.camera is not None else kind
        parts += [Definition("TK_STAGES", *kind), *(p for stage in front for p in stage.parts)]
    first = max(machine_words, sum(stage.first_words for stage in front))
    parts.append(Definition("TK_FIRST_WORDS", f"{first}u", "of scratch"))
    dots = model.n_outputs if len(model.readout.parts) > 1 else 0
    # Of signals it is the same memory, in which counts are joined.
    stage_words = (max if model.input.is_signal else sum)(
        [stage.more_words for stage in front] or [0]
    )
    stream = first + dots + model.n_scores + stage_words
    state = sum(stage.state_words for stage in front)
    window = state - sum(stage.kept_words for stage in front)
    # What a stream keeps of events, behind all stages.
    state += 0 if model.events is None else 1 + model.n_classes
    return PackedModel(
        definitions=tuple(part for part in parts if isinstance(part, Definition)),
        tables=tuple(part for part in parts if isinstance(part, Table)),
        structs=tuple(part for part in parts if isinstance(part, Struct)),
        headers=tuple(dict.fromkeys(headers)),
        places_of=tuple(places_of),
        places=_places(front),
        scratch_words=stream + window,
        state_words=state,
        window_start_words=sum(stage.state_words for stage in front if not stage.persists),
        window_words=window,
        stream_words=stream,
    )


def sort_kernels(model: IntegerModel) -> IntegerModel:
    """Return a model of the same scores in the order of the firmware, if all stages can follow."""
    order, pieces = None, list[Any]()
    for piece in model.pieces:
        if order is None and piece.firmware_order is not None:
            order = np.append(
                piece.firmware_order, np.arange(piece.firmware_order.size, model.n_features)
            )
        pieces.append(piece if order is None else piece.reorder(order))
    if order is None or None in pieces or np.array_equal(order, np.arange(order.size)):
        return model
    decision, n = model.decision, len(model.stages)
    if decision is not None and decision.prototypes is not None:
        decision = replace(decision, prototypes=decision.prototypes[:, order])
    readout = Readout(tuple(pieces[n:]), model.readout.offset)
    return replace(model, stages=tuple(pieces[:n]), readout=readout, decision=decision)


def _pack_machine(model: IntegerModel, places_of: list[tuple[Any, Place]]) -> tuple[Parts, int]:
    """Pack the scale and the rest of the machine; return its scratch, too."""
    parts: Parts = [
        Definition("TK_FORMAT", str(FORMAT), "of macros and tables, see tk_contract.h"),
        Definition("TK_FEATURES", f"{model.n_features}u", "inputs"),
        Definition("TK_CLASSES", str(model.n_scores)),
        Definition("TK_OUTPUTS", f"{model.n_outputs}u"),
        Definition("TK_INPUT_BITS", str(model.scaler.bits), "width of quantized inputs"),
    ]
    grids, readout, layouts, scratch = model.grids(), model.readout, dict[str, Any](), 0
    kinds = [stage.KIND for stage in model.stages]
    for index in range(kinds.index(model.scaler.KIND), len(kinds)):
        stage, following = model.stages[index], next(iter(model.stages[index + 1 :]), None)
        reader = next((part for part in readout.parts if part.READS == stage.KIND), None)
        place = Place(0, grids[index], following=following, reader=reader)
        packed = code_of(stage.KIND).pack(stage, place)
        places_of.append((stage, place))
        parts += packed.parts
        layouts[stage.KIND], scratch = packed.layout, max(scratch, packed.first_words)
    if all(layout is None for kind, layout in layouts.items() if kind != model.scaler.KIND):
        parts.append(Definition("TK_BLOCKS", "0", "no components"))
    weighed: Parts = []
    for part in sorted(readout.parts, key=lambda part: (-kinds.index(part.READS), part.KIND)):
        grid = grids[kinds.index(part.READS) + 1]
        place = Place(0, grid, layout=layouts[part.READS], offset=readout.offset)
        weighed += code_of(part.KIND).pack(part, place).parts
        places_of.append((part, place))
    if not any(item.name == "tk_biases" for item in weighed):
        comment = f"Score of {readout.parts[0].ZERO}."
        parts.append(Table("tk_biases", "int32_t", readout.offset, "weights", comment))
    parts += weighed
    parts += _pack_curve(model.answers) if isinstance(model.answers, Values) else []
    parts += [] if model.decision is None else _pack_decision(model.decision)
    if model.events is not None:  # the sum of a class at which a stream has an event
        events, comment = model.events, "Least sum of an event, by label; 0 of background."
        pause = "decisions without an event after one"
        parts += [
            Definition("TK_EVENT_SHIFT", str(events.shift), "decisions that a sum remembers, log2"),
            Definition("TK_EVENT_PAUSE", f"{events.pause}u", pause),
            Definition("TK_EVENT_BACKGROUND", str(int(not events.thresholds.all())), "any label"),
            Table("tk_event_thresholds", "uint32_t", events.thresholds, "decision", comment),
        ]
    return parts, scratch


def _pack_curve(values: Values) -> Parts:
    """Store what turns totals into scores, where these are no totals."""
    bits = Definition("TK_CURVE_BITS", str(values.curve_bits), "of a total, see tk_curve.h")
    if values.curve != "power":
        return [Definition("TK_CURVE_SQUARE", "1"), bits] if values.curve else []
    comment = "Powers of 2 with exponents below 1, in steps of 1/64, less 1."
    return [
        bits,
        Definition("TK_CURVE_DOWN", integer_literal(30 - values.shift), "to the right, less them"),
        Table("tk_powers", "uint16_t", POWERS, "weights", comment),
    ]


def _pack_decision(decision: Decision) -> Parts:
    """Store thresholds, one literal where all are equal, and the table of confidences."""
    comment = "By the margin, how many of 256 labels are right."
    parts: Parts = [
        Definition("TK_CONFIDENCE_SHIFT", str(decision.shift)),
        Table("tk_confidence", "uint8_t", decision.table, "decision", comment),
    ]
    if decision.novelty_threshold is not None:
        value = integer_literal(decision.novelty_threshold)
        parts.append(Definition("TK_NOVELTY_THRESHOLD", value, "largest novelty of a class"))
    if decision.prototypes is not None and decision.margin_line is not None:
        bias, gain, steps = decision.margin_line
        parts += [
            *pack_prototypes(decision.prototypes, "decision"),
            Definition("TK_NOVELTY_BIAS", str(bias), "what a margin of 0 is worth as a distance"),
            Definition("TK_NOVELTY_GAIN", f"{gain}u", "and what a step of it takes off"),
            Definition("TK_NOVELTY_STEPS", str(steps)),
            Definition("TK_NOVELTY_TOP", f"{most_steps(gain)}u", "steps that count at most"),
        ]
    thresholds = decision.thresholds
    if decision.rejects and np.ptp(thresholds) == 0:
        value = f"{int(thresholds[0])}u"
        parts.append(Definition("TK_THRESHOLD(i)", value, "least margin of an answer"))
    elif decision.rejects:
        comment = "Least margin of an answer, by label."
        parts.append(Definition("TK_THRESHOLD(i)", "tk_thresholds[i]"))
        parts.append(Table("tk_thresholds", "uint32_t", thresholds, "decision", comment))
    return parts


def _pack_front(model: IntegerModel, places_of: list[tuple[Any, Place]]) -> list[Packed]:
    stages, grids = model.stages[: model.stages.index(model.scaler)], model.grids()
    ports = [stage.GIVES for stage in stages]
    packed, hop, calls = list[Packed](), model.hop, model.stages[0].calls(model.input)
    for index, (stage, grid) in enumerate(zip(stages, grids, strict=False)):
        # The levels have number 0, and so has what stands before them.
        number = max(index - ports.index("levels"), 0)
        following, is_signal = model.stages[index + 1], model.input.is_signal
        place = Place(
            number, grid, hop or grid.rows, calls, model.hop > 0, is_signal, following=following
        )
        if model.input.kind not in stage.INPUTS:
            raise ModelError(f"no C for {stage.KIND} in a chain of {model.input.kind}s")
        packed.append(code_of(stage.KIND).pack(stage, place))
        places_of.append((stage, place))
        if following.READS_WORDS:
            room = 8 * -(-grids[index + 1].size // WORD)
            packed[-1] = replace(packed[-1], more_words=room)
        hop = stage.hop_behind(hop)
    return packed


def _places(front: list[Packed]) -> dict[str, int]:
    """Return the begin of the state of each stage: the last stage comes first."""
    # States that persist follow, and last those with words that a whole window does not need.
    places: dict[str, int] = {}
    at = 0
    backwards = front[::-1]
    for stage in sorted(backwards, key=lambda stage: (stage.kept_words > 0, stage.persists)):
        names = (part.name for part in stage.parts if isinstance(part, Struct))
        places |= dict.fromkeys(names, at)
        at += stage.state_words
    return places


_INT32 = 2**31 - 1


def certificate(model: IntegerModel) -> bytes:
    """Write the bounds of all stages of the generated C, and inputs that reach them.

    The JSON has the ``bounds`` of the C: where it cannot tell which places of its tables are
    components they are wider than `IntegerModel.ranges`. Its ``witnesses`` are inputs of all
    highest (+) and lowest (-) values that reach the bound of a value: exactly in the first
    transform and the products, in the second within the rounding. ``source`` has the text of all
    macros and the SHA-256 of all tables, ``memory`` the words of scratch and state.
    """
    stored = sort_kernels(model)
    stored = replace(stored, stages=tuple(stage.stored() for stage in stored.stages))
    packed, witnesses = pack(stored), list[dict[str, Any]]()
    memory = {"scratch": packed.scratch_words}  # words, as the header says
    if stored.hop or stored.camera is not None:
        memory["stream_scratch"] = packed.stream_words
        memory |= {"state": packed.state_words} if packed.state_words else {}
    content = {
        "format": "tinykernel-proof",
        "version": 3,
        "tool": f"tinykernel {package_version()}",
        "fingerprint": model.fingerprint(),
        "source": _source(packed),
        "memory": memory,
        "bounds": [vars(stage) for stage in _bounds(stored, packed, witnesses)],
        "witnesses": witnesses,
    }
    return (json.dumps(content, indent=1) + "\n").encode()


def _source(packed: PackedModel) -> dict[str, str]:
    """Return the text of macros and the digests of tables, without blanks."""
    source = {item.name.partition("(")[0]: item.value for item in packed.definitions}
    source |= {struct.name: re.sub(r"\s", "", struct.text) for struct in packed.structs}
    for table in packed.tables:
        text = re.sub(r"\s", "", "".join(table.lines))
        source[table.name] = hashlib.sha256(text.encode()).hexdigest()
    return source


def _bounds(
    model: IntegerModel, packed: PackedModel, witnesses: list[dict[str, Any]]
) -> list[Range]:
    """Return the bounds as the C allows them; add the inputs that reach them."""
    changes, reaches = dict[str, dict[str, int]](), []
    for piece, place in packed.places_of:
        code = code_of(piece.KIND)
        if code.proof is not None:
            changed, reaching = code.proof(piece, place)
            changes |= changed
            witnesses += reaching
        if piece in model.readout.parts:
            reach = piece.reach(place.grid) if code.reach is None else code.reach(piece, place)
            reaches.append(reach)
    changes["score"] = vars(score_range(model.readout.offset, reaches))
    bounds = [Range(**(vars(b) | changes.get(b.stage, {}))) for b in model.ranges()]
    for b in bounds:
        if b.stage in changes and not (b.low >= -_INT32 and b.high <= _INT32):
            raise RangeError(f"proof: {b.stage} of the C can reach {b.low}..{b.high}")
    return bounds
