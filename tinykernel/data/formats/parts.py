"""Rows as they stand in a file, not yet checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Part:
    """One table of rows as it stands in a file, not yet checked."""

    file: Path  # the file it came from, for messages.
    name: str  # what the features are called in the file, e.g. ``X_train``; empty for a table.
    X: Any  # features, any shape or type.
    y: NDArray[Any] | None = None  # labels.
    group: NDArray[Any] | None = None  # which person, record or batch a row belongs to.
    columns: tuple[str, ...] | None = None  # names of the feature columns of a table.
    lines: Sequence[int] | None = None  # line numbers of the rows in a text file, counted from 1.
    label: str | None = None  # name of the column of labels of a table.
    # Of each feature column of text its different texts, whose places X holds.
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: tuple[str, ...] | None = None  # of the pictures that rows are.
    notes: tuple[str, ...] = ()  # what was done to the rows, and what may be wrong with them.
    beside: int = 0  # values at the end of a row that were an array of numbers beside windows.

    def place(self, row: int, column: int | None = None) -> str:
        """Say where a value is, as a person who opens the file would look for it.

        Row and column are counted from 0; ``row 6 (line 7), column 'ax'`` is an example.
        """
        if self.columns is None:
            where = f"{self.name} row {row}"
            return where if column is None else f"{where}, column {column} (counted from 0)"
        where = f"row {row + 1}"
        if self.lines is not None:
            where += f" (line {self.lines[row]})"
        return where if column is None else f"{where}, column {self.columns[column]!r}"


@dataclass(frozen=True, eq=False)
class Parts:
    """What a data file holds: rows to train on, rows to test on, or both."""

    train: Part | None
    test: Part | None

    @property
    def any_part(self) -> Part:
        """The rows to test on, else those to train on; readers return one of them."""
        part = self.test or self.train
        assert part is not None
        return part
