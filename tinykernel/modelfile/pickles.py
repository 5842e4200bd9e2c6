"""The pickles that hold a model: one call with the bytes of a .tkm, read without running it."""

from __future__ import annotations

import pickletools
from itertools import islice
from typing import Any, NoReturn

from tinykernel.errors import TinykernelError

_CALL = ("tinykernel.modelfile", "_from_bytes")
_TEXT = ("SHORT_BINUNICODE", "BINUNICODE")
_BYTES = ("SHORT_BINBYTES", "BINBYTES", "BINBYTES8")
_MOST_OPCODES = 10_000
# What pickles of estimators name beside classes of this package.
_HARMLESS = ("tinykernel", "numpy", "copyreg", "_codecs")


def bytes_in_pickle(data: bytes) -> bytes:
    """Return the one argument of the one call that a pickle may hold."""
    # The opcodes are compared with the only allowed ones. Nothing is executed, and no number in the
    # file (an index of the memo, the length of a frame) allocates memory.
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
            "a pickle of Python objects, none of which is made; write the model with "
            "tinykernel.save where it was made"
        )
    if not is_whole:
        raise TinykernelError(
            "truncated, damaged, compressed or no pickle; save the model again, as .tkm"
        )
    raise TinykernelError("holds no tinykernel model; make one with 'tinykernel train'")
