"""Rows that take long to measure: each is kept in a file as soon as it is finished."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinykernel.files import write_bytes_atomically

__all__ = ["FinishedRows"]


class FinishedRows(dict[str, dict[str, Any]]):
    """Rows by key, in ``numbers/NAME.json`` of a folder where one is given."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self.path = None if folder is None else folder / "numbers" / f"{name}.json"
        if self.path is not None and self.path.exists():
            self.update(json.loads(self.path.read_text()))

    def measure(self, key: str, function: Callable[..., dict[str, Any]], *arguments: Any) -> bool:
        """Call a function for a row that is not there; return whether it was called."""
        if key in self:
            return False
        self[key] = function(*arguments)
        self.save(key)
        return True

    def save(self, key: str) -> None:
        """Show a row and keep all."""
        print(key, json.dumps(self[key]), flush=True)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes_atomically(self.path, (json.dumps(self, indent=1) + "\n").encode())
