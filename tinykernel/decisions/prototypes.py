"""Prototypes of known rows, and what a margin is worth beside the distance to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import margins
from tinykernel.model.readouts.prototypes import LARGEST_MARGIN_LINE, coarse

#: Flash that the prototypes of a classifier may take; there is always at least one.
MOST_BYTES = 1280
# The fewest rows for a prototype.
_ROWS_EACH = 25
_STEPS = 30
# Rows that the worth of a margin is fitted to: a fifth, and no fewer than this.
_LEAST_ROWS = 50
_LEAST_GAIN = 256


def fit_prototypes(model: IntegerModel, X: ArrayLike, y: ArrayLike) -> NDArray[np.int8]:
    """Return the means of clusters of known rows (k-means, Lloyd 1982), as levels of 4 bits.

    Every class has as many as the bytes allow, half a byte an input, with at least 25 rows each;
    where they do not allow one per class, clusters of all rows are taken. The rows are best the
    training rows. The result has shape (k, n_features).
    """
    labels = np.asarray(y)
    inputs = model.quantize_inputs(X)
    if labels.shape != (len(inputs),) or not len(inputs):
        raise TinykernelError(
            f"calibrate: {labels.shape} labels for {len(inputs)} known rows; give one per row"
        )
    rows, rng = coarse(inputs), np.random.default_rng(0)
    each = 4 * -(-model.n_features // 8)
    number, classes = max(1, MOST_BYTES // each), np.unique(labels)
    parts = [rows[labels == label] for label in classes] if number >= len(classes) else [rows]
    number //= len(parts)
    means = [nearest_means(part, min(number, len(part) // _ROWS_EACH), rng) for part in parts]
    return as_levels(np.concatenate(means))


def as_levels(means: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the levels whose centres are nearest to means of 8 bits."""
    return np.asarray(means >> 4, dtype=np.int8)


def nearest_means(
    rows: NDArray[np.int64], number: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return at most `number` means of clusters, and at least one.

    Means are integers, so that all sums are exact on every processor.
    """
    means = _spread(rows, max(1, number), rng)
    last = np.full(len(rows), -1)
    for _ in range(_STEPS):
        nearest = _squares(rows, means).argmin(axis=1)
        if np.array_equal(nearest, last):
            break
        last = nearest
        counts = np.bincount(nearest, minlength=len(means))
        sums = np.zeros_like(means)
        np.add.at(sums, nearest, rows)
        filled = counts > 0
        means[filled] = np.floor_divide(
            2 * sums[filled] + counts[filled, np.newaxis], 2 * counts[filled, np.newaxis]
        )
    return means


def _spread(rows: NDArray[np.int64], number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw rows far from each other to begin with (k-means++, Arthur & Vassilvitskii 2007)."""
    chosen = [int(rng.integers(len(rows)))]
    apart = _squares(rows, rows[chosen])[:, 0]
    while len(chosen) < number:
        total = np.cumsum(apart)
        if total[-1] == 0:
            break  # every row is one of them
        place = int(np.searchsorted(total, rng.integers(total[-1]), side="right"))
        chosen.append(place)
        apart = np.minimum(apart, _squares(rows, rows[[place]])[:, 0])
    return rows[chosen]


def _squares(rows: NDArray[np.int64], means: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return squared distances; floats are exact here and faster."""
    a, b = rows.astype(np.float64), means.astype(np.float64)
    squares = np.square(a).sum(axis=1)[:, np.newaxis] + np.square(b).sum(axis=1)
    return np.asarray(squares - 2 * a @ b.T, dtype=np.int64)


def fit_margin_line(
    scores: NDArray[np.int32], distance: NDArray[np.int32]
) -> tuple[tuple[int, int, int], NDArray[np.bool_]]:
    """Return the line that turns a margin into a distance, and which rows it was fitted to.

    It maps the 5 % quantile of the margins to the 95 % quantile of the distances, and the median to
    the median. A threshold must be chosen on other rows.
    """
    n = len(scores)
    used = np.zeros(n, dtype=np.bool_)
    used[np.random.default_rng(0).permutation(n)[: min(n, max(_LEAST_ROWS, n // 5))]] = True
    margin = margins(scores)[1].astype(np.float64)[used]
    far, middle = np.quantile(distance[used], [0.95, 0.5])
    close, usual = np.quantile(margin, [0.05, 0.5])
    worth = max(1.0, far - middle) / max(1.0, usual - close)
    steps = int(np.clip(np.ceil(np.log2(_LEAST_GAIN / worth)), 0, 31))
    gain = int(np.clip(np.rint(worth * 2.0**steps), 1, LARGEST_MARGIN_LINE))
    bias = int(np.clip(np.rint(far + worth * close), 0, LARGEST_MARGIN_LINE))
    return (bias, gain, steps), used
