"""Paths of the templates and the C runtime, in a checkout and in an installed wheel."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from tinykernel.text import visible

if TYPE_CHECKING:
    import jinja2

_PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """Return the root of the source tree of the package; None for an installed wheel."""
    # site-packages may hold "templates", "firmware" and even pyproject.toml of other packages.
    root = _PACKAGE.parent
    try:
        project = (root / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return root if 'name = "tinykernel"' in project.splitlines() else None


def folder(name: str) -> Path:
    """Return "templates" or "firmware": beside the package in a checkout, inside it in a wheel."""
    path = (checkout() or _PACKAGE) / name
    if not path.is_dir():
        raise FileNotFoundError(
            f"{path}: this folder of tinykernel is missing; install the package again"
        )
    return path


@functools.cache
def templates() -> jinja2.Environment:
    """Return the environment that renders the templates; one a process, as it caches them."""
    import jinja2

    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    # A code span of Markdown.
    engine.filters["code"] = lambda value: f"`{visible(str(value)).replace('`', chr(39))}`"
    return engine
