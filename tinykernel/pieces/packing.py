"""Lossless storage of stages and of parts of the read-out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.tables import Parts, Struct, Table, declared_members, member_text


@dataclass(frozen=True)
class Place:
    """Where a stage stands in a chain, or a part in a read-out."""

    number: int  # in the names of its tables and structure.
    grid: Grid  # what it takes.
    hop: int = 0  # rows of these from window to window of a stream.
    calls: int = 1  # samples of a stream over which a row can be counted.
    streams: bool = False  # whether there is a stream.
    is_signal: bool = False  # whether the chain begins with samples in time.
    following: Stage | None = None  # the next stage.
    reader: Any = None  # the part that reads what a stage gives.
    layout: Any = None  # of what a part reads, as the stage chose it.
    offset: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def structure(
        self,
        name: str,
        stage: Stage,
        tables: Mapping[str, tuple[Any, ...] | None],
        kind: str = "",
        **members: int | list[int],
    ) -> Parts:
        """Return tables, and the structure of a stage, whose members name them."""
        # `tables` holds all of a `Table` but its name by the member, None for no table. A member
        # that is neither a table nor in `members` is an attribute of the stage.
        name, kind = f"tk_{name}_{self.number}", kind or f"tk_{name}"
        made = {key: Table(f"{name}_{key}", *rest) for key, rest in tables.items() if rest}
        known = members | {key: made[key].name if key in made else None for key in tables}
        declared = declared_members(kind)
        assert known.keys() <= set(declared), f"struct {kind} has {', '.join(declared)}"
        values = {key: known[key] if key in known else getattr(stage, key) for key in declared}
        texts = {key: member_text(value) for key, value in values.items()}
        return [*made.values(), Struct(name, kind, texts)]


@dataclass(frozen=True)
class Packed:
    """Definitions, scratch and stream state that a stage or part adds to the C."""

    parts: Parts
    first_words: int = 0  # words of scratch that the machine can use afterwards.
    more_words: int = 0  # words of scratch beside those of the machine.
    state_words: int = 0  # words of a stream; a window of a signal needs a stream of its own.
    kept_words: int = 0  # the last ones of these, which a whole window does not need.
    persists: bool = False  # whether a new window keeps its state.
    layout: Any = None  # what the parts need that read it.


@dataclass(frozen=True)
class Facts:
    """Facts beside its shape that the work of a stage depends on."""

    macros: Mapping[str, str]
    tables: frozenset[str]  # names
    n_outputs: int


#: By line of `bench`: how often a piece of work is done, whose price is measured.
Work: TypeAlias = dict[str, dict[str, float]]

#: Ends and limits of ranges, by name, where tables allow others than the piece; and inputs of
#: highest and lowest values that reach ranges.
Proof: TypeAlias = tuple[dict[str, dict[str, int]], list[dict[str, Any]]]


@dataclass(frozen=True)
class Code:
    """The C of a stage or of a part of the read-out."""

    # Headers of the runtime that only it reads, each with the line of `bench` it counts as; the
    # first has its structure and functions.
    headers: Mapping[str, str]
    pack: Callable[[Any, Place], Packed]
    # Its work in one inference, where that is not the stage's own on the line of its header.
    work: Callable[[Any, Grid, Facts], Work] | None = None
    proof: Callable[[Any, Place], Proof] | None = None
    # The least and the most that a part adds as its tables allow it, where that is another.
    reach: Callable[[Any, Place], tuple[Any, Any]] | None = None
    # What changes the size of its code beside its kind, from the macros of a model.
    properties: Callable[[Any, Mapping[str, str]], dict[str, float]] | None = None
    # What it takes where that was never measured: bytes of code, of which a spectrum has 1130, and
    # instructions of each piece of its work.
    flash: int = 1536
    prices: Mapping[str, float] = field(default_factory=dict)

    def work_of(self, piece: Any, grid: Grid, facts: Facts) -> Work:
        """Return the work of a stage or part in one inference."""
        if self.work is not None:
            return self.work(piece, grid, facts)
        line = next(iter(self.headers.values()))
        name = f"{piece.KIND}, " if line == "local" else ""
        return {line: {f"{name}{unit}s": float(n) for unit, n in piece.work(grid).items()}}
