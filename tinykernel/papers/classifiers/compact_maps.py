"""Cosine features learned with the classifier: compact maps and circulant ones (004, 4 and 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.papers.classifiers.learned_maps import LearnedMapClassifier, Projection
from tinykernel.papers.features.circulant import circulant_gradient, circulant_projection


class DenseProjection(Projection):
    """``R x = Theta' x`` with Theta any matrix, shape (n_features, k): one product through BLAS."""

    @staticmethod
    def shape(n_inputs: int, n_angles: int) -> tuple[int, int]:
        """Return the shape of Theta."""
        return n_inputs, n_angles

    def project(self, X: NDArray[Any]) -> NDArray[Any]:
        """Compute ``Theta' x`` of every row, shape (n, k)."""
        return np.asarray(X @ self.matrix, order="C")

    def backward(self, X: NDArray[Any], angle_gradient: NDArray[Any]) -> NDArray[Any]:
        """Return the gradient for Theta: ``sum_rows x g'``."""
        return np.asarray(X.T @ angle_gradient)


@dataclass(kw_only=True, eq=False, repr=False)
class CompactMapClassifier(LearnedMapClassifier):
    r"""Compact nonlinear map (CNM): a cosine map learned for the labels (004, section 4).

    Minimises, over the map and the classifier at once (004 (4)-(5))::

        lambda/2 ||w||^2 + 1/n sum_i max(0, 1 - y_i w . Z(x_i))
        Z(x) = sqrt(2 / k) cos(Theta' x + b)

    by Algorithm 3: T1 steps of Pegasos on w (`pegasos.py`, (7)) and T2 steps of
    stochastic gradient descent on Theta and b ((9)) in turn, from random Fourier features. The
    learned kernel ``Z(x) . Z(y)`` replaces the choice of one, and far fewer features do: on USPS 8
    learned features reach what takes 512 random ones (004, section 7.1). With several classes all
    share one map, and their hinge losses, one versus rest, add up;
    ``sklearn.multiclass.OneVsRestClassifier`` gives each class a map of its own.

    Where the paper does not work as printed this differs from it. Algorithm 2 takes steps
    ``1 / (lambda t)`` on Theta, which belong to strongly convex functions like that of w: for the
    lambdas that are good for w the first ones turn all phases many times, and training diverges.
    Here the rate is constant, and no step turns a row of typical length further than `max_turn`.
    Algorithm 1 counts its steps from 1 at each call, which forgets w; here they go on counting.
    Projection and the factor sqrt(2 / k) are as explained at `pegasos` and `map_gradient`. The
    classifier has an intercept, which the paper does not mention: without it 8 features do not do.

    Parameters
    ----------
    n_components : int
        k, the number of features.
    sigma : float or "neighbour"
        Width of the Gaussian kernel whose random features are the start, and unit of the steps;
        "neighbour" takes the mean distance to the 50th neighbour, as 004, section 7.
    regularization : float
        lambda, of w.
    max_iter : int
        T, the largest number of turns.
    n_weight_steps, n_map_steps : int
        T1 and T2, steps a turn. ``n_map_steps=0`` leaves the random features as they are.
    batch_size : int
        M, points a step.
    learning_rate : float
        Of the map: a step is this times ``k sigma^-2`` times the gradient.
    max_turn : float
        Largest change, in radians, of the phase of a row of root-mean-square length in a step.
        This default and that of `learning_rate` were chosen on rows held out of the training part
        of USPS (``docs/results/defaults.md``).
    fit_intercept : bool
        Whether outputs have an intercept, penalised like the weights.
    early_stopping : bool
        Hold out a tenth of the rows of each class (004, section 6.1: this is the
        regularisation of the map), keep the parameters that do best on them and stop after
        `n_iter_no_change` turns without a new best. Classes that are too small are not held out,
        and without any rows held out all turns are made. The last run on w sees all rows.
    n_iter_no_change : int
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : ndarray
        Labels in ascending order.
    sigma_ : float
        The width used.
    weights_ : ndarray, shape (n_features, n_components)
        Theta, radians per unit of the features.
    offset_ : ndarray, shape (n_components,)
        b, radians in [0, 2 pi).
    coef_ : ndarray, shape (n_outputs, n_components)
        w; one output for two classes.
    intercept_ : ndarray, shape (n_outputs,)
    validation_scores_ : list of float
        Accuracy on the rows held out after each turn.
    n_iter_ : int
        Turns made.
    n_features_in_ : int

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = CompactMapClassifier(n_components=8, max_iter=20, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _projection: ClassVar[type[Projection]] = DenseProjection
    _matrix: ClassVar[str] = "weights_"


class CirculantProjection(Projection):
    """``R x`` with R stacked circulant matrices, the first k rows of them (004 (12)-(15)).

    `matrix` holds their first columns r_1 to r_m, shape (m, n_features).
    """

    axis: ClassVar[int] = 1

    @staticmethod
    def shape(n_inputs: int, n_angles: int) -> tuple[int, int]:
        """Return (m, n_features)."""
        return -(-n_angles // n_inputs), n_inputs

    def project(self, X: NDArray[Any]) -> NDArray[Any]:
        """Compute the circular convolutions ``r * x`` by the FFT, shape (n, k)."""
        return circulant_projection(X, self.matrix, self.offset.size)

    def backward(self, X: NDArray[Any], angle_gradient: NDArray[Any]) -> NDArray[Any]:
        """Return the gradient for the vectors, a circular convolution too (004 (17))."""
        return circulant_gradient(X, angle_gradient, self.matrix.shape[0])


@dataclass(kw_only=True, eq=False, repr=False)
class CirculantMapClassifier(LearnedMapClassifier):
    r"""Circulant nonlinear map, learned for the labels (004, section 8.3).

    As `CompactMapClassifier`, but R is structured (004 (12)-(15))::

        Z(x) = sqrt(2 / k) cos(R D x + b),    R = [circ(r_1); circ(r_2); ...]

    with random signs D, so that a map has ``m d`` parameters in place of ``k d`` and costs
    O(k log d) through the FFT. For k < d, the number of features, the first k outputs of one
    circulant matrix are used, for k > d ``m = ceil(k / d)`` of them are stacked, and the FFT of the
    row is computed once. The gradient for r is a circular convolution ((16)-(17)), for which the
    transforms of all rows of a batch are added up before one inverse transform.

    Parameters
    ----------
    n_components : int
        k, the number of features.
    sigma, regularization, max_iter, n_weight_steps, n_map_steps, batch_size, learning_rate
        As in `CompactMapClassifier`. ``n_map_steps=0`` leaves the randomised circulant map of
        section 8.2.
    max_turn, fit_intercept, early_stopping, n_iter_no_change, random_state
        As in `CompactMapClassifier`.

    Attributes
    ----------
    classes_, sigma_, offset_, coef_, intercept_, validation_scores_, n_iter_, n_features_in_
        As in `CompactMapClassifier`.
    sign_ : ndarray of int8, shape (n_features,)
        Diagonal of D.
    vectors_ : ndarray, shape (m, n_features)
        r_1 to r_m, radians per unit of the features.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> X = rng.normal(size=(400, 4))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = CirculantMapClassifier(n_components=16, max_iter=20, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _projection: ClassVar[type[Projection]] = CirculantProjection
    _matrix: ClassVar[str] = "vectors_"

    def _start(self, X: NDArray[Any], rng: np.random.RandomState) -> Projection:
        self.sign_ = (2 * np.asarray(rng.randint(0, 2, X.shape[1])) - 1).astype(np.int8)
        # D once for all steps: the rows are this estimator's own copy.
        X *= self.sign_.astype(X.dtype)
        return super()._start(X, rng)

    def _features(self, X: NDArray[Any]) -> NDArray[Any]:
        return super()._features(X * self.sign_.astype(X.dtype))
