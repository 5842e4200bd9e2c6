"""The questions that every kind of model answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, ClassVar, Generic, TypeVar

from tinykernel.compile.plan import pack
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.problem import Problem
from tinykernel.learn.announcement import Announcement
from tinykernel.learn.choice import Candidate, Fold, join_folds, side_by_side
from tinykernel.learn.loop import TrainingResult
from tinykernel.model.integer import IntegerModel
from tinykernel.run.estimate import work_of

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
