"""The threshold of novelty, for rows that look like no class, with a promised false-alarm rate."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import RowsError, ShapeError
from tinykernel.learn import confidence as shares
from tinykernel.model.answers import margins, nearer, novelties
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.prototypes.spec import LARGEST_MARGIN_LINE, coarse, distances

_Array = NDArray[Any]
_Integers = NDArray[np.int32]
#: The most rows that stand for novel ones.
_MADE_ROWS = 2000
#: Standard errors by which scores must be better, so that chance seldom removes prototypes.
_CLEARLY = 3.0
#: Flash that the prototypes of a classifier may take; there is always at least one.
MOST_BYTES = 1280
# The fewest rows for a prototype.
_ROWS_EACH = 25
_STEPS = 30
# Rows that the worth of a margin is fitted to: a fifth, and no fewer than this.
_LEAST_ROWS = 50
_LEAST_GAIN = 256


@dataclass(frozen=True)
class Alarms:
    """A threshold of novelty, and what the rows say about it."""

    threshold: int  # rows of larger novelty are novel
    alarms: int  # number of the rows that are novel
    wished: float  # share of false alarms that was asked for
    bound: float  # share that can be promised
    confidence: float  # of the promise
    approximate: bool = False  # whether the promise is approximate, as with groups

    @property
    def statement(self) -> str:
        """The promise, to follow that about errors."""
        return (
            f"; at most {100 * self.wished:.4g} % of rows like these are taken for novel, "
            f"with {'about ' if self.approximate else ''}{100 * self.confidence:.4g} % confidence"
        )

    def words(self, threshold: int) -> list[tuple[str, str]]:
        """Return the guarantee as names and values, for a threshold of what the model says."""
        return [
            ("novel", f"above {threshold}: {self.alarms} of the rows that were held out"),
            ("promise", self.statement.removeprefix("; ")),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class FittedNovelty:
    """Novelty of the calibration rows, with prototypes and line as `Decision` holds them."""

    novelty: _Integers  # (n,)
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
    model: IntegerModel, X: ArrayLike, scores: _Integers, known: tuple[ArrayLike, ArrayLike] | None
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
    novelty, made_scores = nearer(distance, margins(scores)[1], line), model.quantized_scores(made)
    made_distance = distances(model.quantized(made), prototypes)
    by_scores = novelties(scores)[used], novelties(made_scores)
    by_prototypes = novelty[used], nearer(made_distance, margins(made_scores)[1], line)
    if not clearly_better(*by_scores, *by_prototypes):
        return FittedNovelty(novelty, used, prototypes, line)
    better, worse = (100 * places(*each).mean() for each in (by_scores, by_prototypes))
    return FittedNovelty(
        novelties(scores),
        used,
        remark="novelty is that of the scores, without prototypes: rows made of shuffled known "
        f"ones are the more novel in {better:.1f} % of pairs with held-out rows by it, in "
        f"{worse:.1f} % by distances and margins",
    )


def _made_rows(model: IntegerModel, X: ArrayLike) -> _Array:
    """Return quantized rows that replace novel ones: known rows with shuffled inputs.

    Each input alone is usual, together they are not.
    """
    inputs, rng = model.quantize_inputs(X), np.random.default_rng(0)
    return rng.permuted(inputs[rng.permutation(len(inputs))[:_MADE_ROWS]], axis=0)


def clearly_better(first: _Array, first_made: _Array, other: _Array, other_made: _Array) -> bool:
    """Whether the first novelty separates made rows (m,) from known ones (n,) significantly better.

    The difference of the areas under the two ROC curves must exceed three of its standard errors
    (DeLong et al. 1988).

    >>> known, made = np.arange(50), np.arange(40, 90)
    >>> clearly_better(known, made, -known, -made), clearly_better(known, made, known, made)
    (True, False)
    """
    ahead = places(first, first_made) - places(other, other_made)
    ahead_made = places(other_made, other) - places(first_made, first)
    error = np.sqrt(ahead.var() / len(ahead) + ahead_made.var() / len(ahead_made))
    return bool(ahead.mean() > _CLEARLY * error)


def places(values: _Array, others: _Array) -> NDArray[np.float64]:
    """Return which share of the others exceeds each value; equal ones count half.

    The mean is the area under the ROC curve, of values that should be below the others.
    """
    ascending = np.sort(others)
    below = np.searchsorted(ascending, values, "left") + np.searchsorted(ascending, values, "right")
    return np.asarray(1 - below / (2 * len(others)))


def alarms(
    novelty: _Integers, groups: _Array | None, wished: float, risk: float, beside: int = 0
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
        raise RowsError(_too_few(n, share, groups, wished, risk, beside))
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
    n: int, share: float, groups: _Array | None, wished: float, risk: float, beside: int
) -> str:
    """Say how many rows can promise a rate of false alarms."""
    least = shares.rows_needed(wished, risk)
    assert least is not None
    have, needed, rest = f"{n} rows", f"{least} independent rows", ""
    if beside:
        have += f" beside {beside} that tell what a margin is worth as a distance"
    if groups is not None and n:
        have += shares.worth_of_groups(groups, share * n)
        needed = f"{shares.groups_needed(least)} groups"
        rest = "; without groups the promise is for new rows of the same groups"
    return (
        f"calibrate: {have} are too few to promise at most {100 * wished:.4g} % false alarms; "
        f"at least {needed} are needed{rest}"
    )


def fit_prototypes(model: IntegerModel, X: ArrayLike, y: ArrayLike) -> NDArray[np.int8]:
    """Return the means of clusters of known rows (k-means, Lloyd 1982), as levels of 4 bits.

    Every class has as many as the bytes allow, half a byte an input, with at least 25 rows each;
    where they do not allow one per class, clusters of all rows are taken. The rows are best the
    training rows. The result has shape (k, n_features).
    """
    labels = np.asarray(y)
    inputs = model.quantize_inputs(X)
    if labels.shape != (len(inputs),) or not len(inputs):
        raise ShapeError(
            f"calibrate: {labels.shape} labels for {len(inputs)} known rows; give one per row"
        )
    rows, rng = coarse(inputs), np.random.default_rng(0)
    each = 4 * -(-model.n_features // 8)
    number, classes = max(1, MOST_BYTES // each), np.unique(labels)
    parts = [rows[labels == label] for label in classes] if number >= len(classes) else [rows]
    number //= len(parts)
    means = [nearest_means(part, min(number, len(part) // _ROWS_EACH), rng) for part in parts]
    return as_levels(np.concatenate(means))


def as_levels(means: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the levels whose centres are nearest to means of 8 bits."""
    return np.asarray(means >> 4, dtype=np.int8)


def nearest_means(
    rows: NDArray[np.int64], number: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return at most `number` means of clusters, and at least one.

    Means are integers, so that all sums are exact on every processor.
    """
    means = _spread(rows, max(1, number), rng)
    last = np.full(len(rows), -1)
    for _ in range(_STEPS):
        nearest = _squares(rows, means).argmin(axis=1)
        if np.array_equal(nearest, last):
            break
        last = nearest
        counts = np.bincount(nearest, minlength=len(means))
        sums = np.zeros_like(means)
        np.add.at(sums, nearest, rows)
        filled = counts > 0
        means[filled] = np.floor_divide(
            2 * sums[filled] + counts[filled, np.newaxis], 2 * counts[filled, np.newaxis]
        )
    return means


def _spread(rows: NDArray[np.int64], number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw rows far from each other to begin with (k-means++, Arthur & Vassilvitskii 2007)."""
    chosen = [int(rng.integers(len(rows)))]
    apart = _squares(rows, rows[chosen])[:, 0]
    while len(chosen) < number:
        total = np.cumsum(apart)
        if total[-1] == 0:
            break  # every row is one of them
        place = int(np.searchsorted(total, rng.integers(total[-1]), side="right"))
        chosen.append(place)
        apart = np.minimum(apart, _squares(rows, rows[[place]])[:, 0])
    return rows[chosen]


def _squares(rows: NDArray[np.int64], means: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return squared distances; floats are exact here and faster."""
    a, b = rows.astype(np.float64), means.astype(np.float64)
    squares = np.square(a).sum(axis=1)[:, np.newaxis] + np.square(b).sum(axis=1)
    return np.asarray(squares - 2 * a @ b.T, dtype=np.int64)


def fit_margin_line(
    scores: _Integers, distance: _Integers
) -> tuple[tuple[int, int, int], NDArray[np.bool_]]:
    """Return the line that turns a margin into a distance, and which rows it was fitted to.

    It maps the 5 % quantile of the margins to the 95 % quantile of the distances, and the median to
    the median. A threshold must be chosen on other rows.
    """
    n = len(scores)
    used = np.zeros(n, dtype=np.bool_)
    used[np.random.default_rng(0).permutation(n)[: min(n, max(_LEAST_ROWS, n // 5))]] = True
    margin = margins(scores)[1].astype(np.float64)[used]
    far, middle = np.quantile(distance[used], [0.95, 0.5])
    close, usual = np.quantile(margin, [0.05, 0.5])
    worth = max(1.0, far - middle) / max(1.0, usual - close)
    steps = int(np.clip(np.ceil(np.log2(_LEAST_GAIN / worth)), 0, 31))
    gain = int(np.clip(np.rint(worth * 2.0**steps), 1, LARGEST_MARGIN_LINE))
    bias = int(np.clip(np.rint(far + worth * close), 0, LARGEST_MARGIN_LINE))
    return (bias, gain, steps), used
