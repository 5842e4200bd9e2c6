"""Choosing sigma and lambda by cross-validation on the training rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.papers.features import RMBCSIK, neighbour_distance
from tinykernel.papers.ternary.bits import pack_features
from tinykernel.papers.ternary.coordinate import (
    PaperOptions,
    PaperRows,
    fit_outputs,
    stratified_rows,
)

# Multiples of the mean distance to the 50th neighbour, and lambdas, likelier ones first. On ten
# data sets the best multiple lies between 1 and 4, the best lambda between 0.03 and 0.3.
_MULTIPLES = (1.4, 2.0, 1.0, 2.8, 0.7, 4.0)
_STEP = 1.4
_MOST_EXTENSIONS = 6
_PENALTIES = (0.1, 0.03, 0.3, 0.01, 1.0)
# Rows of a trial are limited by rows * outputs * components, so that it takes seconds.
_LEAST_ROWS, _MOST_ROWS, _WORK = 4000, 12000, 2.5e8
# The best lambda falls with the number of rows: on MNIST by 6 from 1500 to 20000 rows.
_DECAY = 0.5
# Small sets are split several times, or chance would choose.
_ROWS_FOR_ONE_SPLIT = 1500
_MOST_SPLITS = 5
_MARGIN = 0.5
# Candidates keep their order long before the descent ends.
_TOLERANCE, _SWEEPS = 1e-3, 12


@dataclass(frozen=True, eq=False)
class Choice:
    """Chosen hyper-parameters; `cv_results`: "sigma", "regularization", "score" of all trials."""

    sigma: float
    regularization: float
    cv_results: dict[str, NDArray[np.float64]]


def draw_features(n_inputs: int, sigma: float, options: PaperOptions, seed: int) -> RMBCSIK:
    """Draw the components for scaled inputs; apart from sigma they depend on the seed alone."""
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
    """Deal the rows of every class out to folds in turn; a class of one row is in none (-1)."""
    shuffled = rng.permutation(codes.shape[0])
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    folds = np.empty(codes.shape[0], dtype=np.int64)
    folds[by_class] = np.arange(codes.shape[0]) % n_folds
    folds[np.bincount(codes)[codes] == 1] = -1
    return folds


@dataclass(frozen=True, eq=False)
class _Part:
    """Row weights in training and in the held-out part, and the seed of the features."""

    training: NDArray[np.float64]
    held_out: NDArray[np.float64]
    seed: int


class _Search:
    """Scores pairs of sigma and lambda on the same held-out parts, and stores the scores."""

    def __init__(self, problem: PaperRows, options: PaperOptions) -> None:
        rng = np.random.default_rng([options.seed, 1])
        work = problem.n_classes * options.n_components
        most = int(min(_MOST_ROWS, max(_LEAST_ROWS, _WORK / work)))
        rows = stratified_rows(problem.codes, most, rng)
        self.X = problem.scaling.apply(problem.X[rows])
        self.codes, self.n_classes = problem.codes[rows], problem.n_classes
        self.options, self.tried = options, dict[tuple[float, float], float]()
        self.decay = (rows.size / problem.codes.size) ** _DECAY
        parts = [_Part(train[rows], out[rows], options.seed) for train, out in problem.splits]
        if not parts:
            parts = self._split(problem.sample_weight[rows], rng)
        self.parts = [part for part in parts if part.training.any() and part.held_out.any()]
        self.distance = (
            neighbour_distance(self.X, random_state=options.seed) if rows.size > 1 else 1.0
        )

    def _split(self, weight: NDArray[np.float64], rng: np.random.Generator) -> list[_Part]:
        """Split the rows, several times where they are few."""
        n_folds, parts = min(self.options.cv, int(np.bincount(self.codes).max())), []
        for split in range(min(_MOST_SPLITS, -(-_ROWS_FOR_ONE_SPLIT // self.codes.size))):
            folds = assign_folds(self.codes, n_folds, rng)
            for fold in range(n_folds):
                held_out = np.where(folds == fold, weight, 0.0)
                parts.append(_Part(weight - held_out, held_out, self.options.seed + split))
        return parts

    def hits(self, sigma: float, regularization: float, part: _Part) -> float:
        """Train on all but one part; return the weight of its rows that are classified right."""
        features = draw_features(self.X.shape[1], sigma, self.options, part.seed)
        p = self.options.n_components
        rows = part.training > 0
        outputs = fit_outputs(
            pack_features(features.transform, self.X[rows], p),
            self.codes[rows],
            part.training[rows],
            self.n_classes,
            replace(
                self.options,
                regularization=regularization,
                tol=max(_TOLERANCE, self.options.tol),
                max_iter=min(_SWEEPS, self.options.max_iter),
            ),
            seed=part.seed,
        )
        rows = part.held_out > 0
        values = outputs.decide(pack_features(features.transform, self.X[rows], p))
        labels = values.argmax(axis=1) if self.n_classes > 2 else values[:, 0] > 0
        return float(part.held_out[rows] @ (labels == self.codes[rows]))

    def _score(self, stage: str, pairs: list[tuple[float, float]]) -> None:
        """Store the weighted accuracy of every pair."""
        trials = [(*pair, part) for pair in pairs for part in self.parts]
        hits = []
        with ThreadPoolExecutor(max(1, self.options.n_threads)) as pool:
            try:
                for hit in pool.map(lambda trial: self.hits(*trial), trials):
                    hits.append(hit)
                    progress.report(stage, len(hits), len(trials))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        total = sum(float(part.held_out.sum()) for part in self.parts)
        for i, pair in enumerate(pairs):
            first = i * len(self.parts)
            self.tried[pair] = sum(hits[first : first + len(self.parts)]) / total

    def best(self, stage: str, pairs: list[tuple[float, float]]) -> int:
        """Return the index of the first pair within half a standard error of the best score."""
        self._score(stage, [pair for pair in pairs if pair not in self.tried])
        scores = np.array([self.tried[pair] for pair in pairs])
        top = scores.max()
        # Sums of weights in another order may differ, so that the score passes 1.
        error = np.sqrt(top * max(0.0, 1 - top) / self.codes.size)
        return int(np.argmax(scores >= top - _MARGIN * error))

    def sigma(self, regularization: float) -> float:
        """Return the best sigma of a grid, which is extended while the best is at its edge."""
        stage = "choosing sigma"
        grid = [(m * self.distance, regularization) for m in _MULTIPLES]
        sigma = _MULTIPLES[self.best(stage, grid)]
        if sigma in (min(_MULTIPLES), max(_MULTIPLES)):
            factor = _STEP if sigma == max(_MULTIPLES) else 1 / _STEP
            for _ in range(_MOST_EXTENSIONS):
                pairs = [(m * self.distance, regularization) for m in (sigma, sigma * factor)]
                self.best(stage, pairs)
                if self.tried[pairs[1]] <= self.tried[pairs[0]]:
                    break
                sigma *= factor
        return sigma * self.distance

    def results(self) -> dict[str, NDArray[np.float64]]:
        """Return all trials as `Choice.cv_results`."""
        rows = [(*pair, score) for pair, score in self.tried.items()]
        columns = np.array(rows, dtype=np.float64).T
        return dict(zip(("sigma", "regularization", "score"), columns, strict=True))


def choose(problem: PaperRows, options: PaperOptions) -> Choice:
    """Choose sigma and lambda, where not set, by stratified cross-validation.

    First sigma at lambda 0.1, on a grid of multiples of `neighbour_distance`, then lambda at that
    sigma. Trials run the trainer itself on at most 12000 rows. Sets of less than 1500 rows are
    split up to five times, each with other random components. A lambda chosen on a part of the
    rows is multiplied by the square root of that part.

    When no class has two rows, the values are 1.4 times that distance, and 0.1.
    """
    sigma, regularization = options.sigma, options.regularization
    if sigma is not None and regularization is not None:
        return Choice(sigma, regularization, {})
    middling = _PENALTIES[0] if regularization is None else regularization
    search = _Search(problem, options)
    if not search.parts:
        return Choice(_MULTIPLES[0] * search.distance if sigma is None else sigma, middling, {})
    if sigma is None:
        sigma = search.sigma(middling)
    if regularization is None:
        best = search.best("choosing lambda", [(sigma, penalty) for penalty in _PENALTIES])
        regularization = _PENALTIES[best] * search.decay
    return Choice(sigma, regularization, search.results())
