"""Models from and as the fields that they had before they were chains.

Files of formats 1 and 2 hold these fields, and their fingerprints are of them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.model.answers.labels import Labels
from tinykernel.model.compat import FORMER, LocalStage
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.readouts.prototypes import Prototypes
from tinykernel.model.readouts.readout import Readout
from tinykernel.model.readouts.ternary import Ternary
from tinykernel.model.stage import Part, Stage
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.spectrum import Spectrum


def integer_model(**old: Any) -> IntegerModel:
    """Make a model of former fields; what belongs to components may be left out, or be void.

    Raises
    ------
    TinykernelError
        As from the stages and parts.
    """
    local: LocalStage | None = old.get("local")
    scaler, n = old["scaler"], int(old["n_features"])
    stages: list[Stage] = [scaler]
    given = Grid.table(scaler.raw_dtype, n)
    hop = 0
    if local is not None:
        if (local.n_counts, local.count_dtype) != (n, scaler.raw_dtype):
            raise TinykernelError(
                f"integer model: the local stage gives {local.n_counts} counts of "
                f"{local.count_dtype}, the machine takes {n} of {scaler.raw_dtype}"
            )
        stages = [local.levels_stage, local.kernels_stage, scaler]
        given, hop = local.grid, local.hop
    parts: list[Part] = []
    if np.size(old.get("diagonal", ())):
        names = (field.name for field in Components.FIELDS)
        stages.append(Components(**{name: old[name] for name in names if name in old}))
        parts.append(Ternary(old["weights"], old["multiplier"]))
    elif old.get("small_code"):
        raise TinykernelError("integer model: small_code is for models with components")
    linear, factor = old.get("linear"), old.get("linear_multiplier")
    if (linear is None) != (factor is None):
        raise TinykernelError("integer model: linear and linear_multiplier go together")
    if linear is not None and factor is not None:
        parts.append(Linear(linear, factor))
    if old.get("prototypes") is not None:
        parts.append(Prototypes(old["prototypes"]))
    answers = old.get("values")
    if answers is not None and old["classes"]:
        raise TinykernelError("integer model: values have no classes")
    return IntegerModel(
        input=given,
        stages=tuple(stages),
        readout=Readout(tuple(parts), old["offset"]),
        answers=Labels(old["classes"]) if answers is None else answers,
        decision=old.get("decision"),
        hop=hop,
        decision_scale=old.get("decision_scale", 1.0),
        feature_names=old.get("feature_names"),
    )


def former_fields(model: IntegerModel) -> dict[str, Any]:
    """Return all former fields of a model, void arrays where it has no components."""
    return {name: getattr(model, name) for name in FORMER}


def changed(model: IntegerModel, **fields: Any) -> IntegerModel:
    """Return a model with other former fields: in place of `dataclasses.replace`."""
    made = integer_model(**(former_fields(model) | fields))
    spectrum = model.find(Spectrum)
    if spectrum is None:
        return made
    return replace(made, input=model.input, stages=(spectrum, *made.stages), hop=model.hop)


def former_digest(model: IntegerModel) -> str:
    """Return the fingerprint that formats 1 and 2 gave a model."""
    found = hashlib.sha256(json.dumps(_header(model), sort_keys=True).encode())
    for name, array in sorted(_arrays(model).items()):
        little_endian = array.astype(array.dtype.newbyteorder("<"))
        found.update(f"{name} {array.dtype.name} {array.shape}".encode())
        found.update(little_endian.tobytes())
    return found.hexdigest()


def _header(model: IntegerModel) -> dict[str, Any]:
    own: dict[str, Any] = {
        "n_features": model.n_features,
        "raw_dtype": model.scaler.raw_dtype,
        "bits": model.scaler.bits,
        "permutation": model.permutation.kind,
        "permutation_multiplier": model.permutation.multiplier,
        "permutation_increment": model.permutation.increment,
        "diagonal_kind": model.diagonal_kind,
        "halve_first": list(model.halve_first),
        "halve_second": list(model.halve_second),
        "phase_shift": model.phase_shift,
        "classes": [[type(label).__name__, label] for label in model.classes],
        "decision_scale": model.decision_scale.hex(),
    }
    if model.values is not None:
        own["values"] = {"names": list(model.values.names), "shift": model.values.shift}
    if model.local is not None:
        own["local"] = _local_header(model.local)
    if model.small_code:
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


def _local_header(local: LocalStage) -> dict[str, Any]:
    own = {
        "height": local.height,
        "width": local.width,
        "channels": local.channels,
        "raw_dtype": local.scaler.raw_dtype,
        "bits": local.scaler.bits,
        "level_shift": local.level_shift,
        "average": local.average,
        "cells": list(local.cells),
        "padding": local.padding,
    }
    return own | {"hop": local.hop} if local.hop else own


def _arrays(model: IntegerModel) -> dict[str, NDArray[Any]]:
    own = "sign diagonal row_kept scale start width weights multiplier offset"
    named = {name: getattr(model, name) for name in own.split()}
    named["permutation_table"] = model.permutation.table
    named |= {"linear": model.linear, "linear_multiplier": model.linear_multiplier}
    named["prototypes"] = model.prototypes
    if model.local is not None:
        names = ("mix", "taps", "dilation", "channel", "threshold")
        named |= {f"local_{name}": getattr(model.local, name) for name in names}
        named |= {f"local_scaler_{k}": array for k, array in model.local.scaler.arrays.items()}
    if model.decision is not None:
        names = ("thresholds", "table", "set_deficits", "set_levels", "prototypes")
        named |= {f"decision_{name}": getattr(model.decision, name) for name in names}
    named |= {f"scaler_{name}": array for name, array in model.scaler.arrays.items()}
    return {name: array for name, array in named.items() if array is not None}
