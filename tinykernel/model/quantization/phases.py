"""Phase windows in 8-bit numbers: last part of the quantization of the components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEPS_PER_TURN = 256  # start and width are 8-bit fractions of a turn
LARGEST_SCALE = 255
LARGEST_SHIFT = 31
_SAME_TURN = 1e-9


@dataclass(frozen=True)
class QuantizedWindows:
    """Phase windows of all rows, shape (n_blocks, d).

    `falls` says where the phase falls as v grows, so that the window is mirrored; `constant` is +1
    or -1 where the component is always or never on, 0 where it varies; `shift` is by how many turns
    the starts were moved before they were rounded.
    """

    scale: NDArray[np.int64]
    start: NDArray[np.int64]
    width: NDArray[np.int64]
    falls: NDArray[np.bool_]
    phase_shift: int
    constant: NDArray[np.int64]
    shift: NDArray[np.float64]


def quantize_windows(
    *,
    start: NDArray[np.float64],
    width: NDArray[np.float64],
    slope: NDArray[np.float64],
    centre: NDArray[np.float64],
    error: NDArray[np.float64],
    weighed: NDArray[np.bool_],
) -> QuantizedWindows:
    """Round scale, start and width of every row to 8 bits.

    The phase is ``slope * v + start + centre - error``. Starts take up the last two, unless they
    alternate along the rows by design and `centre` is small: then they stay as they are, and the
    mean rounding errors, which matter in a few rows of a block only, are left alone.

    Everything has shape (n_blocks, d) and is in turns: `slope` per unit of v, `centre` the phase of
    quantized inputs 0, `error` what rounding adds to phases in the mean. `weighed` marks the rows
    that matter.
    """
    if np.abs(slope).max() > 0.5:
        slope = slope - np.rint(slope)  # v is an integer: whole turns a unit change nothing
    # A falling phase enters the window from the other side.
    falls = slope < 0
    scale, phase_shift = _quantize_slopes(np.abs(slope))
    one_width = weighed.any() and bool(np.ptp(width[weighed]) <= _SAME_TURN)
    shift = centre - error
    if one_width:
        width = np.full(width.shape, width[weighed][0])
        two = _two_starts(start, weighed)
        small = np.mean(np.square(centre[weighed])) <= STEPS_PER_TURN**-2.0
        if two is not None and small and not falls[weighed].any():
            start, shift = two, np.zeros(start.shape)
    start = start + shift
    start = np.where(falls, width - start, start)
    inside = np.mod(start, 1) < width
    if one_width:
        rising, rounded = _round_starts(start, width)
    else:
        rising, rounded = _round_edges(start, width)
    constant = np.where(rounded == 0, -1, np.where(rounded == STEPS_PER_TURN, 1, 0))
    still = (scale == 0) & (constant == 0)
    constant[still] = np.where(inside, 1, -1)[still]
    return QuantizedWindows(
        scale, -rising % STEPS_PER_TURN, rounded, falls, phase_shift, constant, shift
    )


def _two_starts(
    start: NDArray[np.float64], weighed: NDArray[np.bool_]
) -> NDArray[np.float64] | None:
    """Return starts that depend on the parity of the row only, if these do."""
    even_odd = start.copy()
    for parity in (0, 1):
        rows = start[:, parity::2][weighed[:, parity::2]]
        if rows.size:
            away = np.mod(rows - rows[0] + 0.5, 1) - 0.5
            if float(np.abs(away).max()) > _SAME_TURN:
                return None
            even_odd[:, parity::2] = rows[0]
    return even_odd


def _round_edges(
    start: NDArray[np.float64], width: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Round the two phases at which a component goes on and off, which are what matters."""
    rising = np.rint(-np.mod(start, 1) * STEPS_PER_TURN).astype(np.int64)
    falling = np.rint((width - np.mod(start, 1)) * STEPS_PER_TURN).astype(np.int64)
    return rising, np.clip(falling - rising, 0, STEPS_PER_TURN)


def _round_starts(
    start: NDArray[np.float64], width: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Round the width, then the start so that the middle of the window stays where it is."""
    rounded = np.clip(np.rint(width * STEPS_PER_TURN), 0, STEPS_PER_TURN)
    middle = width / 2 - start
    rising = np.rint(np.mod(middle - rounded / (2 * STEPS_PER_TURN), 1) * STEPS_PER_TURN)
    return rising.astype(np.int64), rounded.astype(np.int64)


def _quantize_slopes(slope: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    """Return 8-bit scales and their common shift: ``scale * 2**(shift - 32)`` turns per unit."""
    phase_shift = phase_shift_for(float(slope.max()))
    return np.rint(slope * 2.0 ** (32 - phase_shift)).astype(np.int64), phase_shift


def phase_shift_for(largest: float) -> int:
    """Return the smallest shift with which the largest slope, in turns, is an 8-bit scale."""
    phase_shift = 0
    while np.rint(largest * 2.0 ** (32 - phase_shift)) > LARGEST_SCALE:
        phase_shift += 1
    return phase_shift
