"""Binary codes: the signs of a feature map, with random thresholds or none (001 (1), 000 (6))."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state, gen_batches, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tinykernel.checks import check_choice
from tinykernel.papers.fourier import SpectralFeatures
from tinykernel.papers.labels import FLOATS

_ROWS_AT_ONCE = 4096


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
        for part in gen_batches(len(rows), _ROWS_AT_ONCE):
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
