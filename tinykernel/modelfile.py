"""Saving and loading models: ``.tkm``, which cannot hold code, and ``.pkl``, which is one inside.

A model is written as its fields: arrays in a container (`tinykernel.container`), the rest as JSON.
It is read through one schema, `_FIELDS`, which says what every field must be, and then through the
constructors, which check the fields against each other and prove that nothing overflows.

A pickled classifier is one call, `_from_bytes` of the bytes of a .tkm, see `ModelFileMixin`. So the
reader of .pkl files needs no unpickler: it takes a pickle of exactly this form, nothing else.
"""

from __future__ import annotations

import dataclasses
import math
import os
import pickle
import pickletools
import re
import stat
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tinykernel.container import LARGEST, plain_dtype, read_container, write_container
from tinykernel.errors import TinykernelError
from tinykernel.files import write_bytes_atomically
from tinykernel.hadamard import padded_dimension
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.decision import Decision
from tinykernel.model.local import LocalStage
from tinykernel.model.machine import KernelMachine
from tinykernel.model.permutation import Permutation
from tinykernel.model.scaler import RAW_DTYPES, InputScaler
from tinykernel.model.values import FixedPoint, ValueUnits

__all__ = ["ModelFileMixin", "about", "load", "save", "written_by"]

#: Estimators that a file may hold, and where they are. They lie above this module.
_CLASSIFIERS = {
    "TernaryKernelClassifier": "tinykernel.estimator",
    "TernaryKernelRegressor": "tinykernel.regressor",
    "PaperClassifier": "tinykernel.papers",
}
_CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Decision, FixedPoint, InputScaler, IntegerModel, KernelMachine, LocalStage, Permutation,
        ValueUnits,
    )
}  # fmt: skip
_KINDS = {"IntegerModel": "integer", "KernelMachine": "machine"} | dict.fromkeys(
    _CLASSIFIERS, "classifier"
)
_PROTOCOL = 4  # the default of Python 3.8 to 3.13
_DEEPEST = 20
_HEADER_DAMAGED = "its header is damaged; save the model again"
_Arrays = dict[str, NDArray[Any]]


# ------------------------------------------------------------------------------------ save, load


def save(obj: object, path: str | os.PathLike[str], about: Mapping[str, Any] | None = None) -> None:
    """Save a model.

    The bytes depend on the arguments and the version of this package only. They are read back
    before the file takes its name, so that what is saved can be loaded.

    Parameters
    ----------
    obj : IntegerModel, KernelMachine or fitted classifier
    path : path-like
        Ends in ``.tkm`` (recommended: cannot hold code) or ``.pkl``. Its folder must exist.
    about : mapping of str to JSON types, optional
        How the model came about. Information only: it takes no part in the fingerprint, and the
        function `about` gives it back.

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
    tinykernel.errors.TinykernelError: model.tkm: a str is no tinykernel model; save an \
IntegerModel or a fitted classifier
    """
    target = Path(path)
    try:
        is_container = _is_container(target)
        data = _to_bytes(obj, about)
        _from_bytes(data)  # compares the fingerprint
    except TinykernelError as error:
        raise TinykernelError(f"{target}: {error}") from None
    if not is_container:
        data = pickle.dumps(_Pickled(data), protocol=_PROTOCOL)
    write_bytes_atomically(target, data)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model, running nothing that the file brings along.

    Parameters
    ----------
    path : path-like
        A ``.tkm`` or ``.pkl`` file of at most 64 MiB.

    Returns
    -------
    IntegerModel, KernelMachine or fitted classifier
        What was saved. Every field has been checked and the absence of overflow proved again.

    Raises
    ------
    TinykernelError
        If there is no such file, or it is damaged, is no model, is of another version, or asks for
        anything that a model does not need.

    Warns
    -----
    UserWarning
        If an older version trained the classifier with parameters that this one does not have.

    Examples
    --------
    >>> load("nowhere.tkm")
    Traceback (most recent call last):
        ...
    tinykernel.errors.TinykernelError: nowhere.tkm: no such file; make one with 'tinykernel train'
    """
    source = Path(path)
    try:
        return _from_bytes(_container_in(source))
    except TinykernelError as error:
        raise TinykernelError(f"{source}: {error}") from None


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says of how the model came about.

    Parameters
    ----------
    path : path-like
        A ``.tkm`` or ``.pkl`` file.

    Returns
    -------
    dict of str to JSON types
        What was given to `save`; empty where nothing was. Nobody has checked the values.

    Raises
    ------
    TinykernelError
        If there is no such file, or it is damaged or no model.
    """
    source = Path(path)
    try:
        header, _ = read_container(_container_in(source))
        found = header.get("about", {})
        if not isinstance(found, dict) or not _is_plain(found):
            raise TinykernelError(_HEADER_DAMAGED)
        return found
    except TinykernelError as error:
        raise TinykernelError(f"{source}: {error}") from None


def written_by(path: str | os.PathLike[str]) -> str:
    """Return the version of this package that wrote a model file; empty where it does not say.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    TinykernelError
        As `about`.
    """
    source = Path(path)
    try:
        header, _ = read_container(_container_in(source))
    except TinykernelError as error:
        raise TinykernelError(f"{source}: {error}") from None
    version = header.get("package_version", "")
    return version if isinstance(version, str) and _is_text(version) else ""


def _is_plain(value: Any, depth: int = _DEEPEST) -> bool:
    """Say whether a value is finite JSON that a terminal can print."""
    if isinstance(value, dict):
        if not all(map(_is_text, value)):
            return False
        value = list(value.values())
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(item, depth - 1) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int) or _is_text(value)


def _container_in(path: Path) -> bytes:
    """Return the bytes of the .tkm that a model file is or holds."""
    is_container = _is_container(path)
    data = _read_file(path)
    return data if is_container else _bytes_in_pickle(data)


def _is_container(path: Path) -> bool:
    if path.suffix.lower() not in (".tkm", ".pkl"):
        raise TinykernelError("unknown kind of model file; use a name that ends in .tkm or .pkl")
    return path.suffix.lower() == ".tkm"


def _read_file(path: Path) -> bytes:
    """Read a regular file that is not too long; others are not even opened."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise TinykernelError("cannot be read (it is no regular file)")
        if status.st_size > LARGEST:
            raise TinykernelError(f"longer than {LARGEST >> 20} MiB, which no model is")
        with path.open("rb") as stream:
            return stream.read(LARGEST + 1)  # it may have grown
    except FileNotFoundError:
        raise TinykernelError("no such file; make one with 'tinykernel train'") from None
    except OSError as error:
        raise TinykernelError(f"cannot be read ({error.strerror or error})") from None


def _to_bytes(obj: object, about: Mapping[str, Any] | None = None) -> bytes:
    """Return the .tkm of a model; TinykernelError where it cannot hold it."""
    import tinykernel

    name, arrays = _name_of(obj), _Arrays()
    if name not in _KINDS:
        what = "a part of a model; save the whole model" if name in _CLASSES else (
            "no tinykernel model; save an IntegerModel or a fitted classifier"
        )  # fmt: skip
        raise TinykernelError(f"a {name} is {what}")
    record = _encode_record(obj, "model", arrays)
    header = {
        "kind": _KINDS[name],
        "version": _version_of(record),
        "package_version": tinykernel.__version__,
        "fingerprint": _integer_model(obj).fingerprint(),
        "object": record,
    }
    if about:
        if not _is_plain(dict(about)):
            raise TinykernelError("about: give text, finite numbers, lists and dicts of them only")
        header["about"] = dict(about)
    return write_container(header, arrays)


def _from_bytes(data: bytes) -> Any:
    """Make the model of the bytes of a .tkm. Pickles call this by name: it must stay here."""
    header, arrays = read_container(data)
    try:
        ((kind, (name, fields)),) = header["object"].items()
        if kind != "record" or _KINDS[name] != header["kind"]:
            raise ValueError("no record of a model")
        obj = _decode_record(name, fields, arrays)
    except TinykernelError:
        raise
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError):
        raise TinykernelError(_HEADER_DAMAGED) from None
    if _integer_model(obj).fingerprint() != header.get("fingerprint"):
        raise TinykernelError(
            "gives another integer model than when it was saved (fingerprint differs): the file is "
            "damaged, or this version of tinykernel quantizes differently; train or save it again"
        )
    return obj


def _integer_model(obj: object) -> IntegerModel:
    """Quantize what may be of any size: the fields have been checked one by one only."""
    try:
        with np.errstate(all="ignore"):
            return as_integer_model(obj)
    except TinykernelError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise TinykernelError("damaged: its machine cannot be quantized; train it again") from None


# --------------------------------------------------------------------------------------- pickles


class ModelFileMixin:
    """Pickles a fitted estimator as the bytes of a .tkm, so that `load` can read it.

    An estimator that is not fitted, or that holds what a .tkm cannot (a random generator, an
    attribute of a user), is pickled in Python's own way: copies lose nothing, but `load` refuses
    the file.
    """

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the call that makes the estimator again."""
        try:
            return _from_bytes, (_to_bytes(self),)
        except TinykernelError:
            return super().__reduce_ex__(protocol)


class _Pickled:
    """Pickles as a model of these bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __reduce__(self) -> Any:
        return _from_bytes, (self.data,)


_CALL = (__name__, "_from_bytes")
_TEXT = ("SHORT_BINUNICODE", "BINUNICODE")
_BYTES = ("SHORT_BINBYTES", "BINBYTES", "BINBYTES8")
_MOST_OPCODES = 10_000
# What pickles of older versions name beside classes of this package.
_HARMLESS = ("tinykernel", "numpy", "copyreg", "_codecs")


def _bytes_in_pickle(data: bytes) -> bytes:
    """Return the one argument of the one call that a pickle may hold.

    The opcodes are compared with the only ones that we admit. Nothing is executed, and no number in
    the file (an index of the memo, the length of a frame) makes us allocate anything.
    """
    opcodes, is_whole = _opcodes(data)
    names = _names(opcodes)
    kinds = [kind for kind, _ in opcodes]
    is_call = kinds[-3:] == ["TUPLE1", "REDUCE", "STOP"] and names == [_CALL]
    if is_whole and is_call and (kinds[:-4] == ["GLOBAL"] or kinds[2:-4] == ["STACK_GLOBAL"]):
        kind, content = opcodes[-4]
        if kind in _BYTES:
            return bytes(content)
    _refuse_pickle(names, is_whole)


def _opcodes(data: bytes) -> tuple[list[tuple[str, Any]], bool]:
    """List opcodes and their arguments, and say whether the last one ends the file."""
    opcodes: list[tuple[str, Any]] = []
    memo: dict[int, tuple[str, Any]] = {}
    try:
        for opcode, value, place in islice(pickletools.genops(data), _MOST_OPCODES):
            if opcode.name in ("MEMOIZE", "BINPUT", "LONG_BINPUT"):
                memo[len(memo) if value is None else int(value)] = opcodes[-1]
            elif opcode.name in ("BINGET", "LONG_BINGET"):
                known = memo.get(int(value or 0), ("", None))
                opcodes.append(known if known[0] in _TEXT else (opcode.name, value))
            elif opcode.name not in ("PROTO", "FRAME"):
                opcodes.append((opcode.name, value))
            if opcode.name == "STOP":
                return opcodes, place == len(data) - 1
    except Exception:  # genops raises what it likes for damaged bytes
        pass
    return opcodes, False


def _names(opcodes: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    """List what a pickle wants to import."""
    names = []
    for index, (kind, value) in enumerate(opcodes):
        if kind in ("GLOBAL", "INST"):
            module, _, name = value.partition(" ")
            names.append((module, name))
        elif kind == "STACK_GLOBAL":
            texts = [text for before, text in opcodes[max(index - 2, 0) : index] if before in _TEXT]
            names.append((texts[0], texts[1]) if len(texts) == 2 else ("a", "hidden name"))
        elif kind in ("EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID"):
            names.append((kind, str(value)))
    return names


def _refuse_pickle(names: list[tuple[str, str]], is_whole: bool) -> NoReturn:
    strange = [name for name in names if name[0].partition(".")[0] not in _HARMLESS]
    if strange:
        asked = ascii(".".join(strange[0]))[1:-1][:80]
        raise TinykernelError(
            f"refused: it asks for {asked}, which no tinykernel model needs; nothing of it was run"
        )
    if _CALL in names and is_whole:
        raise TinykernelError(
            "refused: it holds more than a model, or has a protocol below 3; write it with "
            "tinykernel.save"
        )
    if any(module.startswith("tinykernel.") and (module, name) != _CALL for module, name in names):
        raise TinykernelError(
            "made by an older version of tinykernel, or of what no model file can hold; train "
            "again, or save it as .tkm where it was made"
        )
    if not is_whole:
        raise TinykernelError(
            "truncated, damaged, compressed or no pickle; save the model again, as .tkm"
        )
    raise TinykernelError("holds no tinykernel model; make one with 'tinykernel train'")


# -------------------------------------------------------------------------------- objects to JSON


def _name_of(obj: object) -> str:
    """Return the name of a class that a file may hold; other classes have other names."""
    cls = type(obj)
    home = sys.modules.get(_CLASSIFIERS.get(cls.__name__, ""))
    if _CLASSES.get(cls.__name__) is cls or getattr(home, cls.__name__, None) is cls:
        return cls.__name__
    return f"{cls.__name__} " if cls.__name__ in _KINDS | _CLASSES else cls.__name__


def _encode_record(obj: Any, place: str, arrays: _Arrays) -> Any:
    """Turn a model or a part of one into JSON; arrays go into `arrays`."""
    name = _name_of(obj)
    if name in _CLASSIFIERS:
        fields = _fields_of_classifier(obj)
        _check_classifier(fields, set(obj.get_params(deep=False)))
    else:
        fields = {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj) if f.init}
        fields = {key: value for key, value in fields.items() if not _is_unused(obj, key)}
        _check_fields(name, fields)
    encoded = {
        key: _encode_record(value, f"{place}.{key}", arrays)
        if _name_of(value) in _CLASSES
        else _encode(value, f"{place}.{key}", arrays)
        for key, value in fields.items()
    }
    return {"record": [name, encoded]}


def _is_unused(obj: Any, key: str) -> bool:
    """Whether a field came after version 1 and holds nothing; a number goes with its array."""
    whole = "linear" if key == "linear_scale" else key
    return key in _LATER and getattr(obj, whole) is None


def _version_of(record: Mapping[str, Any]) -> int:
    """Return the oldest version of the format that has all fields of an encoded record."""
    name, fields = record["record"]
    # A classifier has parameters of the same names, which its constructor looks at.
    found = [1 if name in _CLASSIFIERS else _LATER.get(key, 1) for key in fields]
    found += [_version_of(v) for v in fields.values() if isinstance(v, dict) and "record" in v]
    return max(found)


def _fields_of_classifier(obj: Any) -> dict[str, Any]:
    """Return parameters and fitted attributes; TinykernelError where there is anything else."""
    own = vars(obj)
    if "machine_" not in own:
        raise TinykernelError("the classifier is not fitted; call fit before saving it")
    params: dict[str, Any] = obj.get_params(deep=False)
    fields = {key: value for key, value in own.items() if not key.startswith("_")}
    for key in own:
        if key not in params and not _FITTED.fullmatch(key) and key != "_quantized":
            raise TinykernelError(f"holds {key!r}, which a model file cannot; delete it")
    return params | fields


def _encode(value: Any, place: str, arrays: _Arrays, depth: int = _DEEPEST // 2) -> Any:
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
    if value is None or isinstance(value, (bool, int)) or _is_text(value):
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


def _encode_all(values: Any, place: str, arrays: _Arrays, depth: int) -> list[Any]:
    return [_encode(v, f"{place}.{index}", arrays, depth - 1) for index, v in enumerate(values)]


# -------------------------------------------------------------------------------- JSON to objects


def _decode(value: Any, arrays: _Arrays, depth: int = _DEEPEST) -> Any:
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


def _decode_record(name: str, encoded: dict[str, Any], arrays: _Arrays) -> Any:
    """Make a model or a part of one, its parts first."""
    parts = _PARTS_OF_CLASSIFIERS if name in _CLASSIFIERS else _PARTS
    fields = {}
    for key, content in encoded.items():
        if isinstance(content, dict) and "record" in content:
            part, inner = content["record"]
            if part not in parts.get(key, ()):
                raise TinykernelError(f"damaged {name}: {key!a} is a {part!a}")
            fields[key] = _decode_record(part, inner, arrays)
        else:
            fields[key] = _decode(content, arrays)
    if name in _CLASSIFIERS:
        return _make_classifier(name, fields)
    _check_fields(name, fields)
    return _CLASSES[name](**fields)


def _make_classifier(name: str, fields: dict[str, Any]) -> Any:
    """Make a fitted classifier of its parameters and its fitted attributes."""
    cls = getattr(import_module(_CLASSIFIERS[name]), name)
    names = set(cls().get_params(deep=False))
    _check_classifier(fields, names)
    params = {key: value for key, value in fields.items() if key in names}
    fitted = {key: value for key, value in fields.items() if _FITTED.fullmatch(key)}
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


# ---------------------------------------------------------------------------------------- schema

_FITTED = re.compile(r"[a-z][a-z0-9_]*_")
_PARTS = {"scaler": ("InputScaler",), "permutation": ("Permutation",), "local": ("LocalStage",),
          "values": ("FixedPoint",), "units": ("ValueUnits",),
          "decision": ("Decision",)}  # fmt: skip
_PARTS_OF_CLASSIFIERS = {"machine_": ("KernelMachine", "IntegerModel"), "decision_": ("Decision",)}

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


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:  # half of a surrogate pair, which no terminal can print
        return False


def _scalar(kind: type) -> _Check:
    """Ask for a finite value of one type: a truth value is no integer, an integer no float."""

    def check(value: Any) -> str:
        plain = value.item() if isinstance(value, np.generic) else value
        fits = type(plain) is kind and (not isinstance(plain, float) or math.isfinite(plain))
        return "" if fits and (kind is not str or _is_text(plain)) else f"is no {kind.__name__}"

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
    return "" if isinstance(plain, (bool, int)) or _is_text(plain) else "holds no label"


def _part(cls: type) -> _Check:
    return lambda value: "" if type(value) is cls else f"is no {cls.__name__}"


def _each(names: str, check: _Check) -> dict[str, _Check]:
    return dict.fromkeys(names.split(), check)


#: Fields that came after version 1 of the format, with the version in which they came. They are
#: written where they hold something, and a file states the newest version of what it holds. So a
#: model that uses nothing new is written, byte for byte, as ever; an older reader takes it, and of
#: any other it says that a newer tinykernel wrote it. Who adds a field adds it here: with the
#: version of `container.VERSION`, which goes up by one with each release that adds fields.
_LATER = {"linear": 2, "linear_multiplier": 2, "linear_scale": 2, "local": 2, "decision": 2,
          "thresholds": 2, "values": 2, "units": 2, "novelty_threshold": 2}  # fmt: skip

#: What each field of each class must be. The constructors check how fields fit together.
_FIELDS: dict[str, dict[str, _Check]] = {
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
    },
    "Decision": {
        **_each("thresholds set_deficits", _array(1, "uint32")),
        **_each("table", _array(1, "uint8")),
        **_each("set_levels", _array(1, "float64")),
        **_each("shift", _scalar(int)),
        **_each("novelty_threshold", _or_none(_scalar(int))),
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
    },
}


def _check_fields(name: str, fields: dict[str, Any]) -> None:
    """Refuse fields of which a part of a model cannot be made."""
    schema = _FIELDS[name]
    optional = {f.name for f in dataclasses.fields(_CLASSES[name]) if f.init and _has_default(f)}
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


def _check_classifier(fields: dict[str, Any], params: set[str]) -> None:
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
    return is_column and all(_is_text(name) for name in names.tolist())
