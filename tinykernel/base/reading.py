"""Read the values of options from text, and write them so."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from tinykernel.base.errors import OptionError

# Default amounts of augmentations.
_USUAL = {"affine": 1.0, "flip": 0.5, "shift": 1, "rotate": 0.15, "noise": 0.05, "scale": 0.1}
_WHOLE = r"\d{1,9}"  # more digits are a mistake
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

Reader = Callable[[str], Any]


def as_text(value: Any) -> str:
    """Return a value as text that `plain` reads.

    >>> as_text({"yes": 2, "no": 1}), as_text((0.1, 0.9)), as_text(True)
    ('yes:2,no:1', '0.1,0.9', 'true')
    """
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{as_text(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def plain(text: str) -> Any:
    """Read a number, a mapping NAME:VALUE,..., several numbers, or else a word.

    >>> plain("64"), plain("compact:64,windows:32"), plain("0.1,0.9"), plain("10:30:2")
    (64, {'compact': 64, 'windows': 32}, (0.1, 0.9), {'10:30': 2})
    >>> plain("(0.1, 0.5, 0.9)"), plain("[0.5]")
    ((0.1, 0.5, 0.9), (0.5,))
    """
    if (text[:1], text[-1:]) in (("(", ")"), ("[", "]")):  # as messages and Python write several
        text = text[1:-1].strip().removesuffix(",") + ","
    parts = [part.strip() for part in text.split(",")]
    if not parts[-1] and len(parts) > 1:
        return tuple(map(_word, parts[:-1]))
    if all(":" in part for part in parts):
        pairs = (part.rpartition(":") for part in parts)
        return {_word(name): _word(value) for name, _, value in pairs}
    return tuple(map(_word, parts)) if len(parts) > 1 else _word(text)


def _word(text: str) -> Any:
    """Read a finite number, or else a word."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if math.isfinite(value):
            return value
    return text


def choice(*names: str, **others: str) -> Reader:
    """Return a reader of one of `names`; `others` are aliases."""

    def read(text: str) -> str:
        if text not in names and text not in others:
            raise OptionError(f"{text!r}: choose from {', '.join(names)}")
        return others.get(text, text)

    return read


def truth(text: str) -> bool:
    """Read true or false."""
    return bool(choice("false", "true")(text) == "true")


def number(low: float, high: float, wanted: str, kind: type = float) -> Reader:
    """Return a reader of numbers from low to high."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise OptionError(f"{text!r}: give {wanted}")
        return value

    return read


def or_file(read: Reader) -> Reader:
    """Return a reader of numbers; anything else is the name of a file."""

    def number_or_file(text: str) -> Any:
        try:
            float(text.rstrip("% "))
        except ValueError:
            return text
        return read(text)

    return number_or_file


def names(text: str) -> list[str] | None:
    """Read names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()] or None


def number_or_names(text: str) -> int | list[str] | None:
    """Read a whole number, or else names."""
    return int(text) if re.fullmatch(_WHOLE, text) else names(text)


def loss(text: str) -> str | tuple[float, ...]:
    """Read the name of a loss, or levels of quantiles separated by commas."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        return text


def shape(form: str, lengths: tuple[int, ...], example: str) -> Reader:
    """Return a reader of whole numbers separated by x or commas."""

    def read(text: str) -> tuple[int, ...]:
        sides = re.fullmatch(rf"{_WHOLE}(?:[x,]{_WHOLE})*", text.strip().lower())
        numbers = tuple(map(int, re.split("[x,]", text.strip().lower()))) if sides else ()
        if len(numbers) not in lengths:
            raise OptionError(f"{text!r}: write {form}, as in {example}")
        return numbers

    return read


def augmentation(text: str) -> dict[str, float] | None:
    """Read KIND or KIND:AMOUNT, several separated by commas."""
    amounts: dict[str, float] = {}
    for part in names(text) or ():
        match = re.fullmatch(r"([a-z]+)(?::(\d+(?:\.\d*)?|\.\d+))?", part)
        whole = match is not None and match[1] == "shift" and "." in (match[2] or "")
        if match is None or match[1] not in _USUAL or whole:
            known = ", ".join(f"{kind}:{usual:g}" for kind, usual in _USUAL.items())
            raise OptionError(f"{part!r}: write KIND or KIND:AMOUNT, such as {known}")
        amount = _USUAL[match[1]] if match[2] is None else float(match[2])
        amounts[match[1]] = int(amount) if match[1] == "shift" else amount
    return amounts or None


class Rate(float):
    """How often an hour."""


def share_or_rate(text: str) -> float:
    """Read a share, or how often an hour, a minute or a day.

    >>> share_or_rate("1%"), share_or_rate("12/day")
    (0.01, 0.5)
    """
    count, _, unit = text.strip().partition("/")
    try:
        rate = Rate(float(count) * {"h": 1.0, "min": 60.0, "day": 1 / 24}[unit])
    except (KeyError, ValueError):
        return share(text)
    if not 0 < rate <= 3600:
        raise OptionError(f"{text!r}: write a rate of at most one a second, as 1/h or 12/day")
    return rate


def share(text: str, example: float = 0.01) -> float:
    """Read a share, as 1% or 0.01; a number that may be percent if it is near an example."""
    text = text.strip()
    try:
        value = float(text.rstrip("% ")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        wish = f"{text}%, or " if max(1, 50 * example) <= value < 100 and "%" not in text else ""
        raise OptionError(f"{text!r}: write {wish}a share such as {example:.0%} or {example:g}")
    return value


def seconds(text: str) -> float:
    """Read a time, as 90s, 10m or 2h; none is infinite."""
    if text.strip() == "none":
        return math.inf
    match = re.fullmatch(rf"\s*({_WHOLE}(?:\.\d+)?)\s*([a-z]*)\s*", text)
    if match is None or match[2] not in _UNITS or float(match[1]) <= 0:
        raise OptionError(f"{text!r}: write a time, as in 90s, 10m or 2h, or none")
    return float(match[1]) * _UNITS[match[2]]
