"""Macros that headers of C libraries and frameworks may define before that of a model."""

import fnmatch
import functools
from pathlib import Path

from tinykernel.errors import OptionError

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
