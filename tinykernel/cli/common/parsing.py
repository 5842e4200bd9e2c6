"""How the text of the options of ``train`` is read."""

from __future__ import annotations

import re

import typer

# What an augmentation without a number means.
_USUAL = {"affine": 1.0, "shift": 1, "rotate": 0.15, "noise": 0.05, "scale": 0.1}


def input_bits_in(text: str) -> int | str:
    """Read 8, 16 or a word."""
    return int(text) if text in ("8", "16") else text


def augmentation_in(texts: list[str] | None) -> dict[str, float] | None:
    """Read KIND or KIND:AMOUNT, of several kinds."""
    found: dict[str, float] = {}
    for text in texts or ():
        match = re.fullmatch(r"([a-z]+)(?::(\d+(?:\.\d*)?|\.\d+))?", text.strip())
        whole = match is not None and match[1] == "shift" and "." in (match[2] or "")
        if match is None or match[1] not in _USUAL or whole:
            known = ", ".join(f"{kind}:{usual:g}" for kind, usual in _USUAL.items())
            raise typer.BadParameter(f"{text!r}: write KIND or KIND:AMOUNT, of {known}")
        amount = _USUAL[match[1]] if match[2] is None else float(match[2])
        found[match[1]] = int(amount) if match[1] == "shift" else amount
    return found or None


def _shape(text: str, what: str, lengths: tuple[int, ...], example: str) -> tuple[int, ...]:
    sides = re.fullmatch(r"\d+(?:[x,]\d+)*", text.strip().lower())
    numbers = tuple(map(int, re.split("[x,]", text.strip().lower()))) if sides else ()
    if len(numbers) not in lengths:
        raise typer.BadParameter(f"{text!r}: write {what}, as in {example}")
    return numbers


def quantiles_in(text: str | None) -> tuple[float, ...] | None:
    """Read levels separated by commas."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r}: write levels, as in 0.1,0.5,0.9") from None


def image_shape_in(text: str) -> tuple[int, ...]:
    """Read HEIGHTxWIDTH."""
    return _shape(text, "HEIGHTxWIDTH", (2, 3), "28x28")


def window_shape_in(text: str) -> tuple[int, ...]:
    """Read SAMPLESxCHANNELS."""
    return _shape(text, "SAMPLESxCHANNELS", (2,), "128x6")


def width_in(text: str) -> int | str:
    """Read a number of bits or a word."""
    return int(text) if text.isdigit() else text


def columns_in(texts: list[str] | None) -> list[str] | None:
    """Read names, separated by commas or given one by one."""
    names = [name.strip() for text in texts or () for name in text.split(",")]
    return [name for name in names if name] or None


def share_in(validation: str | None) -> float | None:
    """Read --validation as a number; None where it names a file."""
    if validation is None:
        return None
    try:
        share = float(validation)
    except ValueError:
        return None
    if not 0 < share < 0.5:
        raise typer.BadParameter(
            f"{validation!r}: write a share above 0 and below 0.5, or a file",
            param_hint="--validation",
        )
    return share


def parse_share(text: str | float) -> float:
    """Read a share, as 1% or 0.01.

    Examples
    --------
    >>> parse_share("1%"), parse_share("0.95")
    (0.01, 0.95)
    """
    words = str(text).strip()
    try:
        value = float(words.rstrip("% ")) / (100 if words.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise typer.BadParameter(f"{words!r}: write a share such as 1% or 0.01")
    return value
