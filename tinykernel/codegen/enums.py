"""Text and missing values of tables as C constants: an enum a column, a macro for a gap."""

from __future__ import annotations

import functools
import re
import textwrap
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tinykernel import resources
from tinykernel.codegen.literals import float_literal, in_comment, integer_literal, string_literal
from tinykernel.data.coding import Coding
from tinykernel.errors import TinykernelError
from tinykernel.model.integer import IntegerModel

# C99 tells names apart by 63 characters; what is left over is for a number.
_LONGEST, _LONGEST_COLUMN, _LONGEST_SHOWN = 58, 24, 40
_WIDTH = 92
_WORDS = {">=": " GE ", "<=": " LE ", ">": " GT ", "<": " LT ", "=": " EQ ", "+": " PLUS "}
# Macros of stdint.h and math.h that a short name of a model can run into.
_OF_C = re.compile(r"UINT_(FAST|LEAST)\w+|SIG_ATOMIC_\w+|M_(PI_[24]|SQRT1_2|[12]_(SQRT)?PI)")


@dataclass(frozen=True)
class Constant:
    """One C constant: its name, its value as C, and which text or columns it stands for."""

    name: str
    value: str
    comment: str


@dataclass(frozen=True)
class Constants:
    """The constants of a table with text or gaps."""

    # Of each column of text where it is, as a comment, and its texts in the order of their codes.
    texts: tuple[tuple[str, tuple[Constant, ...]], ...] = ()
    # What stands for a missing value: one for all columns that lacked some, or one a column.
    gaps: tuple[Constant, ...] = ()
    example: str = ""  # an assignment to an input, as C; empty where there is no text.

    def lines(self) -> list[str]:
        """Return the C of a header."""
        found: list[str] = []
        for comment, constants in self.texts:
            last = len(constants) - 1
            found += [f"/* Text of {comment}. */", "enum {"]
            for i, one in enumerate(constants):
                found.append(f"    {one.name} = {one.value}{',' * (i < last)} /* {one.comment} */")
            found += ["};", ""]
        for gap in self.gaps:
            text = textwrap.fill(f"/* A missing value of {gap.comment}.", _WIDTH)
            found += [*f"{text} */".replace("\n", "\n * ").split("\n")]
            found += [f"#define {gap.name} {gap.value}", ""]
        return found


def constants_of(coding: Coding | None, model: IntegerModel, name: str) -> Constants:
    """Name the texts and the missing value of a table in C, with the prefix `name`.

    A name is ``NAME_COLUMN_TEXT`` in ASCII capitals. Names that are taken get a number, those of
    one column in the order of the alphabet, so that a new order of codes renames nothing. A missing
    value that the type of the inputs has not is a TinykernelError.

    >>> _name("thyroid", "sex", "F", set()), _name("m", "size >= 2", "*/ int x", set())
    ('THYROID_SEX_F', 'M_SIZE_GE_2_INT_X')
    """
    if coding is None:
        return Constants()
    places = {column: i for i, column in enumerate(model.feature_names or ())}
    taken = set(_macros(name.upper()))
    taken |= {f"{name.upper()}_MISSING"} if coding.gaps else set()
    texts, example = [], ""
    for column in sorted(coding.texts, key=lambda column: places.get(column, 0)):
        found = coding.texts[column]
        if not found or (places and column not in places):
            continue
        names = {text: _name(name, column, text, taken) for text in sorted(found)}
        codes = tuple(Constant(names[t], str(i), _said(t)) for i, t in enumerate(found))
        texts.append((_where(column, places), codes))
        example = example or f"input[{places.get(column, 0)}] = {codes[0].name};"
    return Constants(tuple(texts), tuple(_gaps(coding, model, name, places, taken)), example)


def _gaps(
    coding: Coding, model: IntegerModel, name: str, places: dict[str, int], taken: set[str]
) -> Iterable[Constant]:
    listed = sorted(coding.gaps.items(), key=lambda item: places.get(item[0], 0))
    gaps = {column: value for column, value in listed if not places or column in places}
    if len(set(gaps.values())) == 1:
        which = ", ".join(str(places.get(column, _said(column))) for column in gaps)
        which = f"input{'s' if len(gaps) > 1 else ''} {which}"
        value = _gap(next(iter(gaps.values())), model.raw_dtype)
        yield Constant(f"{name.upper()}_MISSING", value, which)
        return
    for column, number in gaps.items():
        own = _name(name, column, "missing", taken)
        yield Constant(own, _gap(number, model.raw_dtype), _where(column, places))


def _gap(value: float, dtype: str) -> str:
    """Write what stands for a missing value, of the type of the inputs."""
    if dtype == "float32":
        literal = float_literal(value)
    else:
        limits = np.iinfo(dtype)
        if value != int(value) or not limits.min <= value <= limits.max:
            raise TinykernelError(f"a missing value is {value:g}, which is no {dtype}")
        literal = integer_literal(int(value))
    return f"({literal})" if literal.startswith("-") else literal


def _where(column: str, places: dict[str, int]) -> str:
    index = places.get(column)
    return f"input{'' if index is None else f' {index}'} {_said(column)}"


def _said(text: str) -> str:
    more = "..." if len(text) > _LONGEST_SHOWN else ""
    return in_comment(string_literal(text[:_LONGEST_SHOWN])) + more


def _name(name: str, column: str, text: str, taken: set[str]) -> str:
    """Return an identifier that is not taken, and take it."""
    first = _ascii(column)[:_LONGEST_COLUMN].strip("_") or "COLUMN"
    base = f"{name.upper()}_{first}_{_ascii(text) or 'TEXT'}"[:_LONGEST].rstrip("_")
    found, number = base, 1
    while found in taken or _OF_C.fullmatch(found):
        number += 1
        found = f"{base}_{number}"
    taken.add(found)
    return found


def _ascii(text: str) -> str:
    """Return capitals, digits and single underscores; other letters by their code point."""
    for sign, word in _WORDS.items():
        text = text.replace(sign, word)
    plain = unicodedata.normalize("NFKD", text).upper()
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    spelled = re.sub(r"[^\W\x00-\x7f]", lambda found: f" U{ord(found[0]):04X} ", plain)
    return re.sub(r"[^A-Z0-9]+", "_", spelled).strip("_")


@functools.cache
def _endings() -> frozenset[str]:
    """Return how the macros of all headers of a model end."""
    folder = resources.folder("templates") / "model"
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.j2"))]
    found = re.findall(r"\{\{ NAME \}\}_([A-Z0-9_]+)", "\n".join(texts))
    return frozenset(found)


def _macros(prefix: str) -> set[str]:
    return {f"{prefix}_{ending}" for ending in _endings()}
