"""What tables share, text or not: which columns hold labels and groups, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tinykernel.data.selection import Selection
from tinykernel.errors import TinykernelError

_LABEL_NAMES = ("label", "target", "class", "y")
#: What to do about a cell that is no number.
LEAVE_OUT = "mend the cell, or leave the column out (train: --set drop=NAME)"


@dataclass(frozen=True)
class ColumnChooser:
    """Decides which columns of a table hold the labels and the groups."""

    path: Path
    label: str | None
    needed: bool
    n_features: int | None
    groups: str | None = None
    selection: Selection = field(default_factory=Selection)

    def positions(self, columns: Sequence[str]) -> tuple[int | None, int | None, list[int]]:
        """Return the positions of labels and groups, None where there are none, and of inputs."""
        group = None if self.groups is None else self._named(self.groups, columns)
        label = self._label(columns, group)
        if group is not None and label == group:
            raise TinykernelError(
                f"{self.path}: column {self.groups!r} cannot be both label and group"
            )
        others = [position for position in (label, group) if position is not None]
        return label, group, self.selection.positions(self.path, columns, others)

    def _named(self, name: str, columns: Sequence[str]) -> int:
        if columns.count(name) != 1:
            count = "two columns" if name in columns else "no column"
            raise TinykernelError(
                f"{self.path}: has {count} called {name!r}; columns: {shown(columns)}"
            )
        return columns.index(name)

    def _label(self, columns: Sequence[str], group: int | None) -> int | None:
        if self.label is not None:
            return self._named(self.label, columns)
        taken = {*self.selection.drop, *(self.selection.inputs or ())}
        found = [
            i
            for i, name in enumerate(columns)
            if name.lower() in _LABEL_NAMES and i != group and name not in taken
        ]
        width = len(columns) - (group is not None) - len(self.selection.drop)
        if not self.needed and self.selection.inputs is None and self.n_features == width:
            return None
        if len(found) == 1:
            return found[0]
        if not self.needed and not found:
            return None
        raise TinykernelError(
            f"{self.path}: say which column holds the labels with --label COLUMN; columns: "
            f"{shown(columns)}"
        )


def shown(columns: Sequence[str]) -> str:
    """List names for a message, twelve at most."""
    more = f", ... ({len(columns)} in all)" if len(columns) > 12 else ""
    return ", ".join(columns[:12]) + more


def refuse_doubles(path: Path, names: Sequence[str]) -> None:
    """Refuse a table in which two columns have one name."""
    seen = set[str]()
    for name in names:
        if name in seen:
            raise TinykernelError(f"{path}: two columns are called {name!r}; rename one")
        seen.add(name)
