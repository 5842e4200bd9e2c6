"""What the paper's method gets: its options, and a training set with a scaler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.checks import check_choice, check_count, check_positive
from tinykernel.model.scaling import InputScaling
from tinykernel.papers.ternary.losses import LOSSES

_PENALTIES = {"l2": 2, "l1": 1}


@dataclass(frozen=True)
class DescentOptions:
    """What Algorithm 1 minimises, from where, and for how long.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic", "squared"}
    penalty : {"l2", "l1"}
        ``lambda alpha^2 sum w^2`` as in (7), or ``lambda alpha sum |w|``.
    regularization : float
        lambda, not negative.
    coefficients : {"ternary", "binary"}
        Weights in {-1, 0, 1} or {-1, 1}.
    init : {"svm", "svm_sign", "random"}
        Start from a linear SVM on 2000 random rows: "svm" gives ternary weights by a threshold
        (see `ternary_start`), "svm_sign" takes the signs, which is (12).
        They end equally accurate, the former sooner and with fewer weights. Binary coefficients
        always take the signs. "random" draws the weights.
    intercept : bool
        Whether each output has an offset that is minimised with alpha. (7) has none.
    max_iter : int
        Most sweeps over all weights; each begins with (8).
    tol : float
        An output is finished when a sweep lowers its objective by less than this share.

    Raises
    ------
    TinykernelError
        If a value is not allowed.

    Examples
    --------
    >>> DescentOptions(loss="hinge").power
    2
    """

    loss: str = "squared_hinge"
    penalty: str = "l2"
    regularization: float = 0.1
    coefficients: str = "ternary"
    init: str = "svm"
    intercept: bool = True
    max_iter: int = 20
    tol: float = 1e-4

    def __post_init__(self) -> None:
        """Refuse what is not allowed."""
        check_choice("loss", self.loss, LOSSES)
        check_choice("penalty", self.penalty, tuple(_PENALTIES))
        check_choice("coefficients", self.coefficients, ("ternary", "binary"))
        check_choice("init", self.init, ("svm", "svm_sign", "random"))
        check_choice("intercept", self.intercept, (True, False))
        check_count("max_iter", self.max_iter)
        for name in ("regularization", "tol"):
            if getattr(self, name) != 0:
                check_positive(name, getattr(self, name))

    @property
    def power(self) -> int:
        """Power of alpha in the penalty."""
        return _PENALTIES[self.penalty]


@dataclass(frozen=True)
class PaperOptions:
    """The parameters of `PaperClassifier`, checked.

    `sigma` and `regularization` are None where cross-validation chooses them; the latter then
    takes the place of ``descent.regularization``. `cv` counts the parts where the rows bring none.
    """

    n_components: int = 2048
    sigma: float | None = None
    regularization: float | None = None
    descent: DescentOptions = field(default_factory=DescentOptions)
    diagonal: str = "sign"
    row_scale: str = "one"
    permutation: str = "orbit"
    input_bits: int | str = "auto"
    cv: int = 3
    seed: int = 0
    n_threads: int = 1


@dataclass(frozen=True, eq=False)
class PaperRows:
    """A training set in canonical order, and its scaler.

    `X` holds raw rows, `codes` the position of each row's class in `classes`, `sample_weight`
    positive weights with those of the classes in them. Each pair of `splits` has the weights of all
    rows in training and in the part left out.
    """

    X: NDArray[Any]
    codes: NDArray[np.int64]
    sample_weight: NDArray[np.float64]
    classes: tuple[object, ...]
    raw_dtype: str
    scaling: InputScaling
    splits: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...] = ()

    @property
    def n_classes(self) -> int:
        """Number of classes c."""
        return len(self.classes)
