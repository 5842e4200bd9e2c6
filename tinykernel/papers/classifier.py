"""The classifier of Lei & Lan 2021 as a scikit-learn estimator that becomes firmware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from tinykernel.checks import thread_count
from tinykernel.estimator.machines import MachineClassifier
from tinykernel.hadamard import padded_dimension
from tinykernel.model import snap_windows
from tinykernel.model.quantization.machine import KernelMachine
from tinykernel.model.quantization.scaling import fit_scaling
from tinykernel.papers.outputs import PaperOptions, PaperRows, learned
from tinykernel.papers.selection import choose, draw_machine
from tinykernel.training.trainset import prepare

_ROWS_TO_COMPARE = 2000
_SHARE_THAT_MAY_CHANGE = 0.01


@dataclass(kw_only=True, eq=False, repr=False)
class PaperClassifier(MachineClassifier):
    """Random binary components with ternary weights learned by coordinate descent (Lei & Lan 2021).

    ``f(x) = alpha W sign(cos(R x' + b) + t) + beta`` with W in {-1, 0, 1}: Lei & Lan 2021, "Memory
    and Computation-Efficient Kernel SVM via Binary Embedding and Ternary Model Coefficients". R is
    random (RM-BCSIK), W comes from Algorithm 1, and x' are the scaled inputs. The scaler is part of
    the model: the firmware takes raw sensor values of the dtype given to `fit`.

    `tinykernel.TernaryKernelClassifier` learns the components too, and is more accurate in the same
    memory. This one is the method as published: to compare with, and quick for few rows.

    The model does not depend on the order of the training rows, on whether a row is repeated or
    has a weight of 2, or on the number of threads.

    Parameters
    ----------
    n_components : int
        p, the number of binary components, at most 65536.
    sigma : float or None
        Width of the Gaussian kernel, in scaled inputs. None chooses it by cross-validation.
    regularization : float or None
        lambda of (7), not negative. None chooses it by cross-validation.
    max_iter : int
        Most sweeps over the weights.
    random_state : int, RandomState or None
        Random seed.
    n_jobs : int or None
        Threads; None or -1 for all that numba uses. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, ascending; of rows with positive weight.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when `X` had column names.
    machine_ : tinykernel.model.quantization.machine.KernelMachine
        The trained machine, in floats.
    sigma_, regularization_ : float
        Given or chosen.
    n_components_ : int
    n_iter_ : int
        Sweeps made, the most of any output.

    Notes
    -----
    `predict` and `decision_function` use the float machine. The firmware computes the integer model
    that `quantize` returns; its scores are other numbers, and near a decision boundary its label
    may be another one. `IntegerModel.predict` gives exactly the labels of the firmware.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PaperClassifier(n_components=64, sigma=2.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    n_components: int = 2048
    sigma: float | None = None
    regularization: float | None = None
    max_iter: int = 20
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    method: ClassVar[str] = "paper"

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> PaperClassifier:
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Raw inputs, finite, of the dtypes of `TernaryKernelClassifier.fit`.
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
        groups : array-like, shape (n,), optional
            As for `TernaryKernelClassifier.fit`.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError, ValueError
            As for `TernaryKernelClassifier.fit`.
        """
        options = PaperOptions(
            self.n_components,
            self.sigma,
            self.regularization,
            self.max_iter,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            n_threads=thread_count(self.n_jobs),
        )
        rows, labels = validate_data(self, X, y, dtype="numeric")
        check_classification_targets(labels)
        weight = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        classes, data = prepare(rows, labels, weight, groups=groups)
        scaling = fit_scaling(data.X, "auto")
        problem = PaperRows(**vars(data), scaling=scaling)
        sigma, regularization = choose(problem, options)
        chosen = replace(options, sigma=sigma, regularization=regularization)
        drawn = draw_machine(problem, sigma, options.n_components, options.seed)
        machine, n_sweeps = learned(
            snap_windows(drawn),  # the quantization of what it can hold costs little
            data.X,
            data.codes,
            data.sample_weight,
            chosen,
            stage="learning the weights",
        )
        machine = replace(machine, input_bits=_input_bits(machine, data.X))
        # Not earlier, or an interrupted second fit would mix two models.
        self.classes_ = classes
        self.machine_ = machine
        self.sigma_, self.regularization_ = float(sigma), float(regularization)
        self.n_components_ = int(options.n_components)
        self.n_iter_ = n_sweeps
        return self

    @property
    def chosen_(self) -> dict[str, float]:
        """Hyper-parameters that a smaller model need not search again."""
        return {"sigma": self.sigma_, "regularization": self.regularization_}

    @classmethod
    def untrained(
        cls, X: NDArray[Any], y: NDArray[Any], parameters: Mapping[str, Any]
    ) -> KernelMachine:
        """Train one block in one sweep: a machine to estimate sizes with."""
        small = {"n_components": padded_dimension(X.shape[1]), "max_iter": 1, "regularization": 0.1}
        machine = cls(**{"sigma": 1.0, **parameters, **small}).fit(X, y).machine_
        assert isinstance(machine, KernelMachine)
        return machine


def _input_bits(machine: KernelMachine, X: NDArray[np.generic]) -> int:
    """Return 16 where inputs rounded to 8 bits change more than 1 % of the labels, else 8."""
    scaled = machine.scale_inputs(X[:_ROWS_TO_COMPARE]).astype(np.float64)
    level = (machine.input_high - machine.input_low) / 256
    steps = np.minimum(np.floor((scaled - machine.input_low) / level), 255)
    rounded = machine.input_low + (steps + 0.5) * level
    rounded[:, machine.input_scale == 0] = 0.0
    ones = np.ones_like(machine.input_scale)
    scaled_machine = replace(machine, input_offset=0 * ones, input_scale=ones)
    changed = scaled_machine.label_indices(rounded) != scaled_machine.label_indices(scaled)
    return 16 if changed.mean() > _SHARE_THAT_MAY_CHANGE else 8
