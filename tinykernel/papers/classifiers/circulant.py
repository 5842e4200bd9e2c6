"""Learned circulant nonlinear maps: O(k log d) time and O(k) memory (004, section 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.papers.classifiers.learned_maps import LearnedMapClassifier, Projection
from tinykernel.papers.features.circulant import circulant_gradient, circulant_projection


class CirculantProjection(Projection):
    """``R x`` with R stacked circulant matrices, the first k rows of them (004 (12)-(15)).

    `matrix` holds their first columns r_1 to r_m, shape (m, n_features).
    """

    def project(self, X: NDArray[Any]) -> NDArray[Any]:
        """Compute the circular convolutions ``r * x`` by the FFT, shape (n, k)."""
        return circulant_projection(X, self.matrix, self.offset.size)

    def backward(self, X: NDArray[Any], angle_gradient: NDArray[Any]) -> NDArray[Any]:
        """Return the gradient for the vectors, a circular convolution too (004 (17))."""
        return circulant_gradient(X, angle_gradient, self.matrix.shape[0])

    def _axis(self) -> int:
        return 1


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
    max_turn, fit_intercept, early_stopping, validation_fraction, n_iter_no_change, random_state
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

    sign_: NDArray[np.int8]
    vectors_: NDArray[Any]

    def _start(self, X: NDArray[Any], rng: np.random.RandomState) -> Projection:
        k, d = int(self.n_components), X.shape[1]
        self.sign_ = (2 * np.asarray(rng.randint(0, 2, d)) - 1).astype(np.int8)
        # D once for all steps: the rows are this estimator's own copy.
        X *= self.sign_.astype(X.dtype)
        vectors = rng.standard_normal((-(-k // d), d))
        offset = rng.uniform(0.0, 2.0 * np.pi, k)
        return CirculantProjection(vectors.astype(X.dtype), offset.astype(X.dtype))

    def _keep(self, projection: Projection) -> None:
        self.vectors_ = projection.matrix / projection.matrix.dtype.type(self.sigma_)

    def _features(self, X: NDArray[Any]) -> NDArray[Any]:
        return super()._features(X * self.sign_.astype(X.dtype))

    def _fitted(self, dtype: Any) -> Projection:
        return CirculantProjection(self.vectors_.astype(dtype), self.offset_.astype(dtype))
