"""Records of the formats 1 and 2, in which a model was not yet a chain of stages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.hadamard import padded_dimension
from tinykernel.model.answers.labels import Labels
from tinykernel.model.answers.values import Values
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.permutation import Permutation
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.readouts.prototypes import Prototypes
from tinykernel.model.readouts.readout import Readout
from tinykernel.model.readouts.ternary import Ternary
from tinykernel.model.record import Field
from tinykernel.model.stage import Part, Stage
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.kernels import Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.scale import Scale

# Void in a model without components.
_OF_COMPONENTS = (
    Field("diagonal", "int8", 2, since=1),
    Field("row_kept", "bool", 2, since=1),
    Field("scale", "uint8", 1, since=1),
    Field("start", "uint8", 1, since=1),
    Field("width", "uint8", 1, since=1),
    Field("weights", "int8", 2, since=1),
)
MAY_BE_VOID = frozenset(_OF_COMPONENTS)

#: Fields of the records that later formats do not have, or have others of.
FIELDS: dict[str, tuple[Field, ...]] = {
    "IntegerModel": (
        Field("n_features", "int"),
        Field("phase_shift", "int"),
        Field("decision_scale", "float"),
        Field("diagonal_kind", "str"),
        Field("feature_names", "str", many=True, optional=True),
        Field("classes", "label", many=True),
        Field("halve_first", "bool", many=True),
        Field("halve_second", "bool", many=True),
        Field("scaler", "InputScaler"),
        Field("permutation", "Permutation"),
        Field("sign", "int8", 1),
        *_OF_COMPONENTS,
        Field("multiplier", "int32", 1),
        Field("offset", "int32", 1),
        Field("linear", "int8", 2, optional=True),
        Field("linear_multiplier", "int32", 1, optional=True),
        Field("local", "LocalStage", optional=True),
        Field("values", "FixedPoint", optional=True),
        Field("decision", "Decision", optional=True),
        Field("small_code", "bool", optional=True),
        Field("prototypes", "int8", 2, optional=True),
    ),
    "LocalStage": (
        *(
            Field(name, "int")
            for name in ("height", "width", "channels", "level_shift", "average", "padding", "hop")
        ),
        Field("cells", "int", many=True),
        Field("scaler", "InputScaler"),
        Field("mix", "int8", 2),
        Field("taps", "int8", 3),
        Field("dilation", "uint8", 1),
        Field("channel", "uint8", 1),
        Field("threshold", "int32", 1),
    ),
    "InputScaler": Scale.FIELDS,
    "FixedPoint": Values.FIELDS,
}


class _Front(NamedTuple):
    """What stands before the stage scale."""

    input: Grid
    stages: tuple[Stage, ...] = ()
    hop: int = 0


def _own(cls: type[Stage], old: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a stage that there were."""
    return {field.name: old[field.name] for field in cls.FIELDS if field.name in old}


def _front(**old: Any) -> _Front:
    """Make the input and the stages of what was one local stage."""
    given = Grid.raw(old["scaler"].raw_dtype, old["height"], old["width"], old["channels"])
    stages = Levels(**_own(Levels, old)), Kernels(**_own(Kernels, old))
    return _Front(given, stages, old["hop"])


def _model(**old: Any) -> IntegerModel:
    """Make a model; fields that contradict each other give it another digest than the file says."""
    scaler: Scale = old["scaler"]
    front = old.get("local") or _Front(Grid.table(scaler.raw_dtype, old["n_features"]))
    stages: list[Stage] = [*front.stages, scaler]
    parts: list[Part] = []
    if old["diagonal"].size:
        stages.append(Components(**_own(Components, old)))
        parts.append(Ternary(old["weights"], old["multiplier"]))
    if old.get("linear") is not None:
        parts.append(Linear(old["linear"], old.get("linear_multiplier")))  # type: ignore[arg-type]
    if old.get("prototypes") is not None:
        parts.append(Prototypes(old["prototypes"]))
    return IntegerModel(
        input=front.input,
        stages=tuple(stages),
        readout=Readout(tuple(parts), old["offset"]),
        answers=old.get("values") or Labels(old["classes"]),
        decision=old.get("decision"),
        hop=front.hop,
        decision_scale=old["decision_scale"],
        feature_names=old.get("feature_names"),
    )


MAKERS: dict[str, Callable[..., Any]] = {
    "IntegerModel": _model,
    "LocalStage": _front,
    "InputScaler": Scale,
    "FixedPoint": Values,
}


def digest(model: IntegerModel) -> str:
    """Return the fingerprint that these formats gave a model."""
    components = model.find(Components) or _void_components(model)
    found = hashlib.sha256(json.dumps(_header(model, components), sort_keys=True).encode())
    for name, array in sorted(_arrays(model, components).items()):
        little_endian = array.astype(array.dtype.newbyteorder("<"))
        found.update(f"{name} {array.dtype.name} {array.shape}".encode())
        found.update(little_endian.tobytes())
    return found.hexdigest()


def _void_components(model: IntegerModel) -> Any:
    """Return the fields of components that a model without any had."""
    d = padded_dimension(model.n_features)
    none, never = np.zeros(0, np.uint8), (False,) * (d.bit_length() - 1)
    return SimpleNamespace(
        sign=np.where(model.scaler.constant(model.n_features), 0, 1).astype(np.int8),
        permutation=Permutation(),
        diagonal=np.zeros((0, d), np.int8),
        diagonal_kind="sign",
        halve_first=never,
        halve_second=never,
        row_kept=np.zeros((0, d), np.bool_),
        scale=none,
        start=none,
        width=none,
        phase_shift=0,
        small_code=False,
    )


def _header(model: IntegerModel, components: Any) -> dict[str, Any]:
    own: dict[str, Any] = {
        "n_features": model.n_features,
        "raw_dtype": model.scaler.raw_dtype,
        "bits": model.scaler.bits,
        "permutation": components.permutation.kind,
        "permutation_multiplier": components.permutation.multiplier,
        "permutation_increment": components.permutation.increment,
        "diagonal_kind": components.diagonal_kind,
        "halve_first": list(components.halve_first),
        "halve_second": list(components.halve_second),
        "phase_shift": components.phase_shift,
        "classes": [[type(label).__name__, label] for label in model.classes],
        "decision_scale": model.decision_scale.hex(),
    }
    if isinstance(model.answers, Values):
        own["values"] = {"names": list(model.answers.names), "shift": model.answers.shift}
    levels, kernels = model.find(Levels), model.find(Kernels)
    if levels is not None and kernels is not None:
        own["local"] = _local_header(model, levels, kernels)
    if components.small_code:
        own["small_code"] = True
    decision = model.decision
    if decision is not None:
        held = {"shift": decision.shift, "temperature": decision.temperature.hex()}
        if decision.novelty_threshold is not None:
            held["novelty_threshold"] = decision.novelty_threshold
        if decision.margin_line is not None:
            held["margin_line"] = list(decision.margin_line)
        own["decision"] = held
    return own


def _local_header(model: IntegerModel, levels: Levels, kernels: Kernels) -> dict[str, Any]:
    own = {
        "height": model.input.rows,
        "width": model.input.columns,
        "channels": model.input.channels,
        "raw_dtype": levels.scaler.raw_dtype,
        "bits": levels.scaler.bits,
        "level_shift": levels.level_shift,
        "average": levels.average,
        "cells": list(kernels.cells),
        "padding": kernels.padding,
    }
    return own | {"hop": model.hop} if model.hop else own


def _arrays(model: IntegerModel, components: Any) -> dict[str, NDArray[Any]]:
    own: tuple[str, ...] = ("sign", "diagonal", "row_kept", "scale", "start", "width")
    named = {name: getattr(components, name) for name in own}
    named["permutation_table"] = components.permutation.table
    named |= {
        "offset": model.readout.offset,
        "weights": np.zeros((model.n_outputs, 0), np.int8),
        "multiplier": np.ones(model.n_outputs, np.int32),
    }
    ternary, linear, known = model.find(Ternary), model.find(Linear), model.find(Prototypes)
    if ternary is not None:
        named |= {"weights": ternary.weights, "multiplier": ternary.multiplier}
    if linear is not None:
        named |= {"linear": linear.weights, "linear_multiplier": linear.multiplier}
    if known is not None:
        named["prototypes"] = known.levels
    levels, kernels = model.find(Levels), model.find(Kernels)
    if levels is not None:
        named["local_mix"] = levels.mix
        named |= {f"local_scaler_{name}": array for name, array in levels.scaler.arrays.items()}
    if kernels is not None:
        own = ("taps", "dilation", "channel", "threshold")
        named |= {f"local_{name}": getattr(kernels, name) for name in own}
    if model.decision is not None:
        own = ("thresholds", "table", "set_deficits", "set_levels", "prototypes")
        named |= {f"decision_{name}": getattr(model.decision, name) for name in own}
    named |= {f"scaler_{name}": array for name, array in model.scaler.arrays.items()}
    return {name: array for name, array in named.items() if array is not None}
