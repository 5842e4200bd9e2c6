"""Random Fourier features of a shift-invariant kernel, from its spectral density (002; 004, 3)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state, gen_batches, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tinykernel.checks import check_choice, check_count, check_positive
from tinykernel.papers.labels import FLOATS
from tinykernel.papers.metropolis import LogDensity, metropolis_hastings

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
