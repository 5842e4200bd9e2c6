"""Ways to damage a file: its bytes, a JSON value, an array."""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BYTES = (
    *(b"\0", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\x7f", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
    *(b"PK\3\4", b"PK\1\2", b"PK\5\6", b"\x93NUMPY"),
    *(b'"', b",", b"\n", b"nan", b"inf", b"1e999", b"-", b"(" * 60),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 31, 32, 255, 256, 2**31, 2**63, -(2**63), 10**30),
    *(0.0, 0.5, -1.5, 1e308, 5e-324),
    *("", "a", "int8", "uint8", "float32", "sign", "orbit", "\x1b[31m", "\u202e", "x" * 5000),
    *([], {}, [[]], [0] * 40, {"array": "model.sign"}, {"tuple": []}, {"tuple": [1, 2, 3]}),
    *({"float": "nan"}, {"float": "inf"}, {"scalar": ["<i8", 3]}, {"scalar": ["<f8", 0.5]}),
    *({"scalar": ["<U2", "ab"]}, {"objects": [[2], ["a", "b"]]}, {"objects": [[2, 2], []]}),
    *({"dict": [["a", 1]]}, {"record": ["Permutation", {}]}),
)
_DTYPES = ("b1", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<f2", "<f4", "<f8", "<U3")
_EXTREMES = (0, 1, -1, 2, 127, -128, 255, 32767, -32768, 2**31 - 1, np.nan, np.inf, -np.inf, 1e300)


def mutate_bytes(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Change bytes at one to four places; `other` is a file to take pieces from."""
    content = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, len(content) + 1))
        end = min(len(content), at + int(rng.choice([1, 2, 4, 16, 200])))
        kind = int(rng.integers(0, 7))
        if kind == 0 and content:
            content[min(at, len(content) - 1)] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            content[at:end] = _BYTES[rng.integers(len(_BYTES))]
        elif kind == 2:
            content[at:at] = _BYTES[rng.integers(len(_BYTES))]
        elif kind == 3:
            del content[at:end]
        elif kind == 4:
            content[at:at] = content[at:end] * int(rng.choice([1, 2, 50]))
        elif kind == 5 and rng.random() < 0.3:
            del content[at:]
        elif kind == 6 and other:
            start = int(rng.integers(0, len(other)))
            content[at:end] = other[start : start + int(rng.choice([1, 8, 64]))]
    return bytes(content)


def mutate_json(value: Any, rng: np.random.Generator) -> Any:
    """Return a copy with one node replaced, left out, doubled, or exchanged with another."""
    changed = copy.deepcopy(value)
    places = _places(changed)
    if not places:
        return changed
    holder, key = places[rng.integers(len(places))]
    kind = int(rng.integers(0, 6))
    if kind < 3:
        holder[key] = copy.deepcopy(_VALUES[rng.integers(len(_VALUES))])
    elif kind == 3:
        del holder[key]
    elif kind == 4 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif isinstance(holder[key], int | float):
        holder[key] += type(holder[key])(rng.choice([-1, 1, 7, 1000]))
    else:
        other, name = places[rng.integers(len(places))]
        holder[key] = copy.deepcopy(other[name])
    return changed


def _places(value: Any) -> list[tuple[Any, Any]]:
    """List all nodes of a JSON value as what holds them and the key or index."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    found = []
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            found += _places(value[key])
    return found


def mutate_array(array: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Return an array of another shape, another type, or with other values."""
    kind = int(rng.integers(0, 5))
    if kind == 0:
        with np.errstate(all="ignore"):
            try:
                return array.astype(str(rng.choice(_DTYPES)))
            except ValueError:
                return array
    if kind == 1:
        shapes = ((-1,), (1, -1), (-1, 1), (1, 1, -1))
        return array.reshape(shapes[rng.integers(len(shapes))])
    if kind == 2:
        axis = int(rng.integers(0, max(array.ndim, 1)))
        if array.ndim == 0:
            return np.stack([array, array])
        return np.repeat(array, 2, axis) if rng.random() < 0.5 else array[:-1]
    changed = array.copy().reshape(-1)
    if changed.size and changed.dtype.kind in "biuf":
        where = rng.integers(0, changed.size, int(rng.integers(1, 4)))
        value = _EXTREMES[rng.integers(len(_EXTREMES))]
        if changed.dtype.kind != "f" and not np.isfinite(value):
            value = 3
        with np.errstate(all="ignore"):
            changed[where] = np.array(value, dtype="f8").astype(changed.dtype)
    return changed.reshape(array.shape)
