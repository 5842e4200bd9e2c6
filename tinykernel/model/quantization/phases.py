"""Components in the numbers of the firmware: their phase windows in 8 bits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.permutation import Permutation
from tinykernel.model.stages.components import Components

STEPS_PER_TURN = 256  # start and width are 8-bit fractions of a turn
LARGEST_SCALE = 255


@dataclass(frozen=True)
class QuantizedWindows:
    """Phase windows of all rows, shape (n_blocks, d)."""

    scale: NDArray[np.int64]
    start: NDArray[np.int64]
    width: NDArray[np.int64]
    phase_shift: int
    # +1 or -1 where the component is always or never on, 0 where it varies
    constant: NDArray[np.int64]


def quantize_windows(
    start: NDArray[np.float64], width: NDArray[np.float64], slope: NDArray[np.float64]
) -> QuantizedWindows:
    """Round scale, start and width of every row, in turns, to 8 bits."""
    # The phase is ``slope * v + start``. The two phases at which a component turns on and off are
    # rounded.
    if np.abs(slope).max() > 0.5:
        slope = slope - np.rint(slope)  # v is an integer: whole turns a unit change nothing
    # A falling phase enters the window from the other side.
    start = np.where(slope < 0, width - start, start)
    slope = np.abs(slope)
    phase_shift = phase_shift_for(float(slope.max()))
    scale = np.rint(slope * 2.0 ** (32 - phase_shift)).astype(np.int64)
    phase = np.mod(start, 1)
    rising = np.rint(-phase * STEPS_PER_TURN).astype(np.int64)
    falling = np.rint((width - phase) * STEPS_PER_TURN).astype(np.int64)
    rounded = np.clip(falling - rising, 0, STEPS_PER_TURN)
    constant = np.where(rounded == 0, -1, np.where(rounded == STEPS_PER_TURN, 1, 0))
    still = (scale == 0) & (constant == 0)
    constant[still] = np.where(phase < width, 1, -1)[still]
    return QuantizedWindows(scale, -rising % STEPS_PER_TURN, rounded, phase_shift, constant)


def phase_shift_for(largest: float) -> int:
    """Return the smallest shift with which the largest slope, in turns, is an 8-bit scale."""
    phase_shift = 0
    while np.rint(largest * 2.0 ** (32 - phase_shift)) > LARGEST_SCALE:
        phase_shift += 1
    return phase_shift


@dataclass(frozen=True, eq=False)
class Stored:
    """Whole numbers of all rows of all blocks, of which a model keeps those that matter."""

    sign: NDArray[np.int8]
    permutation: Permutation
    diagonal: NDArray[np.int8]  # (n_blocks, d)
    kind: str
    halve: tuple[tuple[bool, ...], tuple[bool, ...]]  # of both transforms.
    windows: QuantizedWindows

    def components(
        self, weights: NDArray[np.int8], small_code: bool = False
    ) -> tuple[Components, NDArray[np.int8], NDArray[np.int64]]:
        """Return what some output weighs and what varies, its weights, and the sum of the rest."""
        # `weights` have the shape (n_outputs, n_blocks, d), those returned (n_outputs, p).
        windows = self.windows
        used = np.any(weights != 0, axis=0) & (windows.constant == 0)
        if not used.any():
            # The firmware has at least one component; this one has no weight.
            used[0, 0] = True
        remaining = used.any(axis=1)
        components = Components(
            sign=self.sign,
            permutation=self.permutation,
            diagonal=self.diagonal[remaining],
            diagonal_kind=self.kind,
            halve_first=self.halve[0],
            halve_second=self.halve[1],
            row_kept=used[remaining],
            scale=np.maximum(windows.scale, 1)[used],
            start=windows.start[used],
            width=np.clip(windows.width, 1, STEPS_PER_TURN - 1)[used],
            phase_shift=windows.phase_shift,
            small_code=small_code,
        )
        constant = np.sum(weights.astype(np.int64) * windows.constant, axis=(1, 2))
        return components, weights[:, used], constant
