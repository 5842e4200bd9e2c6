"""What the packing of a stage before the machine is given, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass

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
    parts : list of Definition, Table and Struct
    first_words : int
        Words of scratch that the machine can use afterwards.
    words : int
        Words of scratch beside those of the machine.
    state_words : int
        Words of a stream; a window of a signal needs a stream of its own.
    kept_words : int
        The last ones of these, which a whole window does not need.
    """

    parts: Parts
    first_words: int = 0
    words: int = 0
    state_words: int = 0
    kept_words: int = 0
