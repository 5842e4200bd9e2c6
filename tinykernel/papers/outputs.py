"""Algorithm 1 of Lei & Lan 2021: ternary weights by alternating minimisation, one versus rest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel import progress
from tinykernel.checks import check_count, check_positive
from tinykernel.compiled import njit
from tinykernel.errors import TinykernelError
from tinykernel.model.quantization.machine import KernelMachine
from tinykernel.model.quantization.scaling import InputScaling
from tinykernel.papers.bits import add_feature, pack_features
from tinykernel.papers.descent import sweep
from tinykernel.training.trainset import TrainSet

_START_ROWS = 2000
_START_EPOCHS = 10
# Half the l2 penalty of the SVM that gives the start; it need not be tuned.
_START_PENALTY = 0.1
_CUT = 0.7
_MOST_COMPONENTS = 65536


@dataclass(frozen=True)
class PaperOptions:
    """The parameters of `PaperClassifier` of the same names, checked.

    `sigma` and `regularization` are None where cross-validation chooses them. An output is finished
    when a sweep lowers its objective by less than the share `tol`.
    """

    n_components: int
    sigma: float | None = None
    regularization: float | None = None
    max_iter: int = 20
    tol: float = 1e-4
    seed: int = 0
    n_threads: int = 1

    def __post_init__(self) -> None:
        """Refuse values that are not allowed."""
        if check_count("n_components", self.n_components) > _MOST_COMPONENTS:
            raise TinykernelError(
                f"n_components must be at most {_MOST_COMPONENTS}; got {self.n_components}"
            )
        check_count("max_iter", self.max_iter)
        if self.sigma is not None:
            check_positive("sigma", self.sigma)
        if self.regularization not in (None, 0):
            check_positive("regularization", self.regularization)


@dataclass(frozen=True, eq=False, kw_only=True)
class PaperRows(TrainSet):
    """A training set and its scaler."""

    scaling: InputScaling


@dataclass(frozen=True, eq=False)
class TernaryOutputs:
    """Outputs ``f = alpha (w.z) + beta``; `weights` is (n_outputs, p), the others (n_outputs,)."""

    weights: NDArray[np.int8]
    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    objective: NDArray[np.float64]
    n_sweeps: NDArray[np.int64]


@njit(nogil=True)
def _sums(planes, weights):  # type: ignore[no-untyped-def]
    """Return h = w.z of all rows, with the padding."""
    sums = np.zeros(8 * planes.shape[1] * planes.shape[2], np.int32)
    for j in range(planes.shape[0]):
        if weights[j] != 0:
            add_feature(planes[j], np.int64(weights[j]), sums)
    return sums


@njit(nogil=True)
def _unpack_rows(planes, rows):  # type: ignore[no-untyped-def]
    """Return the features of chosen rows as signs, (rows, p)."""
    signs = np.empty((rows.shape[0], planes.shape[0]), np.int8)
    width = planes.shape[2]
    for position in range(rows.shape[0]):
        plane, byte = divmod(rows[position], width)
        chunk, k = divmod(plane, 8)
        for j in range(planes.shape[0]):
            bit = (planes[j, chunk, byte] >> np.uint8(k)) & np.uint8(1)
            signs[position, j] = 2 * np.int8(bit) - 1
    return signs


# Inlined: a second compiled copy could add in another order.
@njit(nogil=True, forceinline=True)
def _dot(weights, signs):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for j in range(signs.shape[0]):
        total += weights[j] * np.float32(signs[j])
    return total


@njit(nogil=True)
def _linear_svm(signs, targets, costs, orders):  # type: ignore[no-untyped-def]
    """Train a linear SVM with squared hinge loss and l2 penalty by dual coordinate descent.

    Minimises ``||w||^2 / 2 + sum_i costs_i max(0, 1 - y_i w.z_i)^2`` (Hsieh et al., ICML 2008).
    Each row of `orders` is the order of the rows in one epoch.
    """
    m, p = signs.shape
    weights = np.zeros(p, np.float32)
    dual = np.zeros(m)
    for epoch in range(orders.shape[0]):
        for position in range(m):
            i = orders[epoch, position]
            ridge = 0.5 / costs[i]
            slope = targets[i] * _dot(weights, signs[i]) - 1.0 + ridge * dual[i]
            new = max(0.0, dual[i] - slope / (p + ridge))
            change = np.float32((new - dual[i]) * targets[i])
            dual[i] = new
            if change != 0:
                row = signs[i]
                for j in range(p):
                    weights[j] += change * np.float32(row[j])
    return weights


def _ternary_start(weights: NDArray[np.float32]) -> tuple[NDArray[np.int8], float]:
    """Round float weights to ternary ones; return them and alpha.

    ``w_j = sign(v_j)`` where ``|v_j| > 0.7 mean |v|``, else 0; alpha is the mean magnitude of the
    weights that stay: the rule of ternary weight networks (Li, Zhang & Liu 2016). All signs, which
    is (12) of Lei & Lan 2021, end equally accurate, but later and with more weights.
    """
    size = np.abs(weights.astype(np.float64))
    nonzero = size > _CUT * size.mean()
    ternary = np.where(weights < 0, -1, 1) * nonzero
    return ternary.astype(np.int8), float(size[nonzero].mean()) if nonzero.any() else 0.0


def stratified_rows(
    codes: NDArray[Any], n_wanted: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return at most `n_wanted` random rows, ascending, by share of classes, one each at least."""
    if codes.shape[0] <= n_wanted:
        return np.arange(codes.shape[0])
    shuffled = rng.permutation(codes.shape[0])
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    counts = np.bincount(codes)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    rank = (np.arange(codes.shape[0]) - first) / np.repeat(counts, counts)
    return np.sort(by_class[np.argsort(rank, kind="stable")[:n_wanted]])


class _Output:
    """The state of one output while it is trained."""

    def __init__(self, problem: _Problem, index: int) -> None:
        self.problem = problem
        self.side = (problem.codes == index).astype(np.int8)
        self.rng = np.random.default_rng([problem.options.seed, index])
        self.weights, alpha = self._start()
        self.scale = np.array([alpha, 0.0])
        self.sums = _sums(problem.planes, self.weights)
        self.objective = np.inf
        self.n_sweeps = 0
        self.finished = False

    def _start(self) -> tuple[NDArray[np.int8], float]:
        """Return the first weights and alpha, from a linear SVM on some rows."""
        problem, rows = self.problem, self.problem.start_rows
        orders = np.stack([self.rng.permutation(rows.size) for _ in range(_START_EPOCHS)])
        shares = problem.share[rows] / problem.share[rows].sum()
        targets = 2.0 * self.side[rows] - 1.0
        floats = _linear_svm(problem.start_signs, targets, shares / (2 * _START_PENALTY), orders)
        return _ternary_start(floats)

    def advance(self) -> None:
        """Make one sweep."""
        planes, options = self.problem.planes, self.problem.options
        objective, _ = sweep(
            planes,
            self.side,
            self.problem.share,
            self.rng.permutation(len(planes)),
            options.regularization or 0.0,
            self.weights,
            self.scale,
            self.sums,
        )
        self.n_sweeps += 1
        gain = self.objective - objective
        # The first sweep may start from so poor an alpha that hardly any weight moves.
        settled = self.n_sweeps > 1 and not gain > options.tol * abs(objective)
        self.finished = settled or self.n_sweeps >= options.max_iter
        self.objective = objective


@dataclass(frozen=True, eq=False)
class _Problem:
    """Data and options shared by all outputs."""

    planes: NDArray[np.uint8]
    codes: NDArray[np.int64]
    share: NDArray[np.float64]
    options: PaperOptions
    start_rows: NDArray[np.int64]
    start_signs: NDArray[np.int8]


def fit_outputs(
    planes: NDArray[np.uint8],
    codes: NDArray[np.int64],
    sample_weight: NDArray[np.float64],
    n_classes: int,
    options: PaperOptions,
    stage: str | None = None,
) -> TernaryOutputs:
    """Learn ternary weights by Algorithm 1 of Lei & Lan 2021.

    Every output minimises (7) on its own: alpha by (8), then each weight in turn, in random order,
    by comparing its three values (10)-(11), until a sweep over all weights gains less than
    ``options.tol``. Each sweep begins with (8); the paper repeats the sweeps at fixed alpha first.
    The objective never rises, and the result does not depend on the threads.

    Two classes give one output, positive for class 1; else there is one output a class. `stage`
    is the name under which progress is reported.
    """
    share = np.asarray(sample_weight, dtype=np.float64)
    rows = stratified_rows(codes, _START_ROWS, np.random.default_rng(options.seed))
    signs = _unpack_rows(planes, rows)
    problem = _Problem(planes, codes, share / share.sum(), options, rows, signs)
    indices = [1] if n_classes == 2 else list(range(n_classes))
    # Leaving the block, also by Ctrl-C, waits for the running sweeps, which are short.
    with ThreadPoolExecutor(max(1, min(options.n_threads, len(indices)))) as pool:
        outputs = list(pool.map(lambda index: _Output(problem, index), indices))
        _run(pool, outputs, options.max_iter, stage)
    return TernaryOutputs(
        weights=np.stack([output.weights for output in outputs]),
        alpha=np.array([output.scale[0] for output in outputs]),
        beta=np.array([output.scale[1] for output in outputs]),
        objective=np.array([output.objective for output in outputs]),
        n_sweeps=np.array([output.n_sweeps for output in outputs]),
    )


def _run(
    pool: ThreadPoolExecutor, outputs: list[_Output], max_iter: int, stage: str | None
) -> None:
    """Sweep until all outputs are finished."""
    for n_sweeps in range(1, max_iter + 1):
        list(pool.map(_Output.advance, [output for output in outputs if not output.finished]))
        left = sum(not output.finished for output in outputs)
        if stage is not None:
            total = sum(output.objective for output in outputs)
            progress.report(stage, n_sweeps, max_iter, f"objective {total:.5g}, {left} unfinished")
        if not left:
            return


def learned(
    machine: KernelMachine,
    X: NDArray[Any],
    codes: NDArray[np.int64],
    sample_weight: NDArray[np.float64],
    options: PaperOptions,
    stage: str | None = None,
) -> tuple[KernelMachine, int]:
    """Return a machine with weights and outputs learned on raw rows, and the number of sweeps."""
    p = options.n_components
    planes = pack_features(machine.features, X, p)
    outputs = fit_outputs(planes, codes, sample_weight, len(machine.classes), options, stage)
    weights = machine.weights.copy()
    weights[:, :p] = outputs.weights
    machine = replace(
        machine, weights=weights, output_scale=outputs.alpha, output_offset=outputs.beta
    )
    return machine, int(outputs.n_sweeps.max())
