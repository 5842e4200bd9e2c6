"""How training inputs with a shape are varied: images by affine maps, signals as sensors vary."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tinykernel.base.elementary import cosines, sines
from tinykernel.base.errors import OptionError
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.trainset import TrainSet
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.spectrum.spec import Spectrum

# What `affine` 1 means: radians, shares of size, pixels of an image of 28, shear.
_ROTATION, _SCALE, _SHIFT, _SHEAR = np.radians(12), 0.12, 1.5 / 28, 0.15
# And of a spectrum: stretch of time and of frequency, moves in shares of frames and bands, and
# levels of loudness.
_STRETCH, _MOVE, _LOUDNESS = (0.15, 0.1), (0.06, 0.08), 12
# Windows that are varied at once.
_ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class Augmentation:
    """How much inputs are varied; 0 leaves a kind out."""

    # Images: strength of small rotations, scales, shifts and shears; 1 is usual for digits.
    # Spectra: that of stretched time and frequency, moves, and loudness.
    affine: float = 0.0
    shift: int = 0  # pixels or samples each way.
    # Signals: deviation, in radians, of the rotation of every three channels about a random axis.
    rotate: float = 0.0
    noise: float = 0.0  # signals: deviation, relative to that of the channel.
    scale: float = 0.0  # signals: deviation of a factor for each window.
    flip: float = 0.0  # images: share of those mirrored from left to right.
    bands: int = 1  # of the spectrum of a channel.

    @classmethod
    def of(cls, amounts: Mapping[str, Any] | None) -> "Augmentation":
        """Read the option of the trainer."""
        return cls(**(amounts or {}))


def affine_moves(
    augmentation: Augmentation, n: int, shape: tuple[int, int], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Draw an affine map of the pixels of each of `n` images; None if nothing moves.

    y' = m0 y + m1 x + m2 and x' = m3 y + m4 x + m5, shape (n, 6).
    """
    strength, most = augmentation.affine, augmentation.shift
    if not strength and not most and not augmentation.flip:
        return np.empty((0, 6), dtype=np.float32)
    u = rng.uniform(-1, 1, (6, n))
    angle, shear = strength * _ROTATION * u[0], strength * _SHEAR * u[1]
    tall, wide = 1 + strength * _SCALE * u[2], 1 + strength * _SCALE * u[3]
    cos, sin = cosines(angle), sines(angle)
    down, right = (strength * _SHIFT * side * v for side, v in zip(shape, u[4:], strict=True))
    if most:
        down = down + rng.integers(-most, most + 1, n)
        right = right + rng.integers(-most, most + 1, n)
    a, b, c, d = cos * tall, sin * tall, (shear - sin) * wide, cos * wide
    y, x = (shape[0] - 1) / 2, (shape[1] - 1) / 2
    first, second = y - a * y - b * x + down, x - c * y - d * x + right
    moves = np.stack([a, b, first, c, d, second], axis=1)
    if augmentation.flip:
        mirrored = rng.random(n) < augmentation.flip
        moves[mirrored, 3:] *= -1
        moves[mirrored, 5] += shape[1] - 1
    return moves.astype(np.float32)


def vary_windows(
    windows: NDArray[np.float64], augmentation: Augmentation, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return a varied copy of windows (n, samples, channels)."""
    n, samples, channels = windows.shape
    out = windows
    if augmentation.shift:
        moved = rng.integers(-augmentation.shift, augmentation.shift + 1, n)
        place: NDArray[np.int64] = np.arange(samples) + moved.reshape(-1, 1)
        place = np.clip(place, 0, samples - 1)
        out = np.take_along_axis(out, place[:, :, np.newaxis], axis=1)
    if augmentation.affine:
        out = _stretch(out, augmentation, rng)
    if augmentation.rotate:
        turn = _rotations(augmentation.rotate * rng.standard_normal((n, 3)))
        triples = [out[:, :, c : c + 3] for c in range(0, channels, 3)]
        out = np.concatenate([_product(t, turn.transpose(0, 2, 1)) for t in triples], axis=2)
    if augmentation.scale:
        out = out * (1 + augmentation.scale * rng.standard_normal((n, 1, 1)))
    if augmentation.noise:
        size = augmentation.noise * windows.std(axis=(0, 1))
        out = out + size * rng.standard_normal(out.shape)
    return out


def _stretch(
    frames: NDArray[np.float64], augmentation: Augmentation, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Stretch, move and scale spectra (n, frames, channels * bands); a level of 0 is silence."""
    n, strength = len(frames), augmentation.affine
    out = frames.reshape(n, frames.shape[1], -1, augmentation.bands)
    for axis, stretch, move in zip((1, 3), _STRETCH, _MOVE, strict=True):
        length = out.shape[axis]
        u = strength * rng.uniform(-1, 1, (2, n, 1))
        place = (np.arange(length) - (length - 1) / 2) * (1 + stretch * u[0]) + move * length * u[1]
        sides = [n, 1, 1, 1]
        sides[axis] = length
        out = _between(out, (place + (length - 1) / 2).reshape(sides), axis)
    louder = strength * _LOUDNESS * rng.uniform(-1, 1, (n, 1, 1, 1))
    return np.where(out > 0, out + louder, 0.0).reshape(frames.shape)


def _between(values: NDArray[np.float64], place: NDArray[Any], axis: int) -> NDArray[np.float64]:
    """Interpolate values at positions of an axis; beyond its ends they are constant."""
    last = values.shape[axis] - 1
    place = np.clip(place, 0, last)
    first = place.astype(np.int64)
    before = np.take_along_axis(values, first, axis)
    after = np.take_along_axis(values, np.minimum(first + 1, last), axis)
    between: NDArray[np.float64] = before + (place - first) * (after - before)
    return between


def _rotations(axis: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrices of rotations given as axis times angle, (n, 3): Rodrigues."""
    angle = np.maximum(np.sqrt(np.square(axis).sum(axis=1)), 1e-12)[:, np.newaxis, np.newaxis]
    x, y, z = axis.T
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3) / angle
    square = _product(cross, cross)
    turned: NDArray[np.float64] = np.eye(3) + sines(angle) * cross + (1 - cosines(angle)) * square
    return turned


def _product(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply matrices, (n, i, 3) by (n, 3, k); BLAS would round as the processor has it."""
    return np.asarray((a[:, :, :, np.newaxis] * b[:, np.newaxis, :, :]).sum(axis=2))


def with_windows(data: TrainSet, grid: Grid, options: TrainerOptions) -> TrainSet:
    """Append varied copies to windows of samples."""
    augmentation = Augmentation.of(options.augment)
    if augmentation.affine:
        raise OptionError("augment: affine is for images and spectra; leave it out")
    if augmentation == Augmentation():
        return data
    return _stack(data, [data.X, _vary(data.X, grid, augmentation, _draws(options))])


def with_spectra(
    data: TrainSet,
    first: Spectrum,
    grid: Grid,
    levels_of: Callable[[NDArray[Any]], NDArray[Any]],
    options: TrainerOptions,
) -> TrainSet:
    """Replace windows by their levels, and append the levels of varied copies.

    `levels_of` makes levels of rows, numbers beside included. A shift of half a hop or more moves
    whole frames, a smaller one samples.
    """
    amounts = Augmentation.of(options.augment)
    if amounts.rotate:
        raise OptionError("augment: rotate excludes a spectrum; give {spectrum}", spectrum="off")
    known, output, rng = data.map_rows(levels_of), first.gives(grid), _draws(options)
    blocks, frames = [known.X], round(amounts.shift / first.hop)
    of_samples = replace(amounts, affine=0.0, shift=0 if frames else amounts.shift)
    if of_samples != Augmentation():
        blocks.append(levels_of(_vary(data.X, grid, of_samples, rng)))
    of_levels = Augmentation(amounts.affine, frames)
    if of_levels != Augmentation():
        of_levels = replace(of_levels, bands=first.n_bands)
        blocks += [_vary(block, output, of_levels, rng) for block in blocks]
    return replace(_stack(known, blocks), raw_dtype=output.dtype)


def _stack(data: TrainSet, blocks: list[NDArray[Any]]) -> TrainSet:
    """Return the rows of all blocks; each copy is in the group of its window."""

    def each(values: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([values] * len(blocks))

    groups, quantity = data.groups, data.quantity
    if len(blocks) > 1 and groups is None:
        groups = np.arange(len(data.X))
    return replace(
        data,
        X=np.concatenate(blocks),
        codes=each(data.codes),
        sample_weight=each(data.sample_weight),
        groups=groups if groups is None else each(groups),
        quantity=quantity and replace(quantity, targets=each(quantity.targets)),
        n_varied=(len(blocks) - 1) * len(data.X),
    )


def _draws(options: TrainerOptions) -> np.random.Generator:
    seed = int(check_random_state(options.random_state).randint(2**31))
    return np.random.default_rng([seed, 9])


def _vary(
    rows: NDArray[Any], grid: Grid, augmentation: Augmentation, rng: np.random.Generator
) -> NDArray[Any]:
    """Return varied rows, whose first values are windows; a few rows at a time."""
    out = rows.copy()
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = out[first : first + _ROWS_AT_ONCE, : grid.size]
        windows = part.reshape(-1, grid.rows, grid.channels).astype(np.float64)
        varied = vary_windows(windows, augmentation, rng).reshape(part.shape)
        if rows.dtype.kind in "iu":
            limits = np.iinfo(rows.dtype)
            varied = np.clip(np.rint(varied), limits.min, limits.max)
        part[...] = varied.astype(rows.dtype)
    return out
