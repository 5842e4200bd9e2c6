"""Novelty detection: a model of normal rows alone.

The distance to the nearest of its prototypes says how novel a row is.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state

from tinykernel.base.checks import as_groups, at_least, between, check_seed
from tinykernel.base.errors import ModelError, RowsError, TinykernelError
from tinykernel.base.frames import without_codes
from tinykernel.base.options import declared, option
from tinykernel.kinds.estimators.machines import DEFAULT_TARGET, MachineEstimator
from tinykernel.kinds.kind import Kind, Problem, Spec, check_rows
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.selection import Measure, deliver, estimate_usage, select
from tinykernel.learn.announcement import SIGNALS, TABLES, Announcement
from tinykernel.learn.choice import Candidate, Fold
from tinykernel.learn.inputs import choose_scaling
from tinykernel.learn.loop import History, TrainingResult
from tinykernel.learn.novelty import Alarms, alarms, as_levels, nearest_means, places
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.signals.normal import SEGMENTS, anomalies, band_stages, filter_stages
from tinykernel.learn.signals.training import KernelSettings, pooled_signals
from tinykernel.learn.trainset import TrainSet, canonical_order, group_codes, within_reach
from tinykernel.model.answers import Labels
from tinykernel.model.integer import IntegerModel
from tinykernel.model.scale import quantize_scaler, raw_dtype_of, to_raw
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Readout, Stage
from tinykernel.pieces.prototypes.spec import LARGEST_MARGIN_LINE, Prototypes, coarse, distances
from tinykernel.run.limits import Limits
from tinykernel.run.report import limits_on

PROTOTYPES = Announcement(
    "prototypes", "prototypes of normal rows", (TABLES, SIGNALS), size="n_prototypes"
)
_SHARE = between(0, 1, "above 0 and below 1", open_ends=True)
#: Classes of the integer model, in this order.
CLASSES = ("normal", "novel")
_PATTERNS = 128
# Windows that simulated anomalies are made of, and the fewest windows to compare by.
_MOST_SIMULATED, _FEWEST_WINDOWS = 300, 20
_ROWS_PER_PROTOTYPE = 25
_MOST_BYTES = 4096


@dataclass(frozen=True)
class PrototypesSpec(Spec):
    """Number of prototypes, and the stages before them."""

    SIZE: ClassVar[str] = PROTOTYPES.size
    n_prototypes: int = 1
    n_kernels: int = 0  # that count patterns in windows; 0 for none.
    segment: int = 0  # length of segments whose bands are counted; 0 for none.
    has_filters: bool = False  # whose loud responses are counted.

    @property
    def front(self) -> str:
        """The stages before the prototypes, in words."""
        if self.segment:
            return f"bands of {self.segment} samples"
        return "filters" if self.has_filters else "patterns" if self.n_kernels else "inputs"

    def __str__(self) -> str:
        """Describe it in words."""
        return f"{self.n_prototypes} prototypes of {self.front}"


class PrototypesKind(Kind[PrototypesSpec]):
    """Prototypes. `rng` draws the first ones; every training draws from a copy."""

    about = PROTOTYPES

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def cost_for(self, spec: PrototypesSpec, problem: Problem) -> int:
        """Rank longer segments first, which separate most frequencies, and patterns last."""
        others = len(SEGMENTS) + (not spec.has_filters)
        return SEGMENTS[::-1].index(spec.segment) if spec.segment else others

    def applies(self, problem: Problem) -> str:
        is_image = problem.shape is not None and len(problem.shape) != 2
        return "prototypes are for tables and windows, not for images" if is_image else ""

    def specs(self, problem: Problem) -> list[PrototypesSpec]:
        """Return the inputs of a table; or patterns in windows, and bands of each length."""
        options = problem.options
        if problem.shape is None:
            specs = [PrototypesSpec()]
        else:
            specs = [PrototypesSpec(n_kernels=options.n_kernels or _PATTERNS)]
            if options.n_kernels is None and len(problem.data.X) >= _FEWEST_WINDOWS:
                specs += [PrototypesSpec(segment=length) for length in SEGMENTS]
                specs.append(PrototypesSpec(has_filters=True))
        fronts = [(spec, problem.once(_front_of_few, spec)) for spec in specs]
        return [
            replace(spec, n_prototypes=_most_prototypes(problem.data, front, options))
            for spec, front in fronts
            if front is not None
        ]

    def skeleton(self, spec: PrototypesSpec, problem: Problem) -> IntegerModel:
        """Return random prototypes."""
        front: _Front = problem.once(_front_of_few, replace(spec, n_prototypes=1))
        size = spec.n_prototypes, front.output.size
        return front.model(np.random.default_rng(0).integers(-8, 8, size, np.int8))

    def judge(self, spec: PrototypesSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        """Tell simulated anomalies from the windows outside a fold.

        The loss of a window is the share of the anomalies that are less novel.
        """
        assert problem.shape is not None
        inside, usual = problem.data.of(fold.inside), problem.data.X[fold.outside]
        rng = np.random.default_rng(0)
        model = _fit(spec, inside, problem, rng)
        novelty = novelty_of(model, usual)
        rng = np.random.default_rng(0)
        chosen = usual[rng.permutation(len(usual))[:_MOST_SIMULATED]]
        simulated = anomalies(chosen, problem.shape, rng).values()
        area = np.mean([places(novelty, novelty_of(model, rows)) for rows in simulated], axis=0)
        return Candidate(spec.front, 1 - area, float(area.mean()))

    def fit(self, spec: PrototypesSpec, problem: Problem, pace: Pace) -> TrainingResult:
        """Take the means of clusters of the rows."""
        model = _fit(spec, problem.data, problem, deepcopy(self.rng))
        return TrainingResult(model, spec, History([{"loss": float("nan")}]))


@dataclass(frozen=True, eq=False)
class _Front:
    """The stages before prototypes, and what they take."""

    grid: Grid
    stages: tuple[Stage, ...]
    hop: int

    @property
    def output(self) -> Grid:
        grid = self.grid
        for stage in self.stages:
            grid = stage.gives(grid)
        return grid

    def model(self, levels: NDArray[np.int8]) -> IntegerModel:
        return IntegerModel(
            input=self.grid,
            stages=self.stages,
            readout=Readout((Prototypes(levels),), np.zeros(1, np.int32)),
            answers=Labels(CLASSES),
            hop=self.hop,
        )


def _front(spec: PrototypesSpec, data: TrainSet, problem: Problem) -> _Front | None:
    """Fit the stages to normal rows; None where they are not for these windows."""
    rows, dtype, shape, options = data.X, data.raw_dtype, problem.shape, problem.options
    hop = options.hop
    if shape is None:
        bits, scaling = choose_scaling(rows, dtype, "auto", "auto")
        scaler = quantize_scaler(scaling, dtype, bits).scaler
        return _Front(Grid.table(dtype, rows.shape[1]), (scaler,), hop)
    if spec.n_kernels:
        settings = KernelSettings(n_kernels=spec.n_kernels)
        return _Front(*pooled_signals(rows, dtype, options, settings, shape), hop)
    if spec.has_filters:
        front = filter_stages(rows, dtype, shape)
    else:
        front = band_stages(rows, dtype, shape, hop, spec.segment)
    return None if front is None else _Front(*front, hop)


def _front_of_few(problem: Problem, spec: PrototypesSpec) -> Any:
    return _front(spec, problem.once(Problem.few).data, problem)


def _most_prototypes(data: TrainSet, front: _Front, options: Any) -> int:
    """Return the number that the user fixed, or that of the rows and of the most bytes."""
    most = max(1, _MOST_BYTES // (4 * -(-front.output.size // 8)))
    return options.n_prototypes or min(max(1, len(data.X) // _ROWS_PER_PROTOTYPE), most)


def _fit(
    spec: PrototypesSpec, data: TrainSet, problem: Problem, rng: np.random.Generator
) -> IntegerModel:
    front = _front(spec, data, problem)
    assert front is not None
    most = _most_prototypes(data, front, problem.options)
    empty = front.model(np.zeros((1, front.output.size), np.int8))
    means = nearest_means(coarse(empty.quantize_inputs(data.X)), min(spec.n_prototypes, most), rng)
    return front.model(as_levels(means))


def novelty_of(model: IntegerModel, X: Any) -> NDArray[np.int32]:
    """Return the distance of rows to the nearest prototype."""
    prototypes = model.find(Prototypes)
    if prototypes is None:
        raise ModelError("calibrate: not a model of one class; use tinykernel.calibrate")
    return distances(model.quantize_inputs(X), prototypes.levels)


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
            If a parameter or a row is out of range, or no model is within the budget.
        """
        return self.fit_within(X, groups)

    def fit_within(
        self, X: ArrayLike, groups: ArrayLike | None, *measures: Measure
    ) -> "NoveltyDetector":
        """Learn what is normal; smaller until the model is within the limits by each measure."""
        for name in ("false_alarms", "calibration_size"):
            _SHARE(name, getattr(self, name))
        check_seed("random_state", self.random_state)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rng = np.random.default_rng([seed, 7])
        problem, raw, names = self._problem(X, groups, seed, rng)
        selection = select(problem, [PrototypesKind(rng)])
        result, _ = deliver(selection, problem, estimate_usage(problem), *measures)
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
        kind = np.zeros(len(raw), np.int64) if codes is None else codes
        ordered, order = canonical_order(raw, kind)
        raw = within_reach(ordered, raw)
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
