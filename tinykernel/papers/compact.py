"""Compact nonlinear maps: cosine maps learned for labels, or to approximate a kernel (004)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from tinykernel.base.checks import check_choice, check_count, check_positive
from tinykernel.papers import maps

# Of the steps on a map, in units of sigma: their rate, and the most that a step turns the phase
# of a row of typical length, in radians.
_RATE, _MOST_TURN = 0.3, 0.1
_FINAL = 10  # Pegasos ends with this many times T1 steps, and the mean of the last half of them.


def hinge_gradient(
    W: NDArray[Any], Z: NDArray[Any], Y: NDArray[Any], regularization: float
) -> NDArray[Any]:
    """Differentiate ``lambda/2 ||w||^2 + 1/n sum max(0, 1 - y w.z)`` by each column w (004 (7))."""
    active = np.where(Y * (Z @ W) < 1, Y, 0)
    return np.asarray(regularization * W - Z.T @ active / len(Z))


def map_slopes(W: NDArray[Any], angles: NDArray[Any], Y: NDArray[Any]) -> NDArray[Any]:
    """Differentiate the mean hinge loss of ``w . Z(x) + w_0`` by the angles (004 (9), (16))."""
    # Z is ``sqrt(2 / k) cos(angles)`` and the last row of W is w_0. A dense map has the gradient
    # ``X' slopes``. (004 (9) leaves out the factor sqrt(2 / k) of its (4).)
    n, k = angles.shape
    factor = np.sqrt(2 / k)
    active = np.where(Y * (factor * np.cos(angles) @ W[:k] + W[k]) < 1, Y, 0)
    return np.asarray(factor / n * np.sin(angles) * (active @ W[:k].T))


def kernel_slopes(K: NDArray[Any], angles: NDArray[Any]) -> NDArray[Any]:
    """Differentiate ``1/n^2 sum_ij (K_ij - Z(x_i) . Z(x_j))^2`` by the angles (004 (10)-(11))."""
    # (11) prints x_i for its last factor, x, and theta for Theta, and leaves out 1 / n^2.
    n, k = angles.shape
    Z = np.sqrt(2 / k) * np.cos(angles)
    return np.asarray(4 / n**2 * np.sqrt(2 / k) * np.sin(angles) * ((K - Z @ Z.T) @ Z))


class _Descent:
    """Gradient descent on the vectors and offsets of a map, for rows divided by sigma."""

    def __init__(self, X: NDArray[Any], vectors: NDArray[Any], offset: NDArray[Any]) -> None:
        self.vectors, self.offset = vectors.astype(X.dtype), offset.astype(X.dtype)
        self._limit = _MOST_TURN / max(1.0, float(np.sqrt(np.mean(np.sum(X**2, axis=1)))))

    def angles(self, X: NDArray[Any], projection: str = "dense") -> NDArray[Any]:
        if projection == "dense":
            return np.asarray(X @ self.vectors.T + self.offset)
        angles = maps.circulant_projection(X, self.vectors, len(self.offset))
        return np.asarray(angles + self.offset)

    def step(self, gradient: NDArray[Any], by_offset: NDArray[Any], rate: float) -> None:
        """Go against the gradient, with no vector further than the limit."""
        lengths = rate * np.linalg.norm(gradient, axis=1, keepdims=True)
        self.vectors -= rate * gradient / np.maximum(lengths / self._limit, 1)
        self.offset -= np.clip(rate * by_offset, -self._limit, self._limit)


@dataclass(kw_only=True, eq=False, repr=False)
class CompactMapClassifier(maps.OneVersusRest):
    """Compact nonlinear map (CNM): a cosine map learned for the labels (004, sections 4 and 8.3).

    Minimises over the map and the classifier at once (004 (4)-(5), 6.1)::

        lambda/2 ||w||^2 + 1/n sum_i max(0, 1 - y_i (w . Z(x_i) + w_0)) + mu R(Theta)
        Z(x) = sqrt(2 / k) cos(Theta' x + b)

    by Algorithm 3: from random Fourier features, T1 steps of Pegasos on w and T2 steps of
    stochastic gradient descent on Theta and b in turn. Several classes share the map, and their
    hinge losses, one versus rest, add up.

    Where the paper does not work as printed this differs from it. Algorithm 2 takes the steps
    ``1 / (lambda t)`` of Pegasos on Theta too, which turn all phases many times: here the rate is
    constant, and a step turns the phase of a typical row by at most 0.1 radians. Algorithm 1 counts
    from 1 at each call, which forgets w; here it counts on. Its line 6 prints
    ``1 / (lambda ||w||)`` for the ``1 / (sqrt(lambda) ||w||)`` of its line 1. The paper has
    no w_0, which here counts in ||w||.

    Parameters
    ----------
    n_components : int
        k.
    projection : {"dense", "circulant"}
        Theta any matrix (section 4), or circulant matrices after random signs (section 8.3).
    sigma : float
        Width of the Gaussian kernel whose random features are the start.
    regularization : float
        lambda.
    penalty : {None, "l2", "l1"}
        R, on Theta in units of 1 / sigma: half the squared Frobenius norm, or the l1 norm.
    penalty_weight : float
        mu.
    n_turns, n_steps, batch_size : int
        T, where 0 leaves the map random; T1 = T2; and M. A small T is the early stopping of 6.1.
    random_state : int, RandomState or None

    Attributes
    ----------
    vectors_, offset_ : ndarray, shapes (k, n_features) and (k,)
        Theta transposed, or the (m, n_features) first columns of circulant matrices; and b.
    sign_, coef_ : ndarray, shapes (n_features,) and (k + 1, n_outputs)
        Signs of the inputs, all 1 where dense; and w, with w_0 in the last row.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = (X**2).sum(axis=1) > 1.5
    >>> CompactMapClassifier(n_components=8, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    n_components: int = 128
    projection: str = "dense"
    sigma: float = 1.0
    regularization: float = 1e-4
    penalty: str | None = None
    penalty_weight: float = 1e-4
    n_turns: int = 20
    n_steps: int = 100
    batch_size: int = 500
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> "CompactMapClassifier":
        """Learn Theta, b and w from rows and labels of at least two classes."""
        rows, labels = validate_data(self, X, y, dtype=maps.FLOATS)
        check_choice("projection", self.projection, ("dense", "circulant"))
        check_choice("penalty", self.penalty, (None, "l2", "l1"))
        for name in ("n_components", "n_turns", "n_steps", "batch_size"):
            check_count(name, getattr(self, name), 0 if name == "n_turns" else 1)
        for name in ("sigma", "regularization", "penalty_weight"):
            check_positive(name, getattr(self, name))
        self.classes_, Y = maps.label_matrix(labels)
        rng, (k, d) = check_random_state(self.random_state), (self.n_components, rows.shape[1])
        is_dense = self.projection == "dense"
        self.sign_ = np.ones(d) if is_dense else rng.choice([-1.0, 1.0], d)
        # In units of sigma the frequencies are of order 1 whatever the data.
        rows = rows * (self.sign_ / self.sigma).astype(rows.dtype)
        vectors = rng.standard_normal((k if is_dense else -(-k // d), d))
        learned = _Descent(rows, vectors, rng.uniform(0, 2 * np.pi, k))
        self.coef_ = self._alternate(learned, rows, Y.astype(rows.dtype), rng)
        self.vectors_, self.offset_ = learned.vectors / self.sigma, learned.offset
        return self

    def _alternate(
        self, learned: _Descent, X: NDArray[Any], Y: NDArray[Any], rng: np.random.RandomState
    ) -> NDArray[Any]:
        """Take steps on w, Algorithm 1, and on the map, Algorithm 2, in turn; return w."""
        T, T1, price = self.n_turns, self.n_steps, self.regularization
        W, last = np.zeros((self.n_components + 1, Y.shape[1]), dtype=X.dtype), []
        for t in range(1, (T + _FINAL) * T1 + 1):
            batch = rng.randint(0, len(X), self.batch_size)
            Z = np.sqrt(2 / self.n_components) * np.cos(learned.angles(X[batch], self.projection))
            Z = np.hstack([Z, np.ones((len(Z), 1))]).astype(X.dtype)
            W = W - hinge_gradient(W, Z, Y[batch], price) / (price * t)
            W /= np.maximum(1, np.sqrt(price) * np.linalg.norm(W, axis=0))
            if t % T1 == 0 and t <= T * T1:
                for _ in range(T1):
                    self._learn_map(learned, W, X, Y, rng)
            if t > (T + _FINAL / 2) * T1:
                last.append(W)
        return np.asarray(np.mean(last, axis=0))

    def _learn_map(
        self,
        learned: _Descent,
        W: NDArray[Any],
        X: NDArray[Any],
        Y: NDArray[Any],
        rng: np.random.RandomState,
    ) -> None:
        batch, vectors = rng.randint(0, len(X), self.batch_size), learned.vectors
        slopes = map_slopes(W, learned.angles(X[batch], self.projection), Y[batch])
        if self.projection == "dense":
            gradient = slopes.T @ X[batch]
        else:
            gradient = maps.circulant_gradient(X[batch], slopes, len(vectors))
        if self.penalty is not None:
            gradient += self.penalty_weight * (
                vectors if self.penalty == "l2" else np.sign(vectors)
            )
        learned.step(gradient, slopes.sum(axis=0), _RATE * self.n_components)

    def _outputs(self, X: NDArray[Any]) -> NDArray[Any]:
        k, learned = len(self.offset_), _Descent(X, self.vectors_, self.offset_)
        Z = np.sqrt(2 / k) * np.cos(learned.angles(X * self.sign_, self.projection))
        return np.asarray(Z @ self.coef_[:k] + self.coef_[k])


@dataclass(kw_only=True, eq=False, repr=False)
class CompactKernelMap(maps.CosineMap):
    """Cosine features learned so that their products are a known kernel on the training rows.

    Minimises ``sum_ij (k(x_i, x_j) - Z(x_i) . Z(x_j))^2`` over Theta and b of
    ``Z(x) = sqrt(2 / p) cos(Theta' x + b)`` by stochastic gradient descent (004 (10)-(11)), from
    random Fourier features of that kernel. Away from rows like those nothing is promised.

    Parameters
    ----------
    n_components, sigma, random_state
        As for `SpectralFeatures`.
    kernel : {"gaussian", "laplacian"}
        scikit-learn's `rbf_kernel` or `laplacian_kernel`, of width sigma.
    n_steps, batch_size : int
        Steps, 0 or more, and the rows of a step, all pairs of which count.

    Attributes
    ----------
    weights_, offset_ : ndarray
        Theta and b.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> def error(steps):
    ...     Z = CompactKernelMap(n_steps=steps, random_state=0).fit_transform(X)
    ...     return np.mean((rbf_kernel(X, gamma=0.5) - Z @ Z.T) ** 2)
    >>> bool(error(50) < 0.8 * error(0))
    True
    """

    kernel: str = "gaussian"
    n_steps: int = 1000
    batch_size: int = 500

    def _draw(self, X: NDArray[Any], y: Any, rng: np.random.RandomState) -> None:
        check_choice("kernel", self.kernel, ("gaussian", "laplacian"))
        n_steps, size = check_count("n_steps", self.n_steps, 0), len(self.offset_) ** 2
        check_count("batch_size", self.batch_size)
        rows = X / X.dtype.type(self.sigma)
        start = maps.draw_frequencies(self.kernel, (X.shape[1], len(self.offset_)), rng).T
        learned = _Descent(rows, start, self.offset_)
        for t in range(n_steps):
            batch = rows[rng.randint(0, len(rows), self.batch_size)]
            gaussian = self.kernel == "gaussian"
            K = rbf_kernel(batch, gamma=0.5) if gaussian else laplacian_kernel(batch, gamma=1.0)
            slopes = kernel_slopes(K, learned.angles(batch))
            learned.step(slopes.T @ batch, slopes.sum(axis=0), _RATE * size * (1 - t / n_steps))
        self.weights_, self.offset_ = learned.vectors.T / self.sigma, learned.offset
