"""The one rule by which candidates are chosen."""

from dataclasses import replace

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


def test_the_line_says_loss_and_accuracy_and_why_the_cheaper_one_won():
    """A choice is said in one line, of values by R2."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=100)
    cheap, dear = Candidate("trees", 1 + noise, 0.9), Candidate("compact", 0.99 - noise, 0.95, 1)
    said = choose([cheap, dear]).in_words
    assert said.startswith("trees chosen over compact on held-out rows: log loss ")
    assert said.endswith("90.00 against 95.00 %; within one standard error, and it costs less")
    same = replace(cheap, cost=1)
    assert choose([same, dear], of_values=True).in_words == (
        "compact chosen over trees on held-out rows: R2 0.9500 against 0.9000"
    )
    alone = choose([cheap]).in_words
    assert alone.startswith("trees on held-out rows: log loss ")
    assert alone.endswith(", accuracy 90.00 %")
