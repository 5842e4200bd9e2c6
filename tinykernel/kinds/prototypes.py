"""Prototypes of normal rows: the distance to the nearest one says how novel a row is."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ModelError
from tinykernel.kinds.kind import Kind, Spec
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.problem import Problem
from tinykernel.learn.announcement import SIGNALS, TABLES, Announcement
from tinykernel.learn.choice import Candidate
from tinykernel.learn.folds import Fold
from tinykernel.learn.inputs import choose_scaling
from tinykernel.learn.loop import History, TrainingResult
from tinykernel.learn.novelty import as_levels, nearest_means, places
from tinykernel.learn.signals.normal import SEGMENTS, anomalies, band_stages, filter_stages
from tinykernel.learn.signals.training import KernelSettings, pooled_signals
from tinykernel.learn.trainset import TrainSet
from tinykernel.model.answers import Labels
from tinykernel.model.integer import IntegerModel
from tinykernel.model.scale import quantize_scaler
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Readout, Stage
from tinykernel.pieces.prototypes.spec import Prototypes, coarse, distances

PROTOTYPES = Announcement(
    "prototypes", "prototypes of normal rows", (TABLES, SIGNALS), size="n_prototypes"
)
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
