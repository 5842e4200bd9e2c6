"""Rows of a file, not yet checked, and which columns of a table are labels, groups and inputs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.checks import check_choice
from tinykernel.base.coding import Coding
from tinykernel.base.errors import DataError, TinykernelError
from tinykernel.base.text import join, similar, visible


@dataclass(frozen=True)
class Selection:
    """What to take from a file as labels, groups and inputs, and how to treat missing values."""

    inputs: tuple[str, ...] | None = None  # columns in this order; else all but label and groups
    drop: tuple[str, ...] = ()  # columns to ignore
    # Missing values: "keep" codes them, "drop" drops rows, "error" refuses them; None is "keep" for
    # tables and "error" otherwise.
    missing: str | None = None
    coding: Coding | None = None  # of an earlier training
    # Columns of a table, arrays of an ``.npz``, or files beside an ``.npy``.
    label: str | None = None
    groups: str | None = None

    def __post_init__(self) -> None:
        """Check the choice."""
        check_choice("missing", self.missing, (None, "keep", "drop", "error"))

    @property
    def names_columns(self) -> bool:
        """Whether it names columns, which needs a table."""
        return self.inputs is not None or bool(self.drop)

    def positions(self, file: object, columns: Sequence[str], others: Sequence[int]) -> list[int]:
        """Return the positions of the inputs of a table; `others` are those of label and groups."""
        for name in [*(self.inputs or ()), *self.drop]:
            if name not in columns:
                raise no_column(file, name, columns)
            if columns.index(name) in others:
                raise DataError(f"{file}: column {name!r} is the label or the group; choose inputs")
        if self.inputs is not None and len(set(self.inputs)) < len(self.inputs):
            raise DataError(f"{file}: inputs names a column twice; name it once")
        names = columns if self.inputs is None else self.inputs
        places = [columns.index(name) for name in names if name not in self.drop]
        places = [place for place in places if place not in others]
        if not places and self.names_columns:
            raise DataError(f"{file}: no column is left as input; drop fewer")
        return places


#: Default names of a column of labels.
LABEL_NAMES = ("label", "target", "class", "y")


@dataclass(frozen=True, eq=False)
class FilePart:
    """Rows of a file, not yet checked."""

    file: Path  # for messages.
    name: str  # name of the array, e.g. ``X_train``; empty for a table.
    X: Any  # features, any shape or type.
    y: NDArray[Any] | None = None  # labels.
    group: NDArray[Any] | None = None  # which person, record or batch a row belongs to.
    columns: tuple[str, ...] | None = None  # names of the feature columns of a table.
    lines: Sequence[int] | None = None  # line numbers of the rows in a text file, counted from 1.
    label: str | None = None  # name of the column of labels of a table.
    # The texts of each text column; X has their indices.
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: tuple[str, ...] | None = None  # of pictures.
    notes: tuple[str, ...] = ()  # on changes to the rows and possible faults.
    beside: int = 0  # numbers beside windows, the last values of a row.

    def place(self, row: int, column: int | None = None) -> str:
        """Return the place of a value in the file, e.g. ``row 6 (line 7), column 'ax'``."""
        if self.columns is None:
            where = f"{self.name} row {row}"
            return where if column is None else f"{where}, column {column} (counted from 0)"
        where = f"row {row + 1}"
        if self.lines is not None:
            where += f" (line {self.lines[row]})"
        return where if column is None else f"{where}, column {self.columns[column]!r}"


@dataclass(frozen=True, eq=False)
class Parts:
    """Training rows of a file, test rows, or both."""

    train: FilePart | None
    test: FilePart | None

    @property
    def any_part(self) -> FilePart:
        """The test rows, else the training rows."""
        part = self.test or self.train
        assert part is not None
        return part


@dataclass(frozen=True)
class ColumnChooser:
    """Finds the columns of labels, groups and inputs of a table."""

    path: Path
    selection: Selection
    needed: bool
    n_features: int | None = None
    keep_all: bool = False
    other_way: str = ""  # to name the labels, than by their column
    channels: Sequence[str] = ()  # of recordings, which are no labels
    is_said: bool = False  # whether the labels are said elsewhere, so that y is a channel

    @property
    def known(self) -> tuple[str, ...]:
        """Names that the header should have."""
        chosen = self.selection
        names = (chosen.label, chosen.groups, *(chosen.inputs or ()), *chosen.drop)
        return tuple(name for name in names if name is not None)

    @property
    def texts(self) -> frozenset[str]:
        """Columns that held text in an earlier training."""
        coding = self.selection.coding
        return frozenset() if coding is None else frozenset(coding.texts)

    def positions(self, columns: Sequence[str]) -> tuple[int | None, int | None, list[int]]:
        """Return the positions of labels and groups (None without), and of inputs."""
        groups = self.selection.groups
        group = None if groups is None else self._named(groups, columns)
        label = self._label(columns, group)
        if group is not None and label == group:
            raise DataError(
                f"{self.path}: column {groups!r} is label and group; choose another --groups"
            )
        others = [position for position in (label, group) if position is not None]
        return label, group, self.selection.positions(self.path, columns, others)

    def _named(self, name: str, columns: Sequence[str]) -> int | None:
        if name in columns:
            return columns.index(name)
        alike = [i for i, column in enumerate(columns) if column.casefold() == name.casefold()]
        if not alike and not self.needed:
            return None
        if len(alike) != 1:
            raise no_column(self.path, name, columns)
        return alike[0]

    def _label(self, columns: Sequence[str], group: int | None) -> int | None:
        if self.selection.label is not None:
            return self._named(self.selection.label, columns)
        inputs = {*(self.selection.inputs or ()), *self.channels}
        taken, lower = {*self.selection.drop, *inputs}, {name.lower() for name in columns}
        is_axis = not inputs and (lower.issuperset("xyz") or lower.issuperset(("x", "label")))
        places = [
            i
            for i, name in enumerate(columns)
            if name.lower() in LABEL_NAMES and i != group and name not in taken
            if not (name.lower() == "y" and (is_axis or self.is_said))
        ]
        width = len(columns) - (group is not None) - len(self.selection.drop)
        if not self.needed and self.selection.inputs is None and self.n_features == width:
            return None
        if len(places) == 1:
            return places[0]
        if not self.needed and not places:
            return None
        several = join([repr(columns[i]) for i in places])
        why = f" ({several} may do so)" * bool(places)
        why = why or " (y beside x and z is an axis)" * is_axis
        raise DataError(
            f"{self.path}: say which column holds the labels{why} with --label "
            f"COLUMN{self.other_way}; columns: {join(columns, 12)}"
        )


def no_column(file: object, name: str, columns: Sequence[str]) -> TinykernelError:
    """Return the error about a column that a table lacks."""
    return DataError(f"{file}: has no column called {name!r}; {those_there(name, columns)}")


def those_there(name: str, columns: Sequence[str]) -> str:
    """List the columns of a file, after the one that was probably meant by `name`."""
    return visible(f"{similar(name, columns, repr)} columns: {join(columns, 12)}".lstrip())


def told_apart(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of columns, with its number behind each that repeats.

    >>> told_apart(["ECG", "Resp", "ECG"])
    ('ECG 1', 'Resp', 'ECG 3')
    """
    n_times = Counter(names := list(names))
    return tuple(f"{n} {i}" if n_times[n] > 1 else n for i, n in enumerate(names, start=1))


def refuse_doubles(path: Path, names: Sequence[str]) -> None:
    """Refuse a table with two columns of one name."""
    double = next((name for name, n in Counter(names).items() if n > 1), None)
    if double is not None:
        raise DataError(f"{path}: two columns are called {double!r}; rename one")


def part_of(table: Any, chooser: ColumnChooser) -> FilePart:
    """Read a table; rows without a label are dropped, or with `keep_all` labels are ignored."""
    path, names, notes = table.path, table.names, table.notes
    place, group_place, inputs = chooser.positions(names)
    y, numbers = None, None  # numbers of the rows in the file, from 1.
    if place is not None:
        y, lacking = table.labels(place)
        n, n_lacking = len(y), int(lacking.sum())
        if n_lacking and (chooser.keep_all or (n_lacking == n and not chooser.needed)):
            y = None
        elif n_lacking and n_lacking == n:
            raise DataError(
                f"{path}: column {names[place]!r}: every label is missing; choose another --label"
            )
        elif n_lacking:
            lines = table.lines
            first = "" if lines is None else f", the first in line {lines[int(lacking.argmax())]}"
            notes = (*notes, f"left out: {n_lacking} of {n} rows, without a label{first}")
            table, y, numbers = table.at(~lacking), y[~lacking], 1 + np.flatnonzero(~lacking)
    group = None
    if group_place is not None:
        group, lacking = table.groups(group_place)
        if lacking.any():
            row = int(lacking.argmax())
            number = row + 1 if numbers is None else int(numbers[row])
            line = "" if table.lines is None else f" (line {table.lines[row]})"
            raise DataError(
                f"{path}: row {number}{line}, column {names[group_place]!r}: the group is missing; "
                "fill it"
            )
    chosen = tuple(names[i] for i in inputs)
    columns, y = table.inputs(inputs, chooser.texts, place, y)
    n_rows = 0 if y is None else len(y)
    X = np.column_stack([c.values for c in columns]) if columns else np.empty((n_rows, 0))
    texts = {n: c.texts for n, c in zip(chosen, columns, strict=True) if c.texts is not None}
    label = None if place is None else names[place]
    return FilePart(path, "", X, y, group, chosen, table.lines, label, texts, notes=notes)
