"""Phase windows in 8-bit numbers: last part of the quantization of the components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEPS_PER_TURN = 256  # start and width are 8-bit fractions of a turn
LARGEST_SCALE = 255


@dataclass(frozen=True)
class QuantizedWindows:
    """Phase windows of all rows, shape (n_blocks, d)."""

    scale: NDArray[np.int64]
    start: NDArray[np.int64]
    width: NDArray[np.int64]
    falls: NDArray[np.bool_]  # where the phase falls as v grows, so that the window is mirrored
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
    falls = slope < 0
    start = np.where(falls, width - start, start)
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
    return QuantizedWindows(scale, -rising % STEPS_PER_TURN, rounded, falls, phase_shift, constant)


def phase_shift_for(largest: float) -> int:
    """Return the smallest shift with which the largest slope, in turns, is an 8-bit scale."""
    phase_shift = 0
    while np.rint(largest * 2.0 ** (32 - phase_shift)) > LARGEST_SCALE:
        phase_shift += 1
    return phase_shift
