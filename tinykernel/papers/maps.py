"""Feature maps of the papers: binary codes, circulant maps, Fastfood, Fourier features."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, rfft
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import check_random_state, gen_batches, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tinykernel.base.checks import check_choice, check_count, check_positive
from tinykernel.base.errors import OptionError, RowsError
from tinykernel.base.hadamard import fwht

FLOATS = (np.float64, np.float32)


def label_matrix(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the classes, and for each a column of 1 and -1; for two classes only the second."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise RowsError("y has one class; give labels of two or more")
    Y = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
    return classes, Y[:, 1:] if len(classes) == 2 else Y


class OneVersusRest(ClassifierMixin, BaseEstimator):
    """Base of classifiers with an output a class, or one output for two classes."""

    classes_: NDArray[Any]

    @abstractmethod
    def _outputs(self, X: NDArray[Any]) -> NDArray[Any]:
        """Compute the outputs of rows, shape (n, n_outputs)."""

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Compute the outputs of rows: shape (n, n_classes), or (n,) for two classes."""
        check_is_fitted(self)
        values = self._outputs(validate_data(self, X, dtype=FLOATS, reset=False))
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the labels of rows, shape (n,)."""
        values = self.decision_function(X)
        codes = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[codes])


LogDensity = Callable[[NDArray[np.float64]], NDArray[Any]]
_WALKS = 64


def metropolis_hastings(
    log_density: LogDensity,
    n_features: int,
    n_samples: int,
    *,
    burn_in: int = 500,
    thinning: int = 20,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.float64], float]:
    """Draw from a density that is known up to a factor, by random walks from the origin (002).

    A walk proposes ``w' = w + step N(0, I)`` and goes there with probability
    ``min(1, p(w') / p(w))``. The step, ``2.38 / sqrt(n_features)``, is the best for a density of
    unit variance (Roberts, Gelman & Gilks 1997). Up to 64 walks run side by side, and every
    `thinning`-th position after `burn_in` steps is a sample.

    The code printed in 002 draws with replacement from the last 990 positions of one walk, so that
    samples repeat. Its Gaussian density is ``exp(-||w|| / 2)``, without the square, and its Cauchy
    density lacks the square of w too: it is negative for w < -1.

    Parameters
    ----------
    log_density : callable
        Takes positions (n, n_features), returns n natural logarithms; -infinity where p is 0.
    n_features, n_samples, burn_in, thinning : int
    random_state : int, RandomState or None

    Returns
    -------
    samples : ndarray, shape (n_samples, n_features)
    rate : float
        Share of the proposals after the burn-in that were accepted.

    Examples
    --------
    >>> samples, rate = metropolis_hastings(lambda w: -0.5 * (w**2).sum(axis=1), 2, 100)
    >>> samples.shape, 0.1 < rate < 0.6
    ((100, 2), True)
    """
    walks = min(_WALKS, check_count("n_samples", n_samples))
    rounds, d = -(-n_samples // walks), check_count("n_features", n_features)
    check_count("burn_in", burn_in, 0)
    n_steps = rounds * check_count("thinning", thinning)
    rng, here = check_random_state(random_state), np.zeros((walks, d))
    height = _heights(log_density, here)
    if np.isneginf(height).any():
        raise OptionError("log_density is -infinity at the origin, where the walks start")
    samples, accepted = np.empty((rounds, walks, d)), 0
    for turn in range(-burn_in, n_steps):
        proposal = here + 2.38 / np.sqrt(d) * rng.standard_normal(here.shape)
        proposed = _heights(log_density, proposal)
        accept = np.log(rng.uniform(size=walks)) < proposed - height
        here[accept], height[accept] = proposal[accept], proposed[accept]
        if turn >= 0:
            accepted += int(accept.sum())
            samples[turn // thinning] = here
    return samples.reshape(-1, d)[:n_samples], accepted / (n_steps * walks)


def _heights(log_density: LogDensity, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Call the user's function, and check what it returns."""
    values = np.asarray(log_density(points), dtype=np.float64)
    if values.shape != (len(points),) or np.isnan(values).any() or np.isposinf(values).any():
        raise OptionError(
            f"log_density must return {len(points)} numbers, finite or -infinity, for positions of "
            f"shape {points.shape}"
        )
    return values


_ROWS_AT_ONCE = 1024
# The method of RandomState that draws one coordinate of a frequency, for a kernel of width 1.
_SAMPLERS = {"gaussian": "standard_normal", "laplacian": "standard_cauchy", "cauchy": "laplace"}
_MapT = TypeVar("_MapT", bound="CosineMap")


def draw_frequencies(
    kernel: str, shape: tuple[int, int], rng: np.random.RandomState
) -> NDArray[np.float64]:
    """Draw W from the spectral density of a kernel of width 1 (Rahimi & Recht 2007, figure 1)."""
    check_choice("kernel", kernel, tuple(_SAMPLERS))
    return np.asarray(getattr(rng, _SAMPLERS[kernel])(size=shape))


@dataclass(kw_only=True, eq=False, repr=False)
class CosineMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of the maps ``Z(x) = sqrt(2 / p) cos(R x + b)``, which differ in how R is drawn."""

    n_components: int = 100
    sigma: float = 1.0
    random_state: int | np.random.RandomState | None = None

    def fit(self: _MapT, X: ArrayLike, y: Any = None) -> _MapT:
        """Draw R and b for rows `X`, shape (n, n_features); only `KernelAlignment` takes `y`."""
        required = get_tags(self).target_tags.required
        checked = validate_data(self, X, y if required else "no_validation", dtype=FLOATS)
        rows, labels = checked if required else (checked, None)
        p, rng = (
            check_count("n_components", self.n_components),
            check_random_state(self.random_state),
        )
        check_positive("sigma", self.sigma)
        self.offset_: NDArray[Any] = rng.uniform(0, 2 * np.pi, p)
        self._draw(rows, labels, rng)
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Compute the features of rows, shape (n, n_components), in the dtype of `X`."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=FLOATS, reset=False)
        Z = np.empty((len(rows), len(self.offset_)), dtype=rows.dtype)
        for part in gen_batches(len(rows), _ROWS_AT_ONCE):
            np.cos(self._angles(rows[part]) + self.offset_.astype(rows.dtype), out=Z[part])
        Z *= Z.dtype.type(np.sqrt(2 / Z.shape[1]))
        return Z

    @abstractmethod
    def _draw(self, X: NDArray[Any], y: Any, rng: np.random.RandomState) -> None:
        """Draw the weights."""

    def _angles(self, X: NDArray[Any]) -> NDArray[Any]:
        """Compute R x of some rows."""
        return np.asarray(X @ self.weights_.astype(X.dtype))

    @property
    def _n_features_out(self) -> int:
        return len(self.offset_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralFeatures(CosineMap):
    """Random Fourier features: ``Z(x) = sqrt(2 / p) cos(W' x + b)``.

    The columns of W are drawn from the Fourier transform of a kernel and b from Uniform(0, 2 pi);
    ``Z(x) . Z(y)`` then estimates ``k(x - y)`` without bias (Rahimi & Recht 2007; 000 (2)-(4), 002,
    004 (1)-(3)). scikit-learn's ``RBFSampler(gamma=1 / (2 * sigma**2))`` is the Gaussian case.

    001 prints the Gaussian kernel, below (1), without the square of the norm; neither 001 nor 003
    has the factor sqrt(2 / p).

    Parameters
    ----------
    n_components : int
        p.
    sigma : float
        Width of the kernel, in the units of the inputs.
    kernel : {"gaussian", "laplacian", "cauchy"}
        ``exp(-||x - y||^2 / (2 sigma^2))``, ``exp(-||x - y||_1 / sigma)``, or the product of
        ``1 / (1 + ((x_i - y_i) / sigma)^2)``.
    log_density : callable, optional
        Logarithm of another spectral density, of a kernel of width 1, in place of `kernel`; see
        `metropolis_hastings`, which samples it.
    random_state : int, RandomState or None

    Attributes
    ----------
    weights_, offset_ : ndarray, shapes (n_features, n_components) and (n_components,)
        W, in radians per unit, and b.
    acceptance_rate_ : float
        Of `metropolis_hastings`; 1 without `log_density`.

    Examples
    --------
    >>> features = SpectralFeatures(n_components=20000, kernel="laplacian", random_state=0)
    >>> Z = features.fit_transform([[0.0, 0.0], [1.0, 0.5]])
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-1.5)) < 0.03)
    True
    """

    kernel: str = "gaussian"
    log_density: LogDensity | None = None

    def _draw(self, X: NDArray[Any], y: Any, rng: np.random.RandomState) -> None:
        shape, self.acceptance_rate_ = (X.shape[1], len(self.offset_)), 1.0
        if self.log_density is None:
            W = draw_frequencies(self.kernel, shape, rng)
        else:
            drawn, self.acceptance_rate_ = metropolis_hastings(
                self.log_density, *shape, random_state=rng
            )
            W = drawn.T
        self.weights_ = W / self.sigma


def circulant_projection(X: NDArray[Any], vectors: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the first k entries of ``[circ(r_1) x; circ(r_2) x; ...]`` (004 (12)-(15)), by FFT."""
    spectra = rfft(X)[:, None] * rfft(vectors.astype(X.dtype))
    return np.asarray(irfft(spectra, n=X.shape[1]).reshape(len(X), -1)[:, :k])


def circulant_gradient(X: NDArray[Any], slopes: NDArray[Any], n_vectors: int) -> NDArray[Any]:
    """Return the gradient for the vectors of `circulant_projection`, given that for its outputs."""
    # 004 (17): the circular correlation ``sum_rows s_1(rev(x)) * g``, with the g of one circulant
    # matrix and 0 for outputs that were cut off. The sum over rows comes before the inverse FFT.
    n, d = X.shape
    padded = np.zeros((n, n_vectors * d), dtype=X.dtype)
    padded[:, : slopes.shape[1]] = slopes
    spectra = rfft(padded.reshape(n, n_vectors, d))
    return np.asarray(irfft(np.einsum("ij,imj->mj", np.conj(rfft(X)), spectra), n=d))


@dataclass(kw_only=True, eq=False, repr=False)
class CirculantFeatures(CosineMap):
    """Random circulant maps: ``Z(x) = sqrt(2 / k) cos(R D x + b)`` (004 (12)-(15), section 8.2).

    R stacks circulant matrices of vectors of N(0, 1 / sigma^2) and is cut to k rows; D holds random
    signs. ``Z(x) . Z(y)`` estimates the Gaussian kernel in O(k log d) time and O(k) memory, and the
    input is not padded. ``CompactMapClassifier(projection="circulant")`` optimises the vectors
    (section 8.3).

    004 (13) has no b. Its Proposition 1 says that ``cos(u) cos(v)`` is a function of u - v, by an
    identity that is none (it is ``(cos(u - v) + cos(u + v)) / 2``): the kernel is shift-invariant,
    and the estimate without bias, only with a uniform b.

    Parameters
    ----------
    n_components, sigma, random_state
        As for `SpectralFeatures`; n_components is k.

    Attributes
    ----------
    sign_, vectors_, offset_ : ndarray, shapes (n_features,), (m, n_features), (n_components,)
        D, the first columns of the circulant matrices in radians per unit, and b in radians.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2, 50)) / 10
    >>> Z = CirculantFeatures(n_components=20000, random_state=0).fit_transform(X)
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-0.5 * np.sum((X[0] - X[1]) ** 2))) < 0.03)
    True
    """

    def _draw(self, X: NDArray[Any], y: Any, rng: np.random.RandomState) -> None:
        d = X.shape[1]
        self.sign_ = rng.choice([-1.0, 1.0], d)
        self.vectors_ = rng.standard_normal((-(-len(self.offset_) // d), d)) / self.sigma

    def _angles(self, X: NDArray[Any]) -> NDArray[Any]:
        flipped = X * self.sign_.astype(X.dtype)
        return circulant_projection(flipped, self.vectors_, len(self.offset_))


@dataclass(kw_only=True, eq=False, repr=False)
class Fastfood(CosineMap):
    """Random features of the Gaussian kernel in O(p log d) time and O(p) memory.

    ``Z(x) = sqrt(2 / p) cos(R x + b)``, where R stacks blocks V of d rows (001 (3)-(4), 000
    (9)-(14), after Le, Sarlos & Smola 2013); x is padded by zeros to d values, a power of two::

        V = S H G P H B / (sigma sqrt(d))

    B holds random signs, P permutes, and G is standard normal, so that all rows of ``H G P H B``
    have the length ``sqrt(d) ||G||``. ``S_ii = s_i / ||G||``, with s_i of the chi distribution with
    d degrees of freedom, gives them those of a Gaussian matrix: each row of V is exactly
    N(0, I / sigma^2).

    001 calls S "a random scaling matrix" only, and (4) has one transpose too many. 000 takes
    Uniform(0, 1) for S, below (9) and in its code: rows are then half as long, and the kernel is
    neither Gaussian nor of width sigma. 000 (10) prints p(-1) twice, and line 21 of its Algorithm 1
    leaves out b and the cosine.

    `PaperClassifier` has these blocks in whole numbers, with shared B and P, signs in G, and S = 1.

    Parameters
    ----------
    n_components, sigma, random_state
        As for `SpectralFeatures`; the last block is cut.
    shared : bool
        Whether all blocks have one B and one P, so that ``P H B x`` is computed once.

    Attributes
    ----------
    sign_, permutation_ : ndarray, shape (n_blocks, d), or (1, d) where shared
        B, and P as the positions that ``P u = u[permutation_]`` takes.
    diagonal_, scale_ : ndarray, shape (n_blocks, d)
        G, and ``S / (sigma sqrt(d))``.
    offset_ : ndarray, shape (n_components,)

    Examples
    --------
    >>> features = Fastfood(n_components=20000, random_state=0)
    >>> Z = features.fit_transform([[0.0, 0.0], [1.0, 0.0]])
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-0.5)) < 0.03)
    True
    """

    shared: bool = False

    def _draw(self, X: NDArray[Any], y: Any, rng: np.random.RandomState) -> None:
        check_choice("shared", self.shared, (True, False))
        d = 1 << (X.shape[1] - 1).bit_length()
        shape = (-(-len(self.offset_) // d), d)
        mixers = range(1 if self.shared else shape[0])
        self.sign_ = np.stack([rng.choice([-1.0, 1.0], d) for _ in mixers])
        self.permutation_ = np.stack([rng.permutation(d) for _ in mixers])
        self.diagonal_ = rng.standard_normal(shape)
        lengths = np.sqrt(rng.chisquare(d, shape))
        norm = np.linalg.norm(self.diagonal_, axis=1, keepdims=True)
        self.scale_ = lengths / (norm * self.sigma * np.sqrt(d))

    def _angles(self, X: NDArray[Any]) -> NDArray[Any]:
        n, d = len(X), self.sign_.shape[1]
        blocks: list[NDArray[Any]] = []
        for k, (diagonal, scale) in enumerate(zip(self.diagonal_, self.scale_, strict=True)):
            if k < len(self.sign_):
                padded = np.zeros((n, d), dtype=X.dtype)
                np.multiply(
                    X, self.sign_[k, : X.shape[1]].astype(X.dtype), out=padded[:, : X.shape[1]]
                )
                mixed = fwht(padded)[:, self.permutation_[k]]
            blocks.append(fwht(mixed * diagonal.astype(X.dtype)) * scale.astype(X.dtype))
        return np.hstack(blocks)[:, : len(self.offset_)]


_CODES_AT_ONCE = 4096


@dataclass(eq=False, repr=False)
class BinaryCodes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Signs of a feature map, one bit a feature: ``z(x) = sign(Phi(x) + t)``.

    Of `SpectralFeatures` they are BCSIK (Raginsky & Lazebnik 2009; 001 (1), 000 (6)), of `Fastfood`
    RM-BCSIK (001 (5)), of `KernelAlignment` the codes of 000 (24). Without t they are the
    sign(cos) of the code printed in 000, and, of scikit-learn's ``GaussianRandomProjection``,
    the binary Johnson-Lindenstrauss embedding (BJLE) ``sign(R x)`` (001, section 1).

    Parameters
    ----------
    map : transformer, optional
        `SpectralFeatures` by default. It is cloned and fitted.
    threshold : {"uniform", "zero"}
        t: from Uniform(-1, 1) against cosines, which the map multiplies by ``sqrt(2 / p)``; or 0.
    random_state : int, RandomState or None
        Of the thresholds.

    Attributes
    ----------
    map_, threshold_
        The fitted map, and t times ``sqrt(2 / p)``.

    Examples
    --------
    >>> BinaryCodes(SpectralFeatures(n_components=4)).fit_transform([[0.0], [0.0]]).dtype
    dtype('int8')
    """

    map: Any = None
    threshold: str = "uniform"
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: ArrayLike, y: Any = None) -> "BinaryCodes":
        """Fit the map, to labels too where it takes them, and draw t."""
        rows = validate_data(self, X, dtype=FLOATS)
        check_choice("threshold", self.threshold, ("uniform", "zero"))
        rng = check_random_state(self.random_state)
        default = SpectralFeatures(random_state=rng.randint(2**31 - 1))
        self.map_ = (default if self.map is None else clone(self.map)).fit(rows, y)
        p = self.map_.transform(rows[:1]).shape[1]
        limit = np.sqrt(2 / p) if self.threshold == "uniform" else 0.0
        self.threshold_: NDArray[Any] = rng.uniform(-limit, limit, p)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.int8]:
        """Compute the codes of rows, shape (n, p): -1, and 1 for 0 and above."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=FLOATS, reset=False)
        codes = np.empty((len(rows), len(self.threshold_)), dtype=np.int8)
        for part in gen_batches(len(rows), _CODES_AT_ONCE):
            codes[part] = np.where(self.map_.transform(rows[part]) + self.threshold_ >= 0, 1, -1)
        return codes

    @property
    def _n_features_out(self) -> int:
        return len(self.threshold_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        if self.map is not None:
            tags.target_tags.required = get_tags(self.map).target_tags.required
        return tags


_ROWS_OF_KERNELS, _HALVINGS = 4096, 100


def project_on_simplex(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest distribution, ``max(0, v + tau)`` with tau so that the sum is 1."""
    ordered = np.sort(v)[::-1]
    taus = (1 - np.cumsum(ordered)) / np.arange(1, v.size + 1)
    return np.asarray(np.maximum(0.0, v + taus[np.flatnonzero(ordered + taus > 0)[-1]]))


def maximise_alignment(scores: NDArray[np.float64], rho: float) -> NDArray[np.float64]:
    """Maximise ``q . v`` over distributions with chi-square divergence ``N ||q||^2 - 1 <= rho``.

    This is 000 (18) with the v of (20). At a multiplier lambda the Lagrangian (22) is greatest at
    the projection of ``v / (2 lambda N)`` on the simplex, which is (23) with the maximum that it
    lacks, and without which q is negative where v is small; the 2 only renames lambda. The
    divergence falls with lambda, so that bisection solves the dual. (17) prints p / q for the
    q / p of (22).
    """
    best = scores == scores.max()
    if scores.size / best.sum() - 1 <= rho:
        return np.asarray(best / best.sum())
    unit = (scores - scores.max()) / np.ptp(scores)  # adding a constant changes no projection

    def is_inside(scale: float) -> bool:
        return bool(scores.size * np.sum(project_on_simplex(scale * unit) ** 2) - 1 <= rho)

    low, high = 0.0, 1.0
    while is_inside(high):
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_inside(middle) else (low, middle)
    return project_on_simplex(low * unit)


@dataclass(kw_only=True, eq=False, repr=False)
class KernelAlignment(CosineMap):
    """Random Fourier features drawn from a distribution that is aligned with the labels.

    Of `n_candidates` frequencies of a kernel each has the score
    ``v_l = || sum_i y_i phi(x_i; w_l) ||^2``, with y of +-1 for two classes (000 (20)) and a column
    of +-1 a class for more ((25)-(27)). The distribution q with the largest ``q . v`` in a ball of
    radius rho about the uniform one ((16)-(18), Sinha & Duchi 2016) is sparse, and W is drawn from
    it. b is drawn anew, as for (24), so that a frequency drawn twice is not one feature twice.

    Parameters
    ----------
    n_components, sigma, kernel, random_state
        As for `SpectralFeatures`.
    n_candidates : int
        N_w.
    rho : float
        Radius of the ball; about ``n_candidates / (1 + rho)`` candidates keep a probability.

    Attributes
    ----------
    distribution_, weights_, offset_ : ndarray
        q, and W and b as of `SpectralFeatures`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> map = KernelAlignment(random_state=0).fit(X, np.sin(4 * X[:, 0]) > 0)
    >>> bool(np.abs(map.weights_[0]).mean() > np.abs(map.weights_[1]).mean())
    True
    """

    n_candidates: int = 1000
    rho: float = 1.0
    kernel: str = "gaussian"

    def _draw(self, X: NDArray[Any], y: Any, rng: np.random.RandomState) -> None:
        Y = label_matrix(y)[1]
        n, rho = check_count("n_candidates", self.n_candidates), check_positive("rho", self.rho)
        W = draw_frequencies(self.kernel, (X.shape[1], n), rng) / self.sigma
        b = rng.uniform(0, 2 * np.pi, n)
        parts = gen_batches(len(X), _ROWS_OF_KERNELS)
        pull = sum(
            np.cos(X[part] @ W.astype(X.dtype) + b.astype(X.dtype)).T @ Y[part] for part in parts
        )
        self.distribution_ = maximise_alignment(np.sum(pull**2, axis=1), rho)
        self.weights_ = W[:, rng.choice(n, len(self.offset_), p=self.distribution_)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
