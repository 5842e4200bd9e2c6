"""Text of somebody else, such as labels and names of columns, as it can be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any


def visible(text: str) -> str:
    r"""Write escapes for what is obeyed or hidden where a text is shown, and not seen.

    Control characters, which a terminal follows, ends of lines, and marks without a width, such as
    those that turn the direction of what follows (U+202E).

    Parameters
    ----------
    text : str
        Of somebody else: a label, the name of a column.

    Returns
    -------
    str
        In one line.

    Examples
    --------
    >>> print(visible("k\u00f6nig"), visible("a\x1b[31m"), visible("a\u202eb"))
    k\xf6nig a\x1b[31m a\u202eb
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


def similar(name: str, known: Iterable[str]) -> str:
    """Say which known name was probably meant, or nothing.

    Examples
    --------
    >>> similar("n_component", ["n_components", "layout"]), similar("x", ["layout"])
    ('did you mean n_components?', '')
    """
    near = get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]}?" if near else ""


def in_code_span(value: object) -> str:
    """Write text between two backticks of Markdown; it cannot end them, nor their line.

    Examples
    --------
    >>> print(in_code_span("a`b"))
    `a'b`
    """
    return f"`{visible(str(value)).replace('`', chr(39))}`"


def listed(items: Sequence[Any], most: int = 6, show: Callable[[Any], str] = str) -> str:
    """Write the first items with commas between them; dots stand for the others.

    >>> listed("abc", 2), listed("ab", 2, repr)
    ('a, b, ...', "'a', 'b'")
    """
    return ", ".join(map(show, items[:most])) + (", ..." if len(items) > most else "")
