"""Models as JSON and arrays, and back."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from tinykernel.errors import TinykernelError
from tinykernel.modelfile.container import plain_dtype
from tinykernel.modelfile.schema import (
    CLASSES,
    CLASSIFIERS,
    DEEPEST,
    FITTED,
    KINDS,
    LATER,
    PARTS,
    PARTS_OF_CLASSIFIERS,
    Arrays,
    check_classifier,
    check_fields,
    is_text,
)


def name_of(obj: object) -> str:
    """Return the name of a class that a file may hold; other classes have other names."""
    cls = type(obj)
    home = sys.modules.get(CLASSIFIERS.get(cls.__name__, ""))
    if CLASSES.get(cls.__name__) is cls or getattr(home, cls.__name__, None) is cls:
        return cls.__name__
    return f"{cls.__name__} " if cls.__name__ in KINDS | CLASSES else cls.__name__


def encode_record(obj: Any, place: str, arrays: Arrays) -> Any:
    """Turn a model or a part of one into JSON; arrays go into `arrays`."""
    name = name_of(obj)
    if name in CLASSIFIERS:
        fields = _fields_of_classifier(obj)
        check_classifier(fields, set(obj.get_params(deep=False)))
    else:
        fields = {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj) if f.init}
        fields = {key: value for key, value in fields.items() if not _is_unused(obj, key)}
        check_fields(name, fields)
    encoded = {
        key: encode_record(value, f"{place}.{key}", arrays)
        if name_of(value) in CLASSES
        else _encode(value, f"{place}.{key}", arrays)
        for key, value in fields.items()
    }
    return {"record": [name, encoded]}


def _is_unused(obj: Any, key: str) -> bool:
    """Whether a field came after version 1 and holds nothing; a number goes with its array."""
    whole = "linear" if key == "linear_scale" else key
    held = getattr(obj, whole)
    return key in LATER and (held is None or held is False)


def version_of(record: Mapping[str, Any]) -> int:
    """Return the oldest version of the format that has all fields of an encoded record."""
    name, fields = record["record"]
    # A classifier has parameters of the same names, which its constructor looks at.
    found = [1 if name in CLASSIFIERS else LATER.get(key, 1) for key in fields]
    found += [version_of(v) for v in fields.values() if isinstance(v, dict) and "record" in v]
    return max(found)


def _fields_of_classifier(obj: Any) -> dict[str, Any]:
    """Return parameters and fitted attributes; TinykernelError where there is anything else."""
    own = vars(obj)
    if "machine_" not in own:
        raise TinykernelError("the classifier is not fitted; call fit before saving it")
    params: dict[str, Any] = obj.get_params(deep=False)
    fields = {key: value for key, value in own.items() if not key.startswith("_")}
    for key in own:
        if key not in params and not FITTED.fullmatch(key) and key != "_quantized":
            raise TinykernelError(f"holds {key!r}, which a model file cannot; delete it")
    return params | fields


def _encode(value: Any, place: str, arrays: Arrays, depth: int = DEEPEST // 2) -> Any:
    """Turn a plain value into JSON. What JSON has not is a one-key object that says what it is.

    >>> arrays = {}
    >>> _encode((1, np.zeros(2)), "pair", arrays)
    {'tuple': [1, {'array': 'pair.1'}]}
    >>> _decode({'tuple': [1, {'array': 'pair.1'}]}, arrays)
    (1, array([0., 0.]))
    """
    if depth == 0:
        raise TinykernelError(f"{place} is nested too deeply for a model file")
    if isinstance(value, np.generic):
        return {"scalar": [value.dtype.str, _encode(value.item(), place, arrays, depth - 1)]}
    if value is None or isinstance(value, (bool, int)) or is_text(value):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return _encode_all(value, place, arrays, depth)
    if isinstance(value, tuple):
        return {"tuple": _encode_all(value, place, arrays, depth)}
    if isinstance(value, dict):
        return {"dict": [_encode_all(pair, place, arrays, depth) for pair in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        items = _encode_all(value.ravel().tolist(), place, arrays, depth)
        return {"objects": [list(value.shape), items]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        arrays[place] = value
        return {"array": place}
    raise TinykernelError(
        f"{place} is a {type(value).__name__}, which a model file cannot hold; use plain values, "
        "e.g. an integer as random_state, or save classifier.quantize()"
    )


def _encode_all(values: Any, place: str, arrays: Arrays, depth: int) -> list[Any]:
    return [_encode(v, f"{place}.{index}", arrays, depth - 1) for index, v in enumerate(values)]


def _decode(value: Any, arrays: Arrays, depth: int = DEEPEST) -> Any:
    """Turn back what `_encode` gave; what it cannot have given raises one of many exceptions."""
    if depth == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        value.encode()  # refuses halves of surrogate pairs, which no terminal can print
    if isinstance(value, list):
        return [_decode(item, arrays, depth - 1) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "tuple":
        return tuple(_decode(content, arrays, depth - 1))
    if kind == "dict":
        return {_decode(k, arrays, depth - 1): _decode(v, arrays, depth - 1) for k, v in content}
    if kind == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if kind == "scalar":
        return plain_dtype(content[0]).type(_decode(content[1], arrays, depth - 1))
    if kind == "objects" and all(type(n) is int and n >= 0 for n in content[0]):
        items = np.empty(len(content[1]), dtype=object)
        for index, item in enumerate(content[1]):
            items[index] = _decode(item, arrays, depth - 1)
        return items.reshape(content[0])
    raise ValueError(f"unknown kind {kind!r}")


def decode_record(name: str, encoded: dict[str, Any], arrays: Arrays) -> Any:
    """Make a model or a part of one, its parts first."""
    parts = PARTS_OF_CLASSIFIERS if name in CLASSIFIERS else PARTS
    fields = {}
    for key, content in encoded.items():
        if isinstance(content, dict) and "record" in content:
            part, inner = content["record"]
            if part not in parts.get(key, ()):
                raise TinykernelError(f"damaged {name}: {key!a} is a {part!a}")
            fields[key] = decode_record(part, inner, arrays)
        else:
            fields[key] = _decode(content, arrays)
    if name in CLASSIFIERS:
        return _make_classifier(name, fields)
    check_fields(name, fields)
    return CLASSES[name](**fields)


def _make_classifier(name: str, fields: dict[str, Any]) -> Any:
    """Make a fitted classifier of its parameters and its fitted attributes."""
    cls = getattr(import_module(CLASSIFIERS[name]), name)
    names = set(cls().get_params(deep=False))
    check_classifier(fields, names)
    params = {key: value for key, value in fields.items() if key in names}
    fitted = {key: value for key, value in fields.items() if FITTED.fullmatch(key)}
    unknown = sorted(fields.keys() - params.keys() - fitted.keys())
    if unknown:
        warnings.warn(
            f"trained by an older version, with parameters that are no more: {', '.join(unknown)}",
            stacklevel=2,
        )
    classifier = cls(**params)
    for key, value in fitted.items():
        setattr(classifier, key, value)
    return classifier
