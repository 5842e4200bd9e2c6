"""Learning a cosine map and a linear classifier together: what compact and circulant maps share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tinykernel import progress
from tinykernel.checks import check_choice, check_count, check_positive
from tinykernel.papers.classifiers.one_vs_rest import OneVersusRest, hold_out
from tinykernel.papers.classifiers.pegasos import (
    Batch,
    active_targets,
    draw_batch,
    pegasos,
    with_constant,
)
from tinykernel.papers.features.base import TURN, add_cosine, find_sigma, label_targets

_QUARTER = 0.25
# Steps of the last run of Pegasos, in units of T1: it settles, the runs before only keep up.
_FINAL_RUNS = 10
# Of each class, the rows held out to stop on.
_VALIDATION_FRACTION = 0.1

SelfProjection = TypeVar("SelfProjection", bound="Projection")


@dataclass(eq=False)
class Projection(ABC):
    """A linear map to angles, whose parameters can be learned: ``angles = R x + b``.

    A subclass defines `project` and `backward` for what R is made of. `matrix` holds the parameters
    of R, radians per unit, with its vectors along `axis`; `offset` is b, radians.
    """

    matrix: NDArray[Any]
    offset: NDArray[Any]
    axis: ClassVar[int] = 0

    @staticmethod
    @abstractmethod
    def shape(n_inputs: int, n_angles: int) -> tuple[int, int]:
        """Return the shape of `matrix`."""

    @abstractmethod
    def project(self, X: NDArray[Any]) -> NDArray[Any]:
        """Compute ``R x`` of every row, shape (n, k), C order, freshly allocated."""

    @abstractmethod
    def backward(self, X: NDArray[Any], angle_gradient: NDArray[Any]) -> NDArray[Any]:
        """Return the gradient for `matrix`, given that for the angles, shape (n, k)."""

    def copy(self: SelfProjection) -> SelfProjection:
        """Return a copy with parameters of its own."""
        return type(self)(self.matrix.copy(), self.offset.copy())

    def turns(self, X: NDArray[Any]) -> NDArray[Any]:
        """Compute ``R x / (2 pi)`` of every row, shape (n, k)."""
        angles = self.project(X)
        angles *= angles.dtype.type(1 / TURN)
        return angles

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """Compute ``Z(x) = sqrt(2 / k) cos(R x + b)`` of every row (004 (4)), shape (n, k)."""
        return add_cosine(self.turns(X), self.offset / TURN)

    def features_and_slopes(self, X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Compute the features and ``sqrt(2 / k) sin(R x + b)``, minus their derivatives."""
        turns = self.turns(X)
        slopes = add_cosine(turns.copy(), self.offset / TURN - _QUARTER)
        return add_cosine(turns, self.offset / TURN), slopes

    def step(self, gradient: tuple[NDArray[Any], NDArray[Any]], rate: float, limit: float) -> None:
        """Go against the gradient, for `matrix` and `offset`.

        No vector of the matrix, and no offset, changes by more than `limit`.
        """
        change = self.matrix.dtype.type(-rate) * gradient[0]
        lengths = np.linalg.norm(change, axis=self.axis, keepdims=True)
        change /= np.maximum(lengths * change.dtype.type(1 / limit), 1)
        self.matrix += change
        self.offset -= np.clip(rate * gradient[1], -limit, limit).astype(self.offset.dtype)


def map_gradient(
    projection: Projection, W: NDArray[Any], X: NDArray[Any], Y: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Differentiate the mean hinge loss (004 (8)) by the parameters of the map (004 (9), (17)).

    `W` has a row for each component, and one more for the intercept where there is one; `Y` is +1
    or -1, a column for each output.

    ``sqrt(2 / k) w_i / |A| sum_{A+} y sin(theta_i . x + b_i) x`` for a dense map and one output;
    several outputs add up. (004 (9) leaves out the factor sqrt(2 / k) of its (4).)
    """
    Z, slopes = projection.features_and_slopes(X)
    active = active_targets(W, with_constant(Z, W.shape[0] > Z.shape[1]), Y)
    slopes *= active @ W[: Z.shape[1]].T
    slopes *= slopes.dtype.type(1.0 / X.shape[0])
    return projection.backward(X, slopes), slopes.sum(axis=0)


@dataclass(frozen=True, eq=False)
class _Best:
    """The parameters that did best on the rows held out."""

    score: float
    projection: Projection
    W: NDArray[Any]


@dataclass(kw_only=True, eq=False, repr=False)
class LearnedMapClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OneVersusRest):
    """Base of the classifiers that learn a cosine map: Algorithm 3 of 004.

    They are transformers too, which give the learned features. A subclass says what the projection
    is, and which attribute holds its matrix.
    """

    n_components: int = 128
    sigma: float | str = "neighbour"
    regularization: float = 1e-4
    max_iter: int = 50
    n_weight_steps: int = 100
    n_map_steps: int = 100
    batch_size: int = 500
    learning_rate: float = 0.3
    max_turn: float = 0.1
    fit_intercept: bool = True
    early_stopping: bool = True
    n_iter_no_change: int = 10
    random_state: int | np.random.RandomState | None = None
    _projection: ClassVar[type[Projection]]
    _matrix: ClassVar[str]

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Compute the learned features.

        Parameters
        ----------
        X : array-like, shape (n, n_features)

        Returns
        -------
        ndarray, shape (n, n_components)
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=(np.float64, np.float32), order="C", reset=False)
        return self._features(rows)

    def _start(self, X: NDArray[Any], rng: np.random.RandomState) -> Projection:
        """Return the projection to start from, for rows divided by sigma."""
        k = int(self.n_components)
        matrix = rng.standard_normal(self._projection.shape(X.shape[1], k))
        offset = rng.uniform(0.0, TURN, k)
        return self._projection(matrix.astype(X.dtype), offset.astype(X.dtype))

    def _check(self) -> None:
        """Refuse parameters that are out of their range."""
        for name in ("n_components", "max_iter", "n_weight_steps", "batch_size"):
            check_count(name, getattr(self, name))
        check_count("n_map_steps", self.n_map_steps, low=0)
        check_count("n_iter_no_change", self.n_iter_no_change)
        for name in ("regularization", "learning_rate", "max_turn"):
            check_positive(name, getattr(self, name))
        for name in ("fit_intercept", "early_stopping"):
            check_choice(name, getattr(self, name), (True, False))

    def _fit(self, X: NDArray[Any], codes: NDArray[np.int64], rng: np.random.RandomState) -> None:
        self._check()
        self.sigma_ = find_sigma(self.sigma, X, rng)
        # In units of sigma the frequencies are of order 1 whatever the data.
        rows = X / X.dtype.type(self.sigma_)
        kept, held = np.arange(codes.size), np.empty(0, dtype=np.int64)
        if self.early_stopping:
            kept, held = hold_out(codes, _VALIDATION_FRACTION, rng)
        projection = self._start(rows, rng)
        Y = label_targets(codes, self.classes_.size, X.dtype)
        projection, W, steps = self._alternate(projection, rows, Y, kept, held, rng)
        W = pegasos(
            W,
            lambda: self._draw(projection, rows, Y, np.arange(codes.size), rng),
            self.regularization,
            _FINAL_RUNS * int(self.n_weight_steps),
            first=steps + 1,
            average=True,
        )
        self._keep(W, bool(self.fit_intercept))
        self.offset_ = np.mod(projection.offset, projection.offset.dtype.type(TURN))
        setattr(self, self._matrix, projection.matrix / X.dtype.type(self.sigma_))
        self._n_features_out = int(self.n_components)

    def _draw(
        self,
        projection: Projection,
        X: NDArray[Any],
        Y: NDArray[Any],
        allowed: NDArray[np.int64],
        rng: np.random.RandomState,
    ) -> Batch:
        """Sample a batch and compute its features."""
        rows = allowed[draw_batch(allowed.size, int(self.batch_size), rng)]
        return with_constant(projection.features(X[rows]), self.fit_intercept), Y[rows]

    def _alternate(
        self,
        projection: Projection,
        X: NDArray[Any],
        Y: NDArray[Any],
        kept: NDArray[np.int64],
        held: NDArray[np.int64],
        rng: np.random.RandomState,
    ) -> tuple[Projection, NDArray[Any], int]:
        """Take weight steps and map steps in turn; return the best map, weights, steps made."""
        k, T1 = int(self.n_components), int(self.n_weight_steps)
        W = np.zeros((k + bool(self.fit_intercept), Y.shape[1]), dtype=X.dtype)
        norm = np.sqrt(np.mean(np.einsum("ij,ij->i", X, X, dtype=np.float64)))
        rate, limit = self.learning_rate * k, self.max_turn / max(float(norm), 1.0)
        best, since = _Best(-np.inf, projection, W), 0
        self.validation_scores_ = []
        for turn in range(int(self.max_iter)):
            W = pegasos(
                W,
                lambda: self._draw(projection, X, Y, kept, rng),
                self.regularization,
                T1,
                first=turn * T1 + 1,
            )
            self.n_iter_ = turn + 1
            if held.size:
                score = self._score(projection, W, X[held], Y[held])
                self.validation_scores_.append(score)
                since += 1
                if score > best.score:
                    best, since = _Best(score, projection.copy(), W), 0
                if since >= self.n_iter_no_change:
                    break
            else:
                best = _Best(0.0, projection, W)
            progress.report("learning the map", turn + 1, int(self.max_iter))
            if turn + 1 < int(self.max_iter):
                for _ in range(int(self.n_map_steps)):
                    rows = kept[draw_batch(kept.size, int(self.batch_size), rng)]
                    gradient = map_gradient(projection, W, X[rows], Y[rows])
                    projection.step(gradient, rate, limit)
        return best.projection, best.W, self.n_iter_ * T1

    def _score(
        self, projection: Projection, W: NDArray[Any], X: NDArray[Any], Y: NDArray[Any]
    ) -> float:
        """Return the share of rows whose label comes out right."""
        values = with_constant(projection.features(X), self.fit_intercept) @ W
        if Y.shape[1] == 1:
            return float(np.mean((values > 0) == (Y > 0)))
        return float(np.mean(values.argmax(axis=1) == Y.argmax(axis=1)))

    def _features(self, X: NDArray[Any]) -> NDArray[Any]:
        matrix = getattr(self, self._matrix).astype(X.dtype)
        return self._projection(matrix, self.offset_.astype(X.dtype)).features(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
