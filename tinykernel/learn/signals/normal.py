"""Windows of normal recordings: bands, filters, and simulated anomalies to choose by."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.elementary import cosines, exps, sines
from tinykernel.learn.signals.pool import CountingStages
from tinykernel.learn.signals.spectrum import spectrum_within
from tinykernel.learn.signals.training import signal_scaler
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.kernels.spec import Kernels
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.scale.spec import Scale

#: Lengths of segments that compete.
SEGMENTS = (64, 128, 256)
_BANDS, _MOST_MIXES = 16, 64
_THRESHOLDS = 8  # a band
_USUAL = (0.02, 0.98)  # quantiles of usual levels
_LEAST_SPAN = 40  # in sums of nine levels
_TAPS = 9
# Filters pass the newest sample, sums of nine, or, with taps of 2 at these places among -1, other
# frequencies. Their thresholds are in spans from the middle of what is usual to what is loud.
_PLACES = ((0, 3, 6), (1, 3, 5), (0, 4, 8), (3, 4, 5))
_DILATIONS, _MOST_COUNTS = (1, 2, 4, 8), 256
_OF_SAMPLES, _OF_SUMS, _OF_SLOW = (-1, -0.3, 0.3, 1), (-2, -1, 1, 2), (0.1, 0.4, 1.2, 2.5)
_OF_FAST = (-0.1, 0.1, 0.4, 1, 1.5, 2, 2.5, 3)
_FEWEST_POSITIONS = 3  # what usual counts differ by, at least
_MOST_WINDOWS = 500  # that tell what is usual
# Simulated anomalies: the factor of scaled windows, and those of the deviation.
_SCALED, _CLIPPED, _BURST, _SWING = 2.0, 1.0, 3.0, 3.0
_BURST_SAMPLES = 24


def band_stages(
    rows: NDArray[np.generic], raw_dtype: str, shape: tuple[int, ...], hop: int, length: int
) -> tuple[Grid, tuple[Stage, ...]] | None:
    """Return stages that count how loud each band of the spectrum is, and what they take.

    The kernels of a band are sums of its levels in nine segments. Their thresholds are evenly
    spaced, beyond what is usual in rows (n, samples * channels), too: the counts tell how far
    outside a level is. None where windows are too short for segments of `length`, have too many
    channels, or are floats.
    """
    samples, channels = shape
    bands = min(_BANDS, _MOST_MIXES // channels)
    if raw_dtype.startswith("float") or bands < 2:
        return None
    spectrum = spectrum_within(length, samples, hop, bands)
    if spectrum is None:
        return None
    grid = Grid.raw(raw_dtype, samples, 1, channels)
    segments = spectrum.gives(grid)
    levels = spectrum.run(rows, grid).reshape(len(rows), segments.rows, segments.channels)
    scaler = Scale("uint8", 8, *np.array([[0], [1 << 16], [255]]))
    stages = CountingStages(
        segments,
        Levels(scaler, 0, 1, np.eye(segments.channels, dtype=np.int8)),
        _thresholds(levels.astype(np.int64)),
    )
    largest = stages.largest_count
    dtype = stages.kernels.gives(stages.placed).dtype
    # Prototypes have 16 levels, so that few positions fill the whole range, too.
    filled = Scale(dtype, 8, *np.array([[0], [(255 << 16) // largest], [largest]]))
    return grid, (spectrum, stages.levels, stages.kernels, filled)


def filter_stages(
    rows: NDArray[np.generic], raw_dtype: str, shape: tuple[int, ...]
) -> tuple[Grid, tuple[Stage, ...]] | None:
    """Return stages that count how often filters of samples respond loudly, and what they take.

    Filters pass all, slow or other frequencies each. Their thresholds reach beyond what is usual in
    rows (n, samples * channels), and each count fills its own range, so that a few loud positions
    of a thousand tell; low ones tell of clipped or missing samples. Samples may be floats. None
    where there are too many channels, or windows are too short.
    """
    samples, channels = shape
    filters = list(itertools.islice(_filters(samples), _MOST_COUNTS // channels))
    if not filters:
        return None
    scaler = signal_scaler(rows, raw_dtype, shape)
    grid = Grid.raw(raw_dtype, samples, 1, channels)
    levels = Levels(scaler, scaler.bits - 8, 1, np.eye(channels, dtype=np.int8))
    few = rows[:: -(-len(rows) // _MOST_WINDOWS)]
    signal = levels.run(few, grid).reshape(len(few), samples, channels).astype(np.int64)
    thresholds = list[NDArray[Any]]()
    for (taps, dilation), alike in itertools.groupby(filters, lambda row: row[:2]):
        positions = samples - (_TAPS - 1) * dilation
        late = (signal[:, i * dilation :][:, :positions] for i in range(_TAPS))
        response = np.asarray(sum(map(np.multiply, taps, late))).reshape(-1, channels)
        middle, loud = np.quantile(response, [0.5, _USUAL[1]], axis=0)
        steps = [step for *_, step in alike]
        thresholds.append(middle + np.outer(steps, np.maximum(loud - middle, 2)))
    kernels = Kernels(
        taps=np.repeat([taps for taps, *_ in filters], channels, axis=0)[:, :, np.newaxis],
        dilation=np.repeat([dilation for _, dilation, _ in filters], channels),
        channel=np.tile(np.arange(channels), len(filters)),
        threshold=np.rint(np.concatenate(thresholds)).astype(np.int32).ravel(),
        cells=(1, 1),
    )
    stages = CountingStages(grid, levels, kernels)
    counts = kernels.run(levels.run(rows, grid), stages.placed)
    low, high = np.quantile(counts, _USUAL, axis=0)
    width = np.maximum(high - low, _FEWEST_POSITIONS)
    offset = np.rint(np.maximum(low - width, 0)).astype(np.int32)
    span = np.rint(high + 2 * width - offset).astype(np.uint32)
    filled = Scale(kernels.gives(stages.placed).dtype, 8, offset, (255 << 16) // span, span)
    return grid, (levels, kernels, filled)


def _filters(samples: int) -> Iterator[tuple[tuple[int, ...], int, float]]:
    """Yield taps, a dilation that fits windows of so many samples, and a threshold in spans."""
    for dilation in _DILATIONS:
        if 16 * dilation >= samples:
            return
        if dilation == 1:
            yield from (((0,) * 8 + (1,), 1, step) for step in _OF_SAMPLES)
            yield from (((1,) * _TAPS, 1, step) for step in _OF_SUMS)
        for places in _PLACES:
            taps = tuple(2 if place in places else -1 for place in range(_TAPS))
            yield from ((taps, dilation, step) for step in (_OF_SLOW, _OF_FAST)[dilation == 1])


def _thresholds(levels: NDArray[np.int64]) -> Kernels:
    """Return kernels for each channel of levels (n, segments, channels)."""
    positions, channels = levels.shape[1] - _TAPS + 1, levels.shape[2]
    sums = sum(levels[:, i : i + positions] for i in range(_TAPS))
    low, high = np.quantile(np.asarray(sums).reshape(-1, channels), _USUAL, axis=0)
    span = np.maximum(high - low, _LEAST_SPAN)
    steps = np.linspace(-0.5, 1.5, _THRESHOLDS)
    threshold = np.rint(low[:, np.newaxis] + span[:, np.newaxis] * steps).astype(np.int32)
    n = threshold.size
    return Kernels(
        taps=np.ones((n, _TAPS, 1), np.int8),
        dilation=np.ones(n, np.uint8),
        channel=np.repeat(np.arange(channels), _THRESHOLDS).astype(np.uint8),
        threshold=threshold.ravel(),
        cells=(1, 1),
    )


def anomalies(
    rows: NDArray[np.generic], shape: tuple[int, ...], rng: np.random.Generator
) -> dict[str, NDArray[np.generic]]:
    """Return rows (n, samples * channels) that stand for anomalies, by their kind.

    Windows of other rows are "mixed" into them, they are "scaled", "clipped", have "impulses", a
    ringing burst every few dozen samples, have a slow "swing", or miss a "channel".
    """
    windows = rows.reshape(len(rows), *shape).astype(np.float64)
    mean = windows.mean(axis=1, keepdims=True)
    moving = windows - mean
    deviation = moving.std(axis=1, keepdims=True)
    odd = (np.arange(len(rows)) % 2)[:, np.newaxis, np.newaxis]
    lost = rng.integers(shape[1], size=(len(rows), 1, 1)) == np.arange(shape[1])
    period = shape[0] * rng.uniform(0.25, 2, (len(rows), 1, 1))
    turns = np.arange(shape[0])[:, np.newaxis] / period + rng.random((len(rows), 1, 1))
    bursts = np.stack([_bursts(shape[0], rng) for _ in rows])[:, :, np.newaxis]
    simulated = {
        "mixed": (moving + np.roll(moving, len(rows) // 2, axis=0)) / 2,
        "scaled": np.where(odd, moving * _SCALED, moving / _SCALED),
        "clipped": np.clip(moving, -_CLIPPED * deviation, _CLIPPED * deviation),
        "impulses": moving + _BURST * deviation * bursts,
        "swing": moving + _SWING * deviation * sines(2 * np.pi * turns),
        "channel": np.where(lost, 0, moving),
    }
    return {kind: _as_rows(mean + values, rows) for kind, values in simulated.items()}


def _bursts(samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return bursts at a random distance that ring at a random frequency, at most 1."""
    t = np.arange(_BURST_SAMPLES)
    ringing = exps(-t / rng.uniform(2, 8)) * cosines(2 * np.pi * rng.uniform(0.1, 0.45) * t)
    starts = np.zeros(samples)
    starts[rng.integers(16) :: rng.integers(24, max(25, samples // 6))] = 1
    return np.asarray(np.convolve(starts, ringing)[:samples])


def _as_rows(windows: NDArray[np.float64], like: NDArray[Any]) -> NDArray[np.generic]:
    """Return windows as rows of the type of others."""
    if like.dtype.kind in "iu":
        limits = np.iinfo(like.dtype)
        windows = np.clip(np.rint(windows), limits.min, limits.max)
    return windows.reshape(len(windows), -1).astype(like.dtype)
