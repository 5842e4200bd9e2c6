"""``tinykernel.toml``: settings beside the data."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinykernel.cli.settings.table import PARTS, SETTINGS, Setting
from tinykernel.errors import TinykernelError
from tinykernel.text import SUCCESSORS, similar

_NAME = "tinykernel.toml"
_LARGEST = 1 << 20


def beside(path: str | Path) -> Path | None:
    """Return the settings file in the folder of a path, or None."""
    file = Path(path).parent / _NAME
    return file if file.is_file() else None


def read_file(path: Path) -> dict[str, tuple[str, str]]:
    """Read settings as text, each with its place for messages; refuse unknown ones."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if path.exists() and (not path.is_file() or path.stat().st_size > _LARGEST):
        raise TinykernelError(f"{path}: not a settings file of at most 1 MB; give another")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TinykernelError(f"{path}: not valid TOML ({error}); correct it") from None
    except RecursionError:
        raise TinykernelError(f"{path}: is nested too deeply; write NAME = VALUE") from None
    texts = {}
    for part, table in tables.items():
        if part not in PARTS or not isinstance(table, dict):
            raise TinykernelError(
                f"{path}: [{part}] is no table of settings; choose from [{'], ['.join(PARTS)}]"
            )
        for name, value in table.items():
            place = f"{path}: [{part}] {name}"
            if known(name, place).part != part:
                raise TinykernelError(f"{place}: belongs in [{SETTINGS[name].part}]; move it there")
            texts[name] = (_text(value), place)
    return texts


def known(name: str, place: str) -> Setting:
    """Return a setting by its name, or refuse with the most similar one."""
    if name in SETTINGS:
        return SETTINGS[name]
    hint = similar(name.replace("-", "_"), SETTINGS) or "'tinykernel options' lists all"
    if name in SUCCESSORS:
        hint = f"write {SUCCESSORS[name]}"
    raise TinykernelError(f"{place}: no such setting; {hint}")


def _text(value: Any) -> str:
    """Convert a TOML value to the text of the command line."""
    if isinstance(value, dict):
        return ",".join(f"{name}:{_text(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def to_toml(texts: Mapping[str, str]) -> bytes:
    """Write settings as TOML for `read_file`."""
    import tomli_w

    tables: dict[str, dict[str, str | int]] = {}
    for name, text in texts.items():
        is_whole = re.fullmatch(r"0|[1-9][0-9]{0,17}", text)
        tables.setdefault(SETTINGS[name].part, {})[name] = int(text) if is_whole else text
    content = tomli_w.dumps({part: tables[part] for part in PARTS if part in tables})
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise TinykernelError("--save-config: a setting is not UTF-8 text; rename it") from None
