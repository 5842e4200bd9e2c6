"""Random filters."""

from collections.abc import Iterator
from math import prod

import numpy as np

from tinykernel.pieces.filters.spec import UNIT, Filters, Form
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.levels.sample import random_levels
from tinykernel.pieces.piece import Sample

_TOP = 255


def random_filters(seed: int, shape: tuple[int, int, int], forms: list[Form]) -> Filters:
    """Return layers of these forms whose values are often inside of their limits."""
    rng = np.random.default_rng([seed, 4])
    weights, gains, units, channels = [], [], [], [shape[2]]
    for form in forms:
        n, own = form.channels, channels[form.reads] // form.groups
        kernel = rng.integers(-127, 128, n * form.high * form.wide * own)
        reach = 73 * _TOP / 2 * np.sqrt(kernel.size / n)
        gain = np.minimum(_TOP / reach * rng.uniform(0.2, 1, n), 0.99)
        units.append((rng.integers(0, int(2 * reach), n), gain))
        if form.averages:
            of_sums = rng.uniform(0.5, 1, n) / (form.tall * form.broad)
            units.append((rng.integers(-300, 300, n), of_sums))
        if form.adds:
            gains.append(rng.integers(-(1 << 12), 1 << 12, n))
        weights.append(kernel)
        channels.append(n)
    biases, gain = (np.concatenate(column) for column in zip(*units, strict=True))
    shifts = np.clip(np.floor(np.log2((1 << UNIT) / gain)), UNIT, 2 * UNIT)
    multipliers = np.minimum(np.floor(gain * 2.0**shifts), (1 << UNIT) - 1)
    curves = rng.integers(0, 256, (max(form.curve for form in forms), 256))
    return Filters(
        *shape,
        int(rng.integers(0, 256)),
        np.array(forms),
        np.concatenate(weights),
        biases,
        multipliers,
        shifts,
        np.concatenate(gains) if gains else None,
        curves if len(curves) else None,
    )


def samples(seed: int) -> Iterator[Sample]:
    """Yield layers of an image, of a signal that lies in a row, and of a table."""
    raw, levels = random_levels(seed, height=9, width=8, channels=2)
    grid = levels.gives(raw)
    forms = [
        Form(0, 0, 6, 2, 3, 5, 1, 2, 1, 2, 1, 2, 2, 1, 0, 0, 7, 9, 240),
        Form(1, 0, 6, 6, 1, 3, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 3, 0, _TOP),
        Form(2, 2, 6, 1, 3, 3, 1, 1, 1, 1, 1, 1, 2, 2, 1, 0, 0, 0, _TOP),
        Form(3, 0, 4, 1, 2, 2, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, _TOP),
    ]
    yield Sample(raw, (levels, random_filters(seed, (9, 8, 2), forms)))
    raw, levels = random_levels(seed, height=1, width=20, channels=3, raw_dtype="float32")
    forms = [Form(0, 0, 5, 1, 1, 5, 1, 1, 0, 2, 0, 2, 1, 2, 0, 0, 0, 0, _TOP)]
    forms.append(Form(1, 0, 4, 1, 1, 3, 1, 1, 0, 0, 0, 0, 1, 8, 1, 0, 0, 0, _TOP))
    yield Sample(raw, (levels, random_filters(seed, (1, 20, 3), forms)))
    table = {"height": 1, "width": 1, "channels": 9}
    raw, levels = random_levels(seed, **table)
    grid = levels.gives(raw)
    flat = [Form(0, 0, 7, 1, *[1] * 4, *[0] * 4, 1, 1, 0, 1, 0, 0, _TOP)]
    flat.append(flat[0]._replace(reads=1, channels=5, curve=0))
    yield Sample(raw, (levels, random_filters(seed, _shape(grid), flat)))


def _shape(grid: Grid) -> tuple[int, int, int]:
    assert prod(grid.shape) == grid.channels
    return 1, 1, grid.channels
