"""Minimum margins for an answer, chosen on rows that the model was not trained on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.decisions.shares import error_bound, rows_needed

_STARTS = 4
_STEPS = 400


@dataclass(frozen=True)
class Threshold:
    """A threshold, and what the rows say about it."""

    threshold: int
    answered: int  # rows that reach the threshold, and how many of them have another label
    wrong: int
    bound: float  # upper bound of the error among the answers


class Ranking:
    """Rows in the order of falling margins.

    A `share` of them, above 0 and at most 1, counts as independent; groups limit answered rows
    further.
    """

    def __init__(
        self,
        margin: NDArray[np.uint32],
        right: NDArray[np.bool_],
        share: float = 1.0,
        groups: NDArray[Any] | None = None,
    ) -> None:
        self.order = np.argsort(-margin.astype(np.int64), kind="stable")
        self.margin, self.share = margin[self.order], share
        self.wrong = np.cumsum((~right[self.order]).astype(np.intp))
        self.groups = None if groups is None else groups[self.order]

    def above(self, limit: int, risk: float) -> Threshold:
        """Return the threshold one above a margin, which answers the rows of larger margins."""
        answered = int(np.searchsorted(-self.margin.astype(np.int64), -limit))
        errors = int(self.wrong[answered - 1]) if answered else 0
        groups = None if self.groups is None else self.groups[:answered]
        bound = error_bound(errors, answered, risk, self.share, groups)
        return Threshold(limit + 1, answered, errors, bound)

    def by_error(self, most: float, risk: float) -> tuple[Threshold | None, Threshold]:
        """Return the lowest threshold whose error among the answers is at most `most`.

        The promise may be broken with probability `risk`. Many thresholds are tried on the same
        rows, and the promise holds for the chosen one (Learn then Test: Angelopoulos, Bates,
        Candes, Jordan & Lei 2021, arXiv:2110.01052, section 2.3). They are tested from the highest
        down, each by the exact bound of Clopper and Pearson. A test that fails hands no risk down.
        Four thresholds, fixed before any label is used, start with a quarter of the risk each: the
        fallback procedure of Wiens & Dmitrienko 2005, which keeps the risk of one wrong claim among
        all. A threshold is one above the margin of a row, and only larger margins count, so that
        the other rows are independent of it.

        Returned are the choice, None where no threshold is good enough, and the threshold with the
        lowest bound, to explain a failure.
        """
        n = len(self.margin)
        starts = _starts(n, most, risk, self.share)
        places = np.unique(np.concatenate([starts, np.linspace(starts[0], n, _STEPS).astype(int)]))
        chosen: Threshold | None = None
        best: Threshold | None = None
        carried = 0.0
        for place in places.tolist():
            level = carried + (risk / len(starts) if place in starts else 0.0)
            if level == 0:
                continue
            # The threshold of the last row answers all.
            trial = self.above(int(self.margin[place - 1]) if place < n else -1, level)
            carried = level if trial.bound <= most else 0.0
            if trial.bound <= most:
                chosen = trial
            if best is None or trial.bound < best.bound:
                best = trial
        assert best is not None
        return chosen, best

    def by_coverage(
        self, coverage: float, risk: float, levels: NDArray[np.float64]
    ) -> Threshold | None:
        """Return the threshold that a new row's margin reaches with at least this probability.

        Split conformal prediction (Papadopoulos et al. 2002), with `levels` of `conformal_levels`.
        The margin of a row would do; the threshold is one above the next lower margin, so that the
        rows that are answered are those by which the error is bounded, also where margins are
        equal. The bound holds for this one threshold, which was chosen without labels. None where
        the rows are too few.
        """
        at = int(np.searchsorted(np.cumsum(levels[self.order]), coverage - 1e-12))
        if at == len(self.margin):
            return None
        lower = self.margin[self.margin < self.margin[at]]
        limit = int(lower.max()) if lower.size else -1
        return self.above(limit, risk)


def _starts(n: int, most: float, risk: float, share: float) -> list[int]:
    """Return after how many rows tests begin: one position, or more if there are enough rows.

    The first place allows a wrong row where that leaves rows to go on.
    """
    least = (rows_needed(most, risk) or n) / share
    count = int(np.clip(n // (2 * least), 1, _STARTS))
    for wrong in (1, 0):
        needed = int(np.ceil((rows_needed(most, risk / count, wrong=wrong) or n) / share)) + 1
        if needed <= n:
            return sorted({int(at) for at in np.rint(np.geomspace(needed, n, count))})
    return [n]
