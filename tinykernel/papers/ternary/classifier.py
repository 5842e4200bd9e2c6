"""The classifier of Lei & Lan 2021 as a scikit-learn estimator that becomes firmware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Number
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from tinykernel.checks import check_choice, check_count, thread_count
from tinykernel.estimator.machines import MachineClassifier
from tinykernel.hadamard import padded_dimension
from tinykernel.model import snap_windows
from tinykernel.model.quantization.machine import KernelMachine
from tinykernel.model.quantization.scaling import fit_scaling
from tinykernel.papers.features import RMBCSIK
from tinykernel.papers.ternary.bits import pack_features
from tinykernel.papers.ternary.coordinate import PaperOptions, PaperRows, fit_outputs
from tinykernel.papers.ternary.selection import Choice, choose, draw_features
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
    loss : {"squared_hinge", "hinge"}
        Loss of one output, one class against the rest.
    init : {"svm", "svm_sign", "random"}
        Where the descent starts: at the weights of a linear SVM on 2000 random rows, made ternary
        by a threshold, or their signs, which is (12); or at random.
    scaler_scope : {"auto", "feature", "global"}
        A scaler to [-1, 1] for each input, or one for all: better for inputs in the same unit, such
        as pixels, and without a table in the firmware. "auto" takes one for all where most inputs
        span at least half of the range of all.
    input_bits : {8, 16, "auto"}
        Width of the inputs after scaling in the firmware. "auto" takes 8 where that changes at most
        1 % of the labels of training rows.
    diagonal : {"sign", "gaussian"}
        G: one bit a component, or 8.
    row_scale : {"one", "chi"}
        S: none, or random lengths, as Lei & Lan 2021 have.
    permutation : {"orbit", "stored", "identity"}
        P: generated from two numbers, stored, or none.
    class_weight : dict, "balanced" or None
        Weights of the classes, multiplied with those of the rows. "balanced" gives all classes the
        same total weight.
    max_iter : int
        Most sweeps over the weights.
    tol : float
        An output is finished when a sweep lowers its objective by less than this share.
    cv : int, splitter or iterable
        How to choose sigma and regularization: the number of parts, at least 2; or a splitter of
        scikit-learn; or pairs of arrays of row numbers, training and held out. With groups (see
        `fit`) a number of parts keeps rows of a group together.
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
    cv_results_ : dict of str to ndarray
        "sigma", "regularization" and "score" of every trial of the cross-validation; empty where
        nothing had to be chosen.

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
    loss: str = "squared_hinge"
    init: str = "svm"
    scaler_scope: str = "auto"
    input_bits: int | str = "auto"
    diagonal: str = "sign"
    row_scale: str = "one"
    permutation: str = "orbit"
    class_weight: Mapping[Any, float] | str | None = None
    max_iter: int = 20
    tol: float = 1e-4
    cv: Any = 3
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
            Raw inputs, finite. Their dtype decides what the firmware takes: float32 for any float,
            uint8 for bool, 8- and 16-bit integers as they are, int32 for other integers.
        y : array-like, shape (n,)
            Labels: numbers, strings or bools, of at least two classes.
        sample_weight : array-like, shape (n,), optional
            Not negative. Rows of weight 0 are ignored.
        groups : array-like, shape (n,), optional
            Which person, record or batch each row belongs to. Rows of a group stay together when
            rows are held out to choose hyper-parameters.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is not allowed, a value does not fit, or there is one class only.
        ValueError
            From scikit-learn's checks of `X` and `y`, e.g. for NaN.
        """
        options = self._options()
        rows, labels = validate_data(self, X, y, dtype="numeric")
        check_classification_targets(labels)
        weight = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        splits = self._splits(rows, labels, groups)
        classes, data = prepare(
            rows, labels, weight, class_weight=self.class_weight, splits=splits, groups=groups
        )
        scaling = fit_scaling(data.X, self.scaler_scope)
        machine, choice, n_sweeps = train_paper(PaperRows(**vars(data), scaling=scaling), options)
        # Not earlier, or an interrupted second fit would mix two models.
        self.classes_ = classes
        self.machine_ = machine
        self.sigma_ = float(choice.sigma)
        self.regularization_ = float(choice.regularization)
        self.n_components_ = int(options.n_components)
        self.n_iter_ = n_sweeps
        self.cv_results_ = choice.cv_results
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
        small = {"n_components": padded_dimension(X.shape[1]), "max_iter": 1, "init": "random"}
        small |= {"sigma": parameters.get("sigma", 1.0), "regularization": 0.1}
        machine = cls(**{**parameters, **small}).fit(X, y).machine_
        assert isinstance(machine, KernelMachine)
        return machine

    def _options(self) -> PaperOptions:
        """Return the checked parameters; scikit-learn wants them checked in `fit`."""
        check_choice("scaler_scope", self.scaler_scope, ("auto", "feature", "global"))
        shared = {field.name for field in fields(PaperOptions)} & vars(self).keys()
        options: dict[str, Any] = {name: getattr(self, name) for name in shared}
        options["cv"] = check_count("cv", self.cv, 2) if isinstance(self.cv, Number) else 0
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return PaperOptions(**options, seed=seed, n_threads=thread_count(self.n_jobs))

    def _splits(
        self, X: NDArray[Any], y: NDArray[Any], groups: ArrayLike | None
    ) -> tuple[tuple[NDArray[np.bool_], NDArray[np.bool_]], ...]:
        """Return the user's splits as masks of training and held-out rows."""
        if isinstance(self.cv, Number) and groups is None:
            return ()
        splitter = check_cv(self.cv, y, classifier=True)
        if isinstance(self.cv, Number):
            n_groups = np.unique(np.asarray(groups)).size
            splitter = GroupKFold(min(check_count("cv", self.cv, 2), n_groups))
        n = X.shape[0]
        return tuple(
            (np.bincount(inside, minlength=n) > 0, np.bincount(outside, minlength=n) > 0)
            for inside, outside in splitter.split(X, y, groups)
        )


def train_paper(problem: PaperRows, options: PaperOptions) -> tuple[KernelMachine, Choice, int]:
    """Train by Algorithm 1; return the machine, its hyper-parameters, and the number of sweeps."""
    choice = choose(problem, options)
    features = draw_features(problem.X.shape[1], choice.sigma, options, options.seed)
    # Weights learned on windows that the firmware can hold lose little by quantization.
    machine = snap_windows(_machine_without_weights(problem, options, features))
    features.start_, features.width_ = machine.start, machine.width
    packed = pack_features(
        lambda rows: features.transform(problem.scaling.apply(rows)),
        problem.X,
        options.n_components,
    )
    outputs = fit_outputs(
        packed,
        problem.codes,
        problem.sample_weight,
        problem.n_classes,
        replace(options, regularization=choice.regularization),
        seed=options.seed,
        n_threads=options.n_threads,
        stage="learning the weights",
    )
    weights = np.zeros((outputs.weights.shape[0], machine.diagonal.size), dtype=np.int8)
    weights[:, : options.n_components] = outputs.weights
    machine = replace(
        machine, weights=weights, output_scale=outputs.alpha, output_offset=outputs.beta
    )
    bits = options.input_bits
    if bits == "auto":
        bits = _input_bits(machine, problem.X)
    machine = replace(machine, input_bits=int(bits))
    return machine, choice, int(outputs.n_sweeps.max())


def _machine_without_weights(
    problem: PaperRows, options: PaperOptions, features: RMBCSIK
) -> KernelMachine:
    """Return the machine of the drawn features, with zero weights."""
    n_outputs = 1 if problem.n_classes == 2 else problem.n_classes
    return KernelMachine(
        classes=problem.classes,
        raw_dtype=problem.raw_dtype,
        input_offset=problem.scaling.offset,
        input_scale=problem.scaling.scale,
        input_low=problem.scaling.low,
        input_high=problem.scaling.high,
        sign=features.sign_,
        permutation=features.permutation_,
        diagonal=features.diagonal_,
        diagonal_kind=options.diagonal,
        row_scale=features.row_scale_,
        start=features.start_,
        width=features.width_,
        weights=np.zeros((n_outputs, features.diagonal_.size), dtype=np.int8),
        output_scale=np.ones(n_outputs),
        output_offset=np.zeros(n_outputs),
        input_bits=8 if options.input_bits == "auto" else int(options.input_bits),
    )


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
