"""Names, numbers and strings written in C: the same text on every machine."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import OptionError, RangeError

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LONGEST_NAME, _WIDTH = 40, 96
_LISTED = Path(__file__).with_name("words.txt").read_text(encoding="ascii").split("\n\n")
_HEADERS, _KEYWORDS = (frozenset(part.partition("\n")[2].split()) for part in _LISTED)
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
        or plain in _HEADERS | _KEYWORDS | _MACROS
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
            literal = f"{float_literal(float(value))},"
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
