"""Varied copies of windows, or of their spectra: what augmentation adds to the training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tinykernel.errors import TinykernelError
from tinykernel.model.grid import Grid
from tinykernel.model.stages.spectrum import Spectrum
from tinykernel.training.augment import Augmentation, vary_windows
from tinykernel.training.options import TrainerOptions
from tinykernel.training.trainset import TrainSet

# Windows that are varied at once.
_ROWS_AT_ONCE = 256


def with_windows(data: TrainSet, grid: Grid, options: TrainerOptions) -> TrainSet:
    """Put varied copies behind windows of samples."""
    augmentation = Augmentation.of(options.augment)
    if augmentation.affine:
        raise TinykernelError("augment: affine is for images and spectra")
    if augmentation == Augmentation():
        return data
    return _stacked(data, [data.X, _varied(data.X, grid, augmentation, _drawn_by(options))])


def with_spectra(
    data: TrainSet,
    first: Spectrum,
    grid: Grid,
    seen: Callable[[NDArray[Any]], NDArray[Any]],
    options: TrainerOptions,
) -> TrainSet:
    """Put levels in the place of windows, and behind them those of varied copies.

    `seen` makes levels of rows, numbers beside included. A shift of half a hop or more moves whole
    frames, a smaller one samples.
    """
    asked = Augmentation.of(options.augment)
    if asked.rotate:
        raise TinykernelError("augment: rotate goes with no spectrum; give spectrum=off")
    known, made, rng = data.seen(seen), first.gives(grid), _drawn_by(options)
    blocks, frames = [known.X], round(asked.shift / first.hop)
    of_samples = replace(asked, affine=0.0, shift=0 if frames else asked.shift)
    if of_samples != Augmentation():
        blocks.append(seen(_varied(data.X, grid, of_samples, rng)))
    of_levels = Augmentation(asked.affine, frames)
    if of_levels != Augmentation():
        of_levels = replace(of_levels, bands=first.n_bands)
        blocks += [_varied(block, made, of_levels, rng) for block in blocks]
    return replace(_stacked(known, blocks), raw_dtype=made.dtype)


def _stacked(data: TrainSet, blocks: list[NDArray[Any]]) -> TrainSet:
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


def _drawn_by(options: TrainerOptions) -> np.random.Generator:
    seed = int(check_random_state(options.random_state).randint(2**31))
    return np.random.default_rng([seed, 9])


def _varied(
    rows: NDArray[Any], grid: Grid, augmentation: Augmentation, rng: np.random.Generator
) -> NDArray[Any]:
    """Return varied rows, of which the first values are windows; some at once."""
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
