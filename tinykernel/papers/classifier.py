"""The classifier of Lei & Lan 2021 as a scikit-learn estimator that becomes firmware."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from tinykernel.base.checks import (
    MOST_COMPONENTS,
    at_least,
    check_count,
    check_positive,
    thread_count,
)
from tinykernel.kinds.estimators.machines import MachineClassifier
from tinykernel.learn import inputs
from tinykernel.learn.choice import side_by_side
from tinykernel.learn.trainset import TrainSet, prepare
from tinykernel.model import fixed as phases
from tinykernel.model.fixed import Sums, kernel_model
from tinykernel.model.integer import IntegerModel
from tinykernel.papers.ternary import TernaryProblem, learn_output
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.proof import choose_schedules

# sigma over the mean distance to the 50th neighbour: on ten data sets the best is from 1 to 4.
_SIGMA = 1.0
_ROWS_AT_ONCE = 4096


@dataclass(kw_only=True, eq=False, repr=False)
class PaperClassifier(MachineClassifier):
    """Random binary components with ternary weights learned by coordinate descent (Lei & Lan 2021).

    ``f(x) = alpha W sign(cos(R x' + b) + t) + beta`` with W in {-1, 0, 1}: Lei & Lan 2021, "Memory
    and Computation-Efficient Kernel SVM via Binary Embedding and Ternary Model Coefficients". R is
    random (RM-BCSIK), W comes from Algorithm 1, and x' are the scaled inputs. The scaler is part of
    the model: the firmware takes raw sensor values of the dtype given to `fit`.

    It is the method as published, in the form of the firmware: all blocks share B and P, G holds
    signs, and S is 1. The loss is the squared hinge by default; that of the paper is "hinge".
    `tinykernel.TernaryKernelClassifier` learns the components too.

    The model does not depend on the order of the training rows, on whether a row is repeated or
    has a weight of 2, or on the number of threads.

    Parameters
    ----------
    n_components : int
        p, the number of binary components, at most 65536.
    sigma : float or None
        Width of the Gaussian kernel, in scaled inputs. None: the mean distance from a row to its
        50th neighbour among 500. scikit-learn's ``GridSearchCV`` finds a better one.
    regularization : float
        lambda of (7), not negative.
    loss, penalty, binary
        As for `TernaryLinearClassifier`.
    max_iter : int
        Most sweeps over the weights.
    random_state : int, RandomState or None
        Random seed.
    n_jobs : int or None
        Threads; None or -1 for all that numba uses. The result does not depend on it.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, machine_, sigma_, n_components_
        As of `tinykernel.TernaryKernelClassifier`.
    n_iter_ : int
        Sweeps made, the most of any output.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PaperClassifier(n_components=64, sigma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    n_components: int = 2048
    sigma: float | None = None
    regularization: float = 0.1
    loss: str = "squared_hinge"
    penalty: str = "l2"
    binary: bool = False
    max_iter: int = 20
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    method: ClassVar[str] = "paper"

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> "PaperClassifier":
        """Train.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for `TernaryKernelClassifier.fit`. Nothing is chosen by the groups.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError, ValueError
            As for `TernaryKernelClassifier.fit`.
        """
        self._check()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        checked = self._weighted_rows(X, y, sample_weight)
        check_classification_targets(checked[1])
        classes, data = prepare(*checked, groups=groups)
        drawn = _Drawn(data, self.n_components, self.sigma, rng)
        signs = drawn.features(data.X)
        share = data.sample_weight / data.sample_weight.sum()
        indices = [1] if data.n_classes == 2 else range(data.n_classes)
        kind = self.loss, self.penalty, self.binary
        rests = [
            TernaryProblem(signs, np.where(data.codes == i, 1.0, -1.0), share, *kind)
            for i in indices
        ]
        settings = float(self.regularization), int(self.max_iter)
        tasks = [partial(learn_output, rest, *settings, int(rng.integers(2**32))) for rest in rests]
        outputs = side_by_side(tasks, thread_count(self.n_jobs), stage="learning the weights")
        sums = Sums(np.array([o.alpha for o in outputs]), np.array([o.beta for o in outputs]))
        machine = drawn.model(np.stack([o.weights for o in outputs]), sums)
        # Not earlier, or an interrupted second fit would mix two models.
        self.classes_ = classes
        self.machine_ = machine
        self.sigma_ = drawn.sigma
        self.n_components_ = int(self.n_components)
        self.n_iter_ = max(len(output.objectives) for output in outputs)
        return self

    def _check(self) -> None:
        """Refuse values that are not allowed."""
        at_least(1, MOST_COMPONENTS)("n_components", self.n_components)
        check_count("max_iter", self.max_iter)
        if self.sigma is not None:
            check_positive("sigma", self.sigma)
        if self.regularization != 0:
            check_positive("regularization", self.regularization)


class _Drawn:
    """Random components of a training set: RM-BCSIK of Lei & Lan 2021, (3)-(5).

    ``z = sign(cos(R x' + b) + t)`` with b and t uniform and ``R = H G P H B / (sigma sqrt(d))``, so
    that the share of components in which two rows differ is a function of their Gaussian kernel. G
    holds signs and S is 1: all rows of R have the length of the root mean square of Gaussian ones.
    """

    def __init__(
        self, data: TrainSet, n_components: int, sigma: float | None, rng: np.random.Generator
    ) -> None:
        bits, scaling = inputs.choose_scaling(data.X, data.raw_dtype, "auto", "auto")
        self.data, self.n_components = data, n_components
        self.transform: inputs.SharedTransform = inputs.draw_transform(
            scaling, bits, data.raw_dtype, rng
        )
        d, sign = self.transform.dimension, self.transform.live_sign
        mixing = self.transform.permutation
        shape = (-(-n_components // d), d)
        diagonal = rng.choice(np.array([-1, 1], dtype=np.int8), shape)
        # Rows are in random order.
        distance = inputs.neighbour_distance(self.transform.mix(data.X[:500]), rng)
        self.sigma = float(_SIGMA * distance if sigma is None else sigma)
        halve = choose_schedules(sign, bits, mixing, diagonal, "sign")
        # Turns of the phase per unit of v; beyond half a turn phases only repeat.
        slope = self.transform.unit * 2.0 ** sum(halve[1]) / (2 * np.pi * self.sigma)
        shift = phases.phase_shift_for(min(slope, 0.5))
        scale = max(1, round(min(slope, 0.5) * 2.0 ** (32 - shift)))
        half = np.arccos(rng.uniform(-1, 1, shape)) / (2 * np.pi)
        windows = phases.QuantizedWindows(
            scale=np.full(shape, scale),
            start=rng.integers(0, phases.STEPS_PER_TURN, shape),
            width=np.clip(np.rint(2 * phases.STEPS_PER_TURN * half), 1, phases.STEPS_PER_TURN - 1),
            phase_shift=shift,
            constant=np.zeros(shape, dtype=np.int64),
        )
        self.stored = phases.Stored(sign, mixing, diagonal, "sign", halve, windows)

    def features(self, X: NDArray[Any]) -> NDArray[np.int8]:
        """Compute z of raw rows, as the firmware does: +-1, shape (p, n)."""
        every = np.ones((1, self.n_components), dtype=np.int8)
        components = self.stored.components(self._by_block(every))[0]
        scaler = self.transform.scaler
        grid = Grid.table(f"int{scaler.bits}", X.shape[1])
        signs = np.empty((self.n_components, len(X)), dtype=np.int8)
        for first in range(0, len(X), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            signs[:, rows] = (
                2 * components.run(scaler.quantize(X[rows]), grid).T.astype(np.int8) - 1
            )
        return signs

    def model(self, weights: NDArray[np.int8], sums: Sums) -> IntegerModel:
        """Return the model of weights (n_outputs, p)."""
        components, ternary, _ = self.stored.components(self._by_block(weights))
        return kernel_model(self.transform.scaler, components, ternary, sums, self.data.classes)

    def _by_block(self, weights: NDArray[np.int8]) -> NDArray[np.int8]:
        shape = self.stored.diagonal.shape
        padded = np.zeros((len(weights), shape[0] * shape[1]), dtype=np.int8)
        padded[:, : self.n_components] = weights
        return padded.reshape(-1, *shape)
