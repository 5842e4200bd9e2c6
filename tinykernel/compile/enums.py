"""Classes, inputs and codes as C constants, and short descriptions of a model."""

import fnmatch
import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinykernel.base.coding import Coding
from tinykernel.base.errors import OptionError, RangeError
from tinykernel.base.files import source_folder
from tinykernel.base.text import count
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces import tables

_LISTED = Path(__file__).with_name("macros.txt")


@functools.cache
def _by_first_word() -> dict[str, list[str]]:
    """Read what may follow the first word of a macro."""
    endings: dict[str, list[str]] = {}
    for line in _LISTED.read_text(encoding="ascii").splitlines():
        if not line.startswith("#"):
            first, *rest = line.split()
            endings.setdefault(first, []).extend(rest)
    return endings


def is_macro(identifier: str) -> bool:
    """Say whether an identifier of two words or more may be a macro of another header.

    >>> is_macro("M_PI"), is_macro("INPUT_PULLUP"), is_macro("GESTURE_PI")
    (True, True, False)
    """
    first, _, rest = identifier.partition("_")
    return any(fnmatch.fnmatchcase(rest, end) for end in _by_first_word().get(first, ()))


def check_macros(name: str, macros: list[str]) -> None:
    """Refuse a name of a model for which one of its own macros is that of another header."""
    for macro in macros:
        first, _, rest = macro.partition("_")
        if rest in _by_first_word().get(first, ()):
            raise OptionError(
                f"name {name!r} makes a macro {macro}, which headers of C or of a framework have; "
                f"try 'my_{name}'"
            )


# C99 distinguishes names by 63 characters; the rest is for a number.
_LONGEST, _LONGEST_COLUMN, _LONGEST_SHOWN = 58, 24, 40
_WORDS = {">=": " GE ", "<=": " LE ", ">": " GT ", "<": " LT ", "=": " EQ ", "+": " PLUS "}


@dataclass(frozen=True)
class Constant:
    """One C constant: its name, its value as C, and which text or columns it stands for."""

    name: str
    value: str
    comment: str
    plain: str  # the name that it would have if no other had it, and if it were short.


@dataclass(frozen=True)
class Constants:
    """The constants of a model."""

    classes: tuple[Constant, ...] = ()  # labels by the number that the firmware returns.
    inputs: tuple[Constant, ...] = ()  # columns of a table by their place in an input.
    # Of each column of text where it is, as a comment, and its texts in the order of their codes.
    texts: tuple[tuple[str, tuple[Constant, ...]], ...] = ()
    # What stands for a missing value: one for all columns that lacked some, or one per column.
    gaps: tuple[Constant, ...] = ()
    example: str = ""  # an assignment to an input, as C; empty where there is no text.

    @property
    def groups(self) -> list[tuple[str, tuple[Constant, ...]]]:
        """The enums of a header by their titles."""
        groups = [
            ("Classes: what the functions return", self.classes),
            ("Inputs: places in an input vector", self.inputs),
            *((f"Text of {column}", constants) for column, constants in self.texts),
        ]
        return [(title, constants) for title, constants in groups if constants]

    @property
    def renamed(self) -> dict[str, str]:
        """The names that are not plain, with the plain ones."""
        constants = [*self.gaps, *(constant for _, group in self.groups for constant in group)]
        return {item.name: item.plain for item in constants if item.name != item.plain}


def constants_of(coding: Coding | None, model: IntegerModel, name: str) -> Constants:
    """Name classes, inputs, texts and the missing value in C, with the prefix `name`.

    A name is ``NAME_CLASS``, ``NAME_COLUMN`` or ``NAME_COLUMN_TEXT`` in ASCII capitals. Taken names
    get a number, those of one column in the order of the alphabet, so that a new order of codes
    renames nothing. Names of macros that headers of C or of a framework have get an underscore.
    Classes that are the numbers 0, 1, 2, ... need no constants.

    >>> _name("thyroid", "sex", "F", set())[0], _name("m", "size >= 2", "*/ int x", set())[0]
    ('THYROID_SEX_F', 'M_SIZE_GE_2_INT_X')
    >>> _free("m", "PI", set()), _free("m", "PI", {"M_PI_"})
    (('M_PI_', 'M_PI'), ('M_PI_2_', 'M_PI'))
    """
    coding = coding or Coding()
    places = {column: i for i, column in enumerate(model.feature_names or ())}
    taken = {f"{name.upper()}_{ending}" for ending in _endings()}
    taken |= {f"{name.upper()}_MISSING"} if coding.gaps else set()
    texts, example = [], ""
    for column in sorted(coding.texts, key=lambda column: places.get(column, 0)):
        cells = coding.texts[column]
        if not cells or (places and column not in places):
            continue
        names = {text: _name(name, column, text, taken) for text in sorted(cells)}
        codes = tuple(
            Constant(names[text][0], str(i), _quote(text), names[text][1])
            for i, text in enumerate(cells)
        )
        texts.append((_where(column, places), codes))
        example = example or f"input[{places.get(column, 0)}] = {codes[0].name};"
    gaps = tuple(_gaps(coding, model, name, places, taken))  # takes names, too
    classes = () if model.classes == (*range(model.n_classes),) else model.classes
    columns = places if model.input.is_table else ()
    return Constants(
        classes=_number(name, classes, taken),
        inputs=_number(name, columns, taken),
        texts=tuple(texts),
        gaps=gaps,
        example=example,
    )


def _number(name: str, texts: Iterable[object], taken: set[str]) -> tuple[Constant, ...]:
    """Name texts by their numbers, 0 and up."""
    constants = []
    for number, text in enumerate(map(str, texts)):
        spelled = _ascii(re.sub(r"^-(?=\d)", "MINUS ", text)) or "TEXT"
        identifier, plain = _free(name, spelled, taken)
        constants.append(Constant(identifier, str(number), _quote(text), plain))
    return tuple(constants)


def _gaps(
    coding: Coding, model: IntegerModel, name: str, places: dict[str, int], taken: set[str]
) -> Iterable[Constant]:
    listed = sorted(coding.gaps.items(), key=lambda item: places.get(item[0], 0))
    gaps = {column: value for column, value in listed if not places or column in places}
    if len(set(gaps.values())) == 1:
        which = ", ".join(str(places.get(column, _quote(column))) for column in gaps)
        which = f"input{'s' if len(gaps) > 1 else ''} {which}"
        value = _gap(next(iter(gaps.values())), model.raw_dtype)
        yield Constant(f"{name.upper()}_MISSING", value, which, f"{name.upper()}_MISSING")
        return
    for column, number in gaps.items():
        identifier, plain = _name(name, column, "missing", taken)
        yield Constant(identifier, _gap(number, model.raw_dtype), _where(column, places), plain)


def _gap(value: float, dtype: str) -> str:
    """Write the number for a missing value in the type of the inputs."""
    if dtype == "float32":
        literal = tables.float_literal(value)
    else:
        limits = np.iinfo(dtype)
        if value != int(value) or not limits.min <= value <= limits.max:
            raise RangeError(f"a missing value is {value:g}, which does not fit {dtype}")
        literal = tables.integer_literal(int(value))
    return f"({literal})" if literal.startswith("-") else literal


def _where(column: str, places: dict[str, int]) -> str:
    place = f" {places[column]}" if column in places else ""
    return f"input{place} {_quote(column)}"


def _quote(text: str) -> str:
    more = "..." if len(text) > _LONGEST_SHOWN else ""
    return tables.in_comment(tables.string_literal(text[:_LONGEST_SHOWN])) + more


def _name(name: str, column: str, text: str, taken: set[str]) -> tuple[str, str]:
    """Return an identifier that is not taken, and take it; and the plain one."""
    first = _cut(_ascii(column), _LONGEST_COLUMN) or "COLUMN"
    return _free(name, f"{first}_{_ascii(text) or 'TEXT'}", taken)


def _free(name: str, spelled: str, taken: set[str]) -> tuple[str, str]:
    """Return an identifier that is neither taken nor a macro, and take it; and the plain one."""
    prefix = f"{name.upper()}_"
    base = prefix + _cut(spelled, _LONGEST - len(prefix))
    for number in itertools.count(1):
        free = base if number == 1 else f"{base}_{number}"
        free += "_" * is_macro(free)
        if free not in taken:
            break
    taken.add(free)
    return free, prefix + spelled


def _cut(identifier: str, length: int) -> str:
    """Cut an identifier between two words, or within the first one where that is too long."""
    if len(identifier) <= length:
        return identifier
    return identifier[: length + 1].rpartition("_")[0] or identifier[:length]


def _ascii(text: str) -> str:
    """Return capitals, digits and single underscores; other letters by their code point."""
    for sign, word in _WORDS.items():
        text = text.replace(sign, word)
    plain = unicodedata.normalize("NFKD", text).upper()
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    spelled = re.sub(r"[^\W\x00-\x7f]", lambda match: f" U{ord(match[0]):04X} ", plain)
    return re.sub(r"[^A-Z0-9]+", "_", spelled).strip("_")


@functools.cache
def _endings() -> frozenset[str]:
    """Return the endings of the macros in all headers of a model."""
    folder = source_folder("templates") / "model"
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.j2"))]
    return frozenset(re.findall(r"\{\{ NAME \}\}_([A-Z0-9_]+)", "\n".join(texts)))


def takes_of(model: IntegerModel) -> str:
    """Describe the input of a model: values, or windows or images of a shape, and numbers."""
    taken = _looks(model) if model.camera is None else model.camera.title
    return taken + (f" and {model.beside.title}" if model.beside is not None else "")


def seen_shape(model: IntegerModel) -> tuple[int, ...]:
    """Return the shape of a window, or of an image as it is resized."""
    return (model.input if model.camera is None else model.grids()[1]).shape


def _looks(model: IntegerModel) -> str:
    """Describe the input of the first stage."""
    shape = " x ".join(map(str, seen_shape(model)))
    if model.input.is_table:
        return count(model.n_inputs, "input")
    return f"windows of {shape}" if model.input.is_signal else f"images of {shape}"


def made_of(model: IntegerModel) -> str:
    """Name the main pieces of a model, for instance "spectrum and kernels"."""
    main = [piece.KIND for piece in model.pieces if piece.NAMES]
    return " and ".join(main) if main else "a linear part"


def consists_of(model: IntegerModel) -> str:
    """List the stages and parts of a model, and what they take."""
    counts = any(stage.GIVES == "counts" for stage in model.stages)
    inputs = count(model.n_features, "count" if counts else "input")
    pieces = (piece.in_words(_looks(model), inputs) for piece in model.pieces)
    return ", ".join(filter(None, pieces))
