"""What chains and separable convolutions share: they are learned by epochs."""

from dataclasses import dataclass, replace
from typing import ClassVar

from tinykernel.kinds.kind import Kind, Spec, candidate_of
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.problem import Problem
from tinykernel.learn.choice import Candidate
from tinykernel.learn.convolutions.options import CHAINS
from tinykernel.learn.convolutions.training import (
    ImageSettings,
    PreparedConvolutions,
    PreparedImages,
)
from tinykernel.learn.folds import Fold
from tinykernel.learn.loop import TrainingResult
from tinykernel.learn.loss import WIDE_TEMPERATURES
from tinykernel.learn.signals.planes import PreparedPlanes
from tinykernel.model.integer import IntegerModel

#: Share of the epochs of convolutions that tells which is better. A quarter of them preferred
#: chains on USPS in 8 KB, with a loss of 0.051 to 0.055; half have 0.045 to 0.036, and all 0.040 to
#: 0.028.
_SHARE = 0.5


@dataclass(frozen=True)
class ChannelsSpec(ImageSettings, Spec):
    """Number of channels, and the bits of the linear part behind them."""

    SIZE: ClassVar[str] = CHAINS.size
    FEWEST: ClassVar[int] = 4

    def __str__(self) -> str:
        """Describe them in words."""
        kind = "separable convolutions" if self.is_separable else "chains of convolutions"
        return f"{'coarse ' if self.is_coarse else ''}{kind}, {self.n_channels} channels"


class ConvolutionsKind(Kind[ChannelsSpec]):
    """Convolutions that are learned by epochs."""

    share: ClassVar[float] = _SHARE

    def skeleton(self, spec: ChannelsSpec, problem: Problem) -> IntegerModel:
        """Return convolutions of random values."""
        few = _prepared(problem.once(Problem.few), None)
        return few.model(few.learner(spec))

    def judge(self, spec: ChannelsSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        decisions = _prepared(problem, None).decisions(spec, fold, share)
        return candidate_of(spec, decisions, problem, fold, temperatures=WIDE_TEMPERATURES)

    def epochs(self, spec: ChannelsSpec, problem: Problem) -> int:
        return _prepared(problem, problem.options.validation_fraction).epochs(spec)

    def fit(self, spec: ChannelsSpec, problem: Problem, pace: Pace) -> TrainingResult:
        prepared = _prepared(problem, problem.options.validation_fraction)
        return prepared.fit(spec, pace.effort.final, pace.replanned)


def _prepared(problem: Problem, validation_fraction: float | None) -> PreparedConvolutions:
    """Return images, or the spectra of signals, with a share held out to choose the best epoch.

    They are computed once, also for trainings with other numbers of threads.
    """
    options = replace(problem.options, validation_fraction=validation_fraction)
    return replace(problem.once(_split, validation_fraction), options=options)


def _split(problem: Problem, validation_fraction: float | None) -> PreparedConvolutions:
    assert problem.shape is not None
    kind = PreparedImages if len(problem.shape) == 3 else PreparedPlanes
    options = replace(problem.options, validation_fraction=validation_fraction)
    return kind.of(problem.data, options, problem.shape)
