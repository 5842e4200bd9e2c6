"""What a model file may hold: the classes, and what each of their fields must be."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.hadamard import padded_dimension
from tinykernel.model import IntegerModel
from tinykernel.model.decision import Decision
from tinykernel.model.local import LocalStage
from tinykernel.model.machine import KernelMachine
from tinykernel.model.permutation import Permutation
from tinykernel.model.scaler import RAW_DTYPES, InputScaler
from tinykernel.model.values import FixedPoint, ValueUnits

#: Estimators that a file may hold, and where they are. They lie above this module.
CLASSIFIERS = {
    "TernaryKernelClassifier": "tinykernel.estimator",
    "TernaryKernelRegressor": "tinykernel.regressor",
    "PaperClassifier": "tinykernel.papers",
}
CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Decision,
        FixedPoint,
        InputScaler,
        IntegerModel,
        KernelMachine,
        LocalStage,
        Permutation,
        ValueUnits,
    )
}
KINDS = {"IntegerModel": "integer", "KernelMachine": "machine"} | dict.fromkeys(
    CLASSIFIERS, "classifier"
)
#: How deep values may be nested.
DEEPEST = 20
Arrays = dict[str, NDArray[Any]]
FITTED = re.compile(r"[a-z][a-z0-9_]*_")
PARTS = {
    "scaler": ("InputScaler",),
    "permutation": ("Permutation",),
    "local": ("LocalStage",),
    "values": ("FixedPoint",),
    "units": ("ValueUnits",),
    "decision": ("Decision",),
}
PARTS_OF_CLASSIFIERS = {"machine_": ("KernelMachine", "IntegerModel"), "decision_": ("Decision",)}

#: Says what is wrong with a value, or "".
_Check = Callable[[Any], str]


def _array(n_dimensions: int, *dtypes: str, may_be_empty: bool = False) -> _Check:
    """Ask for an array of finite numbers, of one of these dtypes."""

    def check(value: Any) -> str:
        if not isinstance(value, np.ndarray) or value.dtype.name not in dtypes:
            return f"is no {' or '.join(dtypes)} array"
        if value.ndim != n_dimensions or not (value.size or may_be_empty):
            return f"has shape {value.shape}, expected {n_dimensions} dimensions"
        return "" if np.all(np.isfinite(value)) else "holds NaN or infinity"

    return check


def is_text(value: Any) -> bool:
    """Say whether a value is text that can be encoded: no half of a surrogate pair."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:  # half of a surrogate pair, which no terminal can print
        return False


def _scalar(kind: type) -> _Check:
    """Ask for a finite value of one type: a truth value is no integer, an integer no float."""

    def check(value: Any) -> str:
        plain = value.item() if isinstance(value, np.generic) else value
        fits = type(plain) is kind and (not isinstance(plain, float) or math.isfinite(plain))
        return "" if fits and (kind is not str or is_text(plain)) else f"is no {kind.__name__}"

    return check


def _all(check: _Check) -> _Check:
    """Ask for a tuple of such values."""

    def check_all(value: Any) -> str:
        if not isinstance(value, tuple):
            return "is no tuple"
        return next(filter(None, map(check, value)), "")

    return check_all


def _or_none(check: _Check) -> _Check:
    return lambda value: "" if value is None else check(value)


def _label(value: Any) -> str:
    """Ask for what may be the name of a class."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float):
        return "" if np.isfinite(plain) else "holds NaN or infinity"
    return "" if isinstance(plain, (bool, int)) or is_text(plain) else "holds no label"


def _part(cls: type) -> _Check:
    return lambda value: "" if type(value) is cls else f"is no {cls.__name__}"


def _each(names: str, check: _Check) -> dict[str, _Check]:
    return dict.fromkeys(names.split(), check)


#: Fields that came after version 1 of the format, with the version in which they came. They are
#: written where they hold something, and a file states the newest version of what it holds. So a
#: model that uses nothing new is written, byte for byte, as ever; an older reader takes it, and of
#: any other it says that a newer tinykernel wrote it. Who adds a field adds it here: with the
#: version of `container.VERSION`, which goes up by one with each release that adds fields.
LATER = {
    "linear": 2,
    "linear_multiplier": 2,
    "linear_scale": 2,
    "local": 2,
    "decision": 2,
    "thresholds": 2,
    "values": 2,
    "units": 2,
    "novelty_threshold": 2,
    "prototypes": 2,
    "margin_line": 2,
    "small_code": 2,
    "held_first": 2,
    "held_second": 2,
    "held_shift": 2,
}

#: What each field of each class must be. The constructors check how fields fit together.
FIELDS: dict[str, dict[str, _Check]] = {
    "IntegerModel": {
        **_each("n_features phase_shift", _scalar(int)),
        **_each("decision_scale", _scalar(float)),
        **_each("diagonal_kind", _scalar(str)),
        **_each("feature_names", _or_none(_all(_scalar(str)))),
        **_each("classes", _all(_label)),
        **_each("halve_first halve_second", _all(_scalar(bool))),
        **_each("scaler", _part(InputScaler)),
        **_each("permutation", _part(Permutation)),
        **_each("sign", _array(1, "int8")),
        **_each("diagonal weights", _array(2, "int8", may_be_empty=True)),
        **_each("row_kept", _array(2, "bool", may_be_empty=True)),
        **_each("scale start width", _array(1, "uint8", may_be_empty=True)),
        **_each("multiplier offset", _array(1, "int32")),
        **_each("linear", _or_none(_array(2, "int8"))),
        **_each("linear_multiplier", _or_none(_array(1, "int32"))),
        **_each("local", _or_none(_part(LocalStage))),
        **_each("values", _or_none(_part(FixedPoint))),
        **_each("decision", _or_none(_part(Decision))),
        **_each("small_code", _scalar(bool)),
        **_each("prototypes", _or_none(_array(2, "int8"))),
    },
    "Decision": {
        **_each("thresholds set_deficits", _array(1, "uint32")),
        **_each("table", _array(1, "uint8")),
        **_each("set_levels", _array(1, "float64")),
        **_each("shift", _scalar(int)),
        **_each("novelty_threshold", _or_none(_scalar(int))),
        **_each("prototypes", _or_none(_array(2, "int8"))),
        **_each("margin_line", _or_none(_all(_scalar(int)))),
        **_each("temperature", _scalar(float)),
        **_each("statement", _scalar(str)),
    },
    "FixedPoint": {"names": _all(_scalar(str)), "shift": _scalar(int)},
    "ValueUnits": {"names": _all(_scalar(str)), **_each("offset scale", _array(1, "float64"))},
    "LocalStage": {
        **_each("height width channels level_shift average padding hop", _scalar(int)),
        **_each("cells", _all(_scalar(int))),
        **_each("scaler", _part(InputScaler)),
        **_each("mix", _array(2, "int8")),
        **_each("taps", _array(3, "int8")),
        **_each("dilation channel", _array(1, "uint8")),
        **_each("threshold", _array(1, "int32")),
    },
    "InputScaler": {
        **_each("raw_dtype", _scalar(str)),
        **_each("bits", _scalar(int)),
        **_each("offset", _array(1, "float32", "int32")),
        **_each("multiplier", _array(1, "float32", "uint32")),
        **_each("span", _or_none(_array(1, "uint32"))),
        **_each("pre_shift", _array(1, "uint8")),
    },
    "Permutation": {
        **_each("kind", _scalar(str)),
        **_each("multiplier increment", _scalar(int)),
        **_each("table", _or_none(_array(1, "uint16"))),
    },
    "KernelMachine": {
        **_each("classes", _all(_label)),
        **_each("raw_dtype diagonal_kind", _scalar(str)),
        **_each("input_bits", _scalar(int)),
        **_each("trained_in_integers", _scalar(bool)),
        **_each("input_offset input_scale input_low input_high", _array(1, "float64")),
        **_each("output_scale output_offset", _array(1, "float64")),
        **_each("diagonal row_scale start width", _array(2, "float64")),
        **_each("sign", _array(1, "int8")),
        **_each("weights", _array(2, "int8")),
        **_each("permutation", _part(Permutation)),
        **_each("linear", _or_none(_array(2, "int8"))),
        **_each("linear_scale", _scalar(float)),
        **_each("units", _or_none(_part(ValueUnits))),
        **_each("small_code", _scalar(bool)),
        **_each("held_first held_second", _or_none(_all(_scalar(bool)))),
        **_each("held_shift", _or_none(_scalar(int))),
    },
}


def check_fields(name: str, fields: dict[str, Any]) -> None:
    """Refuse fields of which a part of a model cannot be made."""
    schema = FIELDS[name]
    optional = {f.name for f in dataclasses.fields(CLASSES[name]) if f.init and _has_default(f)}
    for key in sorted(schema.keys() - optional - fields.keys()) + sorted(fields.keys() - schema):
        problem = "is unknown" if key in fields else "is missing"
        raise TinykernelError(f"damaged {name}: {key!a} {problem}; save the model again")
    for key, value in fields.items():
        problem = schema[key](value)
        if problem:
            raise TinykernelError(f"damaged {name}: {key} {problem}; save the model again")
    if name == "KernelMachine":
        _check_machine(fields)


def _has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _check_machine(fields: dict[str, Any]) -> None:
    """Check how the fields of a machine fit together, which its constructor does not."""
    n, blocks = fields["input_offset"].size, fields["diagonal"].shape[0]
    rows = (blocks, padded_dimension(n) if n <= 65536 else 0)
    outputs, units = 1 if len(fields["classes"]) == 2 else len(fields["classes"]), None
    if fields.get("units") is not None:
        units = fields["units"]
        outputs = len(units.names)
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("input_offset", "input_scale", "input_low", "input_high", "sign"), (n,)),
        **dict.fromkeys(("diagonal", "row_scale", "start", "width"), rows),
        **dict.fromkeys(("output_scale", "output_offset"), (outputs,)),
        "weights": (outputs, rows[0] * rows[1]),
    }
    if fields.get("linear") is not None:
        shapes["linear"] = (outputs, n)
    if units is not None and not units.offset.shape == units.scale.shape == (outputs,):
        raise TinykernelError("damaged machine: units have not one number a value")
    for name, shape in shapes.items():
        if fields[name].shape != shape:
            raise TinykernelError(
                f"damaged machine: {name} has shape {fields[name].shape}, expected {shape}"
            )
    wrong = {
        "raw_dtype": fields["raw_dtype"] not in RAW_DTYPES,
        "input_bits": fields["input_bits"] not in (8, 16),
        "input_scale": bool(np.any(fields["input_scale"] < 0)),
        "sign": bool(np.any(np.abs(fields["sign"].astype(int)) != 1)),
        "diagonal_kind": fields["diagonal_kind"] not in ("gaussian", "int8", "int4", "sign"),
        "weights": bool(np.any(np.abs(fields["weights"].astype(int)) > 1)),
        "classes": len(fields["classes"]) < 2 if units is None else len(fields["classes"]) > 0,
        "units": units is not None and (not outputs or bool(np.any(units.scale < 0))),
        "linear_scale": fields.get("linear_scale", 1.0) <= 0,
    }
    for name in filter(wrong.get, wrong):
        raise TinykernelError(f"damaged machine: {name} holds what it must not")
    fields["permutation"].indices(rows[1])


def check_classifier(fields: dict[str, Any], params: set[str]) -> None:
    """Check that the attributes of a classifier are those of its machine."""
    machine, labels = fields.get("machine_"), fields.get("classes_")
    if not isinstance(machine, KernelMachine | IntegerModel):
        raise TinykernelError("damaged classifier: it holds no fitted machine")
    n_inputs = machine.n_inputs if isinstance(machine, IntegerModel) else machine.n_features
    wrong = {
        "classes_": not _are_classes(labels, machine),
        "n_features_in_": fields.get("n_features_in_") != n_inputs,
        "feature_names_in_": not _are_names(fields.get("feature_names_in_"), n_inputs),
    }
    for name in filter(wrong.get, wrong):
        raise TinykernelError(f"damaged classifier: {name} does not go with its machine")
    for name in fields.keys() - params:
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            raise TinykernelError(f"damaged classifier: it holds {name!a}")


def _are_classes(labels: Any, machine: KernelMachine | IntegerModel) -> bool:
    if not machine.classes:  # of a regressor
        return labels is None
    known = [c.item() if isinstance(c, np.generic) else c for c in machine.classes]
    return isinstance(labels, np.ndarray) and bool(labels.tolist() == known)


def _are_names(names: Any, n: int) -> bool:
    if names is None:
        return True
    is_column = isinstance(names, np.ndarray) and names.shape == (n,)
    return is_column and all(is_text(name) for name in names.tolist())


def is_plain(value: Any, depth: int = DEEPEST) -> bool:
    """Say whether a value is finite JSON that a terminal can print."""
    if isinstance(value, dict):
        if not all(map(is_text, value)):
            return False
        value = list(value.values())
    if isinstance(value, list):
        return depth > 0 and all(is_plain(item, depth - 1) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int) or is_text(value)
