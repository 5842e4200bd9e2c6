"""The stage *offset*: its arithmetic and its bounds, and when training takes it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinykernel
from tests.refusals import refused
from tinykernel.base.errors import ModelError
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.offset.spec import NARROW, Offset


@given(st.sampled_from(NARROW), st.integers(2, 70), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_means_are_those_of_the_docstring(dtype, rows, channels, seed):
    """Every sample less the mean of evenly spread ones, up to both ends of the type."""
    limits, rng = np.iinfo(dtype), np.random.default_rng(seed)
    X = rng.choice([limits.min, limits.max, 0, 3], (4, rows, channels)).astype(dtype)
    grid, k = Grid.raw(dtype, rows, 1, channels), 0
    while 2 ** (k + 1) <= rows:
        k += 1
    made = Offset().run(X.reshape(4, -1), grid).reshape(X.shape)
    totals, values = Offset().ranges(grid)
    for n, c in np.ndindex(4, channels):
        total = sum(int(X[n, i * rows // 2**k, c]) for i in range(2**k))
        assert totals.low <= total <= totals.high
        assert [int(x) - total // 2**k for x in X[n, :, c]] == made[n, :, c].tolist()
    assert totals.fits
    assert values.fits
    assert values.low <= made.min() <= made.max() <= values.high


@pytest.mark.parametrize("grid", [Grid.raw("int32", 40, 1), Grid.raw("uint8", 8, 8)], ids=str)
def test_other_inputs_are_refused(grid):
    """Sums of 32 bits could overflow, and images have no windows."""
    refused(ModelError, Offset().gives, grid)


@pytest.mark.slow
def test_training_removes_what_tells_nothing():
    """Bumps of a thousandth of the level, other in each window, are told without that."""
    rng, n = np.random.default_rng(0), 1400
    y, group = np.arange(n) % 3, np.arange(n) // 3 % 7
    X = 10 * rng.standard_normal((n, 128, 1)) + 15000 * rng.uniform(-1, 1, (n, 1, 1))
    for row, label in zip(X[:, :, 0], y, strict=True):
        row[30 * label + np.arange(30)] += 30
    X = np.rint(X).astype(np.int16)
    given = {"budget": "4KB", "link": False, "random_state": 0, "n_jobs": 1}
    found = tinykernel.train(X, y, groups=group, hop=64, **given).model
    assert [stage.KIND for stage in found.stages] == ["offset", "levels", "kernels", "scale"]
