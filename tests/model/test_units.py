"""Fixed point: every score fits into int32, and is as fine as that allows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from tinykernel import TinykernelError
from tinykernel.base.errors import ModelError
from tinykernel.model.answers import Values
from tinykernel.model.fixed import ValueUnits, to_fixed_point

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
