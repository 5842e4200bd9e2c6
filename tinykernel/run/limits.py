"""Limits of flash, RAM, stack and time, read from the text of a budget."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tinykernel.base.errors import OptionError

#: Limit of flash of a training without a budget.
DEFAULT_BUDGET = "30KB"
_SIZES = {"": 1, "b": 1, "k": 1024, "kb": 1024, "kib": 1024, "m": 1024**2, "mb": 1024**2}
_COUNTS = {"": 1.0, "k": 1e3, "m": 1e6}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_HERTZ = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*\Z", re.IGNORECASE)
_LARGEST = 2.0**53
_EXAMPLE = "flash=30KB,ram=8KB,stack=512B,time=2ms@80MHz"
_KEYS = ("flash", "ram", "stack", "instructions", "time")


def _read(text: str, units: dict[str, float] | dict[str, int]) -> float:
    """Return a number with its unit, or 0 where it is none."""
    match = _NUMBER.match(text)
    unit = match.group(2).lower() if match else ""
    value = float(match.group(1)) * units[unit] if match and unit in units else 0.0
    return value if value < _LARGEST else 0.0


def parse_size(text: str | int) -> int:
    """Read a size in bytes: a number with B, KB (1024 bytes) or MB, without a unit in bytes."""
    size = int(_read(str(text), _SIZES))
    if size <= 0:
        raise OptionError(f"{text!r} is not a size; write bytes, KB or MB, as in 500, 30KB or 1MB")
    return size


def budget_of_training(about: Mapping[str, Any], target: str) -> str | int | None:
    """Return the budget of the training of a model file if it was for this target, else None.

    A file that names no target has the default budget.
    """
    if "target" not in about:
        return DEFAULT_BUDGET
    budget = about.get("limits") or about.get("budget")
    return budget if about["target"] == target and isinstance(budget, int | str) else None


def parse_clock(text: str | float) -> float:
    """Read a clock frequency, a number of hertz or text with its unit; return hertz."""
    hertz = _read(text, _HERTZ) if isinstance(text, str) else float(text)
    if not 0 < hertz < float("inf"):
        raise OptionError(
            f"{text!r} is not a clock frequency; write one with its unit, as in 80MHz"
        )
    return hertz


@dataclass(frozen=True)
class Limits:
    """Limits of a model; None where there is none."""

    flash: int | None = None  # bytes that the model adds to the program
    ram: int | None = None  # bytes of static data, scratch and stack
    stack: int | None = None  # bytes
    instructions: int | None = None  # of one inference
    time: float | None = None  # seconds of one inference
    clock: float | None = None  # hertz

    def most_instructions(self, cycles: float) -> int | None:
        """Return how many instructions of so many cycles each an inference may take."""
        limits = [] if self.instructions is None else [self.instructions]
        if self.time is not None and self.clock is not None:
            limits.append(int(round(self.time * self.clock / cycles, 6)))
        return min(limits, default=None)

    @property
    def beside_flash(self) -> bool:
        """Whether anything but flash is limited."""
        return any(getattr(self, each.name) is not None for each in fields(self)[1:])

    def __str__(self) -> str:
        """Write it as `parse_limits` reads it."""
        parts = [
            f"{key}={getattr(self, key)}B"
            for key in ("flash", "ram", "stack")
            if getattr(self, key) is not None
        ]
        if self.instructions is not None:
            parts.append(f"instructions={self.instructions}")
        if self.time is not None and self.clock is not None:
            parts.append(f"time={1e3 * self.time:g}ms@{self.clock / 1e6:g}MHz")
        return ",".join(parts)


def parse_limits(text: str | int | Limits) -> Limits:
    """Read a budget: a size of flash as ``"8KB"``, or limits by name.

    Their form is ``"flash=30KB,ram=8KB,stack=512B,time=2ms@80MHz"``, any of them;
    ``instructions=200k`` replaces a time.

    >>> parse_limits("ram=2KB,instructions=200k").instructions
    200000
    """
    if isinstance(text, Limits):
        return text
    if not isinstance(text, str) or "=" not in text:
        return Limits(flash=parse_size(text))
    limits: dict[str, Any] = {}
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in _KEYS:
            raise OptionError(
                f"budget: {key!r} is not known; write {', '.join(_KEYS)}, as in {_EXAMPLE}"
            )
        if key in limits:
            raise OptionError(f"budget: {key} is given twice; give it once")
        limits |= _value(key, value)
    return Limits(**limits)


def _value(key: str, text: str) -> dict[str, Any]:
    if key == "time":
        duration, at, clock = (piece.strip() for piece in text.partition("@"))
        seconds = _read(duration, _SECONDS)
        if seconds <= 0:
            raise OptionError(f"budget: time={text}: write s, ms or us, as in time=2ms@80MHz")
        if not at:
            raise OptionError(f"budget: time={text}: write the clock, as in time={text}@80MHz")
        return {"time": seconds, "clock": parse_clock(clock)}
    if key == "instructions":
        count = int(_read(text, _COUNTS))
        if count <= 0:
            raise OptionError(f"budget: instructions={text}: write a number, as in 200k")
        return {key: count}
    if text.isdecimal():
        raise OptionError(f"budget: {key}={text}: write the unit, as in {text}B or {text}KB")
    size = int(_read(text, _SIZES))
    if size <= 0:
        raise OptionError(f"budget: {key}={text}: write a size, as in {key}=8KB")
    return {key: size}
