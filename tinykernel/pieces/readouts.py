"""The read-out: what its parts add up to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Part
from tinykernel.pieces.proof import Range, range_of
from tinykernel.pieces.record import Record


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
