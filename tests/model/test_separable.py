"""Separable convolutions: the arithmetic against a slow version, and its proved ranges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from tinykernel.base.errors import ModelError, RangeError
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.layers import MIXED, POINT, mean_offsets
from tinykernel.pieces.separable.sample import random_separable
from tinykernel.pieces.separable.spec import MOST_AVERAGED, Separable


def layer_slowly(layer, image, above, down):
    """Compute a layer as the docstring says it, one sum at a time; return products, too."""
    (rows, columns, given), (_, across), products = image.shape, layer.steps, []
    before = layer.around[1]
    high, wide = (rows + 2 * above - 3) // down + 1, (columns + 2 * before - 3) // across + 1
    if layer.kind == POINT:
        (high, wide), above, before, down, across = (rows, columns), 1, 1, 1, 1
    made = np.zeros((high, wide, len(layer.biases)), int)
    for y, x, c in np.ndindex(made.shape):
        total = int(layer.biases[c])
        for i, j in np.ndindex(3, 3):
            v, u = y * down + i - above, x * across + j - before
            if layer.kind == POINT:
                if (i, j) == (1, 1):
                    total += sum(
                        int(layer.weights[c, d]) * int(image[y, x, d]) for d in range(given)
                    )
            else:
                is_inside = 0 <= v < rows and 0 <= u < columns
                for d in range(given) if layer.kind == MIXED else [c]:
                    w = layer.weights[c, i, j, d] if layer.kind == MIXED else layer.weights[c, i, j]
                    total += int(w) * int(image[v, u, d] if is_inside else layer.border)
        products.append(total * int(layer.multipliers[c]))
        made[y, x, c] = min(max(products[-1] >> int(layer.shifts[c]), 0), 255)
    return pooled_slowly(made, *layer.pool, layer.averages), products


def pooled_slowly(values, p, q, averages):
    """Replace each patch by its largest value, or by a sum of quotients, as the docstring says."""
    rows, columns, channels = values.shape[0] // p, values.shape[1] // q, values.shape[2]
    made = np.zeros((rows, columns, channels), int)
    for y, x, c in np.ndindex(made.shape):
        patch = values[y * p : y * p + p, x * q : x * q + q, c]
        means = ((patch[r].sum() + r * q + q // 2) // (p * q) for r in range(p))
        made[y, x, c] = sum(means) if averages else patch.max()
    return made


def slowly(stage, image):
    """Compute an image (rows, columns, channels), and the ends of what each layer finds."""
    found = []
    for layer in stage.layers:
        image, products = layer_slowly(layer, image, layer.around[0], layer.steps[0])
        found.append((min(products), max(products), image.max()))
    n = image.shape[0] * image.shape[1]
    if stage.flat:
        return image.ravel(), found
    return image.sum(axis=(0, 1)) * (65536 // n) >> 16, found


@settings(max_examples=25)
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


FORM = st.tuples(
    *(st.integers(0, 1) for _ in range(2)), *[st.integers(1, 3)] * 2, st.integers(0, 1)
)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 999),
    sides=st.tuples(st.integers(2, 12), st.integers(2, 12)),
    given_=st.integers(1, 3),
    blocks=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 2), FORM), min_size=1, max_size=3),
    flat=st.booleans(),
    border=st.sampled_from([0, 7, 255]),
)
def test_forms_of_blocks_are_the_specified_ones(seed, sides, given_, blocks, flat, border):
    """Mixed layers behind the first, no zeros around, patches, the flat image, a border."""
    channels, strides, forms = map(list, zip(*blocks, strict=True))
    forms[0] = [1, *forms[0][1:]]
    given = Grid(*sides, given_, "uint8", 0, 200)
    stage = random_separable(seed, given, channels, strides, forms=forms, flat=flat, border=border)
    if min(map(min, stage.sizes(given))) < 1:
        refused(ModelError, stage.gives, given)
        return
    images = np.random.default_rng(seed).integers(0, 201, (2, given.size), np.uint8)
    ranges, made = stage.ranges(given), stage.run(images, given)
    assert made.shape[1] == stage.gives(given).size
    for image, row in zip(images, made, strict=True):
        expected, seen = slowly(stage, image.reshape(*sides, given_))
        assert row.tolist() == expected.tolist()
        for (low, high, top), product, values in zip(seen, ranges[::2], ranges[1::2], strict=True):
            assert product.low <= low
            assert high <= product.high
            assert top <= values.high


def test_equal_values_keep_their_mean_and_factors_are_exact():
    """So a mean is a byte; C multiplies by a factor of 20 bits in the place of the division."""
    for p, q in np.ndindex(MOST_AVERAGED, MOST_AVERAGED):
        n, offsets = (p + 1) * (q + 1), mean_offsets((p + 1, q + 1))
        sums = np.arange(255 * (q + 1) + 1)[:, None] + offsets
        assert np.array_equal(sums // n, sums * -(-(1 << 20) // n) >> 20)
        equal = np.arange(256)
        means = (((q + 1) * equal[:, None] + offsets) // n).sum(axis=1)
        assert np.array_equal(means, equal)


@pytest.mark.parametrize(
    "fields",
    [
        {"forms": [[0, 1, 1, 1, 0]]},
        {"forms": [[1, 2, 1, 1, 0]]},
        {"forms": [[1, 1, 0, 1, 0]]},
        {"forms": [[1, 1, 9, 1, 1]]},
        {"row_strides": [1], "flat": True},
        {"row_strides": [1], "border": 3},
    ],
)
def test_forms_of_no_block_are_refused(fields):
    """A damaged file ends in one line."""
    units = ([0], [64], [3])
    refused(ModelError, Separable, [1], [1], 1, np.ones(9, np.int8), *units, **fields)


def test_layers_without_weights_are_refused():
    """A damaged file ends in one line."""
    refused(ModelError, Separable, [1], [1], 1, np.ones(8, np.int8), [0], [64], [3])


def test_products_that_could_overflow_are_refused():
    """Of so many inputs of the largest weights the sums are too large for the multiplier."""
    fields = ([1], [1], 64, np.full(576, 127, np.int8), [(1 << 19) - 1], [127], [0])
    refused(RangeError, Separable(*fields).ranges, Grid(4, 4, 64, "uint8", 0, 255))
