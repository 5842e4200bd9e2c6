"""Separable convolutions: the arithmetic against a slow version, and its proved ranges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.separable import random_separable
from tinykernel.errors import ModelError, RangeError
from tinykernel.model.grid import Grid
from tinykernel.model.stages.separable import MIXED, SINGLE, Separable


def slowly(stage, image):
    """Compute an image (rows, columns, channels) as the docstring says it, one sum at a time."""
    found = []
    for layer in stage.layers:
        rows, columns, given = image.shape
        high, wide = -(-rows // layer.stride), -(-columns // layer.stride)
        made = np.zeros((high, wide, len(layer.biases)), int)
        products = []
        for y, x, c in np.ndindex(made.shape):
            total = int(layer.biases[c])
            for i, j in np.ndindex(3, 3):
                v, u = y * layer.stride + i - 1, x * layer.stride + j - 1
                if not (0 <= v < rows and 0 <= u < columns):
                    continue
                for d in range(given):
                    if layer.kind == MIXED:
                        total += int(layer.weights[c, i, j, d]) * int(image[v, u, d])
                    elif layer.kind == SINGLE and d == c:
                        total += int(layer.weights[c, i, j]) * int(image[v, u, d])
                    elif layer.kind not in (MIXED, SINGLE) and (i, j) == (1, 1):
                        total += int(layer.weights[c, d]) * int(image[v, u, d])
            products.append(total * int(layer.multipliers[c]))
            made[y, x, c] = min(max(products[-1] >> int(layer.shifts[c]), 0), 255)
        found.append((min(products), max(products), made.max()))
        image = made
    n = image.shape[0] * image.shape[1]
    return image.sum(axis=(0, 1)) * (65536 // n) >> 16, found


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 999),
    rows=st.integers(2, 7),
    columns=st.integers(2, 6),
    given_=st.integers(1, 3),
    blocks=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 2)), min_size=1, max_size=3),
)
def test_the_arithmetic_is_the_specified_one(seed, rows, columns, given_, blocks):
    """Protects the specification: every layer, stride and odd side, and the bounds of each."""
    channels, strides = zip(*blocks, strict=True)
    given = Grid(rows, columns, given_, "uint8", 0, 200)
    stage = random_separable(seed, given, channels, strides)
    images = np.random.default_rng(seed).integers(0, 201, (3, given.size), np.uint8)
    ranges = stage.ranges(given)
    made = stage.run(images, given)
    for image, row in zip(images, made, strict=True):
        expected, seen = slowly(stage, image.reshape(rows, columns, given_))
        assert row.tolist() == expected.tolist()
        for (low, high, top), product, values in zip(seen, ranges[::2], ranges[1::2], strict=True):
            assert product.low <= low
            assert high <= product.high
            assert top <= values.high
    assert made.max() <= stage.gives(given).high


def test_layers_without_weights_are_refused():
    """A damaged file ends in one line."""
    with pytest.raises(ModelError):
        Separable([1], [1], 1, np.ones(8, np.int8), [0], [64], [3])


def test_products_that_could_overflow_are_refused():
    """Of so many inputs of the largest weights the sums are too large for the multiplier."""
    fields = ([1], [1], 64, np.full(576, 127, np.int8), [(1 << 19) - 1], [127], [0])
    with pytest.raises(RangeError):
        Separable(*fields).ranges(Grid(4, 4, 64, "uint8", 0, 255))
