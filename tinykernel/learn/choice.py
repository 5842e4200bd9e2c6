"""Independent trainings in threads, and the choice between candidates by one rule."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base import progress
from tinykernel.learn.loss import Truth

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


def joined(parts: Sequence[Candidate]) -> Candidate:
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
