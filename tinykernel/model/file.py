"""Saving and loading models: ``.tkm``, which cannot hold code, and ``.pkl``, which wraps one.

A model is written and read by the fields of its records, arrays in a container, the rest as JSON. A
pickled classifier is one call, `_from_bytes` of the bytes of a .tkm: .pkl files need no unpickler.
"""

import os
import pickle
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tinykernel.base.coding import Coding
from tinykernel.base.errors import FileError, FormatError, ModelError, TinykernelError
from tinykernel.base.files import package_version, write_bytes_atomically
from tinykernel.model import records
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model, is_pipeline, model_within

__all__ = ["ModelFileMixin", "about", "load", "save", "written_by"]

_PROTOCOL = 4  # the default of Python 3.8 to 3.13
# All that a pickle of a model may be, of protocols 3 to 5: one call of `_from_bytes`.
_CALL = re.compile(
    rb"\x80[\x03-\x05](?:\x95.{8})?(?:ctinykernel\.modelfile\n_from_bytes\nq\x00|"
    rb"\x8c\x14tinykernel\.modelfile\x94\x8c\x0b_from_bytes\x94\x93\x94)(?:C(.)|B(.{4}))",
    re.DOTALL,
)
_CALL_END = re.compile(rb"(?:\x95.{8})?(?:q\x01\x85q\x02Rq\x03|\x94\x85\x94R\x94)\.", re.DOTALL)
_HEADER_DAMAGED = "its header is damaged; save the model again"


def save(obj: object, path: str | os.PathLike[str], about: Mapping[str, Any] | None = None) -> None:
    """Save a model.

    The bytes depend on the arguments and the version of this package only. They are read back
    before the file takes its name, so that what is saved can be loaded.

    Parameters
    ----------
    obj : IntegerModel or fitted classifier
        A classifier that was fitted to a frame with text or gaps has their numbers. Its
        IntegerModel needs ``about={"coding": classifier.coding_, "inputs":
        list(classifier.feature_names_in_)}``.
    path : path-like
        Ends in ``.tkm`` (recommended: cannot hold code) or ``.pkl``. Its folder must exist.
    about : mapping of str to JSON types, optional
        Training information, which the function `about` returns. Not part of the fingerprint.

    Raises
    ------
    TinykernelError
        If `obj` is no model or holds what the format cannot, `about` is no JSON, they take more
        than 64 MiB, or the file cannot be written.

    Examples
    --------
    >>> save("a string", "model.tkm")
    Traceback (most recent call last):
        ...
    tinykernel.base.errors.ModelError: model.tkm: a str is not a tinykernel model; save a \
fitted estimator, a Pipeline that ends in one, or an IntegerModel
    """
    with _with_names(path):
        is_container = _is_container(Path(path))
        if is_pipeline(obj):
            obj = as_integer_model(obj)
        data = to_bytes(obj, about)
        _from_bytes(data)  # compares the fingerprint
    if not is_container:
        data = pickle.dumps(_Pickled(data), protocol=_PROTOCOL)
    write_bytes_atomically(Path(path), data)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model without running code from the file.

    Parameters
    ----------
    path : path-like
        A ``.tkm`` or ``.pkl`` file of at most 64 MiB.

    Returns
    -------
    IntegerModel or fitted classifier
        What was saved. Every field has been checked and the absence of overflow proved again.

    Raises
    ------
    TinykernelError
        If the file is missing, damaged, no model, of another version, or imports anything else.

    Examples
    --------
    >>> load("nowhere.tkm")
    Traceback (most recent call last):
        ...
    tinykernel.base.errors.FileError: nowhere.tkm: no such file; make one with 'tinykernel train'
    """
    with _with_names(path):
        return _from_bytes(_container_in(Path(path)))


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the training information in a model file: what was given to `save`, unchecked.

    Parameters
    ----------
    path : path-like
        A ``.tkm`` or ``.pkl`` file.

    Returns
    -------
    dict of str to JSON types
        Empty where nothing was given.

    Raises
    ------
    TinykernelError
        If there is no such file, or it is damaged or no model.
    """
    with _with_names(path):
        header, _ = records.read_container(_container_in(Path(path)))
        said = header.get("about", {})
        if not isinstance(said, dict) or not records.is_plain(said):
            raise FormatError(_HEADER_DAMAGED)
        return said


def written_by(path: str | os.PathLike[str]) -> str:
    """Return the version of this package that wrote a model file, or an empty text."""
    with _with_names(path):
        header, _ = records.read_container(_container_in(Path(path)))
    version = header.get("package_version", "")
    return version if isinstance(version, str) and records.is_text(version) else ""


@contextmanager
def _with_names(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the name of a file before the text of an error."""
    try:
        yield
    except TinykernelError as error:
        raise type(error)(f"{Path(path)}: {error}") from None


def _container_in(path: Path) -> bytes:
    """Return the bytes of the .tkm that a model file is or holds."""
    is_container = _is_container(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # not even opened
            raise FileError("cannot be read (not a regular file)")
        if status.st_size > records.LARGEST:
            raise FileError(f"longer than {records.LARGEST >> 20} MiB, which no model is")
        with path.open("rb") as stream:
            data = stream.read(records.LARGEST + 1)  # it may have grown
    except FileNotFoundError:
        raise FileError("no such file; make one with 'tinykernel train'") from None
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror or error})") from None
    if is_container:
        return data
    call = _CALL.match(data)
    begin = call.end() if call else 0
    end = begin + int.from_bytes(call[1] or call[2], "little") if call else 0
    if not _CALL_END.fullmatch(data, end):
        raise FormatError(
            "refused, and nothing in it was run: truncated, or not the pickle of one tinykernel "
            "model; save the model as .tkm with tinykernel.save"
        )
    return data[begin:end]


def _is_container(path: Path) -> bool:
    if path.suffix.lower() not in (".tkm", ".pkl"):
        problem = "not a model file; give a name that ends in .tkm or .pkl"
        raise FileError(f"{problem}, or data to 'tinykernel data'")
    return path.suffix.lower() == ".tkm"


def to_bytes(obj: object, about: Mapping[str, Any] | None = None) -> bytes:
    """Return the .tkm of a model; TinykernelError where it cannot hold it."""
    name, arrays = records.name_of(obj), records.Arrays()
    if name not in records.KINDS:
        problem = (
            f"not a tinykernel model; save {model_within(obj)}a fitted estimator, a Pipeline that "
            "ends in one, or an IntegerModel"
        )
        if name in records.CLASSES:
            problem = "a part of a model; save the whole model"
        raise ModelError(f"a {name} is {problem}")
    header = {
        "kind": records.KINDS[name],
        "package_version": package_version(),
        "object": records.encode_record(obj, "model", arrays),
        "fingerprint": _integer_model(obj).fingerprint(),
    }
    coding = getattr(obj, "coding_", None)
    if isinstance(obj, IntegerModel) and obj.coding is not None:
        inputs = list(obj.feature_names or ())
        about = {"coding": obj.coding.written(), "inputs": inputs, **(about or {})}
    elif coding is not None:
        names = list(getattr(obj, "feature_names_in_", ()))
        about = {"coding": coding, "inputs": names, **(about or {})}
    if about:
        if not records.is_plain(dict(about)):
            raise ModelError("about: give text, finite numbers, lists and dicts of them only")
        header["about"] = dict(about)
    return records.write_container(header, arrays)


def _from_bytes(data: bytes) -> Any:
    """Make the model of the bytes of a .tkm. Pickles call this name."""
    header, arrays = records.read_container(data)
    try:
        ((kind, (name, fields)),) = header["object"].items()
        if kind != "record" or records.KINDS[name] != header["kind"]:
            raise ValueError("no record of a model")
        obj = records.decode_record(name, fields, arrays)
    except TinykernelError:
        raise
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError):
        raise FormatError(_HEADER_DAMAGED) from None
    said = header.get("about")
    coding = Coding.read(said.get("coding")) if isinstance(said, dict) else None
    if isinstance(obj, IntegerModel) and coding is not None:
        obj = replace(obj, coding=coding)
    if _integer_model(obj).fingerprint() != header.get("fingerprint"):
        raise FormatError(
            "gives another integer model than when it was saved (fingerprint differs): the file is "
            "damaged, or this version of tinykernel quantizes differently; train or save it again"
        )
    return obj


def _integer_model(obj: object) -> IntegerModel:
    """Quantize a model of any size: only its single fields have been checked."""
    try:
        with np.errstate(all="ignore"):
            return as_integer_model(obj)
    except TinykernelError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise FormatError("damaged: its machine cannot be quantized; train it again") from None


# Pickles name the module, too; they find it there, wherever this file lies.
_from_bytes.__module__ = "tinykernel.modelfile"


class ModelFileMixin:
    """Pickles a fitted estimator as the bytes of a .tkm, so that `load` can read it."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the call that makes the estimator again."""
        try:  # not fitted, or with what a .tkm cannot hold: Python's own way, which `load` refuses
            return _from_bytes, (to_bytes(self),)
        except TinykernelError:
            return super().__reduce_ex__(protocol)


class _Pickled:
    """Pickles as a model of these bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __reduce__(self) -> Any:
        return _from_bytes, (self.data,)
