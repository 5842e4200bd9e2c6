"""The threshold of novelty: what looks like no class, with a promised rate of false alarms."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.prototypes import fit_margin_line, fit_prototypes
from tinykernel.decisions.shares import (
    effective_rows,
    groups_needed,
    rows_needed,
    too_few_groups,
    upper_bound,
)
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import margins, nearer, novelties
from tinykernel.model.readouts.prototypes import distances

#: Rows that stand for novel ones, at most.
_MADE_ROWS = 2000
#: Standard errors by which scores must be better, so that chance seldom takes prototypes away.
_CLEARLY = 3.0


@dataclass(frozen=True)
class Alarms:
    """A threshold of novelty, and what the rows say of it.

    Parameters
    ----------
    threshold : int
        Rows of larger novelty are novel.
    alarms : int
        How many of the rows that is.
    wished, bound : float
        Share of false alarms that was asked for, and what can be promised.
    confidence : float
        Of the promise.
    approximate : bool
        Whether it is so about: where groups were counted as rows.
    """

    threshold: int
    alarms: int
    wished: float
    bound: float
    confidence: float
    approximate: bool = False

    @property
    def statement(self) -> str:
        """What is promised, to follow what is said of errors."""
        return (
            f"; at most {100 * self.wished:.4g} % of rows like these are taken for novel, "
            f"with {'about ' if self.approximate else ''}{100 * self.confidence:.4g} % confidence"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class FittedNovelty:
    """Novelty of rows that calibrate, and what it was fitted to."""

    novelty: NDArray[np.int32]  # (n,)
    # Rows that the margin line was fitted to, so that they cannot promise anything of it.
    used: NDArray[np.bool_]  # (n,)
    # As in `tinykernel.model.answers.decision.Decision`; None for the novelty of scores.
    prototypes: NDArray[np.int8] | None = None
    margin_line: tuple[int, int, int] | None = None
    remark: str = ""  # why there are none although rows are known; else empty.

    def remarks(self, threshold: int) -> tuple[str, ...]:
        """Return what a user should know of the novelty with this threshold."""
        found = (self.remark,) if self.remark else ()
        if self.margin_line is None or threshold < self.margin_line[0]:
            return found
        return (
            *found,
            f"margins never count: one of 0 is worth {self.margin_line[0]}, and the "
            f"threshold is {threshold}; a row is novel by its distance alone",
        )


def fit_novelty(
    model: IntegerModel,
    X: ArrayLike,
    scores: NDArray[np.int32],
    known: tuple[ArrayLike, ArrayLike] | None,
) -> FittedNovelty:
    """Fit prototypes to known rows (X, y), and the worth of a margin to some of the rows X.

    The model was not trained on X, whose scores (n, n_classes) are given. Where these tell the rows
    from made ones clearly better, there are no prototypes: levels of 4 bits cannot tell apart the
    inputs of a model that uses few of their values. Without known rows novelty is that of the
    scores.
    """
    if known is None:
        return FittedNovelty(novelties(scores), np.zeros(len(scores), dtype=np.bool_))
    prototypes = fit_prototypes(model, *known)
    distance = distances(model.quantize_inputs(X), prototypes)
    line, used = fit_margin_line(scores, distance)
    novelty = nearer(distance, margins(scores)[1], line)
    made = _made_rows(model, known[0])
    made_scores = model.scores_quantized(made)
    made_distance = distances(model.quantized(made), prototypes)
    by_scores = novelties(scores), novelties(made_scores)
    by_prototypes = novelty, nearer(made_distance, margins(made_scores)[1], line)
    if not clearly_better(
        by_scores[0][used], by_scores[1], by_prototypes[0][used], by_prototypes[1]
    ):
        return FittedNovelty(novelty, used, prototypes, line)
    better, worse = (
        float(_places(own[used], other).mean()) for own, other in (by_scores, by_prototypes)
    )
    return FittedNovelty(
        by_scores[0],
        used,
        remark="novelty is that of the scores, without prototypes: rows made of shuffled known "
        f"ones are the more novel in {100 * better:.1f} % of pairs with held-out rows by it, in "
        f"{100 * worse:.1f} % by distances and margins",
    )


def _made_rows(model: IntegerModel, X: ArrayLike) -> NDArray[Any]:
    """Return quantized rows, each input of which is that of another known row.

    They stand for what is novel, which nobody has seen: each input is usual, together they are not.
    """
    inputs, rng = model.quantize_inputs(X), np.random.default_rng(0)
    return rng.permuted(inputs[rng.permutation(len(inputs))[:_MADE_ROWS]], axis=0)


def clearly_better(
    one: NDArray[Any], one_made: NDArray[Any], other: NDArray[Any], other_made: NDArray[Any]
) -> bool:
    """Whether the first novelty tells made rows (m,) from known ones (n,) better, beyond chance.

    By the difference of the areas under the ROC of two kinds of novelty of the same rows, which
    must exceed three of its standard errors (DeLong et al. 1988).

    >>> known, made = np.arange(50), np.arange(40, 90)
    >>> clearly_better(known, made, -known, -made), clearly_better(known, made, known, made)
    (True, False)
    """
    ahead = _places(one, one_made) - _places(other, other_made)
    ahead_made = _places(other_made, other) - _places(one_made, one)
    error = np.sqrt(ahead.var() / len(ahead) + ahead_made.var() / len(ahead_made))
    return bool(ahead.mean() > _CLEARLY * error)


def _places(own: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """Return which share of the others exceeds each value, where half of those that equal it."""
    ascending = np.sort(others)
    below = np.searchsorted(ascending, own, "left") + np.searchsorted(ascending, own, "right")
    return np.asarray(1 - below / (2 * len(others)))


def alarms(
    novelty: NDArray[np.int32],
    groups: NDArray[Any] | None,
    wished: float,
    risk: float,
    beside: int = 0,
) -> Alarms:
    """Choose the lowest threshold whose rate of false alarms is at most `wished`, but for `risk`.

    The threshold is one of the values, the k-th from above, so that its bound is exact: a tolerance
    limit after Wilks 1941, whose formula is that of Clopper and Pearson for k - 1 alarms. Of groups
    rows count as fewer, by how much alarms differ between groups, and as two a group at most
    (approximate). Too few rows are a TinykernelError, which says how many are needed; it tells of
    the `beside` further rows that something was fitted to.

    >>> found = alarms(np.arange(1000, dtype=np.int32), None, 0.01, 0.05)
    >>> found.threshold, found.alarms, found.bound <= 0.01
    (995, 4, True)
    """
    values, n = np.sort(novelty)[::-1], len(novelty)
    if not n:
        raise TinykernelError(_too_few(n, 1.0, None, wished, risk, beside))
    share = 1.0
    if groups is not None:
        beyond = novelty > values[min(n - 1, int(wished * n))]
        share = effective_rows(beyond.astype(np.float64), groups, 1 - risk) / n
    bounds = (upper_bound(share * k, share * n, risk) for k in range(n))
    count = -1
    for bound in bounds:
        if bound > wished:
            break
        count += 1
    if count < 0 or too_few_groups(groups):
        raise TinykernelError(_too_few(n, share, groups, wished, risk, beside))
    threshold = int(values[count])
    return Alarms(
        threshold,
        int(np.sum(novelty > threshold)),
        wished,
        upper_bound(share * count, share * n, risk),
        1 - risk,
        groups is not None,
    )


def _too_few(
    n: int, share: float, groups: NDArray[Any] | None, wished: float, risk: float, beside: int
) -> str:
    """Say how many rows can promise a rate of false alarms."""
    have, rest = f"{n} rows", ""
    if beside:
        have += f" beside {beside} that tell what a margin is worth as a distance"
    if groups is not None:
        have += (
            f", of {len(np.unique(groups))} groups, tell as much of new groups as "
            f"{max(1, int(share * n))} independent ones and"
        )
        rest = "; without groups the promise is for new rows of the same groups"
    least = rows_needed(wished, risk)
    assert least is not None
    needed = f"{least} independent ones" if groups is None else f"{groups_needed(least)} groups"
    return (
        f"calibrate: {have} are too few to promise at most {100 * wished:.4g} % false alarms: "
        f"at least {needed} are needed{rest}"
    )
