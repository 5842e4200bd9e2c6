"""Text from users' data, such as labels and column names, made safe to show."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from difflib import get_close_matches
from typing import Any


def visible(text: str) -> str:
    """Escape control characters, line ends, and invisible marks such as U+202E."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def similar(name: str, known: Iterable[str], show: Callable[[Any], str] = str) -> str:
    """Return "did you mean NAME?" for a known name that is a typing error away, or nothing.

    >>> similar("clas", ["Class", "x"])
    'did you mean Class?'
    """
    folded = {each.casefold(): each for each in known}
    near = get_close_matches(name.casefold(), list(folded), 1, 0.75)
    return f"did you mean {show(folded[near[0]])}?" if near else ""


def column_names(columns: Iterable[object]) -> list[str]:
    """Return names of columns as text; those of several levels are joined.

    >>> column_names([3, ("x", "mean")])
    ['3', 'x_mean']
    """
    parts = (name if isinstance(name, tuple) else (name,) for name in columns)
    return ["_".join(map(str, each)).strip() for each in parts]


def count(n: int, unit: str) -> str:
    """Return ``1 file`` or ``3 files``."""
    return f"{n} {unit}" + ("" if n == 1 else "es" if unit.endswith(("tch", "sh")) else "s")


def join(items: Sequence[Any], most: int = 6, show: Callable[[Any], str] = str) -> str:
    """Join the first items with commas; dots stand for the others."""
    return ", ".join(map(show, items[:most])) + (", ..." if len(items) > most else "")


def size(n_bytes: int) -> str:
    """Format a number of bytes; KB = 1024 bytes."""
    if abs(n_bytes) < 1024:
        return f"{n_bytes} B"
    return (
        f"{n_bytes / 1024:.1f} KB" if n_bytes < 1024**2 else f"{round(n_bytes / 1024**2, 1):g} MB"
    )


def as_json(record: object, names: Iterable[str], instead: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes of a record by name, or the values `instead` of them, as JSON types."""
    values = {name: instead[name] if name in instead else getattr(record, name) for name in names}
    for name, value in values.items():
        if is_dataclass(value) and not isinstance(value, type):
            values[name] = asdict(value)
        elif isinstance(value, tuple | dict):
            values[name] = list(value) if isinstance(value, tuple) else dict(value)
    return values


def percent(share: float | None) -> str:
    """Write a share of 0 to 1 in percent.

    >>> percent(0.9153)
    '91.53 %'
    """
    return "-" if share is None else f"{100 * share:.2f} %"
