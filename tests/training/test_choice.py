"""Which rows are held out, and the one rule by which candidates are chosen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from tinykernel.base.errors import RowsError
from tinykernel.learn.choice import Candidate, choose, hold_out, standard_error, trial_folds
from tinykernel.learn.linear.kind import LinearSpec, _wider_first

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


@pytest.mark.parametrize(("lead", "chosen"), [(0.01, 1), (0.5, 0)])
def test_a_linear_part_keeps_wider_weights_unless_narrower_ones_lead_clearly(lead, chosen):
    """Folds hardly tell 4 bits from 8, and rounding only loses: HAR has 95.8 % for 95.4."""
    losses, specs = np.linspace(0.5, 1.5, 50), [LinearSpec(bits=4), LinearSpec(bits=8)]
    other = losses[::-1] + lead
    judged = _wider_first([Candidate("4", losses, 0.9), Candidate("8", other, 0.9)], specs)
    assert choose(judged, np.ones(50), None).chosen == chosen


def test_of_rows_the_error_is_that_of_the_mean():
    """Without weights and groups it is the usual standard error; four groups tell none."""
    values = np.random.default_rng(0).normal(size=50)
    usual = values.std(ddof=1) / np.sqrt(50)
    assert standard_error(values, np.ones(50)) == pytest.approx(usual)
    assert standard_error(values, np.ones(50), np.arange(50) % 4) == pytest.approx(usual)
    assert standard_error(values, np.ones(50), np.arange(50) // 10) != pytest.approx(usual)


def test_groups_are_never_on_both_sides():
    """No person is learned from and judged by."""
    rng = np.random.default_rng(0)
    codes, groups = rng.integers(0, 3, 2000), rng.integers(0, 17, 2000)
    folds = trial_folds(codes, groups, 0)
    assert len(folds) == 3
    for fold in folds:
        assert not set(groups[fold.inside]) & set(groups[fold.outside])
        assert 0.1 < fold.outside.size / codes.size < 0.4
    out = hold_out(codes, groups, 0.2, 0)
    assert not set(groups[out]) & set(groups[~out])
    assert 0.2 <= out.mean() < 0.32


def test_folds_hold_out_other_rows_of_every_class():
    """Three folds of a quarter each; one where there are many rows."""
    codes = np.arange(3000) % 5
    folds = trial_folds(codes, None, 0)
    held = [set(fold.outside.tolist()) for fold in folds]
    assert [len(rows) for rows in held] == [750, 750, 750]
    assert not held[0] & held[1]
    for fold in folds:
        assert np.bincount(codes[fold.outside]).tolist() == [150] * 5
        assert not set(fold.inside) & set(fold.outside)
    assert len(trial_folds(np.arange(20000) % 2, None, 0)) == 1


def test_tiny_classes_stay_in_training():
    """A class with fewer rows than parts is never held out."""
    codes = np.append(np.zeros(100, int), [1, 1])
    for fold in trial_folds(codes, None, 0):
        assert np.sum(codes[fold.inside] == 1) == 2
    assert trial_folds(np.array([0, 1]), None, 0) == []


@pytest.mark.parametrize("share", [0.1, 0.25, 0.4, 0.45])
def test_the_share_asked_for_is_kept_aside(share):
    """A share above a third is kept as it is."""
    codes = np.arange(1000) % 4
    out = hold_out(codes, None, share, 0)
    assert out.mean() == pytest.approx(share, abs=0.01)
    assert np.ptp(np.bincount(codes[out])) <= 1


def test_too_few_rows_are_refused():
    """A clear line where nothing can be held out, or a class would be lost."""
    refused(RowsError, hold_out, np.arange(8) % 2, None, 1e-9, 0)
    refused(RowsError, trial_folds, np.arange(8) % 2, np.zeros(8), 0)
    refused(RowsError, hold_out, np.repeat([0, 1], 4), np.repeat([0, 1], 4), 0.3, 0)
