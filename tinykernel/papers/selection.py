"""Drawing random components, and choosing sigma and lambda by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold

from tinykernel.hadamard import padded_dimension
from tinykernel.model.permutation import Permutation
from tinykernel.model.quantization.machine import KernelMachine
from tinykernel.papers.outputs import PaperOptions, PaperRows, learned, stratified_rows
from tinykernel.training.threads import side_by_side

_TURN = 2.0 * np.pi
# Multiples of the mean distance to the 50th neighbour, and lambdas, likelier ones first. On ten
# data sets the best multiple lies between 1 and 4, the best lambda between 0.03 and 0.3.
_MULTIPLES = (1.4, 2.0, 1.0, 2.8, 0.7, 4.0)
_STEP = 1.4
_MOST_EXTENSIONS = 6
_PENALTIES = (0.1, 0.03, 0.3, 0.01, 1.0)
_NEIGHBOUR, _ROWS_WITH_DISTANCES, _DISTANCES_AT_ONCE = 50, 1000, 1 << 22
# Rows of a trial are limited by rows * outputs * components, so that it takes seconds.
_LEAST_ROWS, _MOST_ROWS, _WORK = 4000, 12000, 2.5e8
# The best lambda falls with the number of rows: on MNIST by 6 from 1500 to 20000 rows.
_DECAY = 0.5
_FOLDS = 3
# Small sets are split several times, or chance would choose.
_ROWS_FOR_ONE_SPLIT = 1500
_MOST_SPLITS = 5
_MARGIN = 0.5
# Candidates keep their order long before the descent ends.
_TOLERANCE, _SWEEPS = 1e-3, 12


def draw_machine(problem: PaperRows, sigma: float, n_components: int, seed: int) -> KernelMachine:
    """Draw binary components of scaled inputs, with weights of 0: RM-BCSIK of Lei & Lan 2021.

    ``z = sign(cos(R x' + b) + t)`` with b and t uniform and ``R = H G P H B / (sigma sqrt(d))``
    (3)-(5), so that the share of components in which two rows differ is a function of their
    Gaussian kernel. G holds signs and S is 1: all rows of R have the length of the root mean square
    of Gaussian ones. Apart from sigma the components depend on the seed alone.
    """
    rng = np.random.RandomState(seed)
    n_inputs = problem.X.shape[1]
    d = padded_dimension(n_inputs)
    shape = (-(-n_components // d), d)
    sign = np.array(2 * rng.randint(0, 2, n_inputs) - 1, dtype=np.int8)
    # A multiplier of 5 modulo 8 mixes the low bits best.
    multiplier = 8 * rng.randint(0, d // 8) + 5
    permutation = Permutation(
        "orbit", multiplier=int(multiplier), increment=2 * rng.randint(0, d // 2) + 1
    )
    diagonal = np.where(rng.randint(0, 2, shape) == 1, 1.0, -1.0)
    offset, threshold = rng.uniform(0.0, _TURN, shape), rng.uniform(-1.0, 1.0, shape)
    half = np.arccos(-threshold)
    n_outputs = 1 if problem.n_classes == 2 else problem.n_classes
    return KernelMachine(
        classes=problem.classes,
        raw_dtype=problem.raw_dtype,
        input_offset=problem.scaling.offset,
        input_scale=problem.scaling.scale,
        input_low=problem.scaling.low,
        input_high=problem.scaling.high,
        sign=sign,
        permutation=permutation,
        diagonal=diagonal,
        diagonal_kind="sign",
        row_scale=np.full(shape, 1 / (sigma * np.sqrt(d))),
        start=offset + half,
        width=2.0 * half,
        weights=np.zeros((n_outputs, diagonal.size), dtype=np.int8),
        output_scale=np.ones(n_outputs),
        output_offset=np.zeros(n_outputs),
    )


def neighbour_distance(X: NDArray[np.float32], seed: int) -> float:
    """Return the mean distance from a row to its 50th nearest other row, or the farthest of fewer.

    The heuristic of Yu et al. 2015 (section 7). Distances are measured from at most 1000 random
    rows to all rows, so that the estimate does not depend on the size of the sample. It is 1 where
    the distances are 0, and for a single row.
    """
    n = len(X)
    if n < 2:
        return 1.0
    sample = np.sort(np.random.RandomState(seed).permutation(n)[:_ROWS_WITH_DISTANCES])
    k = min(_NEIGHBOUR, n - 1)
    # Far from the origin, differences of large squares would be rounding errors.
    rows = X - X.mean(axis=0)
    norms = np.einsum("ij,ij->i", rows, rows)
    total = 0.0
    step = max(1, _DISTANCES_AT_ONCE // n)
    for first in range(0, sample.size, step):
        chosen = sample[first : first + step]
        squares = norms[chosen, None] + norms - 2 * (rows[chosen] @ rows.T)
        # A row is not its own neighbour.
        squares[np.arange(chosen.size), chosen] = np.inf
        nearest = np.partition(squares, k - 1, axis=1)[:, k - 1]
        total += float(np.sqrt(np.maximum(nearest, 0)).sum(dtype=np.float64))
    return total / sample.size or 1.0


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
    """Row weights in training and in the held-out part, and the seed of the components."""

    training: NDArray[np.float64]
    held_out: NDArray[np.float64]
    seed: int


class _PaperSearch:
    """Scores pairs of sigma and lambda on the same held-out parts, and stores the scores."""

    def __init__(self, problem: PaperRows, options: PaperOptions) -> None:
        rng = np.random.default_rng([options.seed, 1])
        work = problem.n_classes * options.n_components
        most = int(min(_MOST_ROWS, max(_LEAST_ROWS, _WORK / work)))
        rows = stratified_rows(problem.codes, most, rng)
        self.problem, self.X, self.codes = problem, problem.X[rows], problem.codes[rows]
        self.options, self.tried = options, dict[tuple[float, float], float]()
        self.decay = (rows.size / problem.codes.size) ** _DECAY
        parts = self._split(problem, rows, rng)
        self.parts = [part for part in parts if part.training.any() and part.held_out.any()]
        self.distance = neighbour_distance(problem.scaling.apply(self.X), options.seed)

    def _split(
        self, problem: PaperRows, rows: NDArray[np.int64], rng: np.random.Generator
    ) -> list[_Part]:
        """Split the rows, several times where they are few; rows of a group stay together."""
        folds = list[NDArray[np.int64]]()
        if problem.groups is not None:
            splitter = GroupKFold(min(_FOLDS, int(problem.groups.max()) + 1))
            fold = np.empty(problem.codes.size, dtype=np.int64)
            parts = splitter.split(problem.X, groups=problem.groups)
            for number, (_, held_out) in enumerate(parts):
                fold[held_out] = number
            folds.append(fold[rows])
        else:
            n_folds = min(_FOLDS, int(np.bincount(self.codes).max()))
            for _ in range(min(_MOST_SPLITS, -(-_ROWS_FOR_ONE_SPLIT // self.codes.size))):
                folds.append(assign_folds(self.codes, n_folds, rng))
        weight = problem.sample_weight[rows]
        return [
            _Part(np.where(fold == k, 0, weight), np.where(fold == k, weight, 0), seed)
            for seed, fold in enumerate(folds, self.options.seed)
            for k in range(fold.max() + 1)
        ]

    def hits(self, sigma: float, regularization: float, part: _Part) -> float:
        """Train on all but one part; return the weight of its rows that are classified right."""
        machine = draw_machine(self.problem, sigma, self.options.n_components, part.seed)
        options = replace(
            self.options,
            regularization=regularization,
            tol=_TOLERANCE,
            max_iter=min(_SWEEPS, self.options.max_iter),
            seed=part.seed,
            n_threads=1,
        )
        rows = part.training > 0
        machine, _ = learned(machine, self.X[rows], self.codes[rows], part.training[rows], options)
        rows = part.held_out > 0
        right = machine.label_indices(self.X[rows]) == self.codes[rows]
        return float(part.held_out[rows] @ right)

    def _score(self, stage: str, pairs: list[tuple[float, float]]) -> None:
        """Store the weighted accuracy of every pair."""
        trials = [(*pair, part) for pair in pairs for part in self.parts]
        tasks = [partial(self.hits, *trial) for trial in trials]
        hits = side_by_side(tasks, self.options.n_threads, stage=stage)
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


def choose(problem: PaperRows, options: PaperOptions) -> tuple[float, float]:
    """Choose sigma and lambda, where not set, by stratified cross-validation.

    First sigma at lambda 0.1, on a grid of multiples of `neighbour_distance`, then lambda at that
    sigma. Trials run the trainer itself on at most 12000 rows. Sets of less than 1500 rows are
    split up to five times, each with other random components. A lambda chosen on a part of the
    rows is multiplied by the square root of that part.

    When no class has two rows, the values are 1.4 times that distance, and 0.1.
    """
    sigma, regularization = options.sigma, options.regularization
    if sigma is not None and regularization is not None:
        return sigma, regularization
    middling = _PENALTIES[0] if regularization is None else regularization
    search = _PaperSearch(problem, options)
    if not search.parts:
        return _MULTIPLES[0] * search.distance if sigma is None else sigma, middling
    if sigma is None:
        sigma = search.sigma(middling)
    if regularization is None:
        best = search.best("choosing lambda", [(sigma, penalty) for penalty in _PENALTIES])
        regularization = _PENALTIES[best] * search.decay
    return sigma, regularization
