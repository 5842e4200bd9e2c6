"""Least margins at which a model answers, chosen on rows that it was not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.decisions.shares import error_bound, rows_needed

_STARTS = 4
_STEPS = 400


@dataclass(frozen=True)
class Choice:
    """A threshold, and what the rows say of it."""

    threshold: int
    answered: int  # rows above the threshold, and how many of these have another label.
    wrong: int
    bound: float  # upper bound of the error among answered.


def by_error(
    margin: NDArray[np.uint32],
    right: NDArray[np.bool_],
    most: float,
    risk: float,
    share: float,
    groups: NDArray[Any] | None = None,
) -> tuple[Choice | None, Choice]:
    """Return the lowest threshold whose error among answered is at most `most`, but for `risk`.

    Many thresholds are tried on the same rows, and the promise holds for the one that is chosen
    (Learn then Test: Angelopoulos, Bates, Candes, Jordan & Lei 2021, arXiv:2110.01052, section
    2.3). They are tested from the highest down, each by the exact bound of Clopper and Pearson. A
    test that fails hands no risk down; four thresholds, known before any label is looked at, have a
    quarter of the risk each to begin with: the fallback procedure of Wiens & Dmitrienko 2005, which
    keeps the risk of one wrong claim among all. A threshold is one above the margin of a row, and
    only larger margins count, so that, given that row, the others are independent.

    `share` of the rows, above 0 and at most 1, counts as independent, and answered rows count as no
    more than their groups allow. Returned are the choice, None where no threshold is good enough,
    and the one with the lowest bound, to explain a failure.
    """
    order = np.argsort(-margin.astype(np.int64), kind="stable")
    sorted_margin, wrong = margin[order], np.cumsum((~right[order]).astype(np.intp))
    sorted_groups = None if groups is None else groups[order]
    n = len(margin)
    starts = _starts(n, most, risk, share)
    places = np.unique(np.concatenate([starts, np.linspace(starts[0], n, _STEPS).astype(int)]))
    chosen: Choice | None = None
    best: Choice | None = None
    carried = 0.0
    for place in places.tolist():
        level = carried + (risk / len(starts) if place in starts else 0.0)
        if level == 0:
            continue
        found = _at(sorted_margin, wrong, place, level, share, sorted_groups)
        passed = found.bound <= most
        carried = level if passed else 0.0
        if passed:
            chosen = found
        if best is None or found.bound < best.bound:
            best = found
    assert best is not None
    return chosen, best


def _starts(n: int, most: float, risk: float, share: float) -> list[int]:
    """Return after how many rows tests begin: one, or more where the rows suffice for it.

    The first one allows a wrong row where that leaves rows to go on.
    """
    least = (rows_needed(most, risk) or n) / share
    count = int(np.clip(n // (2 * least), 1, _STARTS))
    for wrong in (1, 0):
        needed = int(np.ceil((rows_needed(most, risk / count, wrong=wrong) or n) / share)) + 1
        if needed <= n:
            return sorted({int(at) for at in np.rint(np.geomspace(needed, n, count))})
    return [n]


def _at(
    sorted_margin: NDArray[np.uint32],
    wrong: NDArray[np.intp],
    place: int,
    level: float,
    share: float,
    groups: NDArray[Any] | None,
) -> Choice:
    """Return the threshold above row `place`, counted from 1; that of the last row answers all."""
    limit = int(sorted_margin[place - 1]) if place < len(sorted_margin) else -1
    return _above(limit, sorted_margin, wrong, level, share, groups)


def _above(
    limit: int,
    sorted_margin: NDArray[np.uint32],
    wrong: NDArray[np.intp],
    risk: float,
    share: float,
    groups: NDArray[Any] | None,
) -> Choice:
    """Return the threshold one above a margin, which answers the rows of larger ones.

    Rows and groups are in the order of falling margins, `wrong` counts from the first on.
    """
    answered = int(np.searchsorted(-sorted_margin.astype(np.int64), -limit))
    errors = int(wrong[answered - 1]) if answered else 0
    among = None if groups is None else groups[:answered]
    return Choice(limit + 1, answered, errors, error_bound(errors, answered, risk, share, among))


def by_coverage(
    margin: NDArray[np.uint32],
    right: NDArray[np.bool_],
    coverage: float,
    risk: float,
    share: float,
    levels: NDArray[np.float64],
    groups: NDArray[Any] | None = None,
) -> Choice | None:
    """Return the threshold that a new row's margin reaches with at least this probability.

    Split conformal prediction (Papadopoulos et al. 2002), with `levels` of `conformal_levels`: the
    margin of a row would do, and the threshold is one above the next lower margin, so that the
    rows that are answered are those by which the error is bounded, also where margins are equal.
    The bound holds for this one threshold, which no label had a part in. None where the rows are
    too few.
    """
    order = np.argsort(-margin.astype(np.int64), kind="stable")
    at = int(np.searchsorted(np.cumsum(levels[order]), coverage - 1e-12))
    if at == len(margin):
        return None
    lower = margin[margin < margin[order[at]]]
    limit = int(lower.max()) if lower.size else -1
    wrong = np.cumsum((~right[order]).astype(np.intp))
    among = None if groups is None else groups[order]
    return _above(limit, margin[order], wrong, risk, share, among)
