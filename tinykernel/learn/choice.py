"""Which rows are held out, trainings in threads, and the choice between candidates by one rule."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base import progress
from tinykernel.base.errors import RowsError
from tinykernel.learn.loss import Truth

_TRIAL_ROWS = 16000
_TRIAL_PART, _MOST_TRIAL_ROWS = 6, 50000
_PARTS, _FOLDS, _FEW_ROWS = 4, 3, 8000


@dataclass(frozen=True, eq=False)
class Fold:
    """Indices of the rows that one short training learns from, and of those it is judged on."""

    inside: NDArray[np.int64]
    outside: NDArray[np.int64]


def trial_folds(
    codes: NDArray[np.int64], groups: ArrayLike | None, seed: int, fewest: int = 2
) -> list[Fold]:
    """Hold out a quarter of some rows: whole groups, or rows of every class.

    Where few rows or few groups are held out, the choice among options is decided by chance unless
    it is repeated with others.

    There are three where there are groups or few rows, else one; fewer, or none, where a class or a
    group has too few rows. A training needs rows of the `fewest` classes.
    """
    return _folds(codes, groups, seed, range(_n_folds(codes, groups)), fewest)


def final_fold(
    codes: NDArray[np.int64], groups: ArrayLike | None, seed: int, fewest: int = 2
) -> Fold | None:
    """Hold out the quarter that no fold of `trial_folds` holds out, to compare what these chose."""
    return next(iter(_folds(codes, groups, seed, [_n_folds(codes, groups)], fewest)), None)


def _n_folds(codes: NDArray[np.int64], groups: ArrayLike | None) -> int:
    return _FOLDS if groups is not None or codes.size <= _FEW_ROWS else 1


def _folds(
    codes: NDArray[np.int64],
    groups: ArrayLike | None,
    seed: int,
    numbers: Iterable[int],
    fewest: int,
) -> list[Fold]:
    """Hold out parts of the rows that short trainings use, where both sides have enough."""
    rng = np.random.default_rng([seed, 2])
    n = codes.size
    used = np.sort(rng.permutation(n)[: max(_TRIAL_ROWS, min(n // _TRIAL_PART, _MOST_TRIAL_ROWS))])
    part = _dealt_rows(codes, rng) if groups is None else _dealt_groups(groups, rng)
    folds = [Fold(used[part[used] != number], used[part[used] == number]) for number in numbers]
    return [f for f in folds if f.outside.size and np.unique(codes[f.inside]).size >= fewest]


def _dealt_rows(codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Deal the rows of every class to the parts; those of tiny classes to none."""
    shuffled = rng.permutation(codes.size)
    part = np.empty(codes.size, dtype=np.int64)
    part[shuffled[np.argsort(codes[shuffled], kind="stable")]] = np.arange(codes.size) % _PARTS
    part[(np.bincount(codes) < _PARTS)[codes]] = -1
    return part


def _dealt_groups(groups: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    names, index = np.unique(np.asarray(groups), return_inverse=True)
    if names.size < 2:
        raise RowsError("groups: all rows are in one group; give at least two groups")
    dealt = rng.permutation(np.arange(names.size) % min(_PARTS, names.size))
    return np.asarray(dealt[index], dtype=np.int64)


def hold_out(
    codes: NDArray[np.int64], groups: ArrayLike | None, share: float, seed: int
) -> NDArray[np.bool_]:
    """Choose about a share of the rows: whole groups, or rows of every class.

    The result marks the held-out rows. A TinykernelError says where no row is left, or a
    class has none among the others.

    >>> int(hold_out(np.arange(100) % 2, None, 0.2, 0).sum())
    20
    """
    rng = np.random.default_rng([seed, 4])
    out = np.zeros(codes.size, dtype=bool)
    if groups is None:
        for code in np.unique(codes):
            rows = rng.permutation(np.flatnonzero(codes == code))
            out[rows[: round(share * rows.size)]] = True
    else:
        names, index = np.unique(np.asarray(groups), return_inverse=True)
        order = rng.permutation(names.size)
        sizes = np.bincount(index)[order]
        # Groups until the share is reached, the one that passes it included.
        out = np.isin(index, order[np.cumsum(sizes) - sizes < share * codes.size])
    if not out.any() or np.unique(codes[~out]).size < np.unique(codes).size:
        raise RowsError(
            f"validation: {codes.size} rows are too few, or in too few groups, to hold out "
            f"{share:g} of them"
        )
    return out


def weights_like(
    codes: NDArray[np.int64], weight: NDArray[Any], others: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return weights of other rows: the mean of those that the rows of the same class have.

    >>> weights_like(np.array([0, 0, 1]), np.array([1.0, 3.0, 5.0]), np.array([1, 0])).tolist()
    [5.0, 2.0]
    """
    by_class = np.bincount(codes, weights=weight) / np.bincount(codes)
    return by_class[others].astype(np.float32)


_Result = TypeVar("_Result")


def side_by_side(
    tasks: Sequence[Callable[[], _Result]],
    n_threads: int,
    cancelled: threading.Event | None = None,
    stage: str | None = None,
) -> list[_Result]:
    """Return the results of tasks, in their order; `stage` names their progress.

    If one fails or Ctrl-C comes, those that wait are dropped, and `cancelled` tells the running
    ones to end.

    >>> side_by_side([lambda: 1, lambda: 2], 2)
    [1, 2]
    """
    results: list[_Result] = []

    def add(result: _Result) -> None:
        results.append(result)
        if stage is not None:
            progress.report(stage, len(results), len(tasks))

    if min(n_threads, len(tasks)) <= 1:
        for task in tasks:
            add(task())
        return results
    with ThreadPoolExecutor(max_workers=n_threads) as executor:
        try:
            for part in [executor.submit(copy_context().run, task) for task in tasks]:
                add(part.result())
        except BaseException:
            if cancelled is not None:
                cancelled.set()
            executor.shutdown(wait=False, cancel_futures=True)
            raise
    return results


# With fewer groups, rows give the standard error.
_FEWEST_GROUPS = 5

_Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidate:
    """Losses and score of one candidate on held-out rows, which are the same for all."""

    name: str
    losses: _Doubles  # (n,): loss of each row, see `Truth.row_losses`.
    score: float  # accuracy, or R2 of values, see `Truth.score`.
    cost: int = 0  # a rank; candidates that fill a budget cost the same.

    @staticmethod
    def of(name: str, decisions: NDArray[np.float32], truth: Truth, **options: Any) -> "Candidate":
        """Judge decisions of held-out rows; options are those of `Truth.row_losses`."""
        return Candidate(name, truth.row_losses(decisions, **options), truth.score(decisions))


def join_folds(parts: Sequence[Candidate]) -> Candidate:
    """Return a candidate that was trained once per fold, with the held-out rows of all folds."""
    losses = np.concatenate([part.losses for part in parts])
    score = float(np.mean([part.score for part in parts]))
    return Candidate(parts[0].name, losses, score, parts[0].cost)


@dataclass(frozen=True, eq=False)
class Choice:
    """Candidates that were compared, and the place of the chosen one."""

    names: tuple[str, ...]
    losses: tuple[float, ...]
    scores: tuple[float, ...]
    best: int  # has the least loss.
    chosen: int
    of_values: bool = False

    @property
    def name(self) -> str:
        """Name of the chosen candidate."""
        return self.names[self.chosen]

    @property
    def in_words(self) -> str:
        """Name the chosen candidate and the others, with their losses and scores, in one line."""

        def split(texts: Iterable[str], word: str) -> str:
            others = list(texts)
            first = others.pop(self.chosen)
            return f"{first} {word} {' and '.join(others)}" if others else first

        if self.of_values:
            text = "R2 " + split((f"{score:.4f}" for score in self.scores), "against")
        else:
            text = "log loss " + split((f"{loss:.4f}" for loss in self.losses), "against")
            shares = (f"{100 * score:.2f}" for score in self.scores)
            text += f", accuracy {split(shares, 'against')} %"
        less = "" if self.best == self.chosen else "; within one standard error, and it costs less"
        return f"{split(self.names, 'chosen over')} on held-out rows: {text}{less}"


def choose(
    candidates: Sequence[Candidate],
    weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    margin: float = 1.0,
    of_values: bool = False,
) -> Choice:
    """Choose the cheapest candidate that is not behind the best one by `margin` standard errors.

    `weight` (n,) are weights of the held-out rows. Rows of one of `groups` (n,) vary together: of
    five or more groups the standard error is theirs. A `margin` of 1 is the rule of one standard
    error (Breiman, Friedman, Olshen & Stone 1984, 3.4.3); it is more where many candidates make it
    likely that one leads by chance. With `of_values` scores are R2.

    >>> rng = np.random.default_rng(0)
    >>> cheap, dear = (Candidate(*each) for each in (
    ...     ("trees", rng.uniform(0, 0.2, 100), 0.9),
    ...     ("compact", rng.uniform(0, 0.1, 100), 0.95, 1)))
    >>> choose([cheap, dear]).in_words[:39]
    'compact chosen over trees on held-out r'
    """
    size = len(candidates[0].losses)
    share = np.ones(size) if weight is None else np.asarray(weight, dtype=np.float64)
    means = [float(np.average(candidate.losses, weights=share)) for candidate in candidates]
    best = int(np.argmin(means))
    chosen = best
    for number, candidate in enumerate(candidates):
        error = standard_error(candidate.losses - candidates[best].losses, share, groups)
        is_near = means[number] - means[best] <= margin * error
        if is_near and candidate.cost < candidates[chosen].cost:
            chosen = number
    names = tuple(candidate.name for candidate in candidates)
    scores = tuple(candidate.score for candidate in candidates)
    return Choice(names, tuple(means), scores, best, chosen, of_values)


def standard_error(values: _Doubles, weight: _Doubles, groups: ArrayLike | None = None) -> float:
    """Return the standard error of a weighted mean, of rows or of groups of rows.

    The sum over groups g of (sum over rows of g of w (x - mean))^2, times k / (k - 1), is the
    variance of the weighted sum of k groups (Cochran 1977, 2.11 and 9A.2).

    >>> round(standard_error(np.array([0.0, 1, 0, 1]), np.ones(4)), 4)
    0.2887
    """
    centred: _Doubles = weight * (values - np.average(values, weights=weight))
    if groups is not None:
        codes = np.unique(np.asarray(groups), return_inverse=True)[1]
        if codes.max() + 1 >= _FEWEST_GROUPS:
            centred = np.bincount(codes, weights=centred).astype(np.float64)
    k = len(centred)
    return float(np.sqrt(k / max(k - 1, 1) * np.square(centred).sum()) / weight.sum())
