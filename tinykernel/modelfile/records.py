"""Models as JSON and arrays, and back."""

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from tinykernel.errors import FormatError, ModelError
from tinykernel.modelfile import schema
from tinykernel.modelfile.container import plain_dtype
from tinykernel.modelfile.schema import CLASSES, CLASSIFIERS, DEEPEST, FITTED, Arrays


def name_of(obj: object) -> str:
    """Return the name of a class that a file may hold; other classes have other names."""
    cls = type(obj)
    home = sys.modules.get(CLASSIFIERS.get(cls.__name__, ""))
    if CLASSES.get(cls.__name__) is cls or getattr(home, cls.__name__, None) is cls:
        return str(cls.__name__)
    return f"{cls.__name__} " if cls.__name__ in schema.KINDS | CLASSES else cls.__name__


def encode_record(obj: Any, place: str, arrays: Arrays) -> Any:
    """Turn a model or a part of one into JSON; arrays go into `arrays`."""
    name = name_of(obj)
    if name in CLASSIFIERS:
        params, attributes = obj.get_params(deep=False), vars(obj)
        if "machine_" not in attributes:
            raise ModelError("the classifier is not fitted; call fit before saving it")
        for key in attributes:
            if key not in params and not FITTED.fullmatch(key) and key != "_quantized":
                raise ModelError(f"holds {key!r}, which a model file cannot; delete it")
        fields = {key: value for key, value in attributes.items() if not key.startswith("_")}
        fields = params | fields
        schema.check_classifier(fields, set(params))
    else:
        values = {field.name: getattr(obj, field.name) for field in obj.FIELDS}
        fields = {key: value for key, value in values.items() if value is not None}
        schema.check_fields(name, fields)
    encoded = {key: _encode(value, f"{place}.{key}", arrays) for key, value in fields.items()}
    return {"record": [name, encoded]}


def _encode(value: Any, place: str, arrays: Arrays, depth: int = DEEPEST // 2) -> Any:
    """Turn a plain value into JSON; other types become a one-key object that names the type.

    >>> arrays = {}
    >>> _encode((1, np.zeros(2)), "pair", arrays)
    {'tuple': [1, {'array': 'pair.1'}]}
    >>> _decode({'tuple': [1, {'array': 'pair.1'}]}, arrays)
    (1, array([0., 0.]))
    """
    if depth == 0:
        raise ModelError(f"{place} is nested too deeply for a model file")
    if name_of(value) in CLASSES:
        return encode_record(value, place, arrays)
    if isinstance(value, np.generic):
        return {"scalar": [value.dtype.str, _encode(value.item(), place, arrays, depth - 1)]}
    if value is None or isinstance(value, (bool, int)) or schema.is_text(value):
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
    raise ModelError(
        f"{place} is a {type(value).__name__}, which a model file cannot hold; use plain values, "
        "e.g. an integer as random_state, or save classifier.quantize()"
    )


def _encode_all(values: Any, place: str, arrays: Arrays, depth: int) -> list[Any]:
    return [_encode(v, f"{place}.{index}", arrays, depth - 1) for index, v in enumerate(values)]


def _decode(value: Any, arrays: Arrays, depth: int = DEEPEST) -> Any:
    """Reverse `_encode`; a value that it cannot have written raises one of many exceptions."""
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
    if name in CLASSIFIERS:
        fields = {
            key: _decode_part(name, key, schema.PARTS_OF_CLASSIFIERS.get(key, ()), content, arrays)
            if isinstance(content, dict) and "record" in content
            else _decode(content, arrays)
            for key, content in encoded.items()
        }
        return _make_classifier(name, fields)
    known = {field.name: field for field in CLASSES[name].FIELDS}
    fields = {}
    for key, content in encoded.items():
        field = known.get(key)
        if field is None or not schema.is_record(field) or (content is None and field.optional):
            fields[key] = _decode(content, arrays)
        else:
            allowed = field.dtype.split("|")
            items = content["tuple"] if field.many else [content]
            parts = [_decode_part(name, key, allowed, item, arrays) for item in items]
            fields[key] = tuple(parts) if field.many else parts[0]
    schema.check_fields(name, fields)
    return CLASSES[name](**fields)


def _decode_part(name: str, key: str, allowed: Iterable[str], content: Any, arrays: Arrays) -> Any:
    if not isinstance(content, dict) or "record" not in content:
        raise FormatError(
            f"damaged {name}: {key} is no {' or '.join(allowed)}; save the model again"
        )
    part, inner = content["record"]
    bases = [cls.__name__ for cls in getattr(CLASSES.get(part), "__mro__", ())]
    if not {part, *bases} & set(allowed):
        raise FormatError(f"damaged {name}: {key!a} is a {part!a}")
    return decode_record(part, inner, arrays)


def _make_classifier(name: str, fields: dict[str, Any]) -> Any:
    """Make a fitted classifier of its parameters and its fitted attributes."""
    cls = getattr(import_module(CLASSIFIERS[name]), name)
    names = set(cls().get_params(deep=False))
    former = fields.keys() - names - schema.GONE
    if name in schema.SUCCESSORS and any(not FITTED.fullmatch(key) for key in former):
        # An older version trained every kind of model by one estimator.
        return _make_classifier(schema.SUCCESSORS[name], fields)
    fields = {key: value for key, value in fields.items() if key not in schema.GONE}
    schema.check_classifier(fields, names)
    params = {key: value for key, value in fields.items() if key in names}
    fitted = {key: value for key, value in fields.items() if FITTED.fullmatch(key)}
    unknown = sorted(fields.keys() - params.keys() - fitted.keys())
    if unknown:
        raise FormatError(f"holds the unknown parameter {unknown[0]!a}; train it again")
    classifier = cls(**params)
    for key, value in fitted.items():
        setattr(classifier, key, value)
    return classifier
