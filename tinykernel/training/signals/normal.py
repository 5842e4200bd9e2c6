"""Windows of normal recordings: bands, filters, and simulated anomalies to choose by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.grid import Grid
from tinykernel.model.stage import Stage
from tinykernel.model.stages.kernels import Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.scale import Scale
from tinykernel.training.readouts.counts import CountingStages
from tinykernel.training.signals.spectrum import spectrum_within
from tinykernel.training.signals.training import signal_scaler

#: Lengths of segments that compete.
SEGMENTS = (64, 128, 256)
_BANDS, _MOST_MIXES = 16, 64
_THRESHOLDS = 8  # a band
_USUAL = (0.02, 0.98)  # quantiles of usual levels
_LEAST_SPAN = 40  # in sums of nine levels
_TAPS = 9
# Filters: the places of the taps 2 among -1, after how many samples they repeat, and the thresholds
# of each, in spans from the middle of what is usual to twice what is loud.
_FILTERS = ((0, 3, 6), (1, 3, 5), (0, 4, 8), (3, 4, 5))
_DILATIONS, _MOST_COUNTS = (1, 2, 4), 256
_STEPS = np.linspace(0.5, 3, 6)
_FEWEST_POSITIONS = 3  # what usual counts differ by, at least
_MOST_WINDOWS = 500  # that tell what is usual
# Simulated anomalies: factor of scaled windows, and of the deviation clipped ones and bursts have.
_SCALED, _CLIPPED, _BURST = 2.0, 1.0, 3.0
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

    Filters of zero mean pass other frequencies each. Their thresholds reach beyond what is usual in
    rows (n, samples * channels), and each count fills its own range, so that a few loud positions
    of a thousand tell. Samples may be floats. None where there are too many channels, or windows
    are too short.
    """
    samples, channels = shape
    steps = _STEPS.size * channels
    near = [(d, places) for d in _DILATIONS if 16 * d < samples for places in _FILTERS]
    near = near[: _MOST_COUNTS // steps]
    if not near:
        return None
    scaler = signal_scaler(rows, raw_dtype, shape)
    grid = Grid.raw(raw_dtype, samples, 1, channels)
    levels = Levels(scaler, scaler.bits - 8, 1, np.eye(channels, dtype=np.int8))
    few = rows[:: -(-len(rows) // _MOST_WINDOWS)]
    signal = levels.run(few, grid).reshape(len(few), samples, channels).astype(np.int64)
    taps = -np.ones((len(near), _TAPS), np.int8)
    thresholds = list[NDArray[Any]]()
    for filter_taps, (dilation, places) in zip(taps, near, strict=True):
        filter_taps[list(places)] = 2
        positions = samples - (_TAPS - 1) * dilation
        late = (signal[:, i * dilation :][:, :positions] for i in range(_TAPS))
        response = np.asarray(sum(map(np.multiply, filter_taps, late))).reshape(-1, channels)
        middle, loud = np.quantile(response, [0.5, _USUAL[1]], axis=0)
        thresholds.append(middle + np.outer(_STEPS, np.maximum(loud - middle, 2)))
    kernels = Kernels(
        taps=np.repeat(taps, steps, axis=0)[:, :, np.newaxis],
        dilation=np.repeat([dilation for dilation, _ in near], steps).astype(np.uint8),
        channel=np.tile(np.arange(channels), len(near) * _STEPS.size).astype(np.uint8),
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
    ringing burst every few dozen samples, or miss a "channel".
    """
    windows = rows.reshape(len(rows), *shape).astype(np.float64)
    mean = windows.mean(axis=1, keepdims=True)
    moving = windows - mean
    deviation = moving.std(axis=1, keepdims=True)
    odd = (np.arange(len(rows)) % 2)[:, np.newaxis, np.newaxis]
    lost = rng.integers(shape[1], size=(len(rows), 1, 1)) == np.arange(shape[1])
    bursts = np.stack([_bursts(shape[0], rng) for _ in rows])[:, :, np.newaxis]
    simulated = {
        "mixed": (moving + np.roll(moving, len(rows) // 2, axis=0)) / 2,
        "scaled": np.where(odd, moving * _SCALED, moving / _SCALED),
        "clipped": np.clip(moving, -_CLIPPED * deviation, _CLIPPED * deviation),
        "impulses": moving + _BURST * deviation * bursts,
        "channel": np.where(lost, 0, moving),
    }
    return {kind: _as_rows(mean + values, rows) for kind, values in simulated.items()}


def _bursts(samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return bursts at a random distance that ring at a random frequency, at most 1."""
    t = np.arange(_BURST_SAMPLES)
    ringing = np.exp(-t / rng.uniform(2, 8)) * np.cos(2 * np.pi * rng.uniform(0.1, 0.45) * t)
    starts = np.zeros(samples)
    starts[rng.integers(16) :: rng.integers(24, max(25, samples // 6))] = 1
    return np.asarray(np.convolve(starts, ringing)[:samples])


def _as_rows(windows: NDArray[np.float64], like: NDArray[Any]) -> NDArray[np.generic]:
    """Return windows as rows of the type of others."""
    if like.dtype.kind in "iu":
        limits = np.iinfo(like.dtype)
        windows = np.clip(np.rint(windows), limits.min, limits.max)
    return windows.reshape(len(windows), -1).astype(like.dtype)
