"""The stages *sums* and *summed*: their arithmetic, their bounds, and their C."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_fronts import sums_model
from tinykernel import TinykernelError
from tinykernel.build.parity import verify
from tinykernel.model.grid import Grid
from tinykernel.model.stages.offset import NARROW
from tinykernel.model.stages.sums import Summed, Sums


def slow_log(value: int) -> int:
    """Return floor(64 log2 value) with a mantissa that is cut to 16 bits after each square."""
    top = value.bit_length() - 1
    mantissa, level = (value << 31 - top) >> 16, top
    for _ in range(6):
        digit = int(mantissa * mantissa >= 2**31)
        mantissa, level = mantissa * mantissa >> 15 + digit, 2 * level + digit
    assert 0 <= 64 * math.log2(value) - level < 1.25
    return level


def slow(x: list[int]) -> list[int]:
    """Follow the specification with Python's integers, sample by sample."""
    n, k = len(x), len(x).bit_length() - 1
    mean = sum(x[i * n // 2**k] for i in range(2**k)) // 2**k
    a = [abs(value - mean) for value in x]
    if max(a) == 0:
        return [0] * 5
    z = 16 - max(a).bit_length()
    b = [value << z for value in a]
    q = [value * value >> 16 for value in b]
    above = [value > mean for value in x]
    crossings = sum(above[t] != above[t - 1] for t in range(1, n))
    own = slow_log(n)
    levels = [
        slow_log(sum(q)) - own + 1024 - 128 * z >> 3,
        slow_log(sum(b)) - own - 64 * z >> 2,
        slow_log(sum(value * value >> 16 for value in q)) - own + 3072 - 256 * z >> 4,
        slow_log(max(b)) - 64 * z >> 2,
        slow_log(1 + crossings) >> 2,
    ]
    return [min(max(level, 0), 255) for level in levels]


def windows(dtype: str, rows: int, channels: int, seed: int) -> np.ndarray:
    """Draw noise, small steps, both ends of the type, an impulse and silence."""
    limits, rng = np.iinfo(dtype), np.random.default_rng(seed)
    shape = (5, rows, channels)
    X = rng.integers(limits.min, limits.max + 1, shape)
    X[1] = rng.integers(3, 5, shape[1:])
    X[2] = rng.choice([limits.min, limits.max], shape[1:])
    X[3:] = limits.min
    X[3, rng.integers(rows)] = limits.max
    return X.astype(dtype)


@settings(deadline=None)  # the first call compiles
@given(st.sampled_from(NARROW), st.integers(2, 300), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_numbers_are_those_of_the_docstring(dtype, rows, channels, seed):
    """Noise, impulses, silence and full scale, of any length and type; and the bounds hold."""
    X, grid = windows(dtype, rows, channels, seed), Grid.raw(dtype, rows, 1, channels)
    made = Sums().numbers(X.reshape(5, -1), grid)
    wanted = [[slow(x[:, c].tolist()) for c in range(channels)] for x in X]
    assert np.array_equal(made, np.reshape(wanted, (5, -1)))
    assert Sums().gives(grid) == grid
    assert all(bound.fits for bound in Sums().ranges(grid))


def test_sums_are_what_they_are_called():
    """Of long noise and of a sine they are within a level of the logarithms in floats."""
    rng, t = np.random.default_rng(0), np.arange(4096)
    X = np.array([900 * rng.standard_normal(4096), 9000 * np.sin(t / 9), rng.laplace(0, 99, 4096)])
    X = np.rint(X).astype(np.int16)
    wave = X - X.mean(axis=1, keepdims=True)
    size = np.abs(wave)
    crossings = np.count_nonzero(np.diff(wave > 0, axis=1), axis=1)
    exact = [np.log2(np.mean(size**p, axis=1)) * 16 / p for p in (2, 1, 4)]
    exact += [16 * np.log2(size.max(axis=1)), 16 * np.log2(1 + crossings)]
    found = Sums().numbers(X, Grid.raw("int16", 4096, 1))
    assert np.abs(found + 0.5 - np.transpose(exact)).max() < 1


@pytest.mark.parametrize("dtype", NARROW)
def test_extreme_windows_in_c(require_tool, dtype):
    """Silence, an impulse, both ends of the type: the C gives the scores of Python."""
    require_tool("gcc")
    model = sums_model(1, dtype, height=96)
    X = windows(dtype, 96, 3, 1).reshape(5, -1)
    assert verify(model, X, flags=["-O2"]).first_difference is None


def test_counts_of_numbers_stay_in_their_range():
    """Each level of a number, by any low and factor, counts for at most the top."""
    low, factor = np.repeat([0, 7, 255], 4), np.tile([1, 16, 17, 255], 3)
    summed = Summed(np.ones(12), low, factor, 300)
    counts = Grid(1, 1, 1, "uint8", 0, 9)
    made = summed.run(np.repeat(np.arange(256), 3).reshape(256, 3), counts)[:, 1:]
    for n, row in enumerate(made.tolist()):
        for own, by, count in zip(low.tolist(), factor.tolist(), row, strict=True):
            assert count == min(max(n - own, 0) * by // 16, 255) * 301 // 256
    assert summed.gives(counts).dtype == made.dtype == "uint16"
    assert made.max() <= summed.gives(counts).high == 300


def test_sums_that_do_not_fit_are_refused():
    """Other inputs, a stage without the other, other channels, and counts of another size."""
    for grid in (Grid.raw("float32", 40, 1), Grid.raw("int32", 40, 1), Grid.raw("uint8", 8, 8)):
        with pytest.raises(TinykernelError, match="whole numbers of 8 or 16 bits"):
            Sums().gives(grid)
    model = sums_model(1, n_numbers=1)
    for stages in (model.stages[1:], tuple(s for s in model.stages if s.KIND != "summed")):
        with pytest.raises(TinykernelError, match="come together"):
            replace(model, stages=stages)
    for own, said in (
        (([1], [1], [1], 9), "count otherwise"),
        (([1], [1, 2], [1, 1], 255), "of each entry"),
        (([1], [1], [0], 255), "factors from 1"),
        (([15], [1], [1], 255), "more than 5 numbers a channel"),
    ):
        with pytest.raises(TinykernelError, match=said):
            replace(
                model,
                stages=tuple(Summed(*own) if s.KIND == "summed" else s for s in model.stages),
            )
