"""What a model is put together of: stages of a chain, and parts of a read-out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.model.grid import Grid
from tinykernel.model.proof import Range
from tinykernel.model.record import Record


class Piece(Record, ABC):
    """A stage or a part of the read-out."""

    #: The word for it, the same in the names of its files.
    KIND: ClassVar[str]


class Stage(Piece):
    """One step of the chain that turns raw values into what the read-out weighs.

    The docstring of a stage is its specification, which Python and C follow. A stage is a frozen
    dataclass; it knows nothing of the stages around it but the `Grid` that it is given.
    """

    #: Its ports: what it can stand behind, and what it gives. A chain begins with "samples".
    TAKES: ClassVar[tuple[str, ...]]
    GIVES: ClassVar[str]
    #: Whether it needs all of a window of a signal before it gives any row.
    WHOLE: ClassVar[bool] = False

    @property
    def step(self) -> int:
        """Rows of a signal from one that it gives to the next."""
        return 1

    @property
    def words(self) -> str:
        """What people call it; empty where other stages tell enough."""
        return ""

    @property
    def multiple(self) -> int:
        """Of what the rows of a window of a stream must be a multiple."""
        return 1

    @property
    def side_input(self) -> tuple[str, Grid] | None:
        """Name and grid of a second input of the model, which it reads beside the chain."""
        return None

    @property
    def raw_scaler(self) -> Any:
        """The `Scale` of the values that it takes, where it has one."""
        return None

    @property
    def code(self) -> tuple[str, ...]:
        """What the size of its C depends on, beside what all stages share."""
        return ()

    @abstractmethod
    def gives(self, given: Grid) -> Grid:
        """Return what it makes of a grid; TinykernelError where it cannot take that."""

    def calls(self, given: Grid) -> int:
        """Return over how many samples a stream can spread what follows on a row of it."""
        del given
        return 1

    def delay(self, given: Grid) -> int:
        """Return how many samples after the last one of a window a stream gives its last row."""
        del given
        return 0

    @abstractmethod
    def run(self, values: NDArray[Any], given: Grid) -> NDArray[Any]:
        """Compute rows of values, shape (n, rows * columns * channels), in the same form."""

    @abstractmethod
    def ranges(self, given: Grid) -> tuple[Range, ...]:
        """Return the proved bound of every intermediate value, over every possible input."""

    @abstractmethod
    def work(self, given: Grid) -> dict[str, float]:
        """Return how many operations of each kind one input takes."""


class Part(Piece):
    """A part of the read-out: it adds to the totals, one number an output."""

    #: The kind of stage whose output it reads.
    READS: ClassVar[str]

    @abstractmethod
    def check_given(self, given: Grid, n_outputs: int) -> None:
        """Refuse values of another shape, or another number of outputs; TinykernelError."""

    @abstractmethod
    def totals(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Compute what it adds, shape (n, n_outputs), from rows of what it reads."""

    @abstractmethod
    def ranges(self, given: Grid) -> tuple[Range, ...]:
        """Return the proved bound of every intermediate value."""

    @abstractmethod
    def reach(self, given: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least and the most that it adds to each output."""

    @abstractmethod
    def work(self, given: Grid) -> dict[str, float]:
        """Return how many operations of each kind one input takes."""


def proved(ranges: Iterable[Range], owner: str, remedy: str) -> tuple[Range, ...]:
    """Return ranges that are all inside their limits; TinykernelError names the first other."""
    found = tuple(ranges)
    for one in found:
        if not one.fits:
            raise TinykernelError(
                f"{owner}: {one.stage} can reach {one.low}..{one.high}, allowed are "
                f"{one.limit_low}..{one.limit_high}; {remedy}"
            )
    return found
