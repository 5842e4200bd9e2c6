"""What PlatformIO knows of boards: the board files of the platforms that it has installed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tinykernel.codegen.boards import Board

# Frameworks that a project can be exported for.
_KNOWN = ("arduino", "cmsis", "stm32cube", "espidf", "zephyr")


def installed_board(name: str) -> tuple[Board, str] | None:
    """Find a board and the name of its core, such as ``"cortex-m4"``; None where it is not there.

    A file that cannot be read counts as none: the platforms are PlatformIO's, not ours.
    """
    core = os.environ.get("PLATFORMIO_CORE_DIR")
    root = Path(core) if core else Path.home() / ".platformio"
    for path in sorted(root.glob(f"platforms/*/boards/{name}.json")):
        row, platform = _read(path), _read(path.parent.parent / "platform.json")
        if "frameworks" not in row or not isinstance(platform.get("name"), str):
            continue
        frameworks = tuple(word for word in _KNOWN if word in row["frameworks"])
        upload, build = row.get("upload", {}), row.get("build", {})
        board = Board(
            name,
            platform["name"],
            frameworks or ("arduino",),
            str(row.get("name", name)),
            "",
            int(upload.get("maximum_size", 0)),
            int(upload.get("maximum_ram_size", 0)),
        )
        return board, str(build.get("cpu", ""))
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
