"""What every field of an `IntegerModel` must be, and how the fields fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.model.arrays import checked_array
from tinykernel.model.decision import Decision
from tinykernel.model.diagonals import LARGEST
from tinykernel.model.local import LocalStage
from tinykernel.model.permutation import Permutation
from tinykernel.model.prototypes import checked_prototypes
from tinykernel.model.scaler import InputScaler
from tinykernel.model.values import FixedPoint

if TYPE_CHECKING:
    from tinykernel.model.integer.model import IntegerModel

# Of all blocks together: the proof needs about 1 KB a row.
_MOST_ROWS = 1 << 20


def _check_scalars(model: IntegerModel) -> dict[str, Any]:
    """Check sizes, schedules and classes."""
    _check_integer("n_features", model.n_features, 1, 65536)
    _check_integer("phase_shift", model.phase_shift, 0, 31)
    scale = model.decision_scale
    if isinstance(scale, bool) or not isinstance(scale, (int, float, np.number)):
        raise TinykernelError("integer model: decision_scale must be a positive number")
    if not (np.isfinite(scale) and scale > 0):
        raise TinykernelError("integer model: decision_scale must be a positive number")
    if not isinstance(model.small_code, bool):
        raise TinykernelError("integer model: small_code is True or False")
    if model.small_code and not np.size(model.diagonal):
        raise TinykernelError("integer model: small_code is for models with components")
    classes = tuple(_plain_label(label) for label in model.classes)
    if model.values is not None:
        if not isinstance(model.values, FixedPoint) or classes:
            raise TinykernelError("integer model: values are a FixedPoint, and have no classes")
    elif len(classes) < 2 or len(set(classes)) != len(classes):
        raise TinykernelError("integer model: needs two or more different classes")
    return {
        "n_features": int(model.n_features),
        "phase_shift": int(model.phase_shift),
        "decision_scale": float(scale),
        "classes": classes,
        "feature_names": _names(model),
        "halve_first": _schedule(model, "halve_first"),
        "halve_second": _schedule(model, "halve_second"),
    }


def _names(model: IntegerModel) -> tuple[str, ...] | None:
    """Return the names without the spaces around them, which tables have or have not."""
    names: Any = model.feature_names
    if names is None:
        return None
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise TinykernelError("integer model: feature_names is no tuple of text")
    names = tuple(name.strip() for name in names)
    if len(names) != model.n_inputs:
        raise TinykernelError(
            f"integer model: has {len(names)} feature_names for {model.n_inputs} inputs"
        )
    return tuple(names)


def _schedule(model: IntegerModel, name: str) -> tuple[bool, ...]:
    schedule = tuple(bool(halve) for halve in getattr(model, name))
    if len(schedule) != model.log2_dimension:
        raise TinykernelError(
            f"integer model: {name} has {len(schedule)} stages, "
            f"a transform of {model.dimension} values has {model.log2_dimension}"
        )
    return schedule


def _check_inputs(model: IntegerModel) -> dict[str, Any]:
    """Check the scaler and B."""
    if not isinstance(model.scaler, InputScaler):
        raise TinykernelError("integer model: scaler is not an InputScaler")
    for name, array in model.scaler.arrays.items():
        if array.shape[0] not in (1, model.n_features):
            raise TinykernelError(
                f"integer model: scaler {name} has {array.shape[0]} values "
                f"for {model.n_features} features"
            )
    sign = checked_array("sign", model.sign, "int8", (model.n_features,))
    expected = np.where(model.scaler.constant(model.n_features), 0, 1)
    if not np.array_equal(np.abs(sign.astype(np.int16)), expected):
        raise TinykernelError(
            "integer model: sign must be 0 for constant features and +-1 for all others"
        )
    return {"sign": sign}


def _check_blocks(model: IntegerModel) -> dict[str, Any]:
    """Check P, G and the kept rows."""
    n_blocks = 0 if np.shape(model.diagonal)[:1] == (0,) else None
    diagonal = checked_array("diagonal", model.diagonal, "int8", (n_blocks, model.dimension))
    if diagonal.size > _MOST_ROWS:
        raise TinykernelError(
            f"integer model: {diagonal.size} rows in its blocks; at most {_MOST_ROWS} are supported"
        )
    magnitude = np.abs(diagonal.astype(np.int16))
    if model.diagonal_kind not in LARGEST:
        raise TinykernelError(f"integer model: unknown diagonal kind {model.diagonal_kind!r}")
    if model.diagonal_kind == "sign" and np.any(magnitude != 1):
        raise TinykernelError("integer model: a diagonal of signs holds something else")
    largest = LARGEST[model.diagonal_kind]
    if np.any(magnitude > largest):
        raise TinykernelError(
            f"integer model: diagonal holds {int(diagonal[magnitude > largest][0])}; "
            f"-{largest}..{largest} are allowed"
        )
    kept = checked_array("row_kept", model.row_kept, "bool", diagonal.shape)
    parts = (model.linear, model.prototypes)
    if not kept.any() and (diagonal.size or all(part is None for part in parts)):
        raise TinykernelError("integer model: no row is kept; at least one is needed")
    if not isinstance(model.permutation, Permutation):
        raise TinykernelError("integer model: permutation is not a Permutation")
    permutation = model.permutation
    if permutation.table is not None:
        table = checked_array("permutation", permutation.table, "uint16", (model.dimension,))
        permutation = Permutation("stored", table=table)
    permutation.indices(model.dimension)
    return {"diagonal": diagonal, "row_kept": kept, "permutation": permutation}


def _check_local(model: IntegerModel) -> dict[str, Any]:
    """Check that the machine takes what the local stage gives."""
    local = model.local
    if local is None:
        return {}
    if not isinstance(local, LocalStage):
        raise TinykernelError("integer model: local is not a LocalStage")
    if local.n_counts != model.n_features or model.scaler.raw_dtype != local.count_dtype:
        raise TinykernelError(
            f"integer model: the local stage gives {local.n_counts} counts of {local.count_dtype}, "
            f"the machine takes {model.n_features} of {model.scaler.raw_dtype}"
        )
    return {}


def _check_linear(model: IntegerModel) -> dict[str, Any]:
    """Check the linear part."""
    if (model.linear is None) != (model.linear_multiplier is None):
        raise TinykernelError("integer model: linear and linear_multiplier go together")
    if model.linear is None:
        return {}
    shape = (model.n_outputs, model.n_features)
    linear = checked_array("linear", model.linear, "int8", shape)
    if np.any(linear == -128) or np.any(linear[:, model.sign == 0]):
        raise TinykernelError("integer model: linear holds -128, or weighs a constant feature")
    multiplier = checked_array("linear_multiplier", model.linear_multiplier, "int32", shape[:1])
    return {"linear": linear, "linear_multiplier": multiplier}


def _check_prototypes(model: IntegerModel) -> dict[str, Any]:
    """Check the prototypes of a model of one class, which has nothing else."""
    if model.prototypes is None:
        return {}
    if model.linear is not None or model.diagonal.size:
        raise TinykernelError("integer model: prototypes go with no components and no linear part")
    if model.values is not None or len(model.classes) != 2:
        raise TinykernelError("integer model: prototypes need two classes, the known one first")
    if model.decision is not None:
        raise TinykernelError("integer model: a model of one class has no decision part")
    return {"prototypes": checked_prototypes(model.prototypes, model.n_features)}


def _check_decision(model: IntegerModel) -> dict[str, Any]:
    """Check that the thresholds are those of the classes."""
    if model.decision is None:
        return {}
    if not isinstance(model.decision, Decision):
        raise TinykernelError("integer model: decision is not a Decision")
    if model.values is not None:
        raise TinykernelError("integer model: a regressor predicts values and decides nothing")
    if model.decision.thresholds.size not in (1, model.n_classes):
        raise TinykernelError(
            f"integer model: decision has {model.decision.thresholds.size} thresholds for "
            f"{model.n_classes} classes"
        )
    prototypes = model.decision.prototypes
    if prototypes is not None and prototypes.shape[1] != model.n_features:
        raise TinykernelError(
            f"integer model: prototypes of {prototypes.shape[1]} inputs for {model.n_features}"
        )
    return {}


def _check_components(model: IntegerModel) -> dict[str, Any]:
    """Check the phase windows."""
    fields = {
        name: checked_array(name, getattr(model, name), "uint8", (model.n_components,))
        for name in ("scale", "start", "width")
    }
    for name in ("scale", "width"):
        if not np.all(fields[name]):
            raise TinykernelError(f"integer model: {name} 0 is not allowed in a kept row")
    return fields


def _check_outputs(model: IntegerModel) -> dict[str, Any]:
    """Check weights, multipliers and offsets."""
    shape = (model.n_outputs, model.n_components)
    weights: NDArray[Any] = checked_array("weights", model.weights, "int8", shape)
    if np.any((weights < -1) | (weights > 1)):
        raise TinykernelError("integer model: a weight is not -1, 0 or +1")
    return {
        "weights": weights,
        "multiplier": checked_array("multiplier", model.multiplier, "int32", shape[:1]),
        "offset": checked_array("offset", model.offset, "int32", shape[:1]),
    }


def _plain_label(label: object) -> Any:
    """Return a class label as a Python value that JSON can hold."""
    plain = label.item() if isinstance(label, np.generic) else label
    if not isinstance(plain, (str, int, float)):
        raise TinykernelError(
            f"integer model: a class is a {type(label).__name__}; "
            "labels are strings, integers, floats or booleans"
        )
    if isinstance(plain, float) and not np.isfinite(plain):
        raise TinykernelError(f"integer model: class {label!r} is not a finite number")
    return plain


def _check_integer(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TinykernelError(f"integer model: {name} is not an integer")
    if not low <= value <= high:
        raise TinykernelError(f"integer model: {name} is {value}, allowed are {low}..{high}")


#: Each checks some fields and returns them as they are kept; a check may rely on those before it.
CHECKS: tuple[Callable[[IntegerModel], dict[str, Any]], ...] = (
    _check_scalars,
    _check_inputs,
    _check_local,
    _check_blocks,
    _check_components,
    _check_outputs,
    _check_linear,
    _check_prototypes,
    _check_decision,
)
