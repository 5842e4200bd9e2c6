"""Objects of this package as records of plain values, and back through their constructors.

Both file formats go through records, so that whatever a file holds, a model is made of it only by
the constructors that check every field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from tinykernel.errors import TinykernelError
from tinykernel.model.integer import IntegerModel
from tinykernel.model.machine import KernelMachine
from tinykernel.model.permutation import Permutation
from tinykernel.model.scaler import InputScaler
from tinykernel.storage.machines import checked_machine

__all__ = ["CLASSIFIER", "MODULES", "Record", "from_record", "to_record"]

CLASSIFIER = "TernaryKernelClassifier"

_DATACLASSES: dict[str, type] = {
    "InputScaler": InputScaler,
    "IntegerModel": IntegerModel,
    "KernelMachine": KernelMachine,
    "Permutation": Permutation,
}

#: Where the class of each record lives.
MODULES = {name: cls.__module__ for name, cls in _DATACLASSES.items()} | {
    CLASSIFIER: "tinykernel.estimator"
}


@dataclasses.dataclass
class Record:
    """The name of a class and the values of an object of it.

    Parameters
    ----------
    name : str
        A key of `MODULES`.
    fields : dict
        Attribute values: plain Python values, NumPy arrays and further records.
    """

    name: str
    fields: dict[str, Any]


def _is_classifier(obj: object) -> bool:
    # By name, so that integer models load without importing scikit-learn.
    return (type(obj).__module__, type(obj).__name__) == (MODULES[CLASSIFIER], CLASSIFIER)


def to_record(obj: object) -> Record:
    """Describe a model as a record.

    Parameters
    ----------
    obj : IntegerModel, KernelMachine, TernaryKernelClassifier or a part of them

    Returns
    -------
    Record

    Raises
    ------
    TinykernelError
        If `obj` is something else.
    """
    name = type(obj).__name__
    if dataclasses.is_dataclass(obj) and _DATACLASSES.get(name) is type(obj):
        fields = {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj) if f.init}
    elif _is_classifier(obj):
        name = CLASSIFIER
        fields = {key: value for key, value in vars(obj).items() if not key.startswith("_")}
        if "machine_" not in fields:
            raise TinykernelError("the classifier is not fitted; call fit before saving it")
    else:
        raise TinykernelError(
            f"a {name} is no tinykernel model; save an IntegerModel or a fitted {CLASSIFIER}"
        )
    return Record(name, {key: _inner(value) for key, value in fields.items()})


def _inner(value: Any) -> Any:
    return to_record(value) if type(value) in _DATACLASSES.values() else value


def from_record(record: Record) -> Any:
    """Make the object that a record describes, checking every value.

    Parameters
    ----------
    record : Record

    Returns
    -------
    IntegerModel, KernelMachine, TernaryKernelClassifier or a part of them

    Raises
    ------
    TinykernelError
        If a field is missing, unknown, or holds what it must not.
    """
    fields = {
        key: from_record(value) if isinstance(value, Record) else value
        for key, value in record.fields.items()
    }
    for key, value in record.fields.items():
        if not isinstance(value, Record):
            _check_plain(value, key, set())
    if record.name == CLASSIFIER:
        return _classifier(fields)
    make: Callable[..., Any] = _DATACLASSES[record.name]
    fields = {key: value for key, value in fields.items() if not key.startswith("_")}
    try:
        made = make(**fields)
        return checked_machine(made) if isinstance(made, KernelMachine) else made
    except TinykernelError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise TinykernelError(
            f"damaged {record.name}: a field is missing or no value for it"
        ) from None


def _classifier(fields: dict[str, Any]) -> Any:
    """Make a fitted classifier of its parameters and its fitted attributes."""
    from tinykernel.estimator import TernaryKernelClassifier

    names = set(TernaryKernelClassifier().get_params(deep=False))
    classifier = TernaryKernelClassifier(**{k: v for k, v in fields.items() if k in names})
    if not isinstance(fields.get("machine_"), KernelMachine):
        raise TinykernelError("damaged classifier: it holds no fitted machine")
    for key, value in fields.items():
        # Private attributes are caches; whatever else is not a fitted attribute is not ours.
        if key not in names and key.endswith("_") and not key.startswith("_"):
            setattr(classifier, key, value)
    return classifier


def _check_plain(value: Any, name: str, seen: set[int]) -> None:
    """Refuse a value that is not made of plain values all through; `seen` holds its containers."""
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return
    inner: list[Any] | None = None
    if isinstance(value, (list, tuple)):
        inner = list(value)
    elif isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufUO":
        inner = value.ravel().tolist() if value.dtype.kind == "O" else []
    if inner is None:
        raise TinykernelError(f"{name} is a {type(value).__name__}, which no model holds")
    if id(value) not in seen:
        seen.add(id(value))
        for item in inner:
            _check_plain(item, name, seen)
