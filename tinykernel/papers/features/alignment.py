"""Random features chosen by how well their kernel matches the labels (kernel alignment)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from tinykernel.checks import check_choice, check_count
from tinykernel.papers.features.alignment_dual import (
    AlignedDistribution,
    label_matrix,
    maximise_alignment,
)
from tinykernel.papers.features.base import FeatureMap, add_cosine, find_sigma
from tinykernel.papers.features.binary import window_codes
from tinykernel.papers.features.fastfood import RMBCSIK
from tinykernel.papers.features.fourier import draw_frequencies

_TURN = 2.0 * np.pi
# Rows are worked on in parts of this many features in all, but not so few that BLAS suffers.
_VALUES_AT_ONCE = 1 << 20
_LEAST_ROWS = 256
# Fitted attributes that the Fastfood basis shares with `RMBCSIK`.
_FASTFOOD = ("sign_", "permutation_", "diagonal_", "row_scale_", "start_", "width_")


class KernelAlignment(FeatureMap):
    """Random features drawn from a distribution that is optimised for the labels.

    Draws many candidate features of a Gaussian kernel, finds by `maximise_alignment` the weights q
    near the uniform ones whose kernel matches the labels best, and keeps the features to which q
    gives weight (000, section 3.2, (15)-(28), after Sinha & Duchi 2016).

    Parameters
    ----------
    n_components : int
        p, the number of features; the largest number where `selection` is "support".
    n_candidates : int
        N, how many features are drawn to choose from.
    rho : float
        Radius of the chi-square ball; see `maximise_alignment`.
    tolerance : float
        Of the bisection.
    sigma : float or "neighbour"
        Width of the kernel from which candidates are drawn.
    basis : {"dense", "fastfood"}
        Candidates are columns of a Gaussian matrix, or rows of Fastfood blocks (sign G, shared B
        and P, of which a microcontroller can compute all at once).
    selection : {"sample", "support"}
        "sample" draws frequencies from q with replacement and gives each a new b and t (24).
        "support" keeps each candidate once, with its b, the p largest q where there are more; the
        float features are then weighted by ``sqrt(q)``, so that ``z . z'`` is the kernel (18).
    binary : bool
        Whether to return ``sign(cos(.) + t)``, int8, in place of the cosines.
    random_state : int, RandomState or None

    Attributes
    ----------
    sigma_ : float
    distribution_ : AlignedDistribution
        q over the candidates, with the divergence and duality gap reached.
    selected_ : ndarray of int64, shape (p,)
        Which candidate each feature comes from.
    weights_ : ndarray of float64, shape (n_features, p)
        Only of the dense basis: frequencies, radians per unit.
    offset_, threshold_ : ndarray of float64, shape (p,)
        b (radians) and t of each feature.
    sign_, permutation_, diagonal_, row_scale_, start_, width_
        Only of the Fastfood basis: as in `RMBCSIK`, for all candidates. With "support" a
        `KernelMachine` with these fields and zero weights outside `selected_` has these features.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> X = rng.normal(size=(200, 5))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> aligned = KernelAlignment(n_components=64, n_candidates=500, random_state=0).fit(X, y)
    >>> bool((aligned.distribution_.probabilities > 0).sum() < 250)
    True
    """

    sigma_: float
    distribution_: AlignedDistribution
    selected_: NDArray[np.int64]
    weights_: NDArray[np.float64]
    offset_: NDArray[np.float64]
    threshold_: NDArray[np.float64]

    def __init__(
        self,
        *,
        n_components: int = 256,
        n_candidates: int = 4096,
        rho: float = 10.0,
        tolerance: float = 1e-10,
        sigma: float | str = 1.0,
        basis: str = "dense",
        selection: str = "sample",
        binary: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_candidates = n_candidates
        self.rho = rho
        self.tolerance = tolerance
        self.sigma = sigma
        self.basis = basis
        self.selection = selection
        self.binary = binary
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Any:
        """Draw the candidates, weigh them by the labels, and choose.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
        y : array-like, shape (n,)
            Class labels.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is out of its range or there is one class only.
        """
        check_count("n_components", self.n_components)
        check_count("n_candidates", self.n_candidates)
        check_choice("basis", self.basis, ("dense", "fastfood"))
        check_choice("selection", self.selection, ("sample", "support"))
        check_choice("binary", self.binary, (True, False))
        rows, labels = validate_data(self, X, y, dtype=(np.float64, np.float32))
        check_classification_targets(labels)
        rng = check_random_state(self.random_state)
        self.sigma_ = find_sigma(self.sigma, rows, rng)
        self._draw(rows, labels, rng)
        scores = self._scores(rows, label_matrix(labels))
        self.distribution_ = maximise_alignment(scores, self.rho, tolerance=self.tolerance)
        self._select(rng)
        self._n_features_out = self.selected_.size
        return self

    def _draw(self, X: NDArray[Any], y: ArrayLike | None, rng: np.random.RandomState) -> None:
        """Draw all candidates: frequencies, offsets and thresholds."""
        n = int(self.n_candidates)
        self.selected_ = np.arange(n)
        if self.basis == "dense":
            self.weights_ = draw_frequencies("gaussian", X.shape[1], n, self.sigma_, rng)
            self.offset_ = rng.uniform(0.0, _TURN, n)
            self.threshold_ = rng.uniform(-1.0, 1.0, n)
            return
        self._code = RMBCSIK(
            n_components=n, sigma=self.sigma_, diagonal="sign", random_state=rng
        ).fit(X[:1])
        for name in _FASTFOOD:
            setattr(self, name, getattr(self._code, name))
        self.offset_ = self._code.offset_.ravel()[:n]
        self.threshold_ = self._code.threshold_.ravel()[:n]

    def _scores(self, X: NDArray[Any], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return v of (20) and (27) for all candidates, divided by the square of the row count."""
        sums = np.zeros((self.selected_.size, labels.shape[1]))
        project = self._projector(X, candidates=True)
        for rows in self._parts(X.shape[0]):
            cosines = add_cosine(project(rows), self.offset_ / _TURN)
            sums += cosines.T @ labels[rows].astype(cosines.dtype)
        # `add_cosine` scales by sqrt(2 / N); phi of (18) does not.
        sums *= np.sqrt(self.selected_.size / 2.0) / X.shape[0]
        return np.asarray((sums**2).sum(axis=1))

    def _select(self, rng: np.random.RandomState) -> None:
        """Keep the chosen candidates of those drawn."""
        q = self.distribution_.probabilities
        p = int(self.n_components)
        if self.selection == "sample":
            self.selected_ = np.sort(rng.choice(q.size, size=p, p=q))
            self.offset_ = rng.uniform(0.0, _TURN, p)
            self.threshold_ = rng.uniform(-1.0, 1.0, p)
        else:
            largest = np.argsort(-q, kind="stable")[: min(p, np.count_nonzero(q))]
            self.selected_ = np.sort(largest)
            self.offset_ = self.offset_[self.selected_]
            self.threshold_ = self.threshold_[self.selected_]
        if self.basis == "dense":
            self.weights_ = self.weights_[:, self.selected_]

    def _projector(self, X: NDArray[Any], candidates: bool) -> Callable[[slice], NDArray[Any]]:
        """Return a function that gives ``W' x`` in turns, of all candidates or of those selected.

        What the rows have in common is prepared once; the function's result is C-contiguous.
        """
        if self.basis == "dense":
            weights = (self.weights_ / _TURN).astype(X.dtype)
            return lambda rows: np.asarray(X[rows] @ weights, order="C")
        if candidates:
            return lambda rows: self._code.turns(X[rows])
        return lambda rows: np.take(self._code.turns(X[rows]), self.selected_, axis=1)

    def _parts(self, n_rows: int) -> Iterator[slice]:
        """Cut the rows into parts whose candidates fit the cache."""
        step = max(_LEAST_ROWS, _VALUES_AT_ONCE // int(self.n_candidates))
        return (slice(first, first + step) for first in range(0, n_rows, step))

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        dtype = np.int8 if self.binary else X.dtype
        out = np.empty((X.shape[0], self.selected_.size), dtype=dtype)
        scale = np.ones(self.selected_.size)
        if self.selection == "support":
            q = self.distribution_.probabilities[self.selected_]
            scale = np.sqrt(q / q.mean())
        project = self._projector(X, candidates=False)
        for rows in self._parts(X.shape[0]):
            turns = project(rows)
            if self.binary:
                out[rows] = window_codes(turns, self.offset_ / _TURN, self.threshold_)
            else:
                out[rows] = add_cosine(turns, self.offset_ / _TURN) * scale.astype(X.dtype)
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = [] if self.binary else ["float64", "float32"]
        return tags
