"""Macros and constant arrays of a generated source, and how bits are put into words."""

import functools
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.literals import table_rows
from tinykernel.resources import folder

#: Bits, hence components, a word.
WORD = 32
_DTYPES = {
    "uint8_t": "u1",
    "int8_t": "i1",
    "uint16_t": "<u2",
    "int16_t": "<i2",
    "uint32_t": "<u4",
    "int32_t": "<i4",
    "float": "<f4",
}


@dataclass(frozen=True)
class Definition:
    """A macro of the generated source."""

    name: str  # ``#define name value``.
    value: str
    comment: str = ""  # what it defines; may be empty.


@dataclass(frozen=True)
class Table:
    """A constant array of the generated source."""

    name: str
    c_type: str
    values: NDArray[Any]  # (size,)
    # What the report counts its bytes as.
    part: str  # {"weights", "kernels", "transform", "windows", "scaler", "decision"}
    comment: str  # what it holds.
    per_row: int | None = None  # values per line.

    @property
    def n_bytes(self) -> int:
        """Flash that it takes."""
        return np.dtype(_DTYPES[self.c_type]).itemsize * int(self.values.size)

    @property
    def lines(self) -> list[str]:
        """Its values as lines of C."""
        return list(table_rows(self.values, self.c_type, per_row=self.per_row))

    def data(self) -> bytes:
        """Return the bytes that it takes in flash of a little-endian core."""
        return np.asarray(self.values).astype(_DTYPES[self.c_type]).tobytes()


@dataclass(frozen=True)
class Struct:
    """A constant structure of the generated source: the shape of a stage, and its tables."""

    name: str  # ``struct kind name``.
    kind: str
    members: dict[str, str]  # the text of each member, in the order of its declaration.

    @property
    def text(self) -> str:
        """All members in one line."""
        return ", ".join(self.members.values())


@functools.cache
def declared_members(kind: str) -> tuple[str, ...]:
    """Return the members of a structure of the runtime, in the order of its header."""
    for header in (folder("firmware") / "tinykernel" / "src").glob("tk_*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="ascii"), flags=re.S)
        body = re.search(rf"^struct {kind} \{{(.*?)^\}};", text, re.M | re.S)
        if body:
            return tuple(re.findall(r"(\w+)(?:\[\d+\])?;", body[1]))
    raise AssertionError(f"no header of the runtime declares struct {kind}")


@functools.cache
def declared_number(header: str, macro: str) -> int:
    """Return a number that a header of the runtime defines."""
    text = (folder("firmware") / "tinykernel" / "src" / header).read_text(encoding="ascii")
    match = re.search(rf"^#define {macro} (\d+)u$", text, re.M)
    assert match, f"{header} does not define {macro}"
    return int(match[1])


def member_text(value: int | str | list[int] | None) -> str:
    """Write a number, a list of numbers, the name of a table, or 0 for None."""
    if isinstance(value, list):
        return f"{{ {', '.join(map(member_text, value))} }}"
    if value is None:
        return "0"
    return value if isinstance(value, str) else f"{value}u"


#: What one step of packing adds to a source.
Parts: TypeAlias = list[Definition | Table | Struct]


def flag(name: str, condition: object, comment: str = "") -> Definition:
    """Return a macro that is 1 or 0."""
    return Definition(name, "1" if condition else "0", comment)


def smallest_c_type(values: NDArray[Any]) -> str:
    """Return the smallest integer type that holds all values."""
    low, high = int(values.min()), int(values.max())
    for bits in (8, 16, 32):
        if low >= 0 and high < 1 << bits:
            return f"uint{bits}_t"
        if low >= -(1 << (bits - 1)) and high < 1 << (bits - 1):
            return f"int{bits}_t"
    raise AssertionError("the scaler holds 32-bit values")


def bit_words(bits: NDArray[Any], *, first_is_top: bool) -> NDArray[np.uint32]:
    """Pack bits, 32 per word, padded with zeros; bit 0 of the vector is the top or bottom one."""
    padded = np.zeros(-(-bits.size // WORD) * WORD, dtype=np.uint64)
    padded[: bits.size] = bits.astype(bool)
    shifts = np.arange(WORD, dtype=np.uint64)
    if first_is_top:
        shifts = shifts[::-1]
    return np.asarray((padded.reshape(-1, WORD) << shifts).sum(axis=1), np.uint32)


def pair_words(bits: NDArray[np.bool_], *, even_high: bool) -> NDArray[np.uint32]:
    """Pack bits so that one shift to the left brings up the bits of the next pair."""
    # Of values 2 i and 2 i + 1 in each 32, one bit is at 31 - i and the other at 15 - i.
    padded = np.zeros(-(-bits.size // WORD) * WORD, dtype=bool)
    padded[: bits.size] = bits
    halves = padded.reshape(-1, 16, 2).transpose(0, 2, 1)
    return bit_words((halves if even_high else halves[:, ::-1]).ravel(), first_is_top=True)


def per_block(macro: str, table: str, values: NDArray[Any], part: str, comment: str) -> Parts:
    """Store a number for each block: a literal if all are equal, else a table."""
    if np.all(values == values[0]):
        return [Definition(f"{macro}(block)", f"((uint32_t){int(values[0])}u)", comment)]
    if np.all(values[:-1] == values[0]):
        choice = f"(block == TK_BLOCKS - 1u ? {int(values[-1])}u : {int(values[0])}u)"
        return [Definition(f"{macro}(block)", f"((uint32_t){choice})", comment)]
    return [
        Definition(f"{macro}(block)", f"((uint32_t){table}[block])", comment),
        Table(table, smallest_c_type(values), values, part, f"{comment[0].upper()}{comment[1:]}."),
    ]
