"""The scikit-learn face: a kernel classifier that becomes firmware."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any, ClassVar

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tinykernel import progress
from tinykernel.checks import check_choice, check_count, check_positive
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel, quantize, snap_windows
from tinykernel.model.arithmetic import FIRMWARE
from tinykernel.model.machine import KernelMachine
from tinykernel.model.scaling import to_raw
from tinykernel.modelfile import ModelFileMixin
from tinykernel.papers.ternary.paper import train_paper
from tinykernel.training.learned import train_learned
from tinykernel.training.options import LAYOUTS
from tinykernel.training.parameters import (
    check_image_shape,
    checked_augmentation,
    checked_components,
    checked_fraction,
    checked_image_shape,
    checked_share,
)
from tinykernel.training.prepare import prepare
from tinykernel.training.problem import TrainingOptions, TrainingProblem, TrainingResult

__all__ = ["TernaryKernelClassifier"]

#: Trainers by the value of ``method``. Adding a method is one entry.
_TRAINERS: dict[str, Callable[[TrainingProblem, TrainingOptions], TrainingResult]] = {
    "paper": train_paper,
    "learned": train_learned,
}


_LEARNED_ONLY = ("epochs", "patience", "validation_fraction", "augment")


class TernaryKernelClassifier(ModelFileMixin, ClassifierMixin, BaseEstimator):
    """A kernel machine with binary features and ternary weights, made for microcontrollers.

    ``f(x) = alpha W sign(cos(R x' + b) + t) + beta`` with W in {-1, 0, 1}: after Lei & Lan 2021
    (001), "Memory and Computation-Efficient Kernel SVM via Binary Embedding and Ternary Model
    Coefficients". x' are the scaled inputs, and the scaler is part of the model: the firmware takes
    raw sensor values of the dtype given to `fit`.

    The model does not depend on the order of the training rows, on whether a row is repeated or
    has a weight of 2, or on the number of threads.

    Parameters
    ----------
    method : {"learned", "paper"}
        How to train. "learned": windows, G, S and weights together by gradient (see
        `tinykernel.training.trainer`). "paper": random features, ternary weights by Algorithm 1 of
        001; quicker for few rows, less accurate in the same memory. What belongs to one of them
        only says so below.
    n_components : int or mapping of str to int
        p, the number of binary features, at most 65536. Memory of the firmware grows in proportion.
        "learned" also takes a number for each of several layouts, for instance
        ``{"compact": 3072, "phases": 1536}``, and chooses the format on rows held out;
        `tinykernel.measure.capacity.capacity` finds the numbers that fit a budget.
    sigma : float or None
        Width of the Gaussian kernel, in scaled inputs. None chooses it by cross-validation on the
        training rows (see `tinykernel.papers.ternary.selection.choose`).
    regularization : float or None
        "paper" only: lambda of (7). None chooses it by cross-validation.
    loss : {"squared_hinge", "hinge", "logistic", "squared"}
        "paper" only: loss of one output, one class against the rest.
    penalty : {"l2", "l1"}
        "paper" only: ``lambda alpha^2 sum w^2`` as in (7), or ``lambda alpha sum |w|``, for fewer
        weights.
    coefficients : {"ternary", "binary"}
        "paper" only: weights in {-1, 0, 1} or {-1, 1}.
    init : {"svm", "svm_sign", "random"}
        "paper" only: where training starts; see `DescentOptions`.
    intercept : bool
        "paper" only: whether each output has an offset beta. 001 has none; the firmware has one
        anyway.
    scaler : {"minmax", "standard"}
        "paper" only: inputs to [-1, 1] by the range of the training rows, as "learned" always does,
        or to mean 0 and deviation 1. Values outside [-1, 1], or [-4, 4], saturate.
    scaler_scope : {"auto", "feature", "global"}
        A scaler for each feature, or one for all: better for features in the same unit, such as
        pixels, and without a table in the firmware. "auto" takes one for all where most features
        span at least half of the range of all.
    input_bits : {8, 16, "auto"}
        Width of the inputs after scaling in the firmware. "auto" takes 8 where that does: "paper"
        where it changes at most 1 % of the labels of training rows, "learned" where one scaler
        serves all features or raw inputs have 8 bits.
    diagonal : {"sign", "gaussian"}
        "paper" only: G: one bit a feature, or 8.
    row_scale : {"one", "chi"}
        "paper" only: S: none, or random lengths, which 001 has.
    permutation : {"orbit", "stored", "identity"}
        "paper" only: P: generated from two numbers, stored, or none.
    layout : {"compact", "phases", "pruned", "windows"} or None
        "learned" only: which numbers of a feature are learned and stored. "compact": G in 4 bits
        and weights of +-1; "phases": G and starts in 8 bits; "pruned": as "phases", but only
        the half of the rows of a block whose weights are largest; "windows": as "phases", but
        also widths and S, and ternary weights. None takes "compact", or the best that
        `n_components` names.
    epochs : int or None
        "learned" only: passes over the training rows; None for 6 to 120, fewer for more rows.
    patience : int or None
        "learned" only, with rows for validation: epochs without a better accuracy on these before
        training ends. None makes all epochs. The best epoch is kept either way.
    validation_fraction : float or None
        "learned" only: share of the training rows, below 0.5, that is kept aside to choose the best
        epoch, where `fit` is not given any: whole groups, or rows of every class. None trains on
        all rows.
    search : bool
        "learned" only: choose sigma, noise, slope and dropout by short trainings on part of the
        rows; without, they take values that are often good, and only a layout is chosen,
        where there is a choice.
    augment : mapping or None
        "learned" only: how rows are varied in training. ``{"shift": 1}`` moves images, of
        `image_shape`, by up to one pixel each way; ``{"noise": 0.3}`` sets the noise, in radians of
        the phase of a feature, that is otherwise searched. Both may be given.
    image_shape : (int, int) or None
        Height and width of the images that rows are, in row-major order.
    teacher_share : float
        "learned" only: share of a teacher's labels in the targets, 0 to 1; see `fit`.
    class_weight : dict, "balanced" or None
        Weights of the classes, multiplied with those of the rows. "balanced" gives all classes the
        same total weight.
    max_iter : int
        "paper" only: most sweeps over the weights.
    tol : float
        "paper" only: an output is finished when a sweep lowers its objective by less than this
        share.
    cv : int, splitter or iterable
        "paper" only: how to choose sigma and regularization: the number of parts, at least 2; or a
        splitter of scikit-learn; or pairs of arrays of row numbers, in training and left out. With
        groups (see `fit`) a number of parts keeps rows of a group together.
    random_state : int, RandomState or None
        Of every random choice.
    n_jobs : int or None
        Threads; None or -1 for all that numba uses. The result does not depend on it.
    verbose : int
        Above 0 prints the progress.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels, ascending; of rows with positive weight.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when `X` had column names.
    machine_ : tinykernel.model.machine.KernelMachine
        The trained machine, in floats.
    sigma_, regularization_ : float
        Given or chosen.
    n_components_ : int
        p of the machine.
    layout_ : str or None
        Given or chosen; None for "paper".
    n_iter_ : int
        Epochs made, or sweeps, the most of any output.
    cv_results_ : dict of str to ndarray
        What the choice of hyper-parameters tried: for "paper" "sigma", "regularization" and
        "score", for "learned" the numbers of `tinykernel.training.search.Trial`.
    history_ : dict of str to ndarray
        "learned" only: "loss" and, with rows for validation, "accuracy" of each epoch.
    interrupted_ : bool
        Whether Ctrl-C ended the training.

    Notes
    -----
    `predict` and `decision_function` use the float machine. The firmware computes the integer model
    that `quantize` returns; its scores are other numbers, and near a decision boundary its label
    may be another one. `IntegerModel.predict` gives exactly the labels of the firmware.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TernaryKernelClassifier(n_components=64, search=False, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    classes_: NDArray[Any]
    machine_: KernelMachine

    _choices: ClassVar[dict[str, tuple[object, ...]]] = {
        "method": tuple(_TRAINERS),
        "scaler": ("minmax", "standard"),
        "scaler_scope": ("auto", "feature", "global"),
        "input_bits": (8, 16, "auto"),
        "diagonal": ("sign", "gaussian"),
        "row_scale": ("one", "chi"),
        "permutation": ("orbit", "stored", "identity"),
        "layout": (None, *LAYOUTS),
        "intercept": (True, False),
        "search": (True, False),
    }

    def __init__(
        self,
        *,
        method: str = "learned",
        n_components: int | Mapping[str, int] = 2048,
        sigma: float | None = None,
        regularization: float | None = None,
        loss: str = "squared_hinge",
        penalty: str = "l2",
        coefficients: str = "ternary",
        init: str = "svm",
        intercept: bool = True,
        scaler: str = "minmax",
        scaler_scope: str = "auto",
        input_bits: int | str = "auto",
        diagonal: str = "sign",
        row_scale: str = "one",
        permutation: str = "orbit",
        layout: str | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        validation_fraction: float | None = None,
        search: bool = True,
        augment: Mapping[str, float] | None = None,
        image_shape: tuple[int, int] | None = None,
        teacher_share: float = 0.5,
        class_weight: Mapping[Any, float] | str | None = None,
        max_iter: int = 20,
        tol: float = 1e-4,
        cv: Any = 3,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.n_components = n_components
        self.sigma = sigma
        self.regularization = regularization
        self.loss = loss
        self.penalty = penalty
        self.coefficients = coefficients
        self.init = init
        self.intercept = intercept
        self.scaler = scaler
        self.scaler_scope = scaler_scope
        self.input_bits = input_bits
        self.diagonal = diagonal
        self.row_scale = row_scale
        self.permutation = permutation
        self.layout = layout
        self.epochs = epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.search = search
        self.augment = augment
        self.image_shape = image_shape
        self.teacher_share = teacher_share
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        teacher: object = None,
    ) -> TernaryKernelClassifier:
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Raw inputs, finite. Their dtype decides what the firmware takes: float32 for any float,
            uint8 for bool, 8- and 16-bit integers as they are, int32 for other integers.
        y : array-like, shape (n,)
            Labels: numbers, strings or bools, of at least two classes.
        sample_weight : array-like, shape (n,), optional
            Not negative. Rows of weight 0 are left out.
        groups : array-like, shape (n,), optional
            Which person, record or batch each row belongs to. Rows of a group stay together where
            rows are left out to choose hyper-parameters.
        validation : (X, y), optional
            "learned" only: rows by which the best epoch is chosen.
        teacher : fitted scikit-learn classifier or array-like, shape (n, n_classes), optional
            "learned" only: another model whose probabilities are mixed with the labels, in the
            share `teacher_share`. A classifier is asked for those of `X`; the columns of an array
            are in the order of the labels.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is not allowed, a value does not fit, or there is one class only.
        ValueError
            From scikit-learn's checks of `X` and `y`, e.g. for NaN.

        Warns
        -----
        ConvergenceWarning
            If Ctrl-C ended a training of "learned" after its first epoch: the best until then is
            kept. Earlier, and with "paper", KeyboardInterrupt is raised.
        """
        options = self._options()
        self._check_method(validation=validation, teacher=teacher)
        rows, labels = validate_data(self, X, y, dtype="numeric")
        check_classification_targets(labels)
        if options.patience is not None and validation is None and not options.validation_fraction:
            raise TinykernelError(
                "patience: give rows to watch, fit(X, y, validation=(X, y)) or validation_fraction"
            )
        check_image_shape(options.image_shape, rows.shape[1], options.shift)
        classes, problem = prepare(
            rows,
            labels,
            _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True),
            scaler=self.scaler,
            scaler_scope=self.scaler_scope,
            class_weight=self.class_weight,
            splits=self._splits(rows, labels, groups),
            groups=groups,
            validation=None if validation is None else self._checked_validation(validation),
            teacher=None if teacher is None else (teacher, X),
        )
        self._keep(self._train(problem, options), classes, options)
        return self

    def _train(self, problem: TrainingProblem, options: TrainingOptions) -> TrainingResult:
        trainer = _TRAINERS[self.method]
        if not self.verbose or progress.is_observed():
            return trainer(problem, options)
        with progress.observing(_print_progress):
            return trainer(problem, options)

    def _keep(
        self, result: TrainingResult, classes: NDArray[Any], options: TrainingOptions
    ) -> None:
        """Set the attributes; not earlier, or an interrupted second fit would mix two models."""
        self.classes_ = classes
        self.machine_ = result.machine
        self.sigma_ = result.sigma
        self.regularization_ = result.regularization
        self.n_components_ = result.n_components or options.n_components
        self.layout_ = result.layout
        self.n_iter_ = result.n_iter
        self.cv_results_ = result.cv_results
        self.history_ = result.history
        self.interrupted_ = result.interrupted
        if result.interrupted:
            warnings.warn(
                f"training was interrupted after {result.n_iter} epochs; the best model until then "
                "is kept",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _options(self) -> TrainingOptions:
        """Check the parameters, which scikit-learn wants done in `fit`."""
        for name, choices in self._choices.items():
            check_choice(name, getattr(self, name), choices)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        n_threads = int(numba.config.NUMBA_NUM_THREADS)
        if self.n_jobs not in (None, -1):
            n_threads = check_count("n_jobs", self.n_jobs)
        regularization = self.regularization
        if regularization is not None and regularization != 0:
            regularization = check_positive("regularization", regularization)
        layout, n_components, capacity = checked_components(self.layout, self.n_components)
        if isinstance(self.n_components, Mapping) and self.method != "learned":
            raise TinykernelError(
                f'n_components: method "{self.method}" has no layouts; give a number'
            )
        shift, noise = checked_augmentation(self.augment)
        return TrainingOptions(
            n_components=n_components,
            capacity=capacity,
            sigma=None if self.sigma is None else check_positive("sigma", self.sigma),
            regularization=regularization,
            loss=self.loss,
            penalty=self.penalty,
            coefficients=self.coefficients,
            init=self.init,
            intercept=bool(self.intercept),
            diagonal=self.diagonal,
            row_scale=self.row_scale,
            permutation=self.permutation,
            input_bits=self.input_bits,
            scaler_scope=self.scaler_scope,
            layout=layout,
            epochs=None if self.epochs is None else check_count("epochs", self.epochs),
            patience=None if self.patience is None else check_count("patience", self.patience),
            validation_fraction=checked_fraction("validation_fraction", self.validation_fraction),
            search=bool(self.search),
            shift=shift,
            noise=noise,
            image_shape=checked_image_shape(self.image_shape, needed=shift > 0),
            teacher_share=checked_share("teacher_share", self.teacher_share),
            max_iter=check_count("max_iter", self.max_iter),
            tol=0.0 if self.tol == 0 else check_positive("tol", self.tol),
            cv=check_count("cv", self.cv, 2) if isinstance(self.cv, Number) else 0,
            seed=int(seed),
            n_threads=n_threads,
            snap=snap_windows,
            firmware=FIRMWARE,
        )

    def _check_method(self, **given: object) -> None:
        """Refuse what only the learned trainer knows."""
        if self.method == "learned":
            return
        given |= {name: getattr(self, name) for name in _LEARNED_ONLY}
        for name, value in given.items():
            if value is not None:
                raise TinykernelError(f'{name}: only for method "learned"')

    def _checked_validation(
        self, validation: tuple[ArrayLike, ArrayLike]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise TinykernelError("validation: give a pair (X, y) of rows and labels")
        rows, labels = validate_data(self, *validation, dtype="numeric", reset=False)
        return rows, labels

    def _splits(
        self, X: NDArray[Any], y: NDArray[Any], groups: ArrayLike | None
    ) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """Return the parts that the user chose, as masks of training rows and rows left out."""
        if self.method == "learned" or (isinstance(self.cv, Number) and groups is None):
            return []
        splitter = check_cv(self.cv, y, classifier=True)
        if isinstance(self.cv, Number):
            n_groups = np.unique(np.asarray(groups)).size
            splitter = GroupKFold(min(check_count("cv", self.cv, 2), n_groups))
        masks = []
        for indices in splitter.split(X, y, groups):
            pair = np.zeros((2, X.shape[0]), dtype=bool)
            pair[0, indices[0]] = True
            pair[1, indices[1]] = True
            masks.append((pair[0], pair[1]))
        return masks

    def _checked_rows(self, X: ArrayLike) -> NDArray[Any]:
        """Check rows to predict, and round them as the firmware's input type does."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype="numeric", reset=False)
        return to_raw(rows, "float32") if self.machine_.raw_dtype == "float32" else rows

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the decision values of the float machine.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Raw inputs, in the units of the training rows.

        Returns
        -------
        ndarray of float64, shape (n, n_classes), or (n,) for two classes
            Larger for likelier classes; positive for ``classes_[1]`` of two.
        """
        rows = self._checked_rows(X)
        decisions = self.machine_.decision_function(rows)
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels with the float machine; see Notes for the firmware's.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Raw inputs, in the units of the training rows.

        Returns
        -------
        ndarray, shape (n,)
            Entries of `classes_`.
        """
        rows = self._checked_rows(X)
        return np.asarray(self.classes_[self.machine_.label_indices(rows)])

    def quantize(self) -> IntegerModel:
        """Return the integer model: the very function that the firmware computes.

        Returns
        -------
        IntegerModel
            The same object until the next `fit`.
        """
        check_is_fitted(self)
        found = getattr(self, "feature_names_in_", None)
        names = None if found is None else tuple(np.atleast_1d(found).tolist())
        cached: tuple[KernelMachine, Any, IntegerModel] | None = getattr(self, "_quantized", None)
        if cached is None or cached[0] is not self.machine_ or cached[1] != names:
            cached = (self.machine_, names, quantize(self.machine_, names))
            self._quantized = cached
        return cached[2]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_quantized"}


def _print_progress(message: progress.Progress) -> None:
    total = "" if message.total is None else f"/{message.total}"
    print(f"{message.stage}: {message.done}{total} {message.message}".rstrip(), flush=True)
