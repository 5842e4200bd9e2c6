"""Records of plain values and arrays as JSON beside named arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.storage.records import MODULES, Record

__all__ = ["decode", "encode"]

_Arrays = dict[str, NDArray[Any]]


def encode(value: Any, name: str, arrays: _Arrays) -> Any:
    """Turn a value into what JSON can hold; arrays go into `arrays` under a name made of `name`.

    Parameters
    ----------
    value : object
        Plain values, lists, tuples, dicts, NumPy scalars and arrays, records.
    name : str
        Path of the value, for the names of arrays and for messages.
    arrays : dict
        Filled.

    Returns
    -------
    object
        Of JSON types. What JSON has not is a one-key object: the key says what it is.

    Raises
    ------
    TinykernelError
        If the value is of another kind.

    Examples
    --------
    >>> arrays = {}
    >>> encode((1, np.zeros(2)), "pair", arrays)
    {'tuple': [1, {'array': 'pair.1'}]}
    >>> decode({'tuple': [1, {'array': 'pair.1'}]}, arrays)
    (1, array([0., 0.]))
    """
    if isinstance(value, np.generic):
        return {"scalar": [value.dtype.str, encode(value.item(), name, arrays)]}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return _encode_all(value, name, arrays)
    if isinstance(value, tuple):
        return {"tuple": _encode_all(value, name, arrays)}
    if isinstance(value, dict):
        return {"dict": [_encode_all(pair, name, arrays) for pair in value.items()]}
    if isinstance(value, Record):
        fields = {k: encode(v, f"{name}.{k}", arrays) for k, v in value.fields.items()}
        return {"record": [value.name, fields]}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        items = _encode_all(value.ravel().tolist(), name, arrays)
        return {"objects": [list(value.shape), items]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        arrays[name] = value
        return {"array": name}
    raise TinykernelError(
        f"{name} is a {type(value).__name__}, which a model file cannot hold; "
        "use plain values, e.g. an integer as random_state"
    )


def _encode_all(values: Any, name: str, arrays: _Arrays) -> list[Any]:
    return [encode(value, f"{name}.{index}", arrays) for index, value in enumerate(values)]


def decode(value: Any, arrays: _Arrays) -> Any:
    """Turn back what `encode` gave.

    Parameters
    ----------
    value : object
        Of JSON types.
    arrays : dict

    Returns
    -------
    object

    Raises
    ------
    KeyError, TypeError, ValueError
        If `encode` cannot have given this.
    """
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "tuple":
        return tuple(decode(content, arrays))
    if kind == "dict":
        return {decode(k, arrays): decode(v, arrays) for k, v in content}
    if kind == "float":
        return float(content)
    if kind == "scalar":
        return _plain_dtype(content[0]).type(decode(content[1], arrays))
    if kind == "objects":
        items = np.empty(len(content[1]), dtype=object)
        items[:] = decode(content[1], arrays)
        return items.reshape(content[0])
    if kind == "record" and content[0] in MODULES:
        return Record(content[0], {k: decode(v, arrays) for k, v in content[1].items()})
    raise ValueError(f"unknown kind {kind!r}")


def _plain_dtype(name: str) -> np.dtype[Any]:
    dtype = np.dtype(name)
    if dtype.kind not in "biufU":
        raise ValueError(f"scalar of type {name!r}")
    return dtype
