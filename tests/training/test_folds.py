"""Rows that the joint trainer holds out."""

import numpy as np
import pytest

from tests.refusals import refused
from tinykernel.base.errors import RowsError
from tinykernel.learn.choice import hold_out, trial_folds


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
