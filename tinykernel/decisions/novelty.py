"""The threshold of novelty, for rows that look like no class, with a promised false-alarm rate."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions import shares
from tinykernel.decisions.prototypes import fit_margin_line, fit_prototypes
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import margins, nearer, novelties
from tinykernel.model.readouts.prototypes import distances

#: The most rows that stand for novel ones.
_MADE_ROWS = 2000
#: Standard errors by which scores must be better, so that chance seldom removes prototypes.
_CLEARLY = 3.0


@dataclass(frozen=True)
class Alarms:
    """A threshold of novelty, and what the rows say about it.

    Parameters
    ----------
    threshold : int
        Rows of larger novelty are novel.
    alarms : int
        Number of the rows that are novel.
    wished, bound : float
        Share of false alarms that was asked for, and the one that can be promised.
    confidence : float
        Confidence of the promise.
    approximate : bool
        Whether the promise is approximate, as with groups.
    """

    threshold: int
    alarms: int
    wished: float
    bound: float
    confidence: float
    approximate: bool = False

    @property
    def statement(self) -> str:
        """The promise, to follow that about errors."""
        return (
            f"; at most {100 * self.wished:.4g} % of rows like these are taken for novel, "
            f"with {'about ' if self.approximate else ''}{100 * self.confidence:.4g} % confidence"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class FittedNovelty:
    """Novelty of the calibration rows, with prototypes and line as `Decision` holds them."""

    novelty: NDArray[np.int32]  # (n,)
    used: NDArray[np.bool_]  # (n,): rows that the line was fitted to; they promise nothing
    prototypes: NDArray[np.int8] | None = None  # None for the novelty of scores
    margin_line: tuple[int, int, int] | None = None
    remark: str = ""  # why there are no prototypes although rows are known

    def remarks(self, threshold: int) -> tuple[str, ...]:
        """Return what a user should know about the novelty with this threshold."""
        remarks: tuple[str, ...] = (self.remark,) if self.remark else ()
        if self.margin_line is not None and threshold >= self.margin_line[0]:
            remarks += (
                f"margins never count: one of 0 is worth {self.margin_line[0]}, and the "
                f"threshold is {threshold}; a row is novel by its distance alone",
            )
        return remarks


def fit_novelty(
    model: IntegerModel,
    X: ArrayLike,
    scores: NDArray[np.int32],
    known: tuple[ArrayLike, ArrayLike] | None,
) -> FittedNovelty:
    """Fit prototypes to known rows (X, y), and the worth of a margin to a part of the rows X.

    `scores` (n, n_classes) are those of X, which the model was not trained on. There are no
    prototypes where the scores tell these rows from made ones clearly better: levels of 4 bits
    cannot tell apart inputs that use few values. Without known rows novelty is that of the scores.
    """
    if known is None:
        return FittedNovelty(novelties(scores), np.zeros(len(scores), dtype=np.bool_))
    prototypes, made = fit_prototypes(model, *known), _made_rows(model, known[0])
    distance = distances(model.quantize_inputs(X), prototypes)
    line, used = fit_margin_line(scores, distance)
    novelty, made_scores = nearer(distance, margins(scores)[1], line), model.scores_quantized(made)
    made_distance = distances(model.quantized(made), prototypes)
    by_scores = novelties(scores)[used], novelties(made_scores)
    by_prototypes = novelty[used], nearer(made_distance, margins(made_scores)[1], line)
    if not clearly_better(*by_scores, *by_prototypes):
        return FittedNovelty(novelty, used, prototypes, line)
    better, worse = (100 * _places(*each).mean() for each in (by_scores, by_prototypes))
    return FittedNovelty(
        novelties(scores),
        used,
        remark="novelty is that of the scores, without prototypes: rows made of shuffled known "
        f"ones are the more novel in {better:.1f} % of pairs with held-out rows by it, in "
        f"{worse:.1f} % by distances and margins",
    )


def _made_rows(model: IntegerModel, X: ArrayLike) -> NDArray[Any]:
    """Return quantized rows that stand for novel ones: known rows with shuffled inputs.

    Each input alone is usual, together they are not.
    """
    inputs, rng = model.quantize_inputs(X), np.random.default_rng(0)
    return rng.permuted(inputs[rng.permutation(len(inputs))[:_MADE_ROWS]], axis=0)


def clearly_better(
    first: NDArray[Any], first_made: NDArray[Any], other: NDArray[Any], other_made: NDArray[Any]
) -> bool:
    """Whether the first novelty separates made rows (m,) from known ones (n,) significantly better.

    The difference of the areas under the two ROC curves must exceed three of its standard errors
    (DeLong et al. 1988).

    >>> known, made = np.arange(50), np.arange(40, 90)
    >>> clearly_better(known, made, -known, -made), clearly_better(known, made, known, made)
    (True, False)
    """
    ahead = _places(first, first_made) - _places(other, other_made)
    ahead_made = _places(other_made, other) - _places(first_made, first)
    error = np.sqrt(ahead.var() / len(ahead) + ahead_made.var() / len(ahead_made))
    return bool(ahead.mean() > _CLEARLY * error)


def _places(values: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """Return which share of the others exceeds each value; equal ones count half."""
    ascending = np.sort(others)
    below = np.searchsorted(ascending, values, "left") + np.searchsorted(ascending, values, "right")
    return np.asarray(1 - below / (2 * len(others)))


def alarms(
    novelty: NDArray[np.int32],
    groups: NDArray[Any] | None,
    wished: float,
    risk: float,
    beside: int = 0,
) -> Alarms:
    """Choose the lowest threshold with a rate of false alarms of at most `wished`.

    The promise may be broken with probability `risk`. The threshold is the k-th largest value, so
    that its bound is exact: a tolerance limit after Wilks 1941, whose formula is that of Clopper
    and Pearson for k - 1 alarms. Rows of groups count as fewer, by how much alarms differ between
    groups, and as at most two a group (approximate). Too few rows are a TinykernelError that says
    how many are needed; it mentions the `beside` further rows that something was fitted to.

    >>> chosen = alarms(np.arange(1000, dtype=np.int32), None, 0.01, 0.05)
    >>> chosen.threshold, chosen.alarms, chosen.bound <= 0.01
    (995, 4, True)
    """
    values, n = np.sort(novelty)[::-1], len(novelty)
    share, count = 1.0, 0
    if groups is not None and n:
        beyond = novelty > values[min(n - 1, int(wished * n))]
        share = shares.effective_rows(beyond.astype(np.float64), groups, 1 - risk) / n
    while count < n and shares.upper_bound(share * count, share * n, risk) <= wished:
        count += 1
    if not count or shares.too_few_groups(groups):
        raise TinykernelError(_too_few(n, share, groups, wished, risk, beside))
    threshold = int(values[count - 1])
    return Alarms(
        threshold,
        int(np.sum(novelty > threshold)),
        wished,
        shares.upper_bound(share * (count - 1), share * n, risk),
        1 - risk,
        groups is not None,
    )


def _too_few(
    n: int, share: float, groups: NDArray[Any] | None, wished: float, risk: float, beside: int
) -> str:
    """Say how many rows can promise a rate of false alarms."""
    least = shares.rows_needed(wished, risk)
    assert least is not None
    have, needed, rest = f"{n} rows", f"{least} independent ones", ""
    if beside:
        have += f" beside {beside} that tell what a margin is worth as a distance"
    if groups is not None and n:
        have += shares.worth_of_groups(groups, share * n)
        needed = f"{shares.groups_needed(least)} groups"
        rest = "; without groups the promise is for new rows of the same groups"
    return (
        f"calibrate: {have} are too few to promise at most {100 * wished:.4g} % false alarms: "
        f"at least {needed} are needed{rest}"
    )
