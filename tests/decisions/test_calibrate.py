"""Decisions: promises that hold, and one line where the rows do not suffice."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.random_models import changed, random_model, random_raw
from tests.refusals import refused
from tinykernel.base.errors import ModelError, RowsError, TinykernelError
from tinykernel.learn.calibration import calibrate
from tinykernel.learn.confidence import (
    Ranking,
    calibration_error,
    conformal_levels,
    fit_temperature,
    rows_needed,
    upper_bound,
)
from tinykernel.model.answers import Decision, Labels, softmax

pytestmark = pytest.mark.usefixtures("page")


@pytest.fixture(scope="module")
def rows() -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a model, rows, and labels that are the likelier the model's the larger its margin."""
    model = changed(random_model(3, n_classes=3), answers=Labels(("a", "b", "c")))
    X, rng = random_raw(model, 1, 3000), np.random.default_rng(0)
    middle = model.scores(X).mean(axis=0).astype(np.int32)  # or one class had all rows
    model = changed(model, offset=model.readout.offset - middle)
    two = np.sort(model.scores(X), axis=1)[:, -2:]
    margin = (two[:, 1] - two[:, 0]) / np.median(two[:, 1] - two[:, 0])
    wrong = rng.random(3000) < 0.5 * np.exp(-3 * margin)
    labels = model.scores(X).argmax(axis=1)
    labels = np.where(wrong, (labels + rng.integers(1, 3, 3000)) % 3, labels)
    return model, X, np.array(model.classes)[labels]


def test_decisions_against_a_loop(rows) -> None:
    """Labels, refusals and confidences are those of the definition, row by row."""
    model, X, y = rows
    found = calibrate(model, X, y, max_error=0.05, per_class=True).model
    decision, slow, sure = found.decision, [], []
    for scores in model.scores(X).tolist():
        best = scores.index(max(scores))
        margin = scores[best] - max(scores[:best] + scores[best + 1 :])
        slow.append(best if margin >= decision.thresholds[best] else -1)
        sure.append(decision.table[min(margin >> decision.shift, 63)])
    assert found.decide(X).tolist() == slow
    assert found.confidence(X).tolist() == sure
    assert 0 < slow.count(-1) < len(slow)
    assert np.ptp(sure) > 50
    assert np.array_equal(found.scores(X), model.scores(X))


def test_promise_holds_for_the_threshold_that_is_chosen() -> None:
    """Of many calibrations no more break their promise than the risk says."""
    rng, risk, most, broken, answered = np.random.default_rng(0), 0.2, 0.1, 0, 0
    truth = np.arange(4000) / 4000
    for _ in range(80):
        margin = rng.integers(0, 4000, 300)
        right = rng.random(300) >= 0.5 * (1 - truth[margin]) ** 2
        chosen, _ = Ranking(margin.astype(np.uint32), right).by_error(most, risk)
        if chosen is not None:
            answered += 1
            broken += np.mean(0.5 * (1 - truth[chosen.threshold :]) ** 2) > most
    assert answered > 60
    assert broken <= 0.2 * 80


@pytest.mark.parametrize("kinds", [3, 5, 10])
@pytest.mark.parametrize("falls", [True, False])
def test_equal_margins_keep_the_promise_of_a_coverage(kinds, falls) -> None:
    """Rows at the threshold are answered, so that the bound of the error counts them."""
    rng, n, broken, covered = np.random.default_rng(0), 200, 0, 0.0
    error = np.linspace(0.4, 0, kinds) ** 2 if falls else np.full(kinds, 0.2)
    levels = conformal_levels(None, n)
    for _ in range(300):
        margin = rng.integers(0, kinds, n).astype(np.uint32)
        right = rng.random(n) >= error[margin]
        found = Ranking(margin, right).by_coverage(0.7, 0.05, levels)
        answered = margin >= found.threshold
        assert (found.answered, found.wrong) == (answered.sum(), (answered & ~right).sum())
        assert found.wrong / found.answered <= found.bound
        new = np.arange(kinds) >= found.threshold
        broken += error[new].mean() > found.bound
        covered += new.mean() / 300
    assert broken <= 0.05 * 300 + 2 * np.sqrt(300 * 0.05 * 0.95)
    assert covered >= 0.7


def test_bounds_against_their_definition() -> None:
    """The number of rows that is said to be needed suffices, and one less does not."""
    for most, risk, wrong in ((0.01, 0.05, 0), (0.05, 0.01, 3), (0.3, 0.2, 1)):
        n = rows_needed(most, risk, wrong=wrong)
        assert n is not None
        assert upper_bound(wrong, n, risk) <= most < upper_bound(wrong, n - 1, risk)


def test_coverage_covers_new_rows(rows) -> None:
    """As many new rows are answered as was asked for."""
    model, X, y = rows
    found = calibrate(model, X[:1500], y[:1500], coverage=0.9).model
    assert 0.87 < np.mean(found.decide(X[1500:]) >= 0) < 0.96  # equal margins go together


def test_groups_that_are_alike_count_as_fewer_rows(rows) -> None:
    """Repeating rows within groups makes no promise tighter."""
    model, X, y = rows
    by_row = calibrate(model, X, y)
    group = np.arange(300)
    by_group = calibrate(
        model, np.repeat(X[:300], 10, 0), np.repeat(y[:300], 10), groups=np.repeat(group, 10)
    )
    assert by_group.independent < 400 < by_row.independent
    assert by_group.bound > by_row.bound
    levels = conformal_levels(np.repeat(group, 10), 3000)
    assert levels.sum() == pytest.approx(300 / 301)
    y = np.where(np.arange(3000) < 200, np.roll(y, 1), y)  # one of the groups is different
    refused(RowsError, calibrate, model, X, y, groups=np.arange(3000) // 200, max_error=0.02)
    margin = np.arange(3000, dtype=np.uint32)
    assert Ranking(margin, margin > 0).by_coverage(0.999, 0.05, levels) is None


def test_probabilities_are_calibrated(rows) -> None:
    """The temperature finds the truth: labels drawn from known probabilities."""
    rng, logits = np.random.default_rng(1), np.random.default_rng(2).normal(size=(4000, 4))
    true = softmax(logits, 0.5)
    labels = (rng.random((4000, 1)) > true.cumsum(axis=1)).sum(axis=1)
    assert fit_temperature(logits, labels) == pytest.approx(0.5, rel=0.05)
    model, X, y = rows
    found = calibrate(model, X[::2], y[::2])
    right = model.predict(X[1::2]) == y[1::2]
    assert calibration_error((found.model.confidence(X[1::2]) + 0.5) / 256, right) < 0.03
    assert found.error_after < 0.1
    assert found.model.predict_proba(X[:5]).sum(axis=1) == pytest.approx(np.ones(5))


@pytest.mark.parametrize(
    "change",
    [
        {"max_error": 1.5},
        {"max_error": 0.1, "coverage": 0.9},
        {"max_error": 0.0001},
        {"coverage": 0.9999},
        {"per_class": True},
        {"y": np.array(["a"] * 3000), "max_error": 0.9, "per_class": True},
        {"y": np.array(["z"] * 3000)},
    ],
)
def test_what_rows_cannot_promise(rows, change) -> None:
    """One line says what is wrong and how many rows are needed."""
    model, X, y = rows
    refused(TinykernelError, calibrate, model, X, **{"y": y} | change)


def test_wrong_decision_parts_are_refused(rows) -> None:
    """Damaged fields do not make a model."""
    model, X, y = rows
    found = calibrate(model, X, y).model
    for change in ({"shift": 32}, {"temperature": 0.0}, {"table": found.decision.table[::-1]}):
        refused(ModelError, dataclasses.replace, found.decision, **change)
    two = Decision(**{**vars(found.decision), "thresholds": np.zeros(2, np.uint32)})
    refused(ModelError, dataclasses.replace, model, decision=two)
