"""Pickled models, read by an unpickler that can make nothing but plain values and records.

A pickle names functions and has them called; that is how a malicious one runs code. Here a name
stands for one of a few harmless things of our own or is refused: the classes of this package become
records, which later go through the checking constructors, and the functions by which NumPy pickles
its arrays are replaced by ones that take nothing but what NumPy writes.
"""

from __future__ import annotations

import io
import pickle
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


class _ArrayType:
    """Stands for ``numpy.ndarray``, which a pickle only passes to ``_reconstruct``."""


def _reconstruct(subtype: object, shape: object, code: object) -> NDArray[Any]:
    """Stand in for ``numpy._core.multiarray._reconstruct``: an empty array to be filled."""
    if subtype is not _ArrayType or shape != (0,) or code not in (b"b", "b"):
        raise _Refused("numpy array of another type")
    return np.empty(0, dtype=np.int8)


def _dtype(code: object, align: object = False, copy: object = True) -> np.dtype[Any]:
    """Stand in for ``numpy.dtype``: numbers, strings, and objects (tables of labels)."""
    if not isinstance(code, str) or code[:1] not in "biufUO":
        raise _Refused(f"numpy.dtype {code!r}")
    return np.dtype(code, copy=True)


def _frombuffer(buffer: Any, dtype: Any, shape: Any, order: Any) -> NDArray[Any]:
    """Stand in for ``numpy._core.numeric._frombuffer``, which protocol 5 uses."""
    return np.frombuffer(buffer, dtype=dtype).reshape(shape, order=order).copy()


def _scalar(dtype: Any, data: Any = b"") -> Any:
    """Stand in for ``numpy._core.multiarray.scalar``."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biufU":
        raise _Refused("numpy scalar of another type")
    return np.frombuffer(data, dtype=dtype, count=1)[0]


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
    ("numpy", "ndarray"): _ArrayType,
    ("numpy", "dtype"): _dtype,
    # NumPy 2 renamed its inner package; both spellings are in circulation.
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _frombuffer for core in ("core", "_core")},
}
_OURS = {(module, name): name for name, module in MODULES.items()} | {
    ("tinykernel.integer.ranges", "Range"): "Range",
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
    try:
        loaded = unpickler.load()
    except _Refused as refused:
        raise TinykernelError(
            f"refused: it asks for {refused}, which no tinykernel model needs; "
            "nothing of it was run"
        ) from None
    except Exception:
        # A damaged pickle can raise anything: EOFError, UnpicklingError, KeyError, MemoryError, ...
        raise TinykernelError("truncated, damaged or no pickle; save the model again") from None
    names = {unpickler.stand_ins[key]: name for key, name in _OURS.items()}
    if type(loaded) not in names:
        raise TinykernelError(
            f"holds a {type(loaded).__name__}, no tinykernel model; "
            "make one with 'tinykernel train'"
        )
    return _to_record(loaded, names, _DEEPEST)


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
