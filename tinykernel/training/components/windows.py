"""Windows of the trainer's forward pass: floats at first, then the integers of the firmware.

In the last part of the training every parameter takes the value that the firmware stores, and the
arithmetic is that of the integer model: with ``u = unit * u'`` and ``G = g * levels``::

    v     = H (levels * u' >> shift)         with the halvings of its schedule, rounded down
    phase = rate * v + start                 in turns; rate = scale * 2^k, scale in 1..255
    z     = +1 where the phase lies in [0, width)

All these numbers are exact in float32. Rounding has straight-through gradients; ``v`` represents
the projection ``y = worth * v``.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.elementary import cosines
from tinykernel.hadamard import fwht
from tinykernel.model.quantization.phases import LARGEST_SCALE, STEPS_PER_TURN, phase_shift_for
from tinykernel.training.layouts import Layout

_Floats = NDArray[np.float32]


_NONE, _ONE = np.zeros(0, dtype=np.float32), np.ones((1, 1))


@dataclass(frozen=True)
class Arithmetic:
    """How the firmware computes a projection."""

    unit: float  # one step of the integers ``P H B q`` in the trainer's inputs.
    halve: tuple[bool, ...]  # schedule of the second transform.


class PhaseWindows(NamedTuple):
    """Arguments of the compiled forward pass, and the unit of its projections."""

    # G (m, d), and for each of the m d rows rate, centre and level, as they are learned; with an
    # `Arithmetic` the levels of G and turns a unit of v.
    diagonal: _Floats
    rate: _Floats
    centre: _Floats
    level: _Floats
    mean: _Floats  # (d,): was subtracted from the inputs.
    # As in `component_passes.forward_group_stored`; `factors` is empty without an `Arithmetic`.
    product: np.float32 = np.float32(1)
    factors: _Floats = _NONE
    start: _Floats = _NONE
    width: _Floats = _NONE
    unit: np.float32 = np.float32(1)
    worth: NDArray[np.float64] = _ONE  # (m, 1): one unit of v in the trainer's projections.
    shift: _Floats = _NONE  # (m * d,): projections of the mean of the inputs.

    @property
    def are_stored(self) -> bool:
        """Whether these are the integers of the firmware."""
        return self.factors.size > 0


def rounded_windows(learned: PhaseWindows, layout: Layout) -> PhaseWindows:
    """Return windows in floats, whose numbers take values that can be stored.

    The transforms stay exact: short trainings of the search end so, without a proof.
    """
    levels, worth = diagonal_levels(learned.diagonal, layout)
    diagonal = (levels * worth).astype(np.float32)
    rate = learned.rate
    if layout.scale_per_row:
        unit = rate.max() / np.float32(LARGEST_SCALE)
        rate = (np.clip(np.rint(rate / unit), 1, LARGEST_SCALE) * unit).astype(np.float32)
    if not layout.start_bits:
        return learned._replace(diagonal=diagonal, rate=rate)
    shift = rate * fwht(diagonal * learned.mean).ravel()
    start, width = _round_windows(learned, shift, layout)
    centre = start - width / 2 + shift
    centre -= np.rint(centre)
    moved = centre.astype(np.float32), _of_rows(-cosines(np.pi * width), rate)
    return PhaseWindows(diagonal, rate, *moved, learned.mean)


def stored_windows(learned: PhaseWindows, layout: Layout, arithmetic: Arithmetic) -> PhaseWindows:
    """Return the windows of the forward pass in the integers of the firmware."""
    m, d = learned.diagonal.shape
    levels, level_worth = diagonal_levels(learned.diagonal, layout)
    product = 2.0**-layout.product_shift
    worth = level_worth * arithmetic.unit / product * 2.0 ** sum(arithmetic.halve)
    slope = learned.rate.reshape(m, d) * worth
    exponent = phase_shift_for(float(slope.max())) - 32
    rate = np.clip(np.rint(slope * 2.0**-exponent), 1, LARGEST_SCALE) * 2.0**exponent
    moved = fwht(levels * level_worth * learned.mean)
    start, width = _round_windows(learned, (rate / worth * moved).ravel(), layout)
    return PhaseWindows(
        diagonal=levels.astype(np.float32),
        rate=rate.astype(np.float32).ravel(),
        centre=(start - width / 2).astype(np.float32),
        level=_of_rows(-cosines(np.pi * width), learned.rate),
        mean=learned.mean,
        product=np.float32(product),
        factors=np.where(arithmetic.halve, 0.5, 1.0).astype(np.float32),
        start=np.mod(start, 1).astype(np.float32),
        width=_of_rows(width, learned.rate),
        unit=np.float32(arithmetic.unit),
        worth=worth,
        shift=moved.astype(np.float32).ravel(),
    )


def diagonal_levels(
    diagonal: _Floats, layout: Layout
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return G (m, d) as integers, and the value of one in each block (m, 1).

    With few levels the unit suits the bulk: the outermost level starts at three deviations.
    """
    exact, top = diagonal.astype(np.float64), layout.largest
    if top == 1:
        return np.where(exact < 0, -1.0, 1.0), np.abs(exact).mean(axis=1, keepdims=True)
    if layout.diagonal_kind == "int8":
        worth = np.abs(exact).max(axis=1, keepdims=True) / top
    else:
        worth = 3.0 * np.sqrt(np.square(exact).mean(axis=1, keepdims=True)) / (top + 0.5)
    return np.clip(np.rint(exact / worth), -top, top), worth


def _of_rows(value: NDArray[np.float64], rows: _Floats) -> _Floats:
    """Return a value of each row, or the one of all rows, in float32."""
    return np.full(rows.shape, value, dtype=np.float32)


def _round_windows(
    learned: PhaseWindows, shift: NDArray[Any], layout: Layout
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return start and width in turns, whole steps, for inputs with their mean.

    Widths that are not learned are one for all rows.
    """
    level = learned.level if layout.width_bits else learned.level[:1]
    half = np.arccos(np.clip(-level.astype(np.float64), -1, 1)) / (2 * np.pi)
    steps = _steps(layout.width_bits)
    width = np.clip(np.rint(2 * steps * half), 1, steps - 1) / steps
    steps = _steps(layout.start_bits)
    start = np.rint(steps * (learned.centre - shift + half)) / steps
    return start, width


def _steps(bits: int) -> int:
    """Return the steps of a turn; what is not stored for each row is one number in full."""
    return 1 << bits if bits else STEPS_PER_TURN
