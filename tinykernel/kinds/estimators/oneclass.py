"""Novelty detection: a model of normal rows alone."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state

from tinykernel.base.checks import as_groups, at_least
from tinykernel.base.errors import OptionError, RowsError, TinykernelError
from tinykernel.base.frames import without_codes
from tinykernel.base.options import declared, option
from tinykernel.kinds.delivery import Measure, deliver, estimated
from tinykernel.kinds.estimators.machines import DEFAULT_TARGET, MachineEstimator
from tinykernel.kinds.problem import Problem, check_rows
from tinykernel.kinds.prototypes import CLASSES, PrototypesKind, novelty_of
from tinykernel.kinds.selection import select
from tinykernel.learn.novelty import Alarms, alarms
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.trainset import TrainSet, canonical_order, group_codes
from tinykernel.model.integer import IntegerModel
from tinykernel.model.scale import raw_dtype_of, to_raw
from tinykernel.pieces.prototypes.spec import LARGEST_MARGIN_LINE, Prototypes
from tinykernel.run.capacity import limits_on
from tinykernel.run.limits import Limits


@declared
@dataclass(kw_only=True, eq=False, repr=False)
class NoveltyOptions(TrainerOptions):
    """Options of the training of a model of one class."""

    n_prototypes: int | None = option(None, at_least(1), "Number of prototypes.")

    @property
    def size(self) -> str:
        """The option that fixes the size of the model; "" for none."""
        return "" if self.n_prototypes is None else "n_prototypes"


@dataclass(eq=False, repr=False)
class NoveltyDetector(OutlierMixin, MachineEstimator):
    """Detects inputs unlike the training rows, all of which are normal.

    The novelty of a row is its squared distance to the nearest prototype. Prototypes are means of
    clusters of the training rows, in 4 bits per input. Python and C compute the same integers;
    ``NAME_predict`` returns 0 for normal and 1 for novel.

    Parameters
    ----------
    n_prototypes : int or None
        Each takes half a byte an input. None takes one for 25 rows, at most 4096 bytes in all.
    false_alarms : float
        Largest share of normal rows reported as novel, above 0 and below 1.
    calibration_size : float
        Share of the rows, or of groups, held out to set the threshold.
    window_shape : (int, int) or None
        Samples and channels, where rows are windows of a signal. Kernels as those of
        `tinykernel.Classifier` then count patterns in them, filters when they respond loudly, or
        bands of frequencies how loud they are: what finds more simulated anomalies.
    n_kernels : int or None
        Number of kernels that count patterns in windows. None means 128, and lets filters compete,
        and the bands of windows of whole numbers.
    hop : int
        Samples from one window of a stream to the next; 0 for no stream.
    budget : str, int, Limits or None
        As of `tinykernel.Classifier`; None for no limit.
    target : str
        Processor that the budget is for.
    random_state : int, RandomState or None

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when `X` had column names.
    machine_ : IntegerModel
    n_prototypes_ : int
        Number of prototypes of the model.
    alarms_ : tinykernel.learn.novelty.Alarms or None
        The guarantee; None where the held-out rows were too few. The threshold is then the
        largest novelty among them.
    refusal_ : str
        Why there is no guarantee; else empty.
    offset_ : float
        The threshold with the sign of `score_samples`.
    areas_ : dict of str to float
        Of windows, what was compared, and the mean area under the ROC curve of simulated anomalies:
        windows that are mixed, scaled, clipped, have impulses or a slow swing, or miss a channel.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> watch = NoveltyDetector(false_alarms=0.05, random_state=0).fit(X[y < 5])
    >>> float(np.mean(watch.predict(X[y < 5]) < 0)) < 0.06
    True
    >>> float(np.mean(watch.predict(X[y >= 5]) < 0)) > 0.3
    True
    """

    n_prototypes: int | None = None
    false_alarms: float = 0.01
    calibration_size: float = 0.2
    window_shape: tuple[int, int] | None = None
    n_kernels: int | None = None
    hop: int = 0
    budget: str | int | Limits | None = None
    target: str = DEFAULT_TARGET
    random_state: Any = None

    def fit(
        self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None
    ) -> "NoveltyDetector":
        """Learn what is normal.

        Parameters
        ----------
        X : array-like, shape (n, n_features) or (n, samples, channels)
            Raw inputs of normal rows, finite. Their dtype decides what the firmware takes.
        y : object
            Ignored, for scikit-learn.
        groups : array-like, shape (n,), optional
            Which person, record or batch each row belongs to. Whole groups are held out, and the
            guarantee is for new groups.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is out of range, or no model is within the budget.
        ValueError
            From scikit-learn's checks of `X`.
        """
        return self.fit_within(X, groups)

    def fit_within(
        self, X: ArrayLike, groups: ArrayLike | None, *measures: Measure
    ) -> "NoveltyDetector":
        """Learn what is normal; smaller until the model is within the limits by each measure."""
        for name in ("false_alarms", "calibration_size"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise OptionError(f"{name}: {value}; give a share above 0 and below 1")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rng = np.random.default_rng([seed, 7])
        problem, raw, names = self._problem(X, groups, seed, rng)
        selection = select(problem, [PrototypesKind(rng)])
        result, _ = deliver(selection, problem, estimated(problem), *measures)
        model, choice = result.machine, selection.choice
        prototypes = model.find(Prototypes)
        assert prototypes is not None
        self.n_prototypes_ = len(prototypes.levels)
        self.areas_ = {} if choice is None else dict(zip(choice.names, choice.scores, strict=True))
        self.alarms_: Alarms | None = None
        self.refusal_ = ""
        try:
            model, self.alarms_ = calibrate_one_class(model, raw, self.false_alarms, groups=names)
        except TinykernelError as error:
            self.refusal_ = str(error).removeprefix("calibrate: ")
            model = _with_threshold(model, int(novelty_of(model, raw).max()))
        self.machine_, self.offset_ = model, float(model.readout.offset[0])
        return self

    def _problem(
        self, X: ArrayLike, groups: ArrayLike | None, seed: int, rng: np.random.Generator
    ) -> tuple[Problem, NDArray[Any], NDArray[Any] | None]:
        """Return what is to be learned, and the rows and groups that set the threshold."""
        names = "n_prototypes", "n_kernels", "window_shape", "hop"
        options = NoveltyOptions(random_state=seed, **{name: getattr(self, name) for name in names})
        limits = limits_on(self.budget, self.target, is_sized=True)
        X, shape = self._shape(without_codes(X), options)
        rows = self._numeric(X)
        if len(rows) < 2:
            raise RowsError("X: 1 sample; give at least two normal rows")
        raw_dtype = raw_dtype_of(rows.dtype)
        raw = to_raw(rows, raw_dtype)
        everyone = np.ones(len(raw), dtype=bool)
        units = as_groups(groups, len(raw))
        codes = None if units is None else group_codes(units, everyone)
        if units is not None and codes is None:
            raise RowsError("groups: all rows are in one group; give at least two groups")
        raw, order = canonical_order(raw, np.zeros(len(raw), np.int64) if codes is None else codes)
        units, codes = (each if each is None else each[order] for each in (units, codes))
        out = _outside(len(raw), codes, self.calibration_size, rng)
        inside = None if codes is None else group_codes(codes[~out], everyone[~out])
        if codes is not None and inside is None:  # of one group nothing can be held out
            options = replace(options, effort="quick")
        normal = raw[~out], np.zeros(int((~out).sum()), np.int64), np.ones(int((~out).sum()))
        data = TrainSet(*normal, CLASSES, raw_dtype, inside)
        check_rows(data, options)
        units_out = None if units is None else units[out]
        return Problem(data, options, shape, limits, self.target), raw[out], units_out

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the negative novelty of rows, shape (n,); larger is more normal.

        `X` is as in `fit`.
        """
        rows = self._checked_rows(without_codes(X))
        return -novelty_of(self.machine_, rows).astype(np.float64)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the threshold minus the novelty of rows, shape (n,); negative for novel rows.

        `X` is as in `fit`.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return 1 for normal and -1 for novel rows, shape (n,); `X` is as in `fit`."""
        return np.where(self.decision_function(X) < 0, -1, 1).astype(np.int64)


def calibrate_one_class(
    model: IntegerModel,
    X: ArrayLike,
    false_alarms: float,
    *,
    confidence: float = 0.95,
    groups: ArrayLike | None = None,
) -> tuple[IntegerModel, Alarms]:
    """Set the threshold of a model of one class on normal rows that it was not trained on.

    At most the share `false_alarms` of such rows is reported as novel, at a `confidence`; with
    groups, of rows of new groups. A TinykernelError if the model has several classes or the rows
    are too few for this.
    """
    novelty = novelty_of(model, X)
    guarantee = alarms(novelty, as_groups(groups, len(novelty)), false_alarms, 1 - confidence)
    return _with_threshold(model, guarantee.threshold), guarantee


def _with_threshold(model: IntegerModel, threshold: int) -> IntegerModel:
    """Return the model with a positive score of "novel" above a distance."""
    offset = np.array([-min(threshold, LARGEST_MARGIN_LINE)], np.int32)
    return replace(model, readout=replace(model.readout, offset=offset))


def _outside(
    n: int, groups: NDArray[np.int64] | None, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return a mask of rows, or whole groups, to hold out: at least one, and not all."""
    units = np.arange(n) if groups is None else groups
    number = int(units.max()) + 1
    chosen = rng.permutation(number)[: int(np.clip(round(share * number), 1, number - 1))]
    return np.asarray(np.isin(units, chosen))
