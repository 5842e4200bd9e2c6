"""Options and training set of the paper's method."""

from __future__ import annotations

from dataclasses import dataclass

from tinykernel.checks import check_choice, check_count, check_positive
from tinykernel.errors import TinykernelError
from tinykernel.model.quantization.scaling import InputScaling
from tinykernel.papers.ternary.descent import LOSSES
from tinykernel.training.trainset import TrainSet

_MOST_COMPONENTS = 65536
_CHOICES: dict[str, tuple[object, ...]] = {
    "loss": LOSSES,
    "init": ("svm", "svm_sign", "random"),
    "input_bits": (8, 16, "auto"),
    "diagonal": ("sign", "gaussian"),
    "row_scale": ("one", "chi"),
    "permutation": ("orbit", "stored", "identity"),
}


@dataclass(frozen=True)
class PaperOptions:
    """The parameters of `PaperClassifier` of the same names, checked.

    `sigma` and `regularization` are None where cross-validation chooses them. "svm" and
    "svm_sign" end equally accurate, the former sooner and with fewer weights.
    """

    n_components: int = 2048
    sigma: float | None = None
    regularization: float | None = None
    loss: str = "squared_hinge"
    init: str = "svm"
    max_iter: int = 20
    tol: float = 1e-4
    diagonal: str = "sign"
    row_scale: str = "one"
    permutation: str = "orbit"
    input_bits: int | str = "auto"
    cv: int = 3
    seed: int = 0
    n_threads: int = 1

    def __post_init__(self) -> None:
        """Refuse values that are not allowed."""
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        if check_count("n_components", self.n_components) > _MOST_COMPONENTS:
            raise TinykernelError(
                f"n_components must be at most {_MOST_COMPONENTS}; got {self.n_components}"
            )
        check_count("max_iter", self.max_iter)
        if self.sigma is not None:
            check_positive("sigma", self.sigma)
        for name in ("regularization", "tol"):
            if getattr(self, name) not in (None, 0):
                check_positive(name, getattr(self, name))


@dataclass(frozen=True, eq=False, kw_only=True)
class PaperRows(TrainSet):
    """A training set and its scaler."""

    scaling: InputScaling
