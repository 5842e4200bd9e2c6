"""Values between two layers in floats, the integers that stand for them, and rounded weights."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinykernel.conversion.networks.windows import Affine

_SWEEPS = 4


@dataclass(frozen=True)
class Signal:
    """Values between two layers on the known rows, and the integers that stand for them."""

    x: NDArray[np.float64]
    levels: NDArray[np.uint8]  # x is about low + step * level
    step: NDArray[np.float64]
    low: NDArray[np.float64]

    def images(self, shape: tuple[int, int, int]) -> "Signal":
        """Return rows of images, whose values of a channel have one step, as images."""
        x, levels = self.x.reshape(-1, *shape), self.levels.reshape(-1, *shape)
        return Signal(x, levels, self.step[: shape[2]], self.low[: shape[2]])

    def flat(self) -> "Signal":
        """Return images as rows."""
        n, times = len(self.x), self.x[0, ..., 0].size
        step, low = np.tile(self.step, times), np.tile(self.low, times)
        return Signal(self.x.reshape(n, -1), self.levels.reshape(n, -1), step, low)

    def of_levels(self, layer: Affine) -> Affine:
        """Return a layer of x as one of the levels."""
        return Affine(layer.weights * self.step, layer.of(self.low[np.newaxis])[0])


def rounded(
    weights: NDArray[np.float64], gram: NDArray[np.float64], most: int
) -> NDArray[np.float64]:
    """Round rows w of weights to whole q within -most..most, so that little of the sums changes.

    From the nearest numbers on, one weight after the other becomes the whole number of the least
    ``(w - q) gram (w - q)``, four times: coordinate descent. So it is never more than of the
    nearest numbers. With a gram matrix of inputs that is the squared error of sums of these, which
    Frantar et al. (GPTQ, arXiv 2210.17323, equation 1) minimize.

    >>> rounded(np.array([[0.4, 0.4]]), np.ones((2, 2)), 7).tolist()
    [[1.0, 0.0]]
    """
    whole = np.clip(np.rint(weights), -most, most)
    for _ in range(_SWEEPS):
        for i in np.flatnonzero(np.diag(gram) > 0):
            pull = (weights - whole) @ gram[:, i] / gram[i, i]
            whole[:, i] = np.clip(whole[:, i] + np.rint(pull), -most, most)
    return np.asarray(whole)
