"""Macros, tables and literals of C, and how bits are put into words."""

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import OptionError, RangeError
from tinykernel.base.files import source_folder

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LONGEST_NAME, _WIDTH = 40, 96
_LISTED = Path(__file__).with_name("words.txt").read_text(encoding="ascii").split("\n\n")
_HEADERS, _KEYWORDS, _FUNCTIONS = (frozenset(part.partition("\n")[2].split()) for part in _LISTED)
# Macros of the programs that test a model: FEATURES_CLASSES would not survive one named FEATURES.
_MACROS = frozenset({"classes", "features", "scratch_words"})


def check_name(name: str) -> str:
    """Return `name` if it can be the prefix of C identifiers and the stem of C files."""
    # No capitals: ``Digits`` and ``digits`` would share their macros and, on some file systems,
    # their files. The TinykernelError of another name says why, and proposes one.
    lower, short = name.lower(), len(name) <= _LONGEST_NAME
    problems = {
        f"is not a C identifier of at most {_LONGEST_NAME} letters, digits and underscores": not (
            short and _IDENTIFIER.fullmatch(name)
        ),
        "begins like the names of the runtime, tk_": lower.split("_")[0] == "tk",
        "has capital letters, and its macros would be those of its small letters": name != lower,
        "is the name of a file that C or its frameworks have already": name in _HEADERS,
        "is a word of C or C++": name in _KEYWORDS,
        "is a function of the C library or of Arduino": name in _FUNCTIONS,
        "would be mistaken for a macro of the test programs": name in _MACROS,
    }
    for problem in filter(problems.get, problems):
        raise OptionError(f"name {name!r} {problem}; try {name_from(name)!r}")
    return name


def name_from(stem: str) -> str:
    """Make a name that `check_name` accepts out of any string."""
    plain = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")[: _LONGEST_NAME - 6].strip("_")
    needs_prefix = (
        not plain
        or plain[0].isdigit()
        or plain in _HEADERS | _KEYWORDS | _FUNCTIONS | _MACROS
        or plain.split("_")[0] == "tk"
    )
    return f"model_{plain}".rstrip("_") if needs_prefix else plain


def integer_literal(value: int, c_type: str = "int32_t") -> str:
    """Write an integer as a C constant of a type wide enough for it."""
    if value == -(2**31):
        # There are no negative constants in C, and 2147483648 does not fit an int.
        return "(-2147483647 - 1)"
    return f"{value}u" if c_type.startswith("u") else str(value)


def float_literal(value: float) -> str:
    """Write a finite number as a C constant that reads back as exactly the same float32."""
    single = np.float32(value)  # nine significant digits identify every float32
    if not np.isfinite(single):
        raise RangeError(f"a constant of the model is {value}, which C cannot write")
    digits = f"{single:.9g}"
    return f"{digits}f" if "." in digits or "e" in digits else f"{digits}.0f"


def string_literal(text: str) -> str:
    """Write a string as a C constant: ASCII only, other characters as the octets of UTF-8."""
    pieces = []
    for octet in text.encode("utf-8", errors="surrogatepass"):
        character = chr(octet)
        if character in '"\\?':  # a question mark, lest two of them begin a trigraph
            pieces.append("\\" + character)
        elif 32 <= octet < 127:
            pieces.append(character)
        else:
            pieces.append(f"\\{octet:03o}")  # three digits end the escape, whatever follows
    return '"' + "".join(pieces) + '"'


def in_comment(text: str) -> str:
    """Escape a text so that it cannot end the comment around it."""
    return text.replace("*/", "* /").replace("/*", "/ *")


def table_rows(
    values: NDArray[Any] | Sequence[Any],
    c_type: str,
    *,
    per_row: int | None = None,
    indent: int = 4,
) -> Iterable[str]:
    """Write the values of a flat table as lines of at most 96 characters."""
    lines: list[list[str]] = []
    length = _WIDTH
    for value in np.asarray(values).ravel():
        if c_type == "float":
            literal = "NAN," if np.isnan(value) else f"{float_literal(float(value))},"
        elif c_type == "uint32_t":
            literal = f"0x{int(value):08x}u,"
        else:
            literal = f"{integer_literal(int(value), c_type)},"
        if not lines or length + len(literal) > _WIDTH or len(lines[-1]) == per_row:
            lines.append([])
            length = indent
        lines[-1].append(literal)
        length += len(literal) + 1
    text = [" " * indent + " ".join(line) for line in lines]
    return [*text[:-1], text[-1].removesuffix(",")] if text else []


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


def _headers(pattern: str) -> list[Path]:
    """Return the headers of the runtime of a name: of the pieces, and those that all share."""
    shared = source_folder("firmware") / "tinykernel" / "src"
    return [*Path(__file__).parent.glob(f"*/{pattern}"), *shared.glob(pattern)]


@functools.cache
def declared_members(kind: str) -> tuple[str, ...]:
    """Return the members of a structure of the runtime, in the order of its header."""
    for header in _headers("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="ascii"), flags=re.S)
        body = re.search(rf"^struct {kind} \{{(.*?)^\}};", text, re.M | re.S)
        if body:
            return tuple(re.findall(r"(\w+)(?:\[\d+\])?;", body[1]))
    raise AssertionError(f"no header of the runtime declares struct {kind}")


@functools.cache
def declared_number(header: str, macro: str) -> int:
    """Return a number that a header of the runtime defines."""
    text = _headers(header)[0].read_text(encoding="ascii")
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


def weight_bits(linear: NDArray[np.int8]) -> int:
    """Return the width that holds all weights: 1 for signs, else 2, 4 or 8."""
    largest = int(np.abs(linear.astype(np.int16)).max())
    if largest == 1 and np.all(linear):
        return 1
    return 2 if largest <= 1 else 4 if largest <= 7 else 8


def pack_weights(weights: NDArray[np.int8]) -> NDArray[np.uint32]:
    """Return words of weights, row by row, each of which begins with a word."""
    n_rows, n = weights.shape
    bits = weight_bits(weights)
    codes = np.where(weights < 0, 1, 0) if bits == 1 else weights.astype(np.int64)
    per_word = WORD // bits
    padded = np.zeros((n_rows, -(-n // per_word) * per_word), dtype=np.int64)
    padded[:, :n] = codes & ((1 << bits) - 1)
    shifts = WORD - bits * (1 + np.arange(per_word))
    packed: NDArray[np.uint32] = (padded.reshape(-1, per_word) << shifts).sum(axis=1)
    return packed.astype(np.uint32)
