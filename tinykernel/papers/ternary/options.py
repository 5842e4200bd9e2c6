"""What the paper's method gets: its options, and a training set with a scaler."""

from __future__ import annotations

from dataclasses import dataclass, field

from tinykernel.checks import check_choice, check_count, check_positive
from tinykernel.model.quantization.scaling import InputScaling
from tinykernel.papers.ternary.losses import LOSSES
from tinykernel.training.trainset import TrainSet

_PENALTIES = {"l2": 2, "l1": 1}


@dataclass(frozen=True)
class DescentOptions:
    """What Algorithm 1 minimises, from where, and for how long.

    As the parameters of `PaperClassifier` of the same names say. Binary coefficients always start
    at signs. "svm" and "svm_sign" end equally accurate, the former sooner and with fewer weights.

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


@dataclass(frozen=True, eq=False, kw_only=True)
class PaperRows(TrainSet):
    """A training set and its scaler."""

    scaling: InputScaling
