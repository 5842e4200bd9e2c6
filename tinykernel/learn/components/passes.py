"""Compiled kernels of the trainer of components: a mini-batch forward and backward.

In the last part of the training every parameter takes the value that the firmware stores, and the
arithmetic is that of the integer model: with ``u = unit * u'`` and ``G = g * levels``::

    v     = H (levels * u' >> shift)         with the halvings of its schedule, rounded down
    phase = rate * v + start                 in turns; rate = scale * 2^k, scale in 1..255
    z     = +1 where the phase lies in [0, width)

All these numbers are exact in float32. Rounding has straight-through gradients; ``v`` represents
the projection ``y = worth * v``.

Rows are processed in groups of `LANES`, interleaved in memory: the rows of a component are
adjacent, so that every operation is a vector operation. For one group, with u = P H B x / sqrt(d)
(shared by all blocks) the forward pass is::

    y     = H (G_b * u)                      H: unnormalised Walsh-Hadamard, all rows of a block
    r     = y * rate + centre                in turns, reduced to [-1/2, 1/2)
    s     = cos(2 pi r) + level              the argument of the sign, (5) of Lei & Lan 2021
    z     = sign(s)
    f     = scale * (W z) + offset

The backward pass replaces the derivative of the sign by ``g(s) = k / (1 + (k s)^2 / 2)^2``, close
to ``k sech^2(k s)``, the derivative of tanh(k s), without an exponential. H is its own transpose,
so the gradient goes back through the same transform.

The compiler may neither regroup additions nor fuse them with products, so that every processor
gives the same bits; sums over the rows of a group are those of `sums`. Kernels are inlined into
the function that Python calls.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import inlined
from tinykernel.base.elementary import cosines
from tinykernel.base.hadamard import LANES, fwht, fwht_lanes
from tinykernel.learn.inputs import Layout
from tinykernel.learn.sums import (
    WIDTH,
    add,
    add_totals,
    lane_parts,
    lane_products,
    load,
    multiply,
    store,
)
from tinykernel.model.fixed import LARGEST_SCALE, STEPS_PER_TURN, phase_shift_for

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


OUTPUT_MULTIPLE = 4
_TILE = 8
_TWO_PI = np.float32(2.0 * np.pi)

# Minimax polynomials in r^2 on |r| <= 1/2: cos(2 pi r) to 8e-7 and sin(2 pi r) / r to 2e-7.
_C0, _C1, _C2, _C3, _C4, _C5 = (
    np.float32(c)
    for c in (0.99999922, -19.73898251, 64.92872648, -85.27239541, 58.79403139, -21.07677038)
)
_S0, _S1, _S2, _S3, _S4, _S5 = (
    np.float32(c)
    for c in (6.28318282, -41.34142139, 81.59618379, -76.58009972, 41.20539162, -12.27125761)
)
_ONE_component_passes = np.float32(1.0)
_HALF = np.float32(0.5)


@inlined
def _fwht_lanes_halving(x, d, factors):  # type: ignore[no-untyped-def]
    """Transform like `tinykernel.base.hadamard.fwht_halving`; factors[k] is 1/2 if stage k halves.

    x holds integers below 2^15, so that every float32 operation is exact.
    """
    h = 1
    k = 0
    while 4 * h <= d:
        n = h * LANES
        near = factors[k]
        far = factors[k + 1]
        for first in range(0, d * LANES, 4 * n):
            x0 = x[first : first + n]
            x1 = x[first + n : first + 2 * n]
            x2 = x[first + 2 * n : first + 3 * n]
            x3 = x[first + 3 * n : first + 4 * n]
            for i in range(n):
                a = np.floor(near * (x0[i] + x1[i]))
                b = np.floor(near * (x0[i] - x1[i]))
                c = np.floor(near * (x2[i] + x3[i]))
                e = np.floor(near * (x2[i] - x3[i]))
                x0[i] = np.floor(far * (a + c))
                x1[i] = np.floor(far * (b + e))
                x2[i] = np.floor(far * (a - c))
                x3[i] = np.floor(far * (b - e))
        h *= 4
        k += 2
    if h < d:
        n = h * LANES
        for i in range(n):
            a = x[i]
            b = x[i + n]
            x[i] = np.floor(factors[k] * (a + b))
            x[i + n] = np.floor(factors[k] * (a - b))


@inlined
def hash_keep(z, base, seeds, j, threshold, inverse):  # type: ignore[no-untyped-def]
    """Multiply z by the dropout mask of input j, a hash of the row's seed: it can be repeated."""
    mixed = np.uint32(np.uint32(j + 1) * np.uint32(0x9E3779B1))
    for k in range(LANES):
        # Without the casts numba computes in 64 bits.
        h = np.uint32((seeds[k] ^ mixed) * np.uint32(0x85EBCA6B))
        h = np.uint32((h ^ (h >> np.uint32(15))) * np.uint32(0xC2B2AE35))
        h ^= h >> np.uint32(16)
        z[base + k] *= inverse if h >= threshold else np.float32(0.0)


@inlined
def gather_group(mixed, rows, pool, starts, noise, u):  # type: ignore[no-untyped-def]
    """Copy LANES rows side by side and add noise from a pool of normal numbers."""
    d = mixed.shape[1]
    for k in range(LANES):
        row = rows[k]
        first = starts[k]
        if noise > 0.0:
            for j in range(d):
                u[j * LANES + k] = mixed[row, j] + noise * pool[first + j]
        else:
            for j in range(d):
                u[j * LANES + k] = mixed[row, j]


@inlined
def store_group(u, mean, unit):  # type: ignore[no-untyped-def]
    """Turn one group, of which `mean` was subtracted, into the integers of the firmware."""
    inverse = _ONE_component_passes / unit
    for j in range(mean.shape[0]):
        shift = mean[j]
        for k in range(j * LANES, (j + 1) * LANES):
            u[k] = np.rint((u[k] + shift) * inverse)


@inlined
def centre_group(u, mean, unit):  # type: ignore[no-untyped-def]
    """Undo `store_group`, except the rounding."""
    for j in range(mean.shape[0]):
        shift = mean[j]
        for k in range(j * LANES, (j + 1) * LANES):
            u[k] = u[k] * unit - shift


@inlined
def forward_group(u, windows, weights, y, sums):  # type: ignore[no-untyped-def]
    """Fill y with the projections and sums with W z of one group.

    Shapes: u (d * LANES,), of the `Windows` diagonal (m, d), rate, centre, level (m * d,),
    weights (m * d, o), y (m, d * LANES), sums (o, LANES).
    """
    diagonal, rate, centre, level = windows.diagonal, windows.rate, windows.centre, windows.level
    m, d = diagonal.shape
    n_outputs = weights.shape[1]
    tile = np.empty(_TILE * LANES, dtype=np.float32)
    sums[:] = 0.0
    for block in range(m):
        yb = y[block]
        for j in range(d):
            g = diagonal[block, j]
            for k in range(j * LANES, (j + 1) * LANES):
                yb[k] = g * u[k]
        fwht_lanes(yb, d)
        for first in range(0, d, _TILE):
            for i in range(_TILE):
                j = block * d + first + i
                a = rate[j]
                c = centre[j]
                t = level[j]
                offset = (first + i) * LANES
                for k in range(LANES):
                    r = yb[offset + k] * a + c
                    r -= np.floor(r + _HALF)
                    q = r * r
                    s = t + (_C0 + q * (_C1 + q * (_C2 + q * (_C3 + q * (_C4 + q * _C5)))))
                    tile[i * LANES + k] = s
                for k in range(i * LANES, (i + 1) * LANES):
                    tile[k] = _ONE_component_passes if tile[k] > 0 else -_ONE_component_passes
            _add_tile(tile, weights, block * d + first, n_outputs, sums)


@inlined
def forward_group_stored(u, windows, weights, y, sums):  # type: ignore[no-untyped-def]
    """Compute `forward_group` exactly as the integer model does; integers are exact in float32.

    u and, afterwards, y hold integers. Of the `Windows` diagonal holds levels; product is
    1 / 2^shift, factors (log2 d,) as in `_fwht_lanes_halving`, rate (m * d,) turns a unit of y,
    start and width (m * d,) turns.
    """
    levels, product, factors = windows.diagonal, windows.product, windows.factors
    rate, start, width = windows.rate, windows.start, windows.width
    m, d = levels.shape
    n_outputs = weights.shape[1]
    tile = np.empty(_TILE * LANES, dtype=np.float32)
    sums[:] = 0.0
    for block in range(m):
        yb = y[block]
        for j in range(d):
            g = levels[block, j] * product
            for k in range(j * LANES, (j + 1) * LANES):
                yb[k] = np.floor(g * u[k])
        _fwht_lanes_halving(yb, d, factors)
        for first in range(0, d, _TILE):
            for i in range(_TILE):
                j = block * d + first + i
                a = rate[j]
                b = start[j]
                w = width[j]
                offset = (first + i) * LANES
                for k in range(LANES):
                    turns = yb[offset + k] * a
                    turns -= np.floor(turns)
                    turns += b
                    if turns >= _ONE_component_passes:
                        turns -= _ONE_component_passes
                    tile[i * LANES + k] = (
                        _ONE_component_passes if turns < w else -_ONE_component_passes
                    )
            _add_tile(tile, weights, block * d + first, n_outputs, sums)


@inlined
def _add_tile(tile, weights, first, n_outputs, sums):  # type: ignore[no-untyped-def]
    """Add `_TILE` components to the sums of all outputs."""
    for o in range(n_outputs):
        w0 = weights[first, o]
        w1 = weights[first + 1, o]
        w2 = weights[first + 2, o]
        w3 = weights[first + 3, o]
        w4 = weights[first + 4, o]
        w5 = weights[first + 5, o]
        w6 = weights[first + 6, o]
        w7 = weights[first + 7, o]
        for k in range(LANES):
            left = (w0 * tile[k] + w1 * tile[LANES + k]) + (
                w2 * tile[2 * LANES + k] + w3 * tile[3 * LANES + k]
            )
            right = (w4 * tile[4 * LANES + k] + w5 * tile[5 * LANES + k]) + (
                w6 * tile[6 * LANES + k] + w7 * tile[7 * LANES + k]
            )
            sums[o, k] += left + right


@inlined
def backward_group(  # type: ignore[no-untyped-def]
    u, windows, weights, slope, y, dsums, gradients
):
    """Add the gradients of one group; y is overwritten. dsums (o, LANES) = d loss / d (W z)."""
    rate, centre, level = windows.rate, windows.centre, windows.level
    d_diagonal, d_rate, d_centre = gradients.diagonal, gradients.rate, gradients.centre
    d_level, d_weights = gradients.level, gradients.weights
    m, d = windows.diagonal.shape
    n_outputs = dsums.shape[0]
    z = np.empty(_TILE * LANES, dtype=np.float32)
    dz = np.empty(LANES, dtype=np.float32)
    dr = np.empty(LANES, dtype=np.float32)
    # Partial sums of eight rows, which are added up together: of levels, centres and rates.
    parts = np.empty((3, _TILE * WIDTH), dtype=np.float32)
    of_levels, of_centres, of_rates = parts[0], parts[1], parts[2]
    flat_weights, flat_diagonal = d_weights.reshape(-1), d_diagonal.reshape(-1)
    half_square = slope * slope * _HALF
    for block in range(m):
        yb = y[block]
        for row in range(d):
            j = block * d + row
            here = row % _TILE
            offset = row * LANES
            dz[:] = 0.0
            for o in range(0, n_outputs, 4):
                w0 = weights[j, o]
                w1 = weights[j, o + 1]
                w2 = weights[j, o + 2]
                w3 = weights[j, o + 3]
                for k in range(LANES):
                    dz[k] += (w0 * dsums[o, k] + w1 * dsums[o + 1, k]) + (
                        w2 * dsums[o + 2, k] + w3 * dsums[o + 3, k]
                    )
            a = rate[j]
            c = centre[j]
            t = level[j]
            projected = yb[offset : offset + LANES]
            for k in range(LANES):
                r = projected[k] * a + c
                r -= np.floor(r + _HALF)
                q = r * r
                s = t + (_C0 + q * (_C1 + q * (_C2 + q * (_C3 + q * (_C4 + q * _C5)))))
                sine = r * (_S0 + q * (_S1 + q * (_S2 + q * (_S3 + q * (_S4 + q * _S5)))))
                z[here * LANES + k] = _ONE_component_passes if s > 0 else -_ONE_component_passes
                bell = _ONE_component_passes + half_square * s * s
                dz[k] = dz[k] * slope / (bell * bell)
                dr[k] = -_TWO_PI * sine * dz[k]
            store(of_levels, here * WIDTH, lane_parts(dz))
            store(of_centres, here * WIDTH, lane_parts(dr))
            store(of_rates, here * WIDTH, lane_products(dr, projected))
            for k in range(LANES):
                projected[k] = dr[k] * a
            if here == _TILE - 1:
                first = j - here
                add_totals(d_level, first, of_levels, 0)
                add_totals(d_centre, first, of_centres, 0)
                add_totals(d_rate, first, of_rates, 0)
                _add_weights(z, dsums, first * n_outputs, of_levels, flat_weights)
        fwht_lanes(yb, d)
        for j in range(d):
            part = slice(j * LANES, (j + 1) * LANES)
            store(of_levels, j % _TILE * WIDTH, lane_products(yb[part], u[part]))
            if j % _TILE == _TILE - 1:
                add_totals(flat_diagonal, block * d + j - (_TILE - 1), of_levels, 0)


@inlined
def _add_weights(z, dsums, first, parts, d_weights):  # type: ignore[no-untyped-def]
    """Add the gradients of the weights of `_TILE` rows, a multiple of eight in a row."""
    n_outputs, flat, place = dsums.shape[0], dsums.reshape(-1), 0
    for here in range(_TILE):
        k = here * LANES
        z0, z1, z2, z3 = load(z, k), load(z, k + 8), load(z, k + 16), load(z, k + 24)
        for k in range(0, n_outputs * LANES, LANES):
            sums = add(multiply(load(flat, k), z0), multiply(load(flat, k + 8), z1))
            sums = add(sums, multiply(load(flat, k + 16), z2))
            sums = add(sums, multiply(load(flat, k + 24), z3))
            store(parts, place % _TILE * WIDTH, sums)
            place += 1
            if place % _TILE == 0:
                add_totals(d_weights, first + place - _TILE, parts, 0)
