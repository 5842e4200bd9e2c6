"""The permutation of a Fastfood block."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from tinykernel.base.errors import ModelError
from tinykernel.pieces.fastfood import Permutation

pytestmark = pytest.mark.usefixtures("page")


@given(log_d=st.integers(0, 16), a=st.integers(0, 16383), c=st.integers(0, 32767))
@settings(max_examples=60, deadline=None)
def test_orbit_is_the_recurrence(log_d: int, a: int, c: int) -> None:
    """The orbit is what the firmware computes step by step, and visits every index once."""
    d, multiplier, increment = 2**log_d, 4 * a + 1, 2 * c + 1
    got = Permutation("orbit", multiplier=multiplier, increment=increment).indices(d)
    assert got.dtype == np.uint16
    assert got.size == d
    state = 0
    for j in range(d):
        assert got[j] == state
        state = (multiplier * state + increment) % d
    assert np.unique(got).size == d


def test_identity_counts_up() -> None:
    np.testing.assert_array_equal(Permutation().indices(4), [0, 1, 2, 3])


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "random"},
        {"kind": "orbit", "multiplier": 3},
        {"kind": "orbit", "multiplier": 5, "increment": 2},
        {"kind": "stored"},
    ],
)
def test_refuses_what_is_no_permutation(arguments: dict[str, object]) -> None:
    """Parameters that describe no permutation are one clear line."""
    refused(ModelError, Permutation, **arguments)  # type: ignore[arg-type]
