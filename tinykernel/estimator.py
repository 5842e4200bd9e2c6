"""The scikit-learn face: a kernel classifier that becomes firmware."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any, ClassVar

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tinykernel.errors import TinykernelError
from tinykernel.features.base import check_choice, check_count, check_positive
from tinykernel.integer import IntegerModel, quantize, snap_windows
from tinykernel.integer.ranges import choose_schedules
from tinykernel.training import progress
from tinykernel.training.joint_options import FORMATS
from tinykernel.training.learned import train_learned
from tinykernel.training.machine import KernelMachine
from tinykernel.training.paper import train_paper
from tinykernel.training.problem import (
    TrainingOptions,
    TrainingProblem,
    TrainingResult,
    canonical_rows,
    fit_scaling,
    raw_dtype_of,
    to_raw,
)

__all__ = ["TernaryKernelClassifier"]

#: Trainers by the value of ``method``. Adding a method is one entry.
_TRAINERS: dict[str, Callable[[TrainingProblem, TrainingOptions], TrainingResult]] = {
    "paper": train_paper,
    "learned": train_learned,
}


class TernaryKernelClassifier(ClassifierMixin, BaseEstimator):
    """A kernel machine with binary features and ternary weights, made for microcontrollers.

    ``f(x) = alpha W sign(cos(R x' + b) + t) + beta`` with W in {-1, 0, 1}: after Lei & Lan 2021
    (001), "Memory and Computation-Efficient Kernel SVM via Binary Embedding and Ternary Model
    Coefficients". x' are the scaled inputs, and the scaler is part of the model: the firmware takes
    raw sensor values of the dtype given to `fit`.

    The model does not depend on the order of the training rows, on whether a row is repeated or
    has a weight of 2, or on the number of threads.

    Parameters
    ----------
    method : {"paper", "learned"}
        How to train. "paper": random features, ternary weights by Algorithm 1 of 001. "learned":
        windows, G, S and weights together by gradient, which takes longer and is more accurate in
        the same memory (see `tinykernel.training.joint`); of the parameters below it has no use for
        regularization, loss, penalty, coefficients, init, intercept, scaler, diagonal, row_scale,
        permutation, max_iter, tol and cv.
    n_components : int
        p, the number of binary features. Memory of the firmware grows in proportion.
    sigma : float or None
        Width of the Gaussian kernel, in scaled inputs. None chooses it by cross-validation on the
        training rows (see `tinykernel.training.selection.choose`).
    regularization : float or None
        lambda of (7). None chooses it by cross-validation.
    loss : {"squared_hinge", "hinge", "logistic", "squared"}
        Loss of one output, one class against the rest.
    penalty : {"l2", "l1"}
        ``lambda alpha^2 sum w^2`` as in (7), or ``lambda alpha sum |w|``, for fewer weights.
    coefficients : {"ternary", "binary"}
        Weights in {-1, 0, 1} or {-1, 1}.
    init : {"svm", "svm_sign", "random"}
        Where training starts; see `tinykernel.training.coordinate.DescentOptions`.
    intercept : bool
        Whether each output has an offset beta. 001 has none; the firmware has one anyway.
    scaler : {"minmax", "standard"}
        Inputs to [-1, 1] by the range of the training rows, or to mean 0 and deviation 1. Values
        outside [-1, 1], or [-4, 4], saturate.
    scaler_scope : {"auto", "feature", "global"}
        A scaler for each feature, or one for all: better for features in the same unit, such as
        pixels, and without a table in the firmware. "auto" takes one for all where most features
        span at least half of the range of all.
    input_bits : {8, 16, "auto"}
        Width of the inputs after scaling in the firmware. "auto" takes 8 unless that changes more
        than 1 % of the labels of training rows.
    diagonal : {"sign", "gaussian"}
        G: one bit a feature, or 8.
    row_scale : {"one", "chi"}
        S: none, or random lengths, which 001 has.
    permutation : {"orbit", "stored", "identity"}
        P: generated from two numbers, stored, or none.
    storage : {"compact", "phases", "windows"}
        "learned" only: which numbers of a feature are learned and stored. "compact": G in 4 bits
        and weights of 1; "phases": G and starts in 8 bits; "windows": also widths and S, and
        ternary weights.
    epochs : int or None
        "learned" only: passes over the training rows; None for 6 to 120, fewer for more rows.
    class_weight : dict, "balanced" or None
        Weights of the classes, multiplied with those of the rows. "balanced" gives all classes the
        same total weight.
    max_iter : int
        Most sweeps over the weights.
    tol : float
        An output is finished when a sweep lowers its objective by less than this share.
    cv : int, splitter or iterable
        How to choose sigma and regularization: the number of parts, at least 2; or a splitter of
        scikit-learn; or pairs of arrays of row numbers, in training and left out, for instance from
        ``GroupKFold().split(X, y, person)``, so that no person is in both.
    random_state : int, RandomState or None
        Of the features, the start, the order of the weights and the parts of cross-validation.
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
    machine_ : tinykernel.training.machine.KernelMachine
        The trained machine, in floats.
    sigma_, regularization_ : float
        Given or chosen.
    n_iter_ : int
        Sweeps made, the most of any output.
    cv_results_ : dict of str to ndarray
        "sigma", "regularization", "score": what cross-validation tried.

    Notes
    -----
    `predict` and `decision_function` use the float machine. The firmware computes the integer model
    that `quantize` returns; its scores are other numbers, and near a decision boundary its label
    may be another one. `IntegerModel.predict` gives exactly the labels of the firmware.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TernaryKernelClassifier(n_components=64, sigma=1.0, random_state=0).fit(X, y)
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
        "storage": tuple(FORMATS),
        "intercept": (True, False),
    }

    def __init__(
        self,
        *,
        method: str = "paper",
        n_components: int = 2048,
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
        storage: str = "compact",
        epochs: int | None = None,
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
        self.storage = storage
        self.epochs = epochs
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
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
        classes, problem = self._problem(rows, labels, sample_weight)
        observer = _print_progress if self.verbose and not progress.is_observed() else None
        if observer is None:
            result = _TRAINERS[self.method](problem, options)
        else:
            with progress.observing(observer):
                result = _TRAINERS[self.method](problem, options)
        # Not earlier: an interrupted second fit must not put new classes beside the old machine.
        self.classes_ = classes
        self.machine_ = result.machine
        self.sigma_ = result.sigma
        self.regularization_ = result.regularization
        self.n_iter_ = result.n_iter
        self.cv_results_ = result.cv_results
        return self

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
        return TrainingOptions(
            n_components=check_count("n_components", self.n_components),
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
            storage=self.storage,
            epochs=None if self.epochs is None else check_count("epochs", self.epochs),
            max_iter=check_count("max_iter", self.max_iter),
            tol=0.0 if self.tol == 0 else check_positive("tol", self.tol),
            cv=check_count("cv", self.cv, 2) if isinstance(self.cv, Number) else 0,
            seed=int(seed),
            n_threads=n_threads,
            snap=snap_windows,
            schedules=choose_schedules,
        )

    def _problem(
        self, X: NDArray[Any], y: NDArray[Any], sample_weight: ArrayLike | None
    ) -> tuple[NDArray[Any], TrainingProblem]:
        """Bring checked data into the form that trainers take; return the classes beside it."""
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise TinykernelError("sample_weight: all weights are 0; give some rows a weight")
        raw_dtype = raw_dtype_of(X.dtype)
        rows, labels = to_raw(X, raw_dtype), y
        used = weight > 0
        if not used.all():
            rows, labels, weight = rows[used], y[used], weight[used]
        classes, codes = np.unique(labels, return_inverse=True)
        names = tuple(classes.tolist())
        if len(names) < 2:
            raise TinykernelError(
                f"y holds one class only ({names[0]!r}); a classifier needs two classes"
            )
        given = weight
        rows, codes, weight, position = canonical_rows(rows, codes.astype(np.int64), weight)
        by_class = self._class_weights(names, codes, weight)[codes]

        def collect(chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
            chosen_weight = np.where(chosen[used], given, 0.0)
            return by_class * np.bincount(position, weights=chosen_weight, minlength=codes.size)

        return classes, TrainingProblem(
            X=rows,
            codes=codes,
            sample_weight=weight * by_class,
            classes=names,
            raw_dtype=raw_dtype,
            scaling=fit_scaling(rows, weight, self.scaler, self.scaler_scope),
            splits=tuple((collect(train), collect(test)) for train, test in self._splits(X, y)),
        )

    def _splits(
        self, X: NDArray[Any], y: NDArray[Any]
    ) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """Return the parts that the user chose, as masks of training rows and rows left out."""
        if isinstance(self.cv, Number):
            return []
        masks = []
        for indices in check_cv(self.cv, y, classifier=True).split(X, y):
            pair = np.zeros((2, X.shape[0]), dtype=bool)
            pair[0, indices[0]] = True
            pair[1, indices[1]] = True
            masks.append((pair[0], pair[1]))
        return masks

    def _class_weights(
        self,
        classes: tuple[object, ...],
        codes: NDArray[np.int64],
        sample_weight: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the weight of every class."""
        weights = np.ones(len(classes))
        if self.class_weight is None:
            return weights
        if isinstance(self.class_weight, Mapping):
            known = {label: i for i, label in enumerate(classes)}
            for label, value in self.class_weight.items():
                if label not in known:
                    raise TinykernelError(f"class_weight: {label!r} is not a label in y")
                weights[known[label]] = check_positive(f"class_weight of {label!r}", value)
            return weights
        check_choice("class_weight", self.class_weight, ("balanced",))
        totals = np.bincount(codes, weights=sample_weight)
        return np.asarray(totals.sum() / (totals.size * totals), dtype=np.float64)

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
        cached: tuple[KernelMachine, IntegerModel] | None = getattr(self, "_quantized", None)
        if cached is None or cached[0] is not self.machine_:
            cached = (self.machine_, quantize(self.machine_))
            self._quantized = cached
        return cached[1]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_quantized"}


def _print_progress(message: progress.Progress) -> None:
    total = "" if message.total is None else f"/{message.total}"
    print(f"{message.stage}: {message.done}{total} {message.message}".rstrip(), flush=True)
