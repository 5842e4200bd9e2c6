"""Novelty: what looks like no class, with a rate of false alarms that was promised."""

import numpy as np
import pytest

from tests.random_models import random_model, random_raw
from tests.refusals import refused
from tinykernel import calibrate, load
from tinykernel.base.errors import ModelError, OptionError, TinykernelError
from tinykernel.learn.confidence import upper_bound
from tinykernel.learn.novelty import alarms
from tinykernel.model.answers import novelties
from tinykernel.model.file import save

pytestmark = pytest.mark.usefixtures("page")


def test_the_promise_holds_as_often_as_it_says() -> None:
    """At most about 5 % of calibrations give more false alarms than promised, ties included."""
    rng = np.random.default_rng(0)
    for values in (np.arange(100_000), np.arange(100_000) // 500):
        broken = 0
        for _ in range(400):
            drawn = rng.choice(values, 500).astype(np.int32)
            found = alarms(drawn, None, 0.02, 0.05)
            broken += np.mean(values > found.threshold) > 0.02
        assert broken <= 34  # 20 of 400 on average at most; 34 is three deviations above


def test_the_threshold_is_the_lowest_that_can_be_promised() -> None:
    """One alarm more could not be promised."""
    found = alarms(np.arange(1000, dtype=np.int32), None, 0.05, 0.05)
    assert found.bound == upper_bound(found.alarms, 1000, 0.05) <= 0.05
    assert upper_bound(found.alarms + 1, 1000, 0.05) > 0.05


def test_too_few_rows_are_refused() -> None:
    """The message says how many are needed; rows of few groups count as few."""
    rows, how = np.arange(4000, dtype=np.int32), (0.01, 0.05)
    refused(TinykernelError, alarms, rows[:298], None, *how)
    alarms(rows[:299], None, *how)
    groups = rows // 1000
    refused(TinykernelError, alarms, rows, groups, *how)


def test_a_model_keeps_its_threshold(tmp_path) -> None:
    """Calibrated, saved and loaded it says the same; another threshold is another model."""
    model = random_model(3, n_classes=4)
    X = random_raw(model, 1, 400)
    y = np.array(model.classes)[np.arange(400) % 4]
    plain, found = calibrate(model, X, y), calibrate(model, X, y, false_alarms=0.05)
    novelty = found.model.novelty(X)
    assert np.array_equal(novelty, -1 - model.scores(X).max(axis=1))
    novel = found.model.is_novel(X)
    assert found.alarms is not None
    assert 0 < novel.sum() == found.alarms.alarms < 20
    assert novelty[novel].min() > novelty[~novel].max()
    assert "5 %" in found.statement
    save(found.model, tmp_path / "m.tkm")
    assert load(tmp_path / "m.tkm") == found.model != plain.model
    refused(ModelError, plain.model.is_novel, X)
    refused(OptionError, calibrate, model, X, y, false_alarms=1.0)


def test_no_novelty_overflows() -> None:
    """The smallest and the largest score have one, and the order is turned round."""
    scores = np.array([[-(2**31)] * 2, [2**31 - 1, 0]], dtype=np.int32)
    assert novelties(scores).tolist() == [2**31 - 1, -(2**31)]
