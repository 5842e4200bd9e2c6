"""Pickled models, read by an unpickler that can make nothing but plain values and records.

A pickle names functions and has them called; that is how a malicious one runs code. Here a name
stands for one of a few harmless things of our own or is refused: the classes of this package become
records, which later go through the checking constructors, and the functions by which NumPy pickles
its arrays are replaced by ones that take nothing but what NumPy writes. That goes for the states of
arrays and dtypes, too: NumPy believes them, and a dtype of objects whose flags say that it holds
plain numbers makes it follow bytes of the file as pointers.
"""

from __future__ import annotations

import io
import pickle
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.storage.records import MODULES, Record

__all__ = ["read_pickle", "write_pickle"]

# Protocol 4 is the default of Python 3.8 to 3.13.
_PROTOCOL = 4
# A classifier holds a machine, which holds a permutation.
_DEEPEST = 3


class _Refused(Exception):
    """A pickle asks for something that no model needs."""


class _DType:
    """Stands for ``numpy.dtype``: numbers, strings, and objects (tables of labels)."""

    def __init__(self, code: object, align: object = False, copy: object = True) -> None:
        if not isinstance(code, str) or not re.fullmatch(r"[biufUO]\d*", code):
            raise _Refused(f"numpy.dtype {code!r}")
        self.numpy = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        """Take the byte order; the rest of the state follows from the code."""
        _, order, *structure = state[:5]
        if order not in ("<", ">", "|", "=") or any(part is not None for part in structure):
            raise _Refused("numpy.dtype with a structure")
        self.numpy = self.numpy.newbyteorder(order)


class _Array:
    """Stands for ``numpy.ndarray``; `numpy` is the array once its state is there."""

    numpy: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        """Make the array of the numbers, or the list of objects, in the pickle."""
        _, shape, dtype, is_fortran, content = state
        if dtype.numpy.kind == "O":
            items = np.empty(len(content), dtype=object)
            for index, item in enumerate(content):
                items[index] = item
        else:
            items = np.frombuffer(content, dtype=dtype.numpy).copy()
        self.numpy = items.reshape(shape, order="F" if is_fortran else "C")


def _reconstruct(subtype: object, shape: object, code: object) -> _Array:
    """Stand in for ``numpy._core.multiarray._reconstruct``: an empty array to be filled."""
    if subtype is not _Array or shape != (0,) or code not in (b"b", "b"):
        raise _Refused("numpy array of another type")
    return _Array()


def _frombuffer(buffer: Any, dtype: Any, shape: Any, order: Any) -> NDArray[Any]:
    """Stand in for ``numpy._core.numeric._frombuffer``, which protocol 5 uses."""
    return np.frombuffer(buffer, dtype=dtype.numpy).reshape(shape, order=order).copy()


def _scalar(dtype: Any, data: Any = b"") -> Any:
    """Stand in for ``numpy._core.multiarray.scalar``."""
    if not isinstance(dtype, _DType) or dtype.numpy.kind == "O":
        raise _Refused("numpy scalar of another type")
    return np.frombuffer(data, dtype=dtype.numpy, count=1)[0]


def _encode(text: object, encoding: object) -> bytes:
    """Stand in for ``_codecs.encode``, by which protocol 2 writes bytes."""
    if not isinstance(text, str) or encoding != "latin1":
        raise _Refused(f"_codecs.encode to {encoding!r}")
    return text.encode("latin1")


def _no_bytes(*arguments: object) -> bytes:
    """Stand in for ``bytes``, by which protocol 2 writes the empty ones."""
    if arguments:
        raise _Refused("builtins.bytes")
    return b""


_FUNCTIONS = {
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _no_bytes,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    # NumPy 2 renamed its inner package; both spellings are in circulation.
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _frombuffer for core in ("core", "_core")},
}
_OURS = {(module, name): name for name, module in MODULES.items()} | {
    ("tinykernel.model.proof", "Range"): "Range",
}


class _Unpickler(pickle.Unpickler):
    """Admits the names above; every load makes its own classes, which the pickle cannot spoil."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.stand_ins = {key: type(name, (), {}) for key, name in _OURS.items()}

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name, or refuse it; nothing is imported."""
        key = (module, name)
        if key in self.stand_ins:
            return self.stand_ins[key]
        if key in _FUNCTIONS:
            return _FUNCTIONS[key]
        raise _Refused(f"{module}.{name}")


def read_pickle(data: bytes) -> Record:
    """Read a pickled model without running anything of it.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    Record

    Raises
    ------
    TinykernelError
        If it is damaged, is no model, or asks for something that no model needs, which is named.
    """
    unpickler = _Unpickler(data)
    names = {unpickler.stand_ins[key]: name for key, name in _OURS.items()}
    try:
        loaded = _with_arrays(unpickler.load(), set(names), {})
    except _Refused as refused:
        raise TinykernelError(
            f"refused: it asks for {refused}, which no tinykernel model needs; "
            "nothing of it was run"
        ) from None
    except Exception:
        # A damaged pickle can raise anything: EOFError, UnpicklingError, KeyError, MemoryError, ...
        raise TinykernelError("truncated, damaged or no pickle; save the model again") from None
    if type(loaded) not in names:
        raise TinykernelError(
            f"holds a {type(loaded).__name__}, no tinykernel model; "
            "make one with 'tinykernel train'"
        )
    return _to_record(loaded, names, _DEEPEST)


def _with_arrays(value: Any, objects: set[type], done: dict[int, Any]) -> Any:
    """Put the arrays in place of what stands for them; `done` holds what was replaced, by id."""
    if isinstance(value, _Array):
        return value.numpy
    if id(value) in done:
        return done[id(value)]
    if type(value) in objects:
        done[id(value)] = value
        inner = {key: _with_arrays(item, objects, done) for key, item in vars(value).items()}
        vars(value).update(inner)
    elif type(value) is dict:
        done[id(value)] = new = dict[Any, Any]()
        new.update((key, _with_arrays(item, objects, done)) for key, item in value.items())
    elif type(value) is list:
        done[id(value)] = items = list[Any]()
        items.extend(_with_arrays(item, objects, done) for item in value)
    elif type(value) is tuple:
        done[id(value)] = tuple(_with_arrays(item, objects, done) for item in value)
    return done.get(id(value), value)


def _to_record(stand_in: Any, names: dict[type, str], depth: int) -> Record:
    """Turn a stand-in and those in its attributes into records."""
    if depth == 0:
        raise TinykernelError("damaged: a part of a model holds a model; save the model again")
    # Private attributes are caches.
    public = {k: v for k, v in vars(stand_in).items() if not str(k).startswith("_")}
    fields = {
        key: _to_record(value, names, depth - 1) if type(value) in names else value
        for key, value in public.items()
    }
    return Record(names[type(stand_in)], fields)


def write_pickle(obj: object) -> bytes:
    """Pickle a model in the ordinary way.

    Parameters
    ----------
    obj : IntegerModel or TernaryKernelClassifier

    Returns
    -------
    bytes

    Raises
    ------
    TinykernelError
        If `read_pickle` would refuse it.
    """
    try:
        data = pickle.dumps(obj, protocol=_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise TinykernelError(f"cannot be pickled: {error}") from None
    return data
