"""Refusals: errors of one sort whose message is one line, which a golden page may hold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tinykernel.base.errors import TinykernelError

#: What was refused since the test began: the fixture `page` compares it.
SAID: list[str] = []


def refused(
    kind: type[TinykernelError],
    call: Callable[..., Any],
    /,
    *arguments: Any,
    match: str | None = None,
    code: str | None = None,
    **options: Any,
) -> str:
    """Return the message with which a call is refused: one line, in which `match` is found.

    `code` is that of the error, where `kind` is a sort of several.
    """
    with pytest.raises(kind, match=match) as caught:
        call(*arguments, **options)
    assert code in (None, caught.value.code)
    assert "\n" not in str(caught.value)
    SAID.append(f"{caught.value.code}: {caught.value}")
    return str(caught.value)


def sections(page: Path) -> dict[str, list[str]]:
    """Return the lines of a golden page by the names of tests."""
    found: dict[str, list[str]] = {}
    for line in page.read_text(encoding="utf-8").splitlines() if page.exists() else ():
        if line.startswith("# "):
            found[line.removeprefix("# ")] = []
        else:
            found[[*found][-1]].append(line)
    return found


def write_section(page: Path, name: str, lines: list[str]) -> None:
    """Put what a test says now into a golden page."""
    every = sections(page) | {name: lines}
    text = ["\n".join([f"# {name}", *every[name]]) for name in sorted(every)]
    page.parent.mkdir(exist_ok=True)
    page.write_text("\n".join(text) + "\n", encoding="utf-8")
