"""Where the templates and the C runtime are, in a checkout and in an installed wheel."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from tinykernel.text import in_code_span

if TYPE_CHECKING:
    import jinja2

_PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """Return the root of the source tree that the package runs from; None for an installed wheel.

    >>> root = checkout()
    >>> root is None or (root / "pyproject.toml").is_file()
    True
    """
    # A folder of installed packages may hold a "templates", a "firmware" and even a pyproject.toml
    # that belong to somebody else.
    root = _PACKAGE.parent
    try:
        project = (root / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return root if 'name = "tinykernel"' in project.splitlines() else None


def folder(name: str) -> Path:
    """Return the folder of packaged files called `name`, "templates" or "firmware".

    In a checkout they stand beside the package; the wheel installs them inside it. An installation
    without them is a FileNotFoundError.

    >>> folder("templates").is_dir()
    True
    """
    found = (checkout() or _PACKAGE) / name
    if not found.is_dir():
        raise FileNotFoundError(
            f"{found}: this folder of tinykernel is missing; install the package again"
        )
    return found


@functools.cache
def templates() -> jinja2.Environment:
    """Return what renders the templates, by their paths; each is compiled once in a process."""
    import jinja2

    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    engine.filters["code"] = in_code_span
    return engine
