"""Models as JSON and arrays and back, and what a model file may hold.

Members are stored uncompressed with fixed times: equal content gives equal bytes. The reader needs
no more memory than a few times the length of the file.
"""

import io
import json
import math
import re
import sys
import zipfile
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tinykernel.base.errors import FileError, FormatError, ModelError
from tinykernel.model.answers import Decision, Events, Labels, Values
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.catalogue import PARTS, STAGES
from tinykernel.pieces.fastfood import Permutation
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Readout
from tinykernel.pieces.record import PLAIN, Field

#: Estimators that a file may hold, and where they are. They lie above this module.
CLASSIFIERS = {
    "Classifier": "tinykernel.kinds.estimators.supervised",
    "Regressor": "tinykernel.kinds.estimators.supervised",
    "TernaryKernelClassifier": "tinykernel.kinds.estimators.supervised",
    "TernaryKernelRegressor": "tinykernel.kinds.estimators.supervised",
    "PaperClassifier": "tinykernel.papers.classifier",
}
#: What takes the place of estimators with parameters that only older versions have, and
#: parameters that are gone.
SUCCESSORS = {"TernaryKernelClassifier": "Classifier", "TernaryKernelRegressor": "Regressor"}
GONE = {"convolutions", "noise", "scaler_scope", "tree_bytes", "tree_steps", "offset"}
_PIECES: tuple[type, ...] = (Decision, Events, Grid, Labels, Permutation, Readout, Values)
#: Records that a file may hold; their `FIELDS` say what is allowed.
CLASSES: dict[str, Any] = {cls.__name__: cls for cls in (IntegerModel, *_PIECES, *STAGES, *PARTS)}
KINDS = {"IntegerModel": "integer"} | dict.fromkeys(CLASSIFIERS, "classifier")
#: How deep values may be nested.
DEEPEST = 20
Arrays = dict[str, NDArray[Any]]
FITTED = re.compile(r"[a-z][a-z0-9_]*_")
PARTS_OF_CLASSIFIERS = {"machine_": ("IntegerModel",), "decision_": ("Decision",)}


def is_record(field: Field) -> bool:
    """Say whether a field holds records."""
    return not field.dimensions and field.dtype != "label" and field.dtype not in PLAIN


def is_text(value: Any) -> bool:
    """Say whether a value is text that can be encoded."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:  # half of a surrogate pair, which no terminal can print
        return False


def check_fields(name: str, fields: dict[str, Any]) -> None:
    """Refuse fields of which a part of a model cannot be made."""
    known = {field.name: field for field in CLASSES[name].FIELDS}
    absent = known.keys() - fields.keys()
    missing = {key for key in absent if not (known[key].optional or known[key].later)}
    for key in sorted(missing) + sorted(fields.keys() - known.keys()):
        problem = "is unknown" if key in fields else "is missing"
        raise FormatError(f"damaged {name}: {key!a} {problem}; save the model again")


def check_classifier(fields: dict[str, Any], params: set[str]) -> None:
    """Check that the attributes of a classifier are those of its machine."""
    machine, labels = fields.get("machine_"), fields.get("classes_")
    if not isinstance(machine, IntegerModel):
        raise FormatError("damaged classifier: it holds no fitted machine")
    names = fields.get("feature_names_in_")
    is_column = isinstance(names, np.ndarray) and names.shape == (machine.n_inputs,)
    are_names = names is None or (is_column and all(map(is_text, names.tolist())))
    known = [c.item() if isinstance(c, np.generic) else c for c in machine.classes]
    listed = labels.tolist() if isinstance(labels, np.ndarray) else labels
    wrong = {
        "classes_": isinstance(labels, list) or listed != (known or None),  # None of a regressor
        "n_features_in_": fields.get("n_features_in_") != machine.n_inputs,
        "feature_names_in_": not are_names,
    }
    for name in filter(wrong.get, wrong):
        raise FormatError(f"damaged classifier: {name} does not go with its machine")
    for name in fields.keys() - params:
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            raise FormatError(f"damaged classifier: it holds {name!a}")


def is_plain(value: Any, depth: int = DEEPEST) -> bool:
    """Say whether a value is finite JSON that a terminal can print."""
    if isinstance(value, dict):
        if not all(map(is_text, value)):
            return False
        value = list(value.values())
    if isinstance(value, list):
        return depth > 0 and all(is_plain(item, depth - 1) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int) or is_text(value)


FORMAT = "tinykernel-model"
#: The format that is written and read.
VERSION = 6
#: Longest container, in bytes. A model of 65,536 inputs and as many components takes 5 MB.
LARGEST = 64 << 20
_LARGEST_HEADER = 8 << 20
_MOST_MEMBERS = 4096
_HEADER = "header.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_DTYPE = re.compile(r"[<|](b1|[iu][1248]|f[248]|U[1-9]\d{0,5})")
_ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00(?s:..)\{'descr': '([^']+)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,9}(?:, \d{1,9}){1,7}|\d{1,9},)?)\), \} *\n"
)


def write_container(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a container of JSON types and arrays; equal for equal content."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **header}, indent=1, sort_keys=True)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        _write_member(archive, _HEADER, text.encode())
        for name in sorted(arrays):
            array = np.ascontiguousarray(arrays[name])
            member = io.BytesIO()
            npy.write_array(member, array.astype(array.dtype.newbyteorder("<")), allow_pickle=False)
            _write_member(archive, f"{name}.npy", member.getvalue())
    if max(stream.tell() / LARGEST, len(text) / _LARGEST_HEADER, len(arrays) / _MOST_MEMBERS) >= 1:
        raise FileError("too large for a model file, which holds 64 MiB")
    return stream.getvalue()


def _write_member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.create_system = 3  # or the bytes would depend on the operating system
    member.external_attr = 0o644 << 16
    archive.writestr(member, data)


def read_container(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a container; TinykernelError where it is damaged."""
    if len(data) > LARGEST:
        raise FileError(f"longer than {LARGEST >> 20} MiB, which no model is")
    members = _members(data)
    if _HEADER not in members:
        raise FormatError("not a tinykernel model; make one with 'tinykernel train'")
    header = _read_header(members.pop(_HEADER))
    return header, {name.removesuffix(".npy"): _read_array(raw) for name, raw in members.items()}


def _damage(problem: str = "truncated or damaged") -> NoReturn:
    raise FormatError(f"{problem}; save the model again")


def _members(data: bytes) -> dict[str, bytes]:
    """Read a zip of stored members, each of a name of its own."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            size = sum(member.file_size for member in listed)
            compressed = any(member.compress_type for member in listed)
            # Members that share their bytes would take more memory than the file is long.
            if compressed or size > len(data) or len(listed) > _MOST_MEMBERS:
                raise ValueError("no archive of ours")
            members = {member.filename: archive.read(member) for member in listed}
    except Exception:  # zipfile raises what it likes for damaged bytes
        _damage()
    return members if len(members) == len(listed) else _damage()


def _read_header(data: bytes) -> dict[str, Any]:
    if len(data) > _LARGEST_HEADER:
        _damage(f"its header is longer than {_LARGEST_HEADER >> 20} MiB")
    try:
        header = json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _damage("its header is damaged")
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FormatError("not a tinykernel model; make one with 'tinykernel train'")
    version = header.get("version")
    if type(version) is not int or version < 1:
        _damage("its header states no version")
    if version != VERSION:
        age, remedy = "an older", "train the model again"
        if version > VERSION:
            age, remedy = "a newer", "upgrade tinykernel"
        formats = f"(format {version}, this one reads {VERSION})"
        raise FormatError(f"written by {age} tinykernel {formats}; {remedy}")
    return header


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def plain_dtype(code: str) -> np.dtype[Any]:
    """Return the dtype of a code such as ``<f8``; ValueError unless plain and little-endian."""
    if not _DTYPE.fullmatch(code):
        raise ValueError(f"dtype {code!r}")
    return np.dtype(code)


def _read_array(data: bytes) -> NDArray[Any]:
    """Read an .npy by its text: NumPy's own parser raises six kinds of exceptions for damage."""
    match = _ARRAY.match(data[:512])
    try:
        if match is None:
            raise ValueError("no array of ours")
        dtype = plain_dtype(match[1].decode())
        shape = tuple(int(length) for length in match[2].decode().split(",") if length.strip())
        content = data[match.end() :]
        if math.prod(shape) * dtype.itemsize != len(content):
            raise ValueError("length")
        array = np.frombuffer(content, dtype=dtype) if len(content) else np.zeros(0, dtype)
        if dtype.kind == "b" and np.any(array.view(np.uint8) > 1):
            raise ValueError("a truth value that is neither 0 nor 1")
        if dtype.kind == "U" and np.any(array.view("<u4") > 0x10FFFF):
            raise ValueError("no text")
        return array.reshape(shape).astype(dtype.newbyteorder("="))
    except ValueError:
        _damage("an array in it is damaged")


def name_of(obj: object) -> str:
    """Return the name of a class that a file may hold; other classes have other names."""
    cls = type(obj)
    home = sys.modules.get(CLASSIFIERS.get(cls.__name__, ""))
    if CLASSES.get(cls.__name__) is cls or getattr(home, cls.__name__, None) is cls:
        return str(cls.__name__)
    return f"{cls.__name__} " if cls.__name__ in KINDS | CLASSES else cls.__name__


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
        check_classifier(fields, set(params))
    else:
        values = {field.name: getattr(obj, field.name) for field in obj.FIELDS}
        fields = {key: value for key, value in values.items() if value is not None}
        check_fields(name, fields)
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
            key: _decode_part(name, key, PARTS_OF_CLASSIFIERS.get(key, ()), content, arrays)
            if isinstance(content, dict) and "record" in content
            else _decode(content, arrays)
            for key, content in encoded.items()
        }
        return _make_classifier(name, fields)
    known = {field.name: field for field in CLASSES[name].FIELDS}
    fields = {}
    for key, content in encoded.items():
        field = known.get(key)
        if field is None or not is_record(field) or (content is None and field.optional):
            fields[key] = _decode(content, arrays)
        else:
            allowed = field.dtype.split("|")
            items = content["tuple"] if field.many else [content]
            parts = [_decode_part(name, key, allowed, item, arrays) for item in items]
            fields[key] = tuple(parts) if field.many else parts[0]
    check_fields(name, fields)
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
    former = fields.keys() - names - GONE
    if name in SUCCESSORS and any(not FITTED.fullmatch(key) for key in former):
        # An older version trained every kind of model by one estimator.
        return _make_classifier(SUCCESSORS[name], fields)
    fields = {key: value for key, value in fields.items() if key not in GONE}
    check_classifier(fields, names)
    params = {key: value for key, value in fields.items() if key in names}
    fitted = {key: value for key, value in fields.items() if FITTED.fullmatch(key)}
    unknown = sorted(fields.keys() - params.keys() - fitted.keys())
    if unknown:
        raise FormatError(f"holds the unknown parameter {unknown[0]!a}; train it again")
    classifier = cls(**params)
    for key, value in fitted.items():
        setattr(classifier, key, value)
    return classifier
