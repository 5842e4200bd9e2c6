"""Numbers beside a window: their arithmetic, and how they come into a model and out of data."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.random_fronts import local_model, random_signal_stage
from tests.random_models import random_raw
from tests.refusals import refused
from tinykernel.base.errors import ModelError, ShapeError
from tinykernel.base.windows import as_rows
from tinykernel.pieces.beside.sample import random_beside
from tinykernel.pieces.beside.spec import Beside, as_windows
from tinykernel.pieces.grid import Grid


def slow(stage: Beside, numbers: list[float]) -> list[int]:
    """Follow the specification of the stage with Python's integers, and with floats of 32 bits."""
    found, scaler = [], stage.scaler
    for i, number in enumerate(stage.source.tolist()):
        if scaler.is_float:
            x, offset = np.float32(numbers[number]), scaler.offset[i]
            level = np.float32(np.float32(x - offset) * scaler.multiplier[i])
            level = min(int(level), 255) if level > 0 else 0
        else:
            above = min(max(numbers[number] - int(scaler.offset[i]), 0), int(scaler.span[i]))
            level = (above >> int(scaler.pre_shift[i])) * int(scaler.multiplier[i]) >> 16
        found.append(level * (stage.top + 1) >> 8)
    return found


@given(
    seed=st.integers(0, 99),
    n=st.integers(1, 9),
    dtype=st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "float32"]),
    top=st.integers(1, 65535),
    data=st.data(),
)
def test_numbers_become_counts_as_specified(seed, n, dtype, top, data):
    """Any number of any type, far outside its range, too; the counts before it stay."""
    stage = random_beside(seed, n, dtype, top)
    if dtype == "float32":
        values = st.floats(-1e6, 1e6, width=32)
    else:
        values = st.integers(np.iinfo(dtype).min, np.iinfo(dtype).max)
    numbers = data.draw(st.lists(values, min_size=n, max_size=n))
    grid = Grid(1, 1, 3, "uint16", 0, 300)
    made = stage.gives(grid)
    found = stage.run(np.array([[0, 17, 300, *numbers]]), grid)
    assert found.dtype == made.dtype
    assert found[0].tolist() == [0, 17, 300, *slow(stage, numbers)]
    assert made.low <= found.min() <= found.max() <= made.high


def test_numbers_reach_the_scores_and_wrong_rows_are_refused():
    """They are at the end of a row; without them, or as windows, inputs are refused."""
    beside = random_beside(1, 2, "int16")
    model = local_model(random_signal_stage(1), 1, beside=beside)
    rows = random_raw(model, 0, 20)
    assert rows.shape == (20, 64 * 3 + 2)
    moved = rows.copy()
    moved[:, -2:] = rows[::-1, -2:]
    assert not np.array_equal(model.scores(rows), model.scores(moved))
    for X in (rows[:, :-2], rows[:, :-2].reshape(20, 64, 3)):
        refused(ShapeError, model.scores, X)
    floats = random_beside(1, 2, "float32")
    stages = tuple(floats if stage is beside else stage for stage in model.stages)
    refused(ModelError, replace, model, stages=stages)
    refused(ModelError, replace, beside, source=[0, 2, 2])


def test_the_last_sample_tells_the_numbers_of_a_window():
    """Rows that were made windows and rows again are the same."""
    grid = Grid.raw("int16", 4, 1, 2)
    rows = np.arange(30, dtype=np.int16).reshape(3, 10)
    windows = as_windows(rows, grid)
    assert windows.shape == (3, 4, 4)
    assert np.array_equal(as_rows(windows, 2), rows)
    windows[:, :-1, 2:] = -1
    assert np.array_equal(as_rows(windows, 2), rows)
