"""Chains of convolutions, of images of one channel."""

import numpy as np

from tinykernel.kinds.convolutions import ChannelsSpec, ConvolutionsKind
from tinykernel.kinds.problem import Problem
from tinykernel.learn.convolutions.chains import no_chains, responses_of
from tinykernel.learn.convolutions.options import CHAINS
from tinykernel.run.capacity import MOST_CHANNELS

_DEFAULT = 32
# Instructions on Cortex-M4: most of them a byte of the budget, and those of a response of
# a channel. Or a small model of large images would take long: 700,000 instructions at 8 KB.
_A_BYTE, _A_RESPONSE = 84.0, 30.0


class ChainsKind(ConvolutionsKind):
    """Chains of convolutions."""

    about = CHAINS

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
            n = int(np.clip(most, ChannelsSpec.FEWEST, MOST_CHANNELS))
        return [ChannelsSpec(n, options.linear_bits(shape) or 4)]


KIND = ChainsKind()
