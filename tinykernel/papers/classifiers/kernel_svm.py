"""The exact kernel SVM: the reference that all approximations are measured against."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from tinykernel.checks import check_choice, check_positive
from tinykernel.papers.classifiers.one_vs_rest import OneVersusRest
from tinykernel.papers.features.base import find_sigma
from tinykernel.papers.features.kernels import KERNELS

# Memory for kernel values, in MB.
_CACHE = 500.0


@dataclass(kw_only=True, eq=False, repr=False)
class KernelSVC(OneVersusRest):
    """Exact kernel support vector machine: scikit-learn's ``SVC`` (LIBSVM) with our kernels.

    ``f(x) = sum_i alpha_i y_i k(x_i, x) + b`` over the support vectors; several classes one versus
    one. Time grows as n^2 to n^3, and the model with n: the memory in `memory_bits` is why one
    approximates.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "exponential", "cauchy", "linear"}
        `gaussian_kernel`, which is scikit-learn's "rbf" with ``gamma = 1 / (2 sigma^2)``,
        `laplacian_kernel`, `exponential_kernel` or `cauchy_kernel`.
    sigma : float or "neighbour"
        Width of the kernel; "neighbour" takes `neighbour_distance` of the training rows.
    C : float
        Weight of the hinge losses, greater than 0.
    random_state : int, RandomState or None
        Used only for "neighbour".

    Attributes
    ----------
    classes_ : ndarray
        Labels in ascending order.
    sigma_ : float
        The width used.
    svc_ : sklearn.svm.SVC
        The fitted machine, on labels 0 to c - 1.
    memory_bits : int
        Of the support vectors and their coefficients in 32-bit numbers.
    n_features_in_ : int

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> KernelSVC(sigma=0.5, C=10.0).fit(X, [0, 1, 1, 0]).predict([[0.1], [1.4]])
    array([0, 1])
    """

    kernel: str = "gaussian"
    sigma: float | str = "neighbour"
    C: float = 1.0
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X: NDArray[Any], codes: NDArray[np.int64], rng: np.random.RandomState) -> None:
        check_choice("kernel", self.kernel, ("linear", *KERNELS))
        check_positive("C", self.C)
        self.sigma_ = find_sigma(self.sigma, X, rng)
        options: dict[str, Any] = {"C": self.C, "cache_size": _CACHE}
        if self.kernel == "gaussian":
            options.update(kernel="rbf", gamma=0.5 / self.sigma_**2)
        elif self.kernel == "linear":
            options.update(kernel="linear")
        else:
            options.update(kernel=partial(KERNELS[self.kernel], sigma=self.sigma_))
        self.svc_ = SVC(**options).fit(X, codes)

    @property
    def memory_bits(self) -> int:
        """Bits of the support vectors and their coefficients, 32 a number."""
        machine = self.svc_
        numbers = machine.support_.size * self.n_features_in_ + machine.dual_coef_.size
        return 32 * int(numbers + machine.intercept_.size)

    def _decide(self, X: NDArray[Any]) -> NDArray[Any]:
        values = np.asarray(self.svc_.decision_function(X))
        return values[:, None] if values.ndim == 1 else values
