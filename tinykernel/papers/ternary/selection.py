"""Choosing sigma and lambda by cross-validation on the training rows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.papers.features import RMBCSIK, neighbour_distance
from tinykernel.papers.ternary.bits import pack_features
from tinykernel.papers.ternary.coordinate import fit_outputs, stratified_rows
from tinykernel.papers.ternary.options import PaperOptions, PaperRows

# Multiples of the mean distance to the 50th neighbour, and lambdas, in the order in which they are
# preferred when they score the same. Measured on ten data sets, the best multiple lies between 1
# and 4 and the best lambda between 0.03 and 0.3, almost independently of each other.
_MULTIPLES = (1.4, 2.0, 1.0, 2.8, 0.7, 4.0)
_STEP = 1.4
_MOST_EXTENSIONS = 6
_PENALTIES = {"l2": (0.1, 0.03, 0.3, 0.01, 1.0), "l1": (0.001, 0.003, 0.0003, 0.01, 0.0001)}
# Rows are taken until rows * outputs * components reach the work, which takes seconds a trial.
_LEAST_ROWS, _MOST_ROWS, _WORK = 4000, 12000, 2.5e8
# The best lambda falls with the number of rows: on MNIST by 6 from 1500 to 20000 rows.
_DECAY = 0.5
# Small sets are split several times, or chance would choose.
_ROWS_FOR_ONE_SPLIT = 1500
_MOST_SPLITS = 5
_MARGIN = 0.5
# Far from the end the order of the candidates no longer changes.
_TOLERANCE, _SWEEPS = 1e-3, 12


@dataclass(frozen=True, eq=False)
class Choice:
    """What `choose` chose, and what it tried.

    `cv_results` has "sigma", "regularization" and "score" (weighted accuracy on the parts left out,
    0 to 1), one entry a trial; it is empty where nothing was tried.
    """

    sigma: float
    regularization: float
    cv_results: dict[str, NDArray[np.float64]]


def draw_features(n_inputs: int, sigma: float, options: PaperOptions, seed: int) -> RMBCSIK:
    """Draw the components for scaled inputs; a seed draws the same ones, but for sigma."""
    drawn = RMBCSIK(
        n_components=options.n_components,
        sigma=sigma,
        diagonal=options.diagonal,
        row_scale=options.row_scale,
        permutation=options.permutation,
        random_state=seed,
    )
    drawn.fit(np.zeros((1, n_inputs), dtype=np.float32))
    return drawn


def assign_folds(
    codes: NDArray[np.int64], n_folds: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Deal the rows of every class out to the parts of cross-validation, one after the other.

    The only row of a class belongs to part -1: it is never left out.

    >>> folds = assign_folds(np.array([0, 0, 1, 1, 2]), 2, np.random.default_rng(0))
    >>> sorted(folds[:2].tolist()), int(folds[4])
    ([0, 1], -1)
    """
    shuffled = rng.permutation(codes.shape[0])
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    folds = np.empty(codes.shape[0], dtype=np.int64)
    folds[by_class] = np.arange(codes.shape[0]) % n_folds
    folds[np.bincount(codes)[codes] == 1] = -1
    return folds


@dataclass(frozen=True, eq=False)
class _Part:
    """Weights of the rows in training and in the part left out, and the seed of the features."""

    training: NDArray[np.float64]
    left_out: NDArray[np.float64]
    seed: int


class _Validation:
    """Scores pairs of sigma and lambda on the same parts of the same rows."""

    def __init__(self, problem: PaperRows, options: PaperOptions) -> None:
        rng = np.random.default_rng([options.seed, 1])
        work = problem.n_classes * options.n_components
        most = int(min(_MOST_ROWS, max(_LEAST_ROWS, _WORK / work)))
        rows = stratified_rows(problem.codes, most, rng)
        self.X = problem.scaling.apply(problem.X[rows])
        self.codes = problem.codes[rows]
        self.sample_weight = problem.sample_weight[rows]
        self.n_classes = problem.n_classes
        self.options = options
        n_rows = int(rows.size)
        self.decay = (n_rows / problem.codes.size) ** _DECAY
        self.parts: list[_Part] = []
        if problem.splits:
            for training, left_out in problem.splits:
                self._add(training[rows], left_out[rows], options.seed)
        else:
            self._split(min(_MOST_SPLITS, -(-_ROWS_FOR_ONE_SPLIT // n_rows)), rng)
        self.distance = 1.0
        if n_rows > 1:
            self.distance = neighbour_distance(self.X, random_state=options.seed)

    def _split(self, n_splits: int, rng: np.random.Generator) -> None:
        """Split the rows several times."""
        n_folds = min(self.options.cv, int(np.bincount(self.codes).max()))
        for split in range(n_splits):
            folds = assign_folds(self.codes, n_folds, rng)
            for fold in range(n_folds):
                left_out = np.where(folds == fold, self.sample_weight, 0.0)
                self._add(self.sample_weight - left_out, left_out, self.options.seed + split)

    def _add(self, training: NDArray[np.float64], left_out: NDArray[np.float64], seed: int) -> None:
        """Add one part, unless there is nothing in it to learn from or to score."""
        if training.any() and left_out.any():
            self.parts.append(_Part(training, left_out, seed))

    def hits(self, sigma: float, regularization: float, part: _Part) -> float:
        """Train on all but one part; return the weight of the rows of it that come out right."""
        features = draw_features(self.X.shape[1], sigma, self.options, part.seed)
        p, descent = self.options.n_components, self.options.descent
        rows = part.training > 0
        outputs = fit_outputs(
            pack_features(features.transform, self.X[rows], p),
            self.codes[rows],
            part.training[rows],
            self.n_classes,
            replace(
                descent,
                regularization=regularization,
                tol=max(_TOLERANCE, descent.tol),
                max_iter=min(_SWEEPS, descent.max_iter),
            ),
            seed=part.seed,
        )
        rows = part.left_out > 0
        values = outputs.decide(pack_features(features.transform, self.X[rows], p))
        labels = values.argmax(axis=1) if self.n_classes > 2 else values[:, 0] > 0
        return float(part.left_out[rows] @ (labels == self.codes[rows]))

    def scores(
        self, pairs: list[tuple[float, float]], pool: ThreadPoolExecutor, done: Callable[[], None]
    ) -> list[float]:
        """Return the weighted accuracy of every pair."""
        n_parts = len(self.parts)
        futures = [
            pool.submit(self.hits, sigma, penalty, part)
            for sigma, penalty in pairs
            for part in self.parts
        ]
        hits = []
        try:
            for future in futures:
                hits.append(future.result())
                done()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        total = sum(float(part.left_out.sum()) for part in self.parts)
        return [sum(hits[i : i + n_parts]) / total for i in range(0, len(hits), n_parts)]


class _Search:
    """A search over one hyperparameter after the other, keeping what it tried."""

    def __init__(self, validation: _Validation, pool: ThreadPoolExecutor) -> None:
        self.validation = validation
        self.pool = pool
        self.tried: dict[tuple[float, float], float] = {}

    def best(self, stage: str, pairs: list[tuple[float, float]]) -> int:
        """Score the pairs; return the position of the first that is as good as the best.

        As good is what is worse by less than half a standard error: earlier pairs are likelier.
        """
        fresh = [pair for pair in pairs if pair not in self.tried]
        n_done, total = 0, len(fresh) * len(self.validation.parts)

        def done() -> None:
            nonlocal n_done
            n_done += 1
            progress.report(stage, n_done, total)

        self.tried.update(zip(fresh, self.validation.scores(fresh, self.pool, done), strict=True))
        scores = np.array([self.tried[pair] for pair in pairs])
        top = scores.max()
        # The weights of all rows, added up in another order, may come out below those of the hits.
        error = np.sqrt(top * max(0.0, 1 - top) / self.validation.codes.size)
        return int(np.argmax(scores >= top - _MARGIN * error))

    def sigma(self, regularization: float) -> float:
        """Try the grid, then go on where the best value lies at its edge."""
        stage = "choosing sigma"
        unit = self.validation.distance
        sigma = _MULTIPLES[self.best(stage, [(m * unit, regularization) for m in _MULTIPLES])]
        if sigma in (min(_MULTIPLES), max(_MULTIPLES)):
            factor = _STEP if sigma == max(_MULTIPLES) else 1 / _STEP
            for _ in range(_MOST_EXTENSIONS):
                pairs = [(m * unit, regularization) for m in (sigma, sigma * factor)]
                self.best(stage, pairs)
                if self.tried[pairs[1]] <= self.tried[pairs[0]]:
                    break
                sigma *= factor
        return sigma * unit

    def results(self) -> dict[str, NDArray[np.float64]]:
        """Return what was tried, in the form of `Choice`."""
        rows = [(*pair, score) for pair, score in self.tried.items()]
        columns = np.array(rows, dtype=np.float64).T
        return dict(zip(("sigma", "regularization", "score"), columns, strict=True))


def choose(problem: PaperRows, options: PaperOptions) -> Choice:
    """Choose what was not given of sigma and lambda, by stratified cross-validation.

    First sigma at a middling lambda, on a grid of multiples of the distance to the 50th neighbour
    (`neighbour_distance`), then lambda at that sigma. What is scored is the trainer itself, on at
    most 12000 rows. Sets of less than 1500 rows are split up to five times, each time with other
    random components. A lambda chosen on a part of the rows is multiplied by the square root of
    that part.

    When no class has two rows nothing can be left out, and the middling values are taken: 1.4 times
    that distance, and 0.1 (l2) or 0.001 (l1).
    """
    if options.sigma is not None and options.regularization is not None:
        return Choice(options.sigma, options.regularization, {})
    penalties = _PENALTIES[options.descent.penalty]
    validation = _Validation(problem, options)
    sigma, regularization = options.sigma, options.regularization
    if not validation.parts:
        middle = _MULTIPLES[0] * validation.distance
        return Choice(
            middle if sigma is None else sigma,
            penalties[0] if regularization is None else regularization,
            {},
        )
    with ThreadPoolExecutor(max(1, options.n_threads)) as pool:
        search = _Search(validation, pool)
        if sigma is None:
            sigma = search.sigma(penalties[0] if regularization is None else regularization)
        if regularization is None:
            pairs = [(sigma, penalty) for penalty in penalties]
            best = search.best("choosing lambda", pairs)
            regularization = penalties[best] * validation.decay
    return Choice(sigma, regularization, search.results())
