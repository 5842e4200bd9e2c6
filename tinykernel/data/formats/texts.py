"""Columns of text: each different text becomes a number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinykernel.data.coding import MOST_TEXTS, Coding
from tinykernel.data.formats.tables import shown
from tinykernel.data.selection import MISSING
from tinykernel.errors import TinykernelError
from tinykernel.text import visible

# Fewer cells that are no numbers than one in twenty are mistakes in a column of numbers.
_SHARE_OF_TEXT = 0.05


def is_missing(cell: str) -> bool:
    """Say whether a cell stands for a missing value, such as ``?`` or ``NA``."""
    return cell.strip().lower() in MISSING


def _lacks_text(cell: str) -> bool:
    """Say the same of a cell of text, where "none" is an answer."""
    return is_missing(cell) and cell.strip().lower() != "none"


def is_number(text: str) -> bool:
    """Say whether a cell is a number: 1_000, which Python takes, is none."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def holds_text(cells: Sequence[str]) -> bool:
    """Say whether a column holds text of a few kinds, rather than numbers or names.

    Examples
    --------
    >>> holds_text(["red", "blue", "?", "red"]), holds_text(["1", "2", "3", "x"])
    (True, False)
    """
    there = [cell.strip() for cell in cells if not _lacks_text(cell)]
    wrong = sum(not is_number(cell.replace(",", ".", 1)) for cell in there)
    kinds = len(set(there))
    return 2 <= wrong >= _SHARE_OF_TEXT * len(there) and kinds <= min(
        MOST_TEXTS, max(2, len(there) // 2)
    )


class TextColumns:
    """Gives texts their numbers: those of an earlier training, or as they come."""

    def __init__(self, path: Path, coding: Coding | None, columns: Sequence[str] = ()) -> None:
        self._path = path
        self._is_known = coding is not None
        self._numbers: dict[str, dict[str, int]] = {name: {} for name in columns}
        self.may_grow = coding is None and not columns
        if coding is not None:
            for name, texts in coding.texts.items():
                self._numbers[name] = {text: i for i, text in enumerate(texts)}

    def among(self, columns: Sequence[str]) -> list[int]:
        """Return which of some columns hold text."""
        return [i for i, name in enumerate(columns) if name in self._numbers]

    def number(self, column: str, cell: str, place: str) -> str:
        """Return the number of a text, as a cell; TinykernelError where training had no such."""
        numbers, text = self._numbers[column], cell.strip()
        if _lacks_text(cell):
            return text or "?"
        if text not in numbers:
            if self._is_known:
                known = shown([visible(name) for name in numbers])
                raise TinykernelError(
                    f"{place}, column {column!r}: {visible(text)[:40]!r} is none of the texts of "
                    f"the training ({known})"
                )
            numbers[text] = len(numbers)
        return str(numbers[text])

    def found(self) -> dict[str, tuple[str, ...]]:
        """Return the texts of each column, in the order of their numbers."""
        return {name: tuple(numbers) for name, numbers in self._numbers.items()}
