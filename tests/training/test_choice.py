"""The one rule by which candidates are chosen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinykernel.learn.choice import Candidate, choose, standard_error

numbers = st.lists(st.floats(0, 10), min_size=12, max_size=12)


@given(numbers, numbers, numbers, st.booleans())
def test_the_choice_is_that_of_a_loop(first, second, third, grouped):
    """The cheapest wins whose lead to the best is at most the deviation of sums of groups."""
    losses = np.array([first, second, third])
    weight, groups = np.linspace(1, 2, 12), np.arange(12) // 2 if grouped else None
    chosen = choose(
        [Candidate(str(i), each, 0.5, i) for i, each in enumerate(losses)], weight, groups
    )
    means = [float((each * weight).sum() / weight.sum()) for each in losses]
    best = int(np.argmin(means))
    expected = best
    for i in reversed(range(best)):
        gap = means[i] - means[best]
        parts = weight * (losses[i] - losses[best] - gap)
        if grouped:
            parts = parts.reshape(6, 2).sum(axis=1)
        error = np.sqrt((parts**2).sum() * len(parts) / (len(parts) - 1)) / weight.sum()
        if abs(gap - error) < 1e-9:
            return  # rounding decides
        expected = i if gap <= error else expected
    assert (chosen.best, chosen.chosen) == (best, expected)


def test_of_rows_the_error_is_that_of_the_mean():
    """Without weights and groups it is the usual standard error; four groups tell none."""
    values = np.random.default_rng(0).normal(size=50)
    usual = values.std(ddof=1) / np.sqrt(50)
    assert standard_error(values, np.ones(50)) == pytest.approx(usual)
    assert standard_error(values, np.ones(50), np.arange(50) % 4) == pytest.approx(usual)
    assert standard_error(values, np.ones(50), np.arange(50) // 10) != pytest.approx(usual)
