"""The stages *convolutions* and *dense*: their arithmetic, proved ranges, and C."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from tinykernel.base.errors import ModelError, RangeError
from tinykernel.pieces.convolutions.sample import random_convolutions
from tinykernel.pieces.convolutions.spec import Convolutions
from tinykernel.pieces.dense.sample import random_dense
from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.grid import Grid

GRID = Grid(9, 8, 1, "uint8", 0, 255)


def slow_maps(stage: Convolutions, image: np.ndarray[Any, Any]) -> tuple[list[int], list[set[int]]]:
    """Follow the docstring value by value; return the last maps and the responses of each layer."""
    found, responses = [], [set[int]() for _ in stage.pools]
    for c in range(stage.n_channels):
        rows = np.pad(image, stage.padding).tolist()
        for layer, pool in enumerate(stage.pools):
            made = []
            for y in range(len(rows) - 2):
                made.append([])
                for x in range(len(rows[0]) - 2):
                    a = int(stage.biases[layer, c])
                    for i in range(3):
                        for j in range(3):
                            a += int(stage.weights[layer, c, i, j]) * rows[y + i][x + j]
                    responses[layer].add(a)
                    made[-1].append(min(max(a >> int(stage.shifts[layer]), 0), 255))
            if pool:
                made = [
                    [
                        max(made[2 * y][2 * x : 2 * x + 2] + made[2 * y + 1][2 * x : 2 * x + 2])
                        for x in range(len(made[0]) // 2)
                    ]
                    for y in range(len(made) // 2)
                ]
            rows = made
        found.append(rows)
    return np.array(found).transpose(1, 2, 0).ravel().tolist(), responses


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from([(0,), (1,), (0, 1), (1, 0), (1, 1)]),
    st.sampled_from([4, 8]),
    st.integers(0, 1),
    st.tuples(st.integers(12, 15), st.integers(12, 15)),
)
def test_maps_are_those_computed_value_by_value(seed, pools, bits, padding, shape):
    """Padding, odd sides and pooling: as written in the docstring, and inside of the proof."""
    high = (255, 15, 1)[seed % 3]
    given_ = Grid(*shape, 1, "uint8", 0, high)
    stage = random_convolutions(seed, given_, pools, 2, bits, padding)
    image = np.random.default_rng(seed).integers(0, high + 1, shape).astype(np.uint8)
    expected, responses = slow_maps(stage, image)
    assert stage.run(image.reshape(1, -1), given_).tolist() == [expected]
    made = stage.gives(given_)
    assert made.size == len(expected)
    assert max(expected) <= made.high
    for found, proved in zip(responses, stage.ranges(given_)[::2], strict=True):
        assert proved.low <= min(found)
        assert max(found) <= proved.high


def test_the_proof_of_a_layer_is_reached():
    """An image of extremes has the largest and the least response of the first layer."""
    stage = random_convolutions(1, GRID, (0,), 3, 8, 0)
    low, high = [], []
    for weights in stage.weights[0]:
        for best, sign in ((low, -1), (high, 1)):
            image = np.zeros((9, 8), np.uint8)
            image[:3, :3] = np.where(sign * weights > 0, 255, 0)
            best += list(slow_maps(stage, image)[1][0])
    proved = stage.ranges(GRID)[0]
    assert (proved.low, proved.high) == (min(low), max(high))


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 4, 8]))
def test_units_are_those_computed_one_by_one(seed, bits):
    """A hidden layer of weights of every width, within its proof."""
    given_ = Grid(3, 2, 4, "uint8", 0, (255, 9)[seed % 2])
    dense = random_dense(seed, given_, 5, bits)
    rows = np.random.default_rng(seed).integers(0, given_.high + 1, (4, 24)).astype(np.uint8)
    sums = [
        [
            int(b) + sum(int(w) * int(v) for w, v in zip(ws, row, strict=True))
            for ws, b in zip(dense.weights, dense.biases, strict=True)
        ]
        for row in rows
    ]
    expected = [[min(max(a >> dense.shift, 0), 255) for a in row] for row in sums]
    assert dense.run(rows, given_).tolist() == expected
    proved, made = dense.ranges(given_)[0], dense.gives(given_)
    assert proved.low <= np.min(sums)
    assert np.max(sums) <= proved.high
    assert np.max(expected) <= made.high


def test_grids_that_do_not_fit_are_refused():
    """Too small an image, other values, and sums that could leave 32 bits have one clear line."""
    whole = Convolutions(np.ones((2, 2, 3, 3)), [[0, 1]] * 2, [2, 2], [True, False])
    refused(ModelError, Convolutions, np.ones((9, 2, 3, 3)), [[0, 1]] * 9, [2] * 9, [False] * 9)
    refused(ModelError, whole.gives, Grid(7, 9, 1, "uint8", 0, 255))
    refused(ModelError, whole.gives, Grid(20, 9, 2, "uint8", 0, 255))
    refused(ModelError, Dense(np.ones((1, 3)), [0], 0).gives, GRID)
    refused(RangeError, Dense(np.ones((1, 72)), [2**31 - 1], 0).ranges, GRID)
