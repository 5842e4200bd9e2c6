"""The questions that every kind of model answers, and the problem that they are about."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.checks import thread_count
from tinykernel.base.errors import BudgetError, OptionError, ShapeError, TinykernelError
from tinykernel.base.text import count
from tinykernel.compile.plan import pack
from tinykernel.kinds.pace import Pace
from tinykernel.learn.announcement import Announcement
from tinykernel.learn.choice import (
    Candidate,
    Choice,
    Fold,
    choose,
    final_fold,
    join_folds,
    side_by_side,
    trial_folds,
)
from tinykernel.learn.loop import TrainingResult, seed_of
from tinykernel.learn.options import Effort, TrainerOptions
from tinykernel.learn.signals.clips import Clips
from tinykernel.learn.trainset import TrainSet
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.frame.spec import Frame
from tinykernel.run.estimate import work_of
from tinykernel.run.limits import Limits
from tinykernel.run.report import Report, decisive_report, some_rows

_Result = TypeVar("_Result")
# With fewer rows or groups all four quarters are held out in turn, not one alone.
_FEW_ROWS, _FEW_GROUPS = 1000, 40
_MANY_ROWS = 2
_QUICK_SHARE = 0.3  # of the epochs of images and spectra, with effort="quick"


@dataclass(frozen=True, eq=False)
class Problem:
    """What is known before a training."""

    data: TrainSet
    options: TrainerOptions  # what the user fixed.
    #: (samples, channels), or (height, width, channels); None of rows of a table.
    shape: tuple[int, ...] | None = None
    limits: Limits | None = None  # without them specs have usual sizes.
    target: str = "cortex-m4"  # processor that the limits are for.
    clips: Clips | None = None  # whole recordings, of which windows are learned.
    #: Ends the trainings that run.
    cancelled: threading.Event = field(default_factory=threading.Event)
    #: Results of `once`; a problem of the same rows shares them.
    memory: dict[Any, Any] = field(default_factory=dict)

    def once(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Return ``function(problem, *arguments)``, which is computed once.

        It depends on nothing else, so that who asks first makes no difference.
        """
        key = function, *arguments
        if key not in self.memory:
            self.memory[key] = function(self, *arguments)
        return self.memory[key]  # type: ignore[no-any-return]

    @property
    def effort(self) -> Effort:
        """How much of the search and of the training is done where no time limits it."""
        options = self.options
        effort = Effort.of(options.effort)
        if options.effort == "quick" and options.epochs is None and self.shape is not None:
            return replace(effort, final=_QUICK_SHARE)  # convolutions take minutes
        return effort

    def alone(self) -> Problem:
        """Return the problem for trainings with one thread each."""
        return replace(self, options=replace(self.options, n_jobs=1))

    @property
    def n_threads(self) -> int:
        """Number of threads."""
        return thread_count(self.options.n_jobs)

    @property
    def of_values(self) -> bool:
        """Whether values are predicted, not labels."""
        return self.data.quantity is not None

    @property
    def is_quick(self) -> bool:
        """Whether settings are not searched, and kinds compared by short trainings."""
        return Effort.of(self.options.effort).is_quick

    @property
    def is_few(self) -> bool:
        """Whether a quarter of the rows, or of the groups, is too few for a comparison."""
        groups = self.data.groups
        n_groups = 0 if groups is None else np.unique(groups).size
        return len(self.data.codes) <= _FEW_ROWS or 0 < n_groups <= _FEW_GROUPS

    @property
    def folds(self) -> list[Fold]:
        """Rows held out in short trainings; none where a class or a group has too few."""
        return self.once(_trial_folds)

    @property
    def sees_a_part(self) -> bool:
        """Whether short trainings have a small part of the rows."""
        return len(self.data.X) >= _MANY_ROWS * self.folds[0].inside.size

    @property
    def final(self) -> Fold:
        """Rows that chose nothing, held out to compare finalists."""
        return self.once(_final_fold)

    def choose(
        self, candidates: Sequence[Candidate], folds: Sequence[Fold], margin: float = 1.0
    ) -> Choice:
        """Choose by the losses outside all folds; see `tinykernel.learn.choice.choose`."""
        data, out = self.data, np.concatenate([fold.outside for fold in folds])
        groups = None if data.groups is None else data.groups[out]
        return choose(candidates, data.weight[out], groups, margin=margin, of_values=self.of_values)

    def few(self, n_more: int = 0) -> Problem:
        """Return the problem of rows of every class and all extremes, and so many rows more.

        That is enough to know the size of a model. None of them can be held out.
        """
        data, shape = self.data, self.shape
        n = data.X.shape[1]
        # A channel has one scale, whatever the pixel or sample; frames of a camera are bytes.
        whole = shape is not None and n == np.prod(shape)
        n_channels = shape[-1] if shape and whole else 1 if shape and len(shape) == 3 else None
        rows = some_rows(data.X, data.codes, n_channels=n_channels)
        more = np.random.default_rng(0).permutation(len(data.X))[:n_more]
        few = replace(data.of(np.union1d(rows, more)), groups=None)
        options = replace(self.options, validation_fraction=None)
        return replace(self, data=few, options=options, clips=None, memory={})

    def few_of_each(self, n: int, n_more: int) -> Problem:
        """Return the problem of up to so many rows of every class, and of so many rows more."""
        data = self.data
        order = np.random.default_rng(0).permutation(len(data.X))
        of_class = (order[data.codes[order] == code][:n] for code in np.unique(data.codes))
        rows = np.unique(np.concatenate([*of_class, order[-n_more:]]))
        return replace(self, data=data.of(rows), clips=None, memory={})

    def report(self, model: IntegerModel) -> Report:
        """Return the sizes of a model on the target, by which trainings decide."""
        return decisive_report(model, self.target)


def _trial_folds(problem: Problem) -> list[Fold]:
    return trial_folds(*_held_out_by(problem))


def _final_fold(problem: Problem) -> Fold:
    return final_fold(*_held_out_by(problem)) or problem.folds[-1]


def _held_out_by(problem: Problem) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, int, int]:
    """Return classes, groups, seed, and how many classes a training needs: of normal rows one."""
    data = problem.data
    fewest = 1 if data.classes and not data.codes.any() else 2
    return data.codes, data.groups, seed_of(problem.options), fewest


def too_small(problem: Problem, needed: int) -> TinykernelError:
    """Return the error about a budget of flash that is too small for every model."""
    assert problem.limits is not None
    flash = problem.limits.flash or 0
    if needed <= flash:
        return BudgetError(
            f"no model for this data is within {problem.limits} on {problem.target}; give a larger "
            "budget"
        )
    shape = "" if problem.shape else ", or the shape if rows are signals or images"
    return BudgetError(
        f"no model for this data fits into {count(flash, 'byte')} on {problem.target}: the "
        f"smallest one needs about {needed} bytes; give a larger budget{shape}"
    )


def check_rows(data: TrainSet, options: TrainerOptions) -> None:
    """Refuse options that do not fit the rows."""
    _check_width(options, data.X.shape[1])
    if data.validation is not None and options.validation_fraction is not None:
        raise OptionError("validation_fraction: validation rows are given, too; leave one out")


def _check_width(options: TrainerOptions, n_inputs: int) -> None:
    """Refuse a shape of images or windows that rows of `n_inputs` cannot have."""
    if options.frame is not None and options.image_shape is not None:
        frame = Frame.of(options.frame, (*options.image_shape, 1)[:3])
        if frame.taken.size != n_inputs:
            raise ShapeError(
                f"frame: {options.frame} makes {frame.taken.size} bytes, but rows have {n_inputs}"
            )
        return
    for name in ("image_shape", "window_shape"):
        shape = getattr(options, name)
        if shape is not None and np.prod(shape) + options.beside != n_inputs:
            beside = f" and {options.beside} beside" if options.beside else ""
            raise ShapeError(
                f"{name}: {' x '.join(map(str, shape))} makes {np.prod(shape)} values{beside}, but "
                f"rows have {n_inputs} inputs"
            )


SpecT = TypeVar("SpecT", bound="Spec")


@dataclass(frozen=True)
class Spec:
    """Numbers that decide the size of a model, and how it is trained.

    Subclasses are frozen dataclasses. ``str(spec)`` describes it in words.
    """

    #: Field with the number that a budget decides; "" if there is none.
    SIZE: ClassVar[str] = ""
    STEP: ClassVar[int] = 1
    FEWEST: ClassVar[int] = 1

    @property
    def size(self) -> int:
        """The number that a budget decides; 0 if there is none."""
        return int(getattr(self, self.SIZE)) if self.SIZE else 0


@dataclass(frozen=True)
class RaceTrial:
    """Result of short trainings of a spec on held-out rows."""

    spec: Spec
    loss: float  # see `tinykernel.learn.loss.Truth`.
    score: float  # accuracy, or R2.
    usual_loss: float | None = None  # of the same spec before its settings were searched.


#: The best trials after each round of a search.
Rounds = Iterator[list[RaceTrial]]


class Kind(ABC, Generic[SpecT]):
    """A kind of model.

    `tinykernel.kinds.select` asks these questions. Nothing else depends on how a kind is trained.
    """

    #: What it is called, takes and reads.
    about: ClassVar[Announcement]
    #: Rank in flash and time: a cheaper kind is taken if it is within one standard error.
    cost: ClassVar[int] = 1
    #: Ratio to the least loss, after each round of `tune`, at which the kind is out of the race.
    behind: ClassVar[tuple[float, ...]] = (2.0, 1.5)
    #: The same to kinds that cost as much or more, of classes and where rows are not few.
    behind_peers: ClassVar[float] = inf

    #: Share of the epochs of a training that tells which of two is better.
    share: ClassVar[float] = 1.0

    #: Seconds of a usual processor that learn from one row once: those of any model, and those of
    #: each piece of its work in an inference.
    price: ClassVar[tuple[float, float]] = (0.0, 0.0)
    #: Work of a trial of settings, as a share of that of a training.
    trial_share: ClassVar[float] = 1.0

    @property
    def name(self) -> str:
        """The name, as in the option `model`."""
        return self.about.name

    def cost_for(self, spec: SpecT, problem: Problem) -> int:
        """Return the rank in flash and time; see `cost`."""
        return self.cost

    def applies(self, problem: Problem) -> str:
        """Return why the kind is not for a problem, in words for the user; "" if it is."""
        sides = None if problem.shape is None else len(problem.shape)
        takes = {inputs.sides: inputs.name for inputs in self.about.inputs}
        return "" if sides in takes else f"only for {' and '.join(takes.values())}"

    @abstractmethod
    def specs(self, problem: Problem) -> Sequence[SpecT]:
        """Return candidates of the largest useful size, or the size that the user fixed."""

    def resize(self, spec: SpecT, size: int, problem: Problem) -> SpecT:
        """Return the spec with another size."""
        return replace(spec, **{spec.SIZE: size}) if spec.SIZE else spec

    @abstractmethod
    def skeleton(self, spec: SpecT, problem: Problem) -> IntegerModel:
        """Return an untrained model that is as large as a trained one."""

    def epochs(self, spec: SpecT, problem: Problem) -> int:
        """Return the epochs of a training; 0 if it has none, or takes little time."""
        return 0

    def work(self, spec: SpecT, problem: Problem) -> float:
        """Return about how many seconds of a usual processor a training takes.

        It is counted, not measured: everywhere the same plan follows from it.
        """
        n_epochs = self.epochs(spec, problem) if any(self.price) else 0
        if not n_epochs:
            return 0.0
        pieces = work_of(self.skeleton(spec, problem)).values()
        a_row, a_piece = self.price
        a_row += a_piece * sum(sum(part.values()) for part in pieces)
        return n_epochs * len(problem.data.X) * a_row

    def contenders(self, sized: Sequence[SpecT], problem: Problem) -> Sequence[SpecT]:
        """Return those of the specs that fit the budget which are worth comparing."""
        return sized

    def smaller(
        self, spec: SpecT, n_bytes: int, model: IntegerModel, problem: Problem
    ) -> SpecT | None:
        """Return a spec whose model is about so much smaller than `model`; None if there is none.

        It needs no search.
        """
        if spec.size <= spec.FEWEST:
            return None
        fewer = reduce_size(spec.size, spec.STEP, n_bytes, model)
        return self.resize(spec, max(fewer, spec.FEWEST), problem)

    def tune(self, specs: Sequence[SpecT], problem: Problem, pace: Pace) -> Rounds:
        """Search settings that do not change the size, in rounds; yield the best so far.

        A kind without such settings yields nothing, and its specs are finalists.
        """
        yield from ()

    @abstractmethod
    def judge(self, spec: SpecT, problem: Problem, fold: Fold, share: float) -> Candidate:
        """Train inside a fold, as for delivery, for a share of the epochs; judge it outside."""

    def judge_all(
        self, specs: Sequence[SpecT], problem: Problem, folds: Sequence[Fold], share: float
    ) -> list[Candidate]:
        """Judge specs by trainings inside folds, side by side."""
        alone, n = problem.alone(), len(folds)
        tasks = [partial(self.judge, spec, alone, fold, share) for spec in specs for fold in folds]
        parts = side_by_side(tasks, problem.n_threads)
        return [join_folds(parts[first : first + n]) for first in range(0, len(parts), n)]

    def settle(self, spec: SpecT, problem: Problem, pace: Pace) -> SpecT:
        """Return the spec with what is chosen for delivery alone, which a smaller model keeps."""
        return spec

    @abstractmethod
    def fit(self, spec: SpecT, problem: Problem, pace: Pace) -> TrainingResult:
        """Train as for delivery, on all rows."""


def reduce_size(size: int, step: int, n_bytes: int, model: IntegerModel) -> int:
    """Return the size, less some steps, of a model whose tables take so many bytes less."""
    return size - step * (-(-n_bytes * size // table_bytes(model)) // step + 1)


def table_bytes(model: IntegerModel) -> int:
    """Return what the tables of a model take in flash, at least 1."""
    return max(1, sum(pack(model).table_bytes().values()))


#: Any kind.
AnyKind = Kind[Any]


def candidate_of(
    spec: Spec, decisions: Any, problem: Problem, fold: Fold, **options: Any
) -> Candidate:
    """Judge decisions of the rows outside a fold."""
    return Candidate.of(str(spec), decisions, problem.data.truth_of(fold.outside), **options)


def best_trial(
    specs: Sequence[Spec], candidates: Sequence[Candidate], problem: Problem, folds: Sequence[Fold]
) -> RaceTrial:
    """Return the trial of the spec that the one rule chooses by the losses outside all folds."""
    choice = problem.choose(candidates, folds)
    best = choice.chosen
    return RaceTrial(specs[best], choice.losses[best], choice.scores[best])
