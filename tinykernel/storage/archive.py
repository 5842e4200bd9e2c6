"""The ``.tkm`` container: an .npz file with a JSON header beside the arrays, and no pickle.

A member ``header.json`` and one ``<name>.npy`` an array, all stored uncompressed, with fixed
times, so that the same content gives the same bytes. `numpy.load` opens it, too.
"""

from __future__ import annotations

import io
import json
import tokenize
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError

__all__ = ["FORMAT", "VERSION", "read_archive", "write_archive"]

FORMAT = "tinykernel-model"
VERSION = 1
_HEADER = "header.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_archive(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a container.

    Parameters
    ----------
    header : dict
        JSON types; format and version are added.
    arrays : dict of ndarray
        Of numbers or fixed-length strings.

    Returns
    -------
    bytes
        Equal for equal content.

    Examples
    --------
    >>> header, arrays = read_archive(write_archive({"kind": "x"}, {"a": np.arange(3)}))
    >>> header["kind"], arrays["a"].tolist()
    ('x', [0, 1, 2])
    """
    text = json.dumps({"format": FORMAT, "version": VERSION, **header}, indent=1, sort_keys=True)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        _write_member(archive, _HEADER, text.encode())
        for name in sorted(arrays):
            array = np.ascontiguousarray(arrays[name])
            member = io.BytesIO()
            npy.write_array(member, array.astype(array.dtype.newbyteorder("<")), allow_pickle=False)
            _write_member(archive, f"{name}.npy", member.getvalue())
    return stream.getvalue()


def _write_member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.create_system = 3  # or the bytes would depend on the operating system
    member.external_attr = 0o644 << 16
    archive.writestr(member, data)


def read_archive(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a container.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    tuple
        The header and the arrays.

    Raises
    ------
    TinykernelError
        If it is damaged, none of ours, or of a newer version.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {info.filename: _read_member(archive, info) for info in archive.infolist()}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError):
        raise TinykernelError("truncated or damaged; save the model again") from None
    if _HEADER not in members:
        raise TinykernelError("not a tinykernel model; make one with 'tinykernel train'")
    try:
        header = json.loads(members.pop(_HEADER).decode())
    except (ValueError, RecursionError):
        raise TinykernelError("its header is damaged; save the model again") from None
    _check_header(header)
    try:
        arrays = {name.removesuffix(".npy"): _read_array(raw) for name, raw in members.items()}
    except (
        ValueError, TypeError, SyntaxError, MemoryError, OverflowError, RecursionError,
        tokenize.TokenError,
    ):  # fmt: skip
        raise TinykernelError("an array in it is damaged; save the model again") from None
    return header, arrays


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type != zipfile.ZIP_STORED:
        # We store; what is compressed is not ours and may expand to any size.
        raise zipfile.BadZipFile("compressed member")
    return archive.read(info)


def _check_header(header: Any) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise TinykernelError("not a tinykernel model; make one with 'tinykernel train'")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise TinykernelError("its header states no version; save the model again")
    if version > VERSION:
        raise TinykernelError(
            f"written by a newer tinykernel (format {version}, this one reads up to {VERSION}); "
            "upgrade tinykernel"
        )


def _read_array(data: bytes) -> NDArray[Any]:
    stream = io.BytesIO(data)
    if npy.read_magic(stream) != (1, 0):
        raise ValueError("unknown version of the array format")
    shape, is_fortran, dtype = npy.read_array_header_1_0(stream)
    content = data[stream.tell() :]
    if dtype.kind not in "biufU" or is_fortran:
        raise ValueError("an array that we do not write")
    if int(np.prod(shape, dtype=object)) * dtype.itemsize != len(content):
        raise ValueError("length of an array")
    if not content:
        return np.zeros(shape, dtype=dtype.newbyteorder("="))
    array = np.frombuffer(content, dtype=dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="))
