"""The container of a ``.tkm`` file: a JSON header and NumPy arrays in a zip, and no pickle.

Members are stored uncompressed with fixed times: equal content gives equal bytes. The reader needs
no more memory than a few times the length of the file.
"""

import io
import json
import math
import re
import zipfile
from typing import Any, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tinykernel.errors import FileError, FormatError

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


def _damaged(problem: str = "truncated or damaged") -> NoReturn:
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
        _damaged()
    return members if len(members) == len(listed) else _damaged()


def _read_header(data: bytes) -> dict[str, Any]:
    if len(data) > _LARGEST_HEADER:
        _damaged(f"its header is longer than {_LARGEST_HEADER >> 20} MiB")
    try:
        header = json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _damaged("its header is damaged")
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FormatError("not a tinykernel model; make one with 'tinykernel train'")
    version = header.get("version")
    if type(version) is not int or version < 1:
        _damaged("its header states no version")
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
        _damaged("an array in it is damaged")
