"""Rows as they stand in a file, not yet checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Part:
    """One table of rows as it stands in a file, not yet checked.

    Parameters
    ----------
    file : pathlib.Path
        The file it came from, for messages.
    name : str
        What the features are called in the file, e.g. ``X_train``; empty for a table.
    X : ndarray or StoredRows
        Features, any shape or type.
    y : ndarray, optional
        Labels.
    group : ndarray, optional
        Which person, record or batch a row belongs to.
    columns : tuple of str, optional
        Names of the feature columns of a table.
    lines : sequence of int, optional
        Line numbers of the rows in a text file, counted from 1.
    label : str, optional
        Name of the column of labels of a table.
    texts : mapping of str to tuple of str
        Of each feature column of text its different texts, whose places X holds.
    """

    file: Path
    name: str
    X: Any
    y: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    columns: tuple[str, ...] | None = None
    lines: Sequence[int] | None = None
    label: str | None = None
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def place(self, row: int, column: int | None = None) -> str:
        """Say where a value is, as a person who opens the file would look for it.

        Parameters
        ----------
        row, column : int
            Indices, counted from 0.

        Returns
        -------
        str
            For example ``row 6 (line 7), column 'ax'``.
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
