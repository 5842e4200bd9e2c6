"""Chains of convolutions and a hidden layer, for images of one channel."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tinykernel.kinds.kind import Kind, Spec, candidate_of
from tinykernel.kinds.problem import Problem
from tinykernel.measure.capacity import MOST_CHANNELS
from tinykernel.model import IntegerModel
from tinykernel.training.choice import Candidate
from tinykernel.training.folds import Fold
from tinykernel.training.images.convolutions import no_chains, responses_of
from tinykernel.training.images.training import (
    ImageSettings,
    PreparedConvolutions,
    PreparedImages,
)
from tinykernel.training.loss import WIDE_TEMPERATURES
from tinykernel.training.result import TrainingResult
from tinykernel.training.signals.spectra import PreparedPlanes

_DEFAULT, _FEWEST = 32, 4
#: Share of the epochs of convolutions that tells which is better. A quarter of them preferred
#: chains on USPS in 8 KB, with a loss of 0.051 to 0.055; half have 0.045 to 0.036, and all 0.040 to
#: 0.028.
SHARE = 0.5
# Instructions on Cortex-M4: most of them a byte of the budget, and those of a response of
# a channel. Or a small model of large images would take long: 700,000 instructions at 8 KB.
_A_BYTE, _A_RESPONSE = 84.0, 30.0


@dataclass(frozen=True)
class ChannelsSpec(ImageSettings, Spec):
    """Number of channels, and the bits of the linear part behind them."""

    SIZE: ClassVar[str] = "n_channels"
    FEWEST: ClassVar[int] = _FEWEST

    def __str__(self) -> str:
        """Describe them in words."""
        kind = "separable convolutions" if self.is_separable else "chains of convolutions"
        return f"{'coarse ' if self.is_coarse else ''}{kind}, {self.n_channels} channels"


class ConvolutionsKind(Kind[ChannelsSpec]):
    """Convolutions that are learned by epochs."""

    share: ClassVar[float] = SHARE

    def skeleton(self, spec: ChannelsSpec, problem: Problem) -> IntegerModel:
        """Return convolutions of random values."""
        few = _prepared(problem.once(Problem.few), None)
        return few.model(few.learner(spec))

    def judge(self, spec: ChannelsSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        decisions = _prepared(problem, None).decisions(spec, fold, share)
        return candidate_of(spec, decisions, problem, fold, temperatures=WIDE_TEMPERATURES)

    def epochs(self, spec: ChannelsSpec, problem: Problem) -> int:
        return _prepared(problem, problem.options.validation_fraction).epochs(spec)

    def fit(self, spec: ChannelsSpec, problem: Problem) -> TrainingResult:
        prepared = _prepared(problem, problem.options.validation_fraction)
        return prepared.fit(spec, problem.pace.effort.final, problem.pace.replanned)


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


class ChainsKind(ConvolutionsKind):
    """Chains of convolutions."""

    name: ClassVar[str] = "chains"

    def applies(self, problem: Problem) -> str:
        """Refuse images of several channels, and very small and large ones."""
        return super().applies(problem) or no_chains(problem.shape or ())

    def specs(self, problem: Problem) -> list[ChannelsSpec]:
        """Return the most channels that do not take long."""
        limits, options, shape = problem.limits, problem.options, problem.shape
        assert shape is not None
        n = options.n_channels or _DEFAULT
        if limits is not None and options.n_channels is None:
            most = (limits.flash or np.inf) * _A_BYTE / (responses_of(shape) * _A_RESPONSE)
            n = int(np.clip(most, _FEWEST, MOST_CHANNELS))
        return [ChannelsSpec(n, options.linear_bits(shape) or 4)]
