"""What a model is put together of: stages of a chain, and parts of a read-out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import RangeError
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.proof import Range, range_of
from tinykernel.pieces.record import Record

#: What stages give, in the order in which a chain comes to it.
PORTS = ("rows", "image", "levels", "maps", "units", "counts", "inputs", "components")


class Piece(Record, ABC):
    """A stage or a part of the read-out."""

    #: The word for it, the same in the names of its files and in errors.
    KIND: ClassVar[str]

    #: Whether a model is named after it.
    NAMES: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """List the fields; errors name the kind."""
        super().__init_subclass__()
        cls.OWNER = vars(cls).get("KIND", cls.OWNER)

    @abstractmethod
    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        """Return the proved bound of every intermediate value, over every possible input."""

    @property
    def small_code(self) -> bool:
        """Whether the firmware has little code for it rather than few instructions."""
        return False

    def in_words(self, view: str, inputs: str) -> str:
        """Describe it, with what a model takes and its inputs; empty if others say enough."""
        return ""

    def facts(self) -> dict[str, Any]:
        """Return the numbers that describe it, by name."""
        return {}

    @property
    def firmware_order(self) -> NDArray[np.int64] | None:
        """In which order the firmware computes what it gives, if not that of the model."""
        return None

    def reorder(self, order: NDArray[np.int64]) -> Any:
        """Return the same, but for the order of what it gives or takes; None where it cannot."""
        return None

    def work(self, grid: Grid) -> dict[str, float]:
        """Return the operations of each kind for one input, if its `pack.py` does not say."""
        return {}


class Stage(Piece):
    """One step of the chain that turns raw values into what the read-out weighs.

    The docstring of a stage is its specification, which Python and C follow. A stage knows nothing
    of the others but the `Grid` that it takes.
    """

    #: Its ports: what it can stand behind, and what it gives. A chain begins with "samples".
    TAKES: ClassVar[tuple[str, ...]]
    GIVES: ClassVar[str]
    #: Whether the windows of a stream have rows of it in common.
    SHARES: ClassVar[bool] = False
    #: Kinds of inputs of which chains can have it in C.
    INPUTS: ClassVar[tuple[str, ...]] = ("table", "signal", "image")
    #: Where simple models learn if they learn from what it gives, in words or empty.
    SIMPLER: ClassVar[str | None] = None
    #: Whether it reads as many values as a word of weights has, hence memory behind the last one.
    READS_WORDS: ClassVar[bool] = False

    @property
    def step(self) -> int:
        """Rows of a signal from one that it gives to the next."""
        return 1

    def hop_behind(self, hop: int) -> int:
        """Return the rows that it gives from window to window; 0 if it gives each window anew."""
        return hop // self.step

    @property
    def streams(self) -> bool:
        """Whether a stream computes it row by row, in place of whole windows."""
        return False

    @property
    def negative(self) -> NDArray[np.bool_] | None:
        """Which values change their sign as it takes them."""
        return None

    @property
    def title(self) -> str:
        """Name for people; empty where other stages say enough."""
        return ""

    def in_words(self, view: str, inputs: str) -> str:
        """Return the title."""
        return self.title

    @property
    def numbers(self) -> Grid | None:
        """The second input of a model, if it reads that."""
        return None

    def check_stream(self, grid: Grid) -> None:
        """Refuse a grid of which a stream cannot make windows; TinykernelError."""

    def delay(self, grid: Grid) -> int:
        """Return the samples of a stream from the last one of a window to what it gives."""
        return 0

    @property
    def raw_scaler(self) -> Any:
        """The `Scale` of the values that it takes, where it has one."""
        return None

    @abstractmethod
    def gives(self, grid: Grid) -> Grid:
        """Return what it makes of a grid; TinykernelError where it cannot take that."""

    def calls(self, grid: Grid) -> int:
        """Return over how many samples a stream can spread what follows on a row of it."""
        return 1

    @abstractmethod
    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        """Compute rows of values, shape (n, rows * columns * channels), in the same form."""

    def stored(self) -> Stage:
        """Return it without what the firmware never reads."""
        return self

    def run_windows(self, rows: NDArray[Any], grid: Grid, hop: int) -> NDArray[Any]:
        """Run on all windows of a stream of rows (m, channels), one every `hop` rows."""
        windows = np.lib.stride_tricks.sliding_window_view(rows, grid.rows, axis=0)[::hop]
        return self.run(windows.transpose(0, 2, 1).reshape(len(windows), -1), grid)


class Part(Piece):
    """A part of the read-out: it adds to the totals, one number an output."""

    #: The kind of stage whose output it reads.
    READS: ClassVar[str]
    #: The input of which the offset is the score.
    ZERO: ClassVar[str] = "inputs that are all 0"
    #: Whether its sums may be added to those of another part, whose header comes first.
    JOINS: ClassVar[bool] = False
    #: Whether it makes a model of one class, as the only part.
    ONE_CLASS: ClassVar[bool] = False

    @abstractmethod
    def check_grid(self, grid: Grid, n_outputs: int) -> None:
        """Refuse values of another shape, or another number of outputs; TinykernelError."""

    @abstractmethod
    def totals(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Compute what it adds, shape (n, n_outputs), from rows of what it reads."""

    @abstractmethod
    def reach(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least and the most that it adds to each output."""


def prove(ranges: Iterable[Range], owner: str, remedy: str) -> tuple[Range, ...]:
    """Return ranges that are all inside their limits; TinykernelError names the first other."""
    bounds = tuple(ranges)
    for bound in bounds:
        if not bound.fits:
            raise RangeError(
                f"{owner}: {bound.stage} can reach {bound.low}..{bound.high}, allowed are "
                f"{bound.limit_low}..{bound.limit_high}; {remedy}"
            )
    return bounds


def dot_ends(
    weights: NDArray[Any], high: Any, low: Any = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the largest dot product of each row of weights with low..high.

    >>> least, most = dot_ends(np.array([[1, -2]]), 10)
    >>> least.tolist(), most.tolist()
    ([-20], [10])
    """
    positive = np.maximum(weights, 0).sum(axis=1, dtype=np.int64)
    negative = np.minimum(weights, 0).sum(axis=1, dtype=np.int64)
    return high * negative + low * positive, high * positive + low * negative


class Sample(NamedTuple):
    """A chain from raw inputs to a stage, or to a part that reads the last one.

    The function `samples` of each ``sample.py`` draws some by a seed. What follows, such as a
    scale, an offset and answers, is left to those who make a model of them.
    """

    input: Grid
    stages: tuple[Stage, ...]
    part: Part | None = None
    hop: int = 0  # samples of a stream from window to window.


@dataclass(frozen=True, eq=False)
class Readout(Record):
    """The parts of a read-out, and an offset: ``total_o = offset_o + sum over the parts``."""

    parts: tuple[Part, ...]  # at least one, no two of a kind
    offset: NDArray[np.int32]  # (n_outputs,)

    def check(self) -> None:
        """Check the kinds of the parts."""
        kinds = [part.KIND for part in self.parts]
        if not kinds or len(set(kinds)) != len(kinds):
            raise self.refuse("a read-out has one part or more, each of another kind")
        if len(kinds) > 1 and any(part.ONE_CLASS for part in self.parts):
            raise self.refuse(f"{' and '.join(kinds)} do not go together; one stands alone")
        main = [part.KIND for part in self.parts if not part.JOINS]
        if len(main) > 1:
            raise self.refuse(f"{' and '.join(main)} do not go together; take one of them")

    def check_grids(self, grids: Mapping[str, Grid], n_outputs: int) -> None:
        """Refuse the grids of a chain, by kind of stage, that do not fit."""
        self.require_shape("offset", (n_outputs,))
        for part in self.parts:
            if part.READS not in grids:
                raise self.refuse(f"the part {part.KIND} needs a stage {part.READS}")
            part.check_grid(grids[part.READS], n_outputs)

    def totals(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.int32]:
        """Compute the totals of rows from what the stages gave, by kind of stage."""
        totals = sum(part.totals(values[part.READS]) for part in self.parts)
        return np.asarray(totals + self.offset, dtype=np.int32)

    def ranges(self, grids: Mapping[str, Grid]) -> tuple[Range, ...]:
        """Return the ranges of every part, and of the scores."""
        ranges = [bound for part in self.parts for bound in part.ranges(grids[part.READS])]
        reaches = [part.reach(grids[part.READS]) for part in self.parts]
        return (*ranges, score_range(self.offset, reaches))


def score_range(offset: NDArray[np.int32], reaches: Iterable[tuple[Any, Any]]) -> Range:
    """Return the range of the scores from the least and the most that parts add to outputs."""
    low = high = offset.astype(np.int64)
    for least, most in reaches:
        low, high = low + least, high + most
    if offset.size == 1:  # of two classes: both signs are scores
        low, high = np.minimum(low, -high), np.maximum(high, -low)
    return range_of("score", low, high)
