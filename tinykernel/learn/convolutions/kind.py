"""Chains of convolutions and separable ones: they are learned by epochs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tinykernel.kinds.kind import Kind, Problem, Spec, candidate_of
from tinykernel.kinds.pace import Pace
from tinykernel.learn.choice import Candidate, Fold
from tinykernel.learn.convolutions import training
from tinykernel.learn.convolutions.chains import no_chains, responses_of
from tinykernel.learn.convolutions.options import CHAINS, SEPARABLE
from tinykernel.learn.convolutions.separable import no_separable
from tinykernel.learn.loop import TrainingResult
from tinykernel.learn.loss import WIDE_TEMPERATURES
from tinykernel.learn.signals.clips import PreparedClips
from tinykernel.learn.signals.planes import PreparedPlanes, spectrum_of_planes
from tinykernel.model.integer import IntegerModel
from tinykernel.run.report import MOST_CHANNELS

#: Share of the epochs of convolutions that tells which is better. A quarter of them preferred
#: chains on USPS in 8 KB, with a loss of 0.051 to 0.055; half have 0.045 to 0.036, and all 0.040 to
#: 0.028.
_SHARE = 0.5
_DEFAULT_OF_CHAINS = 32
# Instructions on Cortex-M4: most of them a byte of the budget, and those of a response of
# a channel. Or a small model of large images would take long: 700,000 instructions at 8 KB.
_A_BYTE, _A_RESPONSE = 84.0, 30.0
_DEFAULT_OF_IMAGES, _DEFAULT_OF_SPECTRA = 32, 64
# On spectra, few windows or channels teach or tell too little; more channels train slowly.
_FEWEST_WINDOWS, _FEWEST_CHANNELS, _MOST_OF_SPECTRA = 600, 16, 128
# A word among few recordings: 64 channels find it as well, and a stream takes half of the time.
_MOST_OF_CLIPS = 80


@dataclass(frozen=True)
class ChannelsSpec(training.ImageSettings, Spec):
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
        few = _prepare(problem.once(Problem.few), None)
        return few.model(few.learner(spec))

    def judge(self, spec: ChannelsSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        decisions = _prepare(problem, None).decisions(spec, fold, share)
        return candidate_of(spec, decisions, problem, fold, temperatures=WIDE_TEMPERATURES)

    def epochs(self, spec: ChannelsSpec, problem: Problem) -> int:
        return _prepare(problem, problem.options.validation_fraction).epochs(spec)

    def fit(self, spec: ChannelsSpec, problem: Problem, pace: Pace) -> TrainingResult:
        prepared = _prepare(problem, problem.options.validation_fraction)
        return prepared.fit(spec, pace.effort.final, pace.replan)


class ChainsKind(ConvolutionsKind):
    """Chains of convolutions."""

    about = CHAINS
    price: ClassVar[tuple[float, float]] = (8e-6, 2.8e-9)

    def applies(self, problem: Problem) -> str:
        """Refuse images of several channels, and very small and large ones."""
        return super().applies(problem) or no_chains(problem.shape or ())

    def specs(self, problem: Problem) -> list[ChannelsSpec]:
        """Return the most channels that do not take long."""
        limits, options, shape = problem.limits, problem.options, problem.shape
        assert shape is not None
        n = options.n_channels or _DEFAULT_OF_CHAINS
        if limits is not None and options.n_channels is None:
            most = (limits.flash or np.inf) * _A_BYTE / (responses_of(shape) * _A_RESPONSE)
            n = int(np.clip(most, ChannelsSpec.FEWEST, MOST_CHANNELS))
        return [ChannelsSpec(n, options.linear_bits(shape) or 4)]


class SeparableKind(ConvolutionsKind):
    """Separable convolutions."""

    about = SEPARABLE
    cost: ClassVar[int] = 2
    price: ClassVar[tuple[float, float]] = (8e-6, 0.7e-9)

    def applies(self, problem: Problem) -> str:
        """Refuse signals without a spectrum, and with few windows."""
        shape, options = problem.shape, problem.options
        if shape is None:
            return super().applies(problem)
        if len(shape) == 3:
            return no_separable(shape)
        _, refused = spectrum_of_planes(options, shape, problem.data.raw_dtype)
        if refused or options.model == self.name:
            return refused
        if problem.of_values or len(problem.data.X) < _FEWEST_WINDOWS:
            return "compared only for classes of 600 windows or more"
        return "compared only within limits" if problem.limits is None else ""

    def specs(self, problem: Problem) -> list[ChannelsSpec]:
        """Return fine convolutions of images, and coarse ones where RAM or time is limited."""
        limits, options, shape = problem.limits, problem.options, problem.shape
        assert shape is not None
        is_open = limits is not None and options.n_channels is None
        of_images = len(shape) == 3
        n = options.n_channels or (_DEFAULT_OF_IMAGES if of_images else _DEFAULT_OF_SPECTRA)
        if is_open:
            n = MOST_CHANNELS if of_images else _MOST_OF_SPECTRA
            n = n if problem.clips is None else _MOST_OF_CLIPS
        bits = options.linear_bits(shape) or 4
        specs = [ChannelsSpec(n, bits, is_separable=True)]
        is_limited = limits is not None and limits.beside_flash
        if of_images and is_open and is_limited and not no_separable(shape, is_coarse=True):
            specs.append(replace(specs[0], is_coarse=True))
        return specs

    def contenders(self, sized: Sequence[ChannelsSpec], problem: Problem) -> Sequence[ChannelsSpec]:
        """Leave out coarse convolutions without more channels, and too few channels of spectra."""
        fine = max((spec.n_channels for spec in sized if not spec.is_coarse), default=0)
        is_asked = problem.options.model == self.name
        if problem.shape is not None and len(problem.shape) == 2 and not is_asked:
            return [spec for spec in sized if spec.n_channels >= _FEWEST_CHANNELS]
        return [spec for spec in sized if not spec.is_coarse or spec.n_channels > fine]


KINDS = (ChainsKind(), SeparableKind())


def _prepare(problem: Problem, validation_fraction: float | None) -> training.PreparedConvolutions:
    """Return images, or the spectra of signals, with a share held out to choose the best epoch.

    They are computed once, also for trainings with other numbers of threads.
    """
    options = replace(problem.options, validation_fraction=validation_fraction)
    return replace(problem.once(_split, validation_fraction), options=options)


def _split(problem: Problem, validation_fraction: float | None) -> training.PreparedConvolutions:
    assert problem.shape is not None
    if problem.clips is not None:
        return PreparedClips.of_clips(problem.data, problem.options, problem.shape, problem.clips)
    kind = training.PreparedImages if len(problem.shape) == 3 else PreparedPlanes
    options = replace(problem.options, validation_fraction=validation_fraction)
    return kind.of(problem.data, options, problem.shape)
