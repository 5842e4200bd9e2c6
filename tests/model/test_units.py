"""Fixed point: every score fits into int32, and is as fine as that allows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random_models import random_model
from tests.refusals import refused
from tinykernel import TinykernelError
from tinykernel.base.errors import ModelError
from tinykernel.model.answers import Values
from tinykernel.model.fixed import Sums, ValueUnits, kernel_model, to_fixed_point
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.ternary.spec import Ternary

_SIZES = st.floats(-12, 12)


@given(_SIZES, _SIZES, st.floats(0.001, 1), st.integers(1, 4096), st.integers(0, 2**20))
def test_no_score_leaves_int32(spread, centre, gain, sums, dots):
    """Whatever the sum and the dot product are, the score fits, and is near the real value."""
    units = ValueUnits(("y",), np.array([10.0**centre]), np.array([10.0**spread]))
    scale, linear = np.array([gain / 64]), np.array([gain / 4096])
    try:
        found = to_fixed_point(
            units, scale, linear, np.zeros(1), np.array([sums]), np.array([dots])
        )
    except TinykernelError:
        assert _is_coarse(
            10.0**centre, 10.0**spread, scale[0] * sums + linear[0] * dots, sums + dots
        )
        return
    for sign in (-1, 1):
        score = sign * (int(found.multiplier[0]) * sums + int(found.linear_multiplier[0]) * dots)
        score += int(found.offset[0])
        assert abs(score) < 2**31
        exact = 10.0**centre + sign * 10.0**spread * (scale[0] * sums + linear[0] * dots)
        assert abs(score * found.values.unit - exact) <= 0.051 * 10.0**spread


def _is_coarse(centre: float, spread: float, reach: float, terms: int) -> bool:
    """Whether factors rounded to the last bit that int32 allows may move a value by its twentieth.

    The largest shift that fits is at most one less than what the real values would allow.
    """
    moved = terms / 2 + 1
    finest = (2**30 - moved) / (centre + spread * reach)
    return moved > 0.05 * spread * finest


def test_what_a_fixed_point_refuses():
    """Names and shift are checked where they are made."""
    for names, shift in (((), 0), (("a", "a"), 0), ((1,), 0), (("a",), 1.5), (("a",), 300)):
        refused(ModelError, Values, names, shift)


@pytest.mark.parametrize("worth", [3e-6, 3e-7, 9e-8, 6e-8, 3e-14])
def test_a_small_linear_part_overflowed_the_scores(worth: float) -> None:
    """Whatever a level is worth: the scores fit, and follow the floats as far as they can."""
    rng = np.random.default_rng(0)
    given = {"n_features": 60, "n_blocks": 4, "bits": 16, "raw_dtype": "float32"}
    plain = random_model(5, shared_scaler=True, **given)
    levels = rng.integers(-7, 8, (3, 60)).astype(np.int8)
    sums = Sums(rng.uniform(0.5, 1, 3), rng.normal(size=3), levels, worth)
    components, weights = plain.find(Components), plain.find(Ternary).weights
    model = kernel_model(plain.scaler, components, weights, sums, (0, 1, 2))
    X = rng.uniform(0, 200, (300, 60)).astype(np.float32)
    only = kernel_model(plain.scaler, components, weights, Sums(sums.scale, sums.offset), (0, 1, 2))
    expected = only.decision_function(X) + worth * (only.scaler.quantize(X) @ levels.T.astype(int))
    actual = model.decision_function(X)
    assert np.sqrt(np.mean((actual - expected) ** 2)) < 0.2 * expected.std()
    assert np.any(model.find(Linear).multiplier) == (worth > 8e-8)
