"""Kernels for signals, chosen from a pool after MiniRocket, and the stages that count.

The pool has MiniRocket's kernels (Dempster, Schmidt, Webb, KDD 2021: of nine taps three are 2 and
six are -1) and kernels that respond to the signal level, unlike those: the mean of nine samples,
and the newest sample alone. A kernel has one input: a channel, or the mean of two with equal or
opposite signs. There are few inputs, as the firmware has a ring buffer for each. Thresholds are
quantiles of the responses of training windows. Ridge regression on the counts of the whole pool
ranks the kernels (`normal_equations`). With few windows there is one ridge regression, judged on
held-out rows (`closed_form`), and kernels span up to an eighth of the window, as in MiniRocket.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import inlined, njit
from tinykernel.base.hadamard import run_on_rows
from tinykernel.learn.linear.normal_equations import RoundedWeights as Stored
from tinykernel.learn.linear.normal_equations import input_power
from tinykernel.learn.linear.ridge import Fit, fit_standardised
from tinykernel.learn.linear.training import LinearRecipe, TrainingRows
from tinykernel.pieces.beside.spec import Beside, as_counts
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.kernels.spec import Kernels
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.scale.spec import Scale

_ONE = 1 << 16
_BYTE = 255
_LEAST_TOP = 15


@dataclass(frozen=True, eq=False)
class CountingStages:
    """Levels and kernels on their input; TinykernelError if they do not fit or could overflow."""

    grid: Grid
    levels: Levels
    kernels: Kernels

    def __post_init__(self) -> None:
        """Prove before training that the firmware can compute the counts."""
        self.kernels.gives(self.placed)
        self.kernels.ranges(self.placed)

    @cached_property
    def placed(self) -> Grid:
        """The grid of levels, input of the kernels."""
        return self.levels.gives(self.grid)

    @property
    def largest_count(self) -> int:
        """Upper bound of the counts."""
        return self.kernels.largest_count(self.placed)

    def then_scaled(self, largest: int, beside: Beside | None = None) -> tuple[Stage, ...]:
        """Return the stages and the scaler of their counts, as in `scaled_counts`."""
        counts = self.kernels.gives(self.placed)
        if beside is None:
            return self.levels, self.kernels, count_scaler(counts.dtype, largest)
        beside = replace(beside, top=top_of(largest))
        return self.levels, self.kernels, beside, count_scaler(beside.gives(counts).dtype, largest)


def count_multiplier(largest: int) -> int:
    """Return the factor of counts up to `largest`, in units of 2**-16."""
    return _ONE if largest <= _BYTE else _ONE * _BYTE // largest


def scaled_counts(counts: NDArray[Any], largest: int) -> NDArray[np.int16]:
    """Return counts scaled to bytes; the machine sees them less 128."""
    return ((counts * count_multiplier(largest)) >> 16).astype(np.int16)


def top_of(largest: int) -> int:
    """Return the largest value of numbers beside counts, close to these: weights have few bits."""
    return max(largest, _LEAST_TOP)


def count_scaler(dtype: str, largest: int) -> Scale:
    """Return the scaler of `scaled_counts` in the firmware, less 128."""
    offset = np.zeros(1, dtype=np.int32)
    factor = np.array([count_multiplier(largest)], dtype=np.uint32)
    return Scale(dtype, 8, offset, factor, np.array([max(largest, _BYTE)], dtype=np.uint32))


_TAPS = 9
_TRIPLES = np.array(list(combinations(range(_TAPS), 3)))
_GOLDEN = 0.6180339887
_QUANTILE_WINDOWS, _ROWS_AT_ONCE = 64, 1024
# Half an octave apart; the firmware stores a dilation in a byte.
_DILATIONS = (1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128, 181, 255)
# The ring of a stream holds the rows of the longest kernel, 2 bytes per mixed channel.
_RING_BYTES = 4096

_Floats = NDArray[np.float32]


def reach(rows: int, n_mixes: int) -> tuple[int, ...]:
    """Return dilations up to an eighth of the window, as far as the ring of a stream has room.

    >>> reach(128, 1), reach(64, 16)
    ((1, 2, 3, 4, 6, 8, 11), (1, 2, 3, 4, 6))
    """
    rows = min(rows, _RING_BYTES // (2 * n_mixes))
    return tuple(d for d in _DILATIONS if 8 * d < rows)


@dataclass(frozen=True)
class SignalPlan:
    """The shape of a local stage for signals, and how it is chosen."""

    n_kernels: int = 256  # number of chosen kernels.
    n_pool: int = 1344  # number of kernels to choose from.
    n_mixes: int = 16  # most mixed channels.
    level_share: float = 0.35  # share of kernels in the pool that respond to the level.
    level_bits: int = 10
    average: int = 2  # {1, 2}
    dilations: tuple[int, ...] = (1, 2, 4)
    # Parts of a window, each with counts of its own: more than 1 where the order matters.
    cells: int = 1
    beside: int = 0  # numbers beside a window, as levels.
    linear: LinearRecipe = field(default_factory=LinearRecipe)


def _draw_mixes(n_channels: int, most: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw single channels, then means of two: with equal or with opposite signs."""
    rows = list(np.eye(n_channels, dtype=np.int8)[: max(most, 1)])
    pairs = [(a, b, sign) for a, b in combinations(range(n_channels), 2) for sign in (1, -1)]
    for i in rng.permutation(len(pairs))[: max(most - len(rows), 0)]:
        a, b, sign = pairs[i]
        row = np.zeros(n_channels, dtype=np.int8)
        row[[a, b]] = 1, sign
        rows.append(row)
    return np.array(rows, dtype=np.int8)


def _draw_taps(n: int, level_share: float, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw kernels: MiniRocket's in turn, and some of the level."""
    taps = np.full((n, _TAPS), -1, dtype=np.int8)
    np.put_along_axis(taps, _TRIPLES[np.arange(n) % len(_TRIPLES)], 2, axis=1)
    level = rng.permutation(n)[: int(n * level_share)]
    newest = rng.random(level.size) < 0.5
    taps[level[~newest]] = 1
    taps[level[newest]] = 0
    taps[level[newest], -1] = 1
    return taps.reshape(n, _TAPS, 1)


def _draw_pool(
    plan: SignalPlan, shape: tuple[int, int], scaler: Scale, rng: np.random.Generator
) -> CountingStages:
    """Draw a pool of kernels; thresholds are 0."""
    samples, channels = shape
    mix = _draw_mixes(channels, plan.n_mixes, rng)
    fitting = [d for d in plan.dilations if samples // plan.average >= 8 * d + plan.cells]
    turn = min(len(_TRIPLES), max(plan.n_pool // len(fitting), 1))
    dilation = np.array(fitting)[np.arange(plan.n_pool) // turn % len(fitting)]
    levels = Levels(scaler, scaler.bits - plan.level_bits, plan.average, mix)
    kernels = Kernels(
        taps=_draw_taps(plan.n_pool, plan.level_share, rng),
        dilation=dilation.astype(np.uint8),
        channel=rng.integers(0, len(mix), plan.n_pool).astype(np.uint8),
        threshold=np.zeros(plan.n_pool, dtype=np.int32),
        cells=(plan.cells, 1),
    )
    return CountingStages(Grid.raw(scaler.raw_dtype, samples, 1, channels), levels, kernels)


class SignalPool:
    """A pool of kernels on training windows, and the linear part that chooses among them.

    Inputs are raw, (n, samples * channels), then levels 0..255 of the numbers beside them; `shape`
    says how many of both; the scaler is that of the channels.
    """

    def __init__(
        self, rows: TrainingRows, shape: tuple[int, int], scaler: Scale, plan: SignalPlan
    ) -> None:
        self.plan = plan
        rng = np.random.default_rng([plan.linear.seed, 6])
        self.stages = _draw_pool(plan, shape, scaler, rng)
        self._place_thresholds(rows.inputs, rng)
        self.inputs = self.counts(rows.inputs)
        self.targets, self.weight = rows.targets, rows.weight

    def ridge(
        self,
        numbers: NDArray[np.int64],
        group: NDArray[Any] | None,
        targets: NDArray[np.float64] | None = None,
    ) -> tuple[Fit, NDArray[np.float64]]:
        """Return ridge regression on the counts of some kernels, and the deviations of these.

        By default its targets are -1 and 1 of the classes.
        """
        wanted = 2.0 * self.targets - 1.0 if targets is None else targets
        inputs = self.inputs[:, self.columns(numbers)]
        return fit_standardised(inputs, wanted, self.weight, group, self.plan.beside)

    def _place_thresholds(self, rows: NDArray[Any], rng: np.random.Generator) -> None:
        """Put thresholds at quantiles of the responses of some windows."""
        chosen = np.sort(rng.permutation(len(rows))[:_QUANTILE_WINDOWS])
        kernels, placed = self.stages.kernels, self.stages.placed
        levels = _by_channel(self.stages, rows[chosen])
        share = (np.arange(1, self.plan.n_pool + 1) * _GOLDEN) % 1
        threshold = np.zeros(self.plan.n_pool, dtype=np.int32)
        kinds, d = _kinds(kernels), kernels.dilation.astype(np.int64)
        for k in range(self.plan.n_pool):
            r = np.zeros((len(chosen), placed.rows - 8 * d[k]), dtype=np.int32)
            window_responses(levels, int(kernels.channel[k]), kinds[k], d[k], r)
            # `np.quantile` with the method "lower", whose checks took longer.
            place = int(np.floor((r.size - 1) * share[k]))
            threshold[k] = np.partition(r.ravel(), place)[place]
        self.stages = replace(self.stages, kernels=replace(kernels, threshold=threshold))

    def counts(self, rows: NDArray[Any], stages: CountingStages | None = None) -> NDArray[np.int16]:
        """Compute what the linear part sees, plus 128, of rows; by some of the kernels."""
        stages = self.stages if stages is None else stages
        kernels, largest = stages.kernels, self.stages.largest_count
        out = np.empty((len(rows), kernels.n_counts + self.plan.beside), dtype=np.int32)
        out[:, kernels.n_counts :] = as_counts(rows[:, stages.grid.size :], top_of(largest))
        dilation, channel = kernels.dilation.astype(np.int64), kernels.channel.astype(np.int64)
        arguments = _kinds(kernels), dilation, channel, kernels.threshold, kernels.cells[0]
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            levels = _by_channel(stages, rows[first : first + _ROWS_AT_ONCE])
            n, counts = len(levels), out[first : first + _ROWS_AT_ONCE]
            run_on_rows(count_windows, n, self.plan.linear.n_threads, levels, *arguments, counts)
        return scaled_counts(out, largest)

    def columns(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the counts of some kernels stand among all, and the numbers beside."""
        cells = self.stages.kernels.cells[0]
        places = (numbers[:, np.newaxis] * cells + np.arange(cells)).ravel()
        return np.append(places, self.plan.n_pool * cells + np.arange(self.plan.beside))

    def ranked(self) -> NDArray[np.int64]:
        """Return the kernels that ridge regression weighs most."""
        beside = self.plan.beside
        power = input_power(self.inputs, 2 * self.targets - 1, self.weight, beside)
        by_kernel = power[: power.size - beside].reshape(self.plan.n_pool, -1).sum(axis=1)
        return np.sort(np.argsort(-by_kernel, kind="stable")[: self.plan.n_kernels])

    def drawn(self) -> NDArray[np.int64]:
        """Return kernels without looking at labels."""
        rng = np.random.default_rng([self.plan.linear.seed, 8])
        return np.sort(rng.permutation(self.plan.n_pool)[: self.plan.n_kernels])

    def untrained(self, n_inputs: int) -> Stored:
        """Return random weights of as many bits as learned ones."""
        most = 2 ** (self.plan.linear.bits - 1) - 1
        rng, n_outputs = np.random.default_rng(0), self.targets.shape[1]
        weights = rng.integers(-most, most + 1, (n_outputs, n_inputs), dtype=np.int8)
        return weights, 1 / (256.0 * most * n_inputs), np.zeros(n_outputs)

    def reduced(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], CountingStages]:
        """Return some kernels in the order in which the firmware shares work, and their stages."""
        levels, kernels = self.stages.levels, self.stages.kernels
        kinds = _kinds(kernels)[numbers, 0]
        keys = numbers, kinds < 0, kernels.channel[numbers], kernels.dilation[numbers]
        order = numbers[np.lexsort(keys)]
        used, channel = np.unique(kernels.channel[order], return_inverse=True)
        of_each = ("taps", "dilation", "threshold")
        parts: dict[str, Any] = {name: getattr(kernels, name)[order] for name in of_each}
        kernels = replace(kernels, channel=channel.astype(np.uint8), **parts)
        levels = replace(levels, mix=levels.mix[used])
        return order, CountingStages(self.stages.grid, levels, kernels)


def _by_channel(stages: CountingStages, rows: NDArray[Any]) -> NDArray[np.int32]:
    """Return the levels of the windows of rows, shape (n, n_mixed, rows)."""
    placed = stages.placed
    windows = rows[:, : stages.grid.size]
    levels = stages.levels.run(windows, stages.grid).reshape(-1, placed.rows, placed.channels)
    return np.ascontiguousarray(levels.transpose(0, 2, 1), dtype=np.int32)


def _kinds(kernels: Kernels) -> NDArray[np.int64]:
    """Return where the three 2 of each kernel are; -1 for nine 1, -2 for the newest sample."""
    taps = kernels.taps.reshape(kernels.n_kernels, _TAPS)
    out = np.full((kernels.n_kernels, 3), -1, dtype=np.int64)
    out[taps[:, 0] == 0] = -2
    rocket = (taps == 2).any(axis=1)
    out[rocket] = np.argsort(taps[rocket] != 2, axis=1, kind="stable")[:, :3]
    return out


@inlined
def respond(x, kind, d, r):  # type: ignore[no-untyped-def]
    """Fill r (positions,) with the responses of one kernel to x (rows,), both contiguous."""
    n_positions = r.shape[0]
    if kind[0] == -2:
        a = x[8 * d :]
        for t in range(n_positions):
            r[t] = a[t]
        return
    # Three taps at a time: loops over more arrays are not vectorised.
    for first in range(0, _TAPS, 3):
        a, b, c = x[first * d :], x[(first + 1) * d :], x[(first + 2) * d :]
        for t in range(n_positions):
            r[t] = (r[t] if first else 0) + a[t] + b[t] + c[t]
    if kind[0] >= 0:
        a, b, c = x[kind[0] * d :], x[kind[1] * d :], x[kind[2] * d :]
        for t in range(n_positions):
            r[t] = 3 * (a[t] + b[t] + c[t]) - r[t]


@njit(nogil=True)
def window_responses(levels, channel, kind, d, out):  # type: ignore[no-untyped-def]
    """Fill out (n, positions) with the responses of one kernel; levels (n, n_mixed, rows)."""
    for n in range(levels.shape[0]):
        respond(levels[n, channel], kind, d, out[n])


@njit(nogil=True)
def count_windows(  # type: ignore[no-untyped-def]
    begin, end, levels, kinds, dilations, channels, thresholds, cells, out
):
    """Fill out[begin:end], shape (n, kernels * cells); levels (n, n_mixed, rows) int32."""
    rows = levels.shape[2]
    responses = np.empty(rows, dtype=np.int32)
    for n in range(begin, end):
        for k in range(dilations.shape[0]):
            n_positions = rows - 8 * dilations[k]
            r = responses[:n_positions]
            respond(levels[n, channels[k]], kinds[k], dilations[k], r)
            for cell in range(cells):
                count, first = np.int32(0), -(-cell * n_positions // cells)
                for t in range(first, -(-(cell + 1) * n_positions // cells)):
                    count += np.int32(r[t] > thresholds[k])
                out[n, k * cells + cell] = count
