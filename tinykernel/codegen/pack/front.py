"""What code generation knows of a stage or a part: the record that each file here has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tinykernel.codegen.definitions import Parts
from tinykernel.model.grid import Grid
from tinykernel.model.stage import Stage


@dataclass(frozen=True)
class Place:
    """Where a stage stands in a chain.

    Parameters
    ----------
    number : int
        In the names of its tables and structure.
    given : Grid
        What it takes.
    hop : int
        Rows of these from window to window of a stream.
    calls : int
        Samples of a stream over which a row can be counted.
    streams : bool
        Whether there is a stream.
    following : Stage, optional
        The next stage.
    """

    number: int
    given: Grid
    hop: int
    calls: int
    streams: bool
    following: Stage | None = None


@dataclass(frozen=True)
class Packed:
    """What a stage adds to a source, to scratch and to the state of a stream.

    Parameters
    ----------
    header : str
        Of the runtime: its structure and functions.
    parts : list of Definition, Table and Struct
    first_words : int
        Words of scratch that the machine can use afterwards.
    words : int
        Words of scratch beside those of the machine.
    state_words : int
        Words of a stream; a window of a signal needs a stream of its own.
    kept_words : int
        The last ones of these, which a whole window does not need.
    persists : bool
        Whether the begin of a window leaves its state as it is.
    """

    header: str
    parts: Parts
    first_words: int = 0
    words: int = 0
    state_words: int = 0
    kept_words: int = 0
    persists: bool = False


@dataclass(frozen=True)
class Facts:
    """What the work of a stage depends on beside its shape."""

    macros: Mapping[str, str]
    tables: frozenset[str]  # names
    n_outputs: int


#: By line of `bench`: how often a piece of work is done, whose price is measured.
Work: TypeAlias = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Code:
    """The C of a stage or of a part of the read-out.

    Parameters
    ----------
    headers : mapping of str to str
        Headers of the runtime that only it reads, each with the line of `bench` it counts as.
    work : callable
        Takes the stage, the grid that it takes and the facts; returns its work in one inference.
    pack : callable, optional
        Takes the stage and its place, returns what is packed. None for those of the machine, which
        `tinykernel.codegen.plan` packs together.
    """

    headers: Mapping[str, str]
    work: Callable[[Any, Grid, Facts], Work]
    pack: Callable[[Any, Place], Packed] | None = None
