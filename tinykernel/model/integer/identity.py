"""What tells integer models apart: their content as JSON types and arrays, and in words."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from tinykernel.model.integer.model import IntegerModel


def header(model: IntegerModel) -> dict[str, Any]:
    """Return everything that is not an array and counts in a comparison, as JSON types."""
    own = {
        "n_features": int(model.n_features),
        "raw_dtype": model.scaler.raw_dtype,
        "bits": int(model.scaler.bits),
        "permutation": model.permutation.kind,
        "permutation_multiplier": int(model.permutation.multiplier),
        "permutation_increment": int(model.permutation.increment),
        "diagonal_kind": model.diagonal_kind,
        "halve_first": list(model.halve_first),
        "halve_second": list(model.halve_second),
        "phase_shift": int(model.phase_shift),
        "classes": [[type(label).__name__, label] for label in model.classes],
        "decision_scale": float(model.decision_scale).hex(),
    }
    if model.values is not None:
        own["values"] = {"names": list(model.values.names), "shift": model.values.shift}
    if model.local is not None:
        own["local"] = model.local.header()
    if model.small_code:
        own["small_code"] = True
    return own if model.decision is None else own | {"decision": model.decision.header()}


def arrays(model: IntegerModel) -> dict[str, NDArray[Any]]:
    """Return every array by name, the scaler's with the prefix ``scaler_``."""
    own = (
        "sign",
        "diagonal",
        "row_kept",
        "scale",
        "start",
        "width",
        "weights",
        "multiplier",
        "offset",
    )
    named = {name: getattr(model, name) for name in own}
    if model.permutation.table is not None:
        named["permutation_table"] = model.permutation.table
    if model.linear is not None and model.linear_multiplier is not None:
        named |= {"linear": model.linear, "linear_multiplier": model.linear_multiplier}
    if model.prototypes is not None:
        named["prototypes"] = model.prototypes
    if model.local is not None:
        named |= {f"local_{name}": array for name, array in model.local.arrays().items()}
    if model.decision is not None:
        named |= {f"decision_{name}": array for name, array in model.decision.arrays().items()}
    return named | {f"scaler_{name}": array for name, array in model.scaler.arrays.items()}


def digest(model: IntegerModel) -> str:
    """Return the SHA-256 of both, 64 hexadecimal digits."""
    found = hashlib.sha256(json.dumps(header(model), sort_keys=True).encode())
    for name, array in sorted(arrays(model).items()):
        little_endian = array.astype(array.dtype.newbyteorder("<"))
        found.update(f"{name} {array.dtype.name} {array.shape}".encode())
        found.update(little_endian.tobytes())
    return found.hexdigest()


def facts(model: IntegerModel) -> dict[str, str]:
    """Return what tells models apart, in words."""
    labels = ", ".join(map(repr, model.classes[:6])) + (", ..." if model.n_classes > 6 else "")
    meaning = {"classes": f"{model.n_classes} ({labels})"}
    if model.values is not None:
        names = ", ".join(map(repr, model.values.names))
        meaning = {"values": f"{names}, in 1 / 2**{model.values.shift}"}
    return {
        "inputs": f"{model.n_inputs} x {model.raw_dtype}",
        "components": str(model.n_components),
        **meaning,
        "fingerprint": model.fingerprint()[:16],
    }
