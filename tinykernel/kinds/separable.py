"""Separable convolutions, of images and of spectra of signals."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from tinykernel.kinds.convolutions import ChannelsSpec, ConvolutionsKind
from tinykernel.kinds.problem import Problem
from tinykernel.learn.convolutions.options import SEPARABLE
from tinykernel.learn.convolutions.separable import no_separable
from tinykernel.learn.signals.planes import spectrum_of_planes
from tinykernel.run.capacity import MOST_CHANNELS

_DEFAULT_OF_IMAGES, _DEFAULT_OF_SPECTRA = 32, 64
# On spectra, few windows or channels teach or tell too little; more channels train slowly.
_FEWEST_WINDOWS, _FEWEST_CHANNELS, _MOST_OF_SPECTRA = 600, 16, 128


class SeparableKind(ConvolutionsKind):
    """Separable convolutions."""

    about = SEPARABLE
    cost: ClassVar[int] = 2

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


KIND = SeparableKind()
