"""What trainers get and give: a training set in one canonical form, the scaler, the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.machine import KernelMachine
from tinykernel.model.permutation import Permutation
from tinykernel.model.scaling import InputScaling

__all__ = [
    "FirmwareArithmetic",
    "TrainingProblem",
    "TrainingResult",
]

# --- problem, options, result ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FirmwareArithmetic:
    """The arithmetic of the firmware: `tinykernel.model.arithmetic.FIRMWARE`.

    It is handed to trainers because the integer model stands above them.

    Parameters
    ----------
    schedules : callable
        `tinykernel.model.ranges.choose_schedules`.
    input_levels : callable
        `tinykernel.model.arithmetic.input_levels`.
    """

    schedules: Callable[
        [NDArray[Any], int, Permutation, NDArray[Any], str],
        tuple[tuple[bool, ...], tuple[bool, ...]],
    ]
    input_levels: Callable[[InputScaling, str, int], Callable[[NDArray[Any]], NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """A checked training set and its scaler: the input of every trainer.

    Parameters
    ----------
    X : ndarray of `raw_dtype`, shape (n, n_features), C order
        Raw rows, as from `tinykernel.training.canonical.canonical_rows`.
    codes : ndarray of int64, shape (n,)
        Position of the class of each row in `classes`. Every class occurs.
    sample_weight : ndarray of float64, shape (n,)
        Positive; class weights are multiplied in.
    classes : tuple
        At least two labels, ascending.
    raw_dtype : str
        As in `KernelMachine`.
    scaling : InputScaling
    splits : tuple of pairs of ndarray of float64, shape (n,)
        Cross-validation that the user wants: in each pair the weight of every row in training and
        in the part left out. Empty to leave the parts to the trainer.
    """

    X: NDArray[Any]
    codes: NDArray[np.int64]
    sample_weight: NDArray[np.float64]
    classes: tuple[object, ...]
    raw_dtype: str
    scaling: InputScaling
    splits: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...] = ()
    groups: NDArray[np.int64] | None = None
    validation: tuple[NDArray[Any], NDArray[np.int64]] | None = None
    teacher: NDArray[np.float32] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes c."""
        return len(self.classes)

    def scaled(self) -> NDArray[np.float32]:
        """Compute the scaled rows, float32, shape (n, n_features)."""
        return self.scaling.apply(self.X)


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What every trainer returns.

    Parameters
    ----------
    machine : KernelMachine
    sigma : float
        Width of the Gaussian kernel that the features were drawn for, in scaled inputs.
    regularization : float
        lambda used.
    n_iter : int
        Passes over the data or the weights.
    cv_results : dict of str to ndarray
        What the choice of hyperparameters tried, one entry a trial in each array; empty when
        nothing had to be chosen.
    n_components : int or None
        p, where the trainer chose it.
    layout : str or None
        Layout, where the method has one.
    history : dict of str to ndarray
        One entry an epoch in each array: "loss" and, with validation rows, "accuracy".
    interrupted : bool
        Whether Ctrl-C ended the training; the machine is the best until then.
    """

    machine: KernelMachine
    sigma: float
    regularization: float
    n_iter: int
    cv_results: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    n_components: int | None = None
    layout: str | None = None
    history: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    interrupted: bool = False


@dataclass(frozen=True)
class TrainingOptions:
    """Every hyperparameter of `TernaryKernelClassifier` that a trainer may use, checked.

    Parameters
    ----------
    n_components : int
        p, the number of binary features.
    capacity : mapping of str to int
        "learned" only: layouts to choose from, each with its p; empty for none but
        `layout` with `n_components`.
    sigma, regularization : float or None
        None lets the trainer choose.
    loss, penalty, coefficients, init : str
        As in `tinykernel.papers.ternary.coordinate.DescentOptions`.
    intercept : bool
        As in `DescentOptions`.
    diagonal, row_scale, permutation : str
        As in `tinykernel.papers.features.RMBCSIK`.
    input_bits : {8, 16, "auto"}
        Width of the quantised inputs.
    scaler_scope : {"auto", "feature", "global"}
        As in `fit_scaling`.
    layout : str
        "learned" only: a key of `tinykernel.training.options.LAYOUTS`.
    epochs : int or None
        "learned" only: passes over the rows; None takes a number that suits their number.
    patience : int or None
        "learned" only: epochs without a better accuracy on the validation rows before the end.
    validation_fraction : float
        "learned" only: share of the rows to keep aside for validation where the problem brings
        none.
    search : bool
        "learned" only: whether sigma, noise, slope and dropout are chosen by short trainings.
    shift : int
        "learned" only: images are moved by up to this number of pixels.
    noise : float or None
        "learned" only: as in `tinykernel.training.options.JointOptions`; None searches it.
    image_shape : pair of int, or None
        Height and width of the images that rows are.
    teacher_share : float
        "learned" only: share of the teacher's labels in the targets, 0 to 1.
    max_iter : int
        Most passes.
    tol : float
        When to stop earlier.
    cv : int
        Parts of cross-validation, unless the problem brings its own.
    seed : int
        Of all random choices.
    n_threads : int
        Threads to use. Nothing that is learned may depend on it.
    snap : callable from KernelMachine to KernelMachine, or None
        Moves random phase windows to values that the firmware can hold. Weights that are learned
        on such windows lose next to nothing when the machine is quantised. (It is handed in
        because the quantiser stands above the trainers.)
    firmware : FirmwareArithmetic or None
        "learned" only: what the last part of the training keeps to; see
        `tinykernel.training.trainer.fit_joint`.

    Examples
    --------
    >>> TrainingOptions(n_components=64).cv
    3
    """

    n_components: int = 2048
    capacity: Mapping[str, int] = field(default_factory=dict)
    sigma: float | None = None
    regularization: float | None = None
    loss: str = "squared_hinge"
    penalty: str = "l2"
    coefficients: str = "ternary"
    init: str = "svm"
    intercept: bool = True
    diagonal: str = "sign"
    row_scale: str = "one"
    permutation: str = "orbit"
    input_bits: int | str = "auto"
    scaler_scope: str = "auto"
    layout: str = "compact"
    epochs: int | None = None
    patience: int | None = None
    validation_fraction: float = 0.0
    search: bool = True
    shift: int = 0
    noise: float | None = None
    image_shape: tuple[int, int] | None = None
    teacher_share: float = 0.5
    max_iter: int = 20
    tol: float = 1e-4
    cv: int = 3
    seed: int = 0
    n_threads: int = 1
    snap: Callable[[KernelMachine], KernelMachine] | None = None
    firmware: FirmwareArithmetic | None = None
