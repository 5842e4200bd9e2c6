"""The mean of areas in whole numbers: what the chip must compute, too."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tinykernel.base.resizing import crop_box, resize

SIDE = st.integers(1, 9)


def slowly(picture, rows, columns):
    """Average the area of every output in fractions."""
    height, width = picture.shape[:2]
    out = np.empty((rows, columns, picture.shape[2]), np.uint8)
    for i in range(rows):
        for j in range(columns):
            total = [Fraction(0)] * picture.shape[2]
            for y in range(height):
                for x in range(width):
                    down = shared(i, y, height, rows)
                    across = shared(j, x, width, columns)
                    for c, value in enumerate(picture[y, x].tolist()):
                        total[c] += down * across * value
            area = Fraction(height, rows) * Fraction(width, columns)
            out[i, j] = [int(value / area + Fraction(1, 2)) for value in total]
    return out


def shared(i, y, length, n):
    """Length that output i of n and pixel y share, in pixels."""
    first, end = Fraction(i * length, n), Fraction((i + 1) * length, n)
    return max(Fraction(0), min(end, Fraction(y + 1)) - max(first, Fraction(y)))


@settings(max_examples=25)
@given(SIDE, SIDE, SIDE, SIDE, st.sampled_from([1, 3]), st.integers(0, 2**32 - 1))
def test_a_value_is_the_mean_of_its_area(height, width, rows, columns, channels, seed):
    """Any size to any other, smaller or larger: the mean of the area in fractions, rounded once."""
    picture = np.random.default_rng(seed).integers(0, 256, (height, width, channels), np.uint8)
    top, left, high, wide = crop_box(height, width, rows, columns)
    expected = slowly(picture[top : top + high, left : left + wide], rows, columns)
    found = resize(lambda first, end: picture[first:end], height, width, rows, columns)
    assert np.array_equal(found, expected)


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 60), st.integers(1, 60))
def test_the_crop_is_centred_and_has_the_ratio(height, width, rows, columns):
    """A side stays whole, the other is cut by less than a pixel too much, margins are equal."""
    top, left, high, wide = crop_box(height, width, rows, columns)
    assert high == height or wide == width
    assert 0 <= height - high - 2 * top <= 1
    assert 0 <= width - wide - 2 * left <= 1
    assert (
        wide == 1
        or high == 1
        or abs(Fraction(wide, high) - Fraction(columns, rows))
        < (Fraction(columns, rows * high) + Fraction(1, high))
    )


def test_strips_of_a_high_picture_add_up():
    """A picture of more rows than are summed at a time: strips share a pixel."""
    picture = np.random.default_rng(0).integers(0, 256, (130, 3, 1), np.uint8)
    assert crop_box(130, 3, 46, 1) == (0, 0, 130, 2)
    found = resize(lambda first, end: picture[first:end], 130, 3, 46, 1)
    assert np.array_equal(found, slowly(picture[:, :2], 46, 1))
