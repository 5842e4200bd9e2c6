"""`save` and `load`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tinykernel.errors import TinykernelError
from tinykernel.files import write_bytes_atomically
from tinykernel.model.quantize import as_integer_model
from tinykernel.storage.archive import read_archive, write_archive
from tinykernel.storage.pickles import read_pickle, write_pickle
from tinykernel.storage.records import CLASSIFIER, Record, from_record, to_record
from tinykernel.storage.values import decode, encode

__all__ = ["load", "save"]

_KINDS = {"IntegerModel": "integer", CLASSIFIER: "classifier", "KernelMachine": "machine"}


def save(obj: object, path: str | os.PathLike[str]) -> None:
    """Save a model.

    The bytes depend on the model and the version of this package only. The file is read back before
    it takes its name, so that what is saved can be loaded.

    Parameters
    ----------
    obj : IntegerModel, fitted TernaryKernelClassifier or KernelMachine
    path : path-like
        Ends in ``.tkm`` (recommended: cannot hold code) or ``.pkl``. Its folder must exist.

    Raises
    ------
    TinykernelError
        If `obj` is no model or holds what the format cannot, or the file cannot be written.

    Examples
    --------
    >>> save("a string", "model.tkm")
    Traceback (most recent call last):
        ...
    tinykernel.errors.TinykernelError: model.tkm: a str is no tinykernel model; save an \
IntegerModel or a fitted TernaryKernelClassifier
    """
    target = Path(path)
    try:
        record = to_record(obj)
        if record.name not in _KINDS:
            raise TinykernelError(f"a {record.name} is a part of a model; save the whole model")
        data = _to_archive(obj, record) if _is_archive(target) else write_pickle(obj)
        restored = _read(target, data)
        if as_integer_model(restored) != as_integer_model(obj):
            raise TinykernelError("the model changes in the file; this is a bug, please report it")
    except TinykernelError as error:
        raise TinykernelError(f"{target}: {error}") from None
    write_bytes_atomically(target, data)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model, running nothing that the file brings along.

    Parameters
    ----------
    path : path-like
        A ``.tkm`` or ``.pkl`` file.

    Returns
    -------
    IntegerModel, TernaryKernelClassifier or KernelMachine
        What was saved. Every field has been checked and the absence of overflow proved again.

    Raises
    ------
    TinykernelError
        If there is no such file, or it is damaged, is no model, is of a newer version, or asks for
        anything that a model does not need.

    Examples
    --------
    >>> load("nowhere.tkm")
    Traceback (most recent call last):
        ...
    tinykernel.errors.TinykernelError: nowhere.tkm: no such file; make one with 'tinykernel train'
    """
    source = Path(path)
    try:
        _is_archive(source)
        return _read(source, _bytes_of(source))
    except TinykernelError as error:
        raise TinykernelError(f"{source}: {error}") from None


def _is_archive(path: Path) -> bool:
    if path.suffix.lower() not in (".tkm", ".pkl"):
        raise TinykernelError("unknown kind of model file; use a name that ends in .tkm or .pkl")
    return path.suffix.lower() == ".tkm"


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise TinykernelError("no such file; make one with 'tinykernel train'") from None
    except OSError as error:
        raise TinykernelError(f"cannot be read ({error.strerror or error})") from None


def _to_archive(obj: object, record: Record) -> bytes:
    import tinykernel

    arrays: dict[str, Any] = {}
    header = {
        "kind": _KINDS[record.name],
        "package_version": tinykernel.__version__,
        "fingerprint": as_integer_model(obj).fingerprint(),
        "object": encode(record, "model", arrays),
    }
    return write_archive(header, arrays)


def _read(path: Path, data: bytes) -> Any:
    """Make the object that the bytes of a file describe."""
    if not _is_archive(path):
        return _object(read_pickle(data))
    header, arrays = read_archive(data)
    try:
        record = decode(header["object"], arrays)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
        raise TinykernelError("its header is damaged; save the model again") from None
    if not isinstance(record, Record) or _KINDS.get(record.name) != header.get("kind"):
        raise TinykernelError("its header is damaged; save the model again")
    obj = _object(record)
    if as_integer_model(obj).fingerprint() != header.get("fingerprint"):
        raise TinykernelError(
            "gives another integer model than when it was saved (fingerprint differs): the file is "
            "damaged, or this version of tinykernel quantises differently; train or save it again"
        )
    return obj


def _object(record: Record) -> Any:
    """Make a whole model of a record."""
    if record.name not in _KINDS:
        raise TinykernelError(f"holds a {record.name}, which is only a part of a model")
    try:
        return from_record(record)
    except RecursionError:
        raise TinykernelError("damaged: values nested too deeply; save the model again") from None
