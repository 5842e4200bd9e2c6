"""Judging a model: figures against scikit-learn and scipy, baselines, and what is cautioned of."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest
from sklearn import metrics

from tests.frames import frame_model
from tests.refusals import refused
from tinykernel import TernaryKernelClassifier
from tinykernel.base.errors import TinykernelError
from tinykernel.data.splits import KEPT, record_of, seen_before
from tinykernel.judge import figures, models
from tinykernel.judge.baselines import label_baselines
from tinykernel.judge.models import cautions, evaluate, evaluate_clips, far_groups, from_few_groups
from tinykernel.learn.confidence import intraclass_correlation, is_positive

pytestmark = pytest.mark.usefixtures("page")

RNG = np.random.default_rng(0)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_interval_of_independent_rows(counts):
    """Without groups it is the exact interval of scipy; with rows as groups no narrower one."""
    right, n = counts
    outcome = np.arange(n) < right
    expected = binomtest(right, n).proportion_ci(method="exact")
    assert figures.accuracy_interval(outcome) == pytest.approx(
        (expected.low, expected.high), abs=1e-9
    )
    if n >= 8:
        low, high = figures.accuracy_interval(outcome, np.arange(n))
        assert low <= expected.low + 0.02
        assert high >= expected.high - 0.02


@given(st.integers(8, 30), st.integers(1, 20), st.integers(0, 10**6))
def test_interval_of_groups(n_groups, size, seed):
    """Rows that are copies of each other add no certainty; the interval holds the share."""
    rng = np.random.default_rng(seed)
    one = rng.random(n_groups) < 0.7
    copies = figures.accuracy_interval(np.repeat(one, size), np.repeat(np.arange(n_groups), size))
    alone = figures.accuracy_interval(one)
    assert copies[1] - copies[0] >= 0.95 * (alone[1] - alone[0])
    assert copies[0] <= one.mean() <= copies[1]


@given(st.integers(2, 12), st.integers(2, 9), st.integers(0, 10**6))
def test_the_correlation_of_equal_groups_is_that_of_the_analysis_of_variance(groups, size, seed):
    """Of equal groups it is (MSB - MSW) / (MSB + (n - 1) MSW), divided by K - 1 as by K."""
    values = np.random.default_rng(seed).normal(size=(groups, size))
    means = values.mean(axis=1)
    total, between = values.var(), means.var() * groups / (groups - 1)
    expected = np.clip((between / total - 1 / size) / (1 - 1 / size), 0, 1)
    found = intraclass_correlation(values.ravel(), np.repeat(np.arange(groups), size))
    assert found == pytest.approx(expected, abs=1e-9)


def test_labels_of_few_groups_are_named():
    """Two of 22 records that hold most of a label are named, however many rows they have of all.

    So are they of the training rows.
    """
    labels, groups = np.repeat(["N", "S", "V"], 220), np.arange(660) % 22
    assert from_few_groups(labels, groups) == ()
    few = np.where((labels == "S") & (np.arange(660) % 7 > 0), groups % 2, groups)
    (line,) = from_few_groups(labels, few)
    assert re.match("8[5-9] % of the rows of 'S' come from 2 of 22 groups: ", line)
    assert from_few_groups(labels, np.zeros(660)) == ()
    X = RNG.normal(size=(660, 4))
    machine = TernaryKernelClassifier(n_components=32, effort="quick").fit(X, labels)
    found = evaluate(machine, X[:9], labels[:9], train=(X, labels, few)).cautions
    assert "2 of 22" in str(found)
    sizes = [383, 128, 105, 96, 94, 73, *[4] * 15]
    labels, groups = np.repeat(["S", "N"], [sum(sizes), 630]), np.repeat(np.arange(21), sizes)
    (line,) = from_few_groups(labels, np.append(groups, np.arange(630) % 21))
    assert "5 of 21" in line
    for train in ((X, labels[:9]), (X, labels, few[:9])):
        refused(TinykernelError, evaluate, machine, X[:9], labels[:9], train=train)


@pytest.mark.parametrize("few", [0, 2])
@pytest.mark.parametrize("same", [False, True])
def test_intervals_of_the_mean_recall_hold_for_labels_of_few_groups(few, same):
    """Also where a group that is bad for a label is so for all; few groups make them wider."""
    rng, held, width = np.random.default_rng(0), [], []
    for _ in range(200):
        rate, counts = rng.random((3, 12)), np.full((3, 12), 40)
        rate = beta.ppf(rate[:1] if same else rate, [[9], [5.5], [8.5]], [[1], [4.5], [1.5]])
        if few:
            counts[1, few:] = 1
        groups = np.concatenate([np.repeat(np.arange(12), each) for each in counts])
        labels = np.repeat(np.arange(3), counts.sum(axis=1))
        right = rng.random(len(labels)) < rate[labels, groups]
        low, high = figures.compare(
            labels, np.where(right, labels, 3), groups=groups
        ).balanced_interval
        held.append(low <= 2.3 / 3 <= high)
        width.append(high - low)
    assert np.mean(held) >= 0.92
    assert (np.mean(width) > 0.26) == (few > 0)


def test_a_group_that_is_far_worse_is_named():
    """Of twelve persons one or two bad ones are, and none of those that chance explains."""
    rng, groups = np.random.default_rng(0), np.repeat([f"p{i:02}" for i in range(12)], 40)
    for bad in ([], ["p03"], ["p03", "p07"]):
        exact = 0
        for _ in range(200):
            right = rng.random(480) < np.where(np.isin(groups, bad), 0.5, 0.95)
            exact += re.findall(r"'(p\d+)'", " ".join(far_groups(right, groups))) == bad
        assert exact >= 190
    (line,) = far_groups((groups != "p03") | (np.arange(480) % 2 > 0), groups)
    assert "'p03'" in line
    assert far_groups(groups != "p03", np.repeat(np.arange(6), 80)) == ()


def test_few_groups_have_no_interval():
    """Seven groups have none, the words say so, and seven prove nothing."""
    groups = np.arange(70) % 7
    assert figures.compare(groups > 1, groups > 1, groups=groups).interval is None
    assert figures.compare_values(groups, groups + 1, groups).interval is None
    assert figures.interval_in_words(None, 1) == "too few groups for an interval"
    gain = np.ones(100)
    found = [is_positive(gain, np.arange(100) % number) for number in (1, 7, 8)]
    assert found == [False, False, True]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_figures(pairs):
    """Every figure is that of scikit-learn."""
    true, got = (np.array(labels) for labels in zip(*pairs, strict=True))
    found = figures.compare(true, got, classes=("a", "b", "c"))
    labels = ["a", "b", "c"]
    assert np.array_equal(found.confusion, metrics.confusion_matrix(true, got, labels=labels))
    assert found.accuracy == pytest.approx(metrics.accuracy_score(true, got))
    assert found.macro_f1 == pytest.approx(
        metrics.f1_score(true, got, average="macro", zero_division=0)
    )
    for name, score in (("recall", metrics.recall_score), ("precision", metrics.precision_score)):
        expected = score(true, got, labels=labels, average=None, zero_division=np.nan)
        np.testing.assert_allclose(getattr(found, name), expected)
    assert found.balanced_accuracy == pytest.approx(np.nanmean(found.recall))


def test_baselines():
    """A linear problem has an equal in the linear model, a round one has not; a rare class makes
    the majority an equal."""
    X = RNG.normal(size=(1500, 4)).astype(np.float32)
    train, test = slice(0, 1000), slice(1000, None)
    line, circle = (X[:, 0] > X[:, 1]).astype(int), ((X[:, :2] ** 2).sum(axis=1) > 2).astype(int)
    for y, equal in ((line, True), (circle, False)):
        found = label_baselines((X[train], y[train]), (X[test], y[test]), y[test])
        assert (found["linear"].figures["accuracy"] > 0.97) == equal
        assert found["linear"].n_bytes == 4
        assert not found["majority"].as_good
    rare = np.where(np.arange(1500) % 33 == 0, "fault", "ok")
    found = label_baselines((X[train], rare[train]), (X[test], rare[test]), np.full(500, "ok"))
    assert found["majority"].as_good
    assert found["majority"].figures["balanced_accuracy"] == 0.5
    # A model that finds every fault for some false alarms is better, where classes count the same.
    alarms = np.where(np.arange(500) % 9 == 0, "fault", rare[test])
    for weight, equal in ((None, True), ("balanced", False)):
        found = label_baselines(
            (X[train], rare[train]), (X[test], rare[test]), alarms, class_weight=weight
        )
        assert found["majority"].as_good == equal


def test_baselines_learn_from_the_resized_image():
    """Simple models of a camera see 1024 means of areas at most, never the bytes of frames."""
    model = frame_model(0, 40, 48)
    X = RNG.integers(0, 256, (30, model.n_inputs)).astype(np.uint8)
    y = np.arange(30) % 2
    learned = []

    def look(train, test, *_, **__):
        learned[:] = train[0], test[0]
        return {
            "linear": figures.Baseline("a linear model", 1, 30, {}, "", "", False, False, False)
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "label_baselines", look)
        found = evaluate(model, X[:9], y[:9], train=(X, y))
    assert found.baselines["linear"].name == "on 32 x 32 pixels, a linear model"
    images = model.stages[0].run(X, model.input).reshape(30, 40, 48).astype(float)
    assert learned[0].shape == (30, 1024)
    assert learned[1].shape == (9, 1024)
    np.testing.assert_array_equal(learned[0].sum(axis=1), 1024 * images.sum(axis=(1, 2)))


def test_better_is_more_than_as_good():
    """A baseline that is right more often by one row of 300 is as good; by 60 it is better."""
    X, y = RNG.normal(size=(300, 2)), np.zeros(300, dtype=int)
    for wrong, better in ((1, False), (60, True)):
        answers = np.where(np.arange(300) < wrong, 1, y)
        found = label_baselines((X, np.r_[1, y[1:]]), (X, y), answers)["majority"]
        assert (found.as_good, found.better) == (True, better)


def test_one_group_that_is_better_proves_nothing():
    """By groups a model is better only where most groups say so."""
    X, y = RNG.normal(size=(300, 2)), np.arange(300) % 3
    groups = np.arange(300) // 25
    answers = np.where(groups == 0, y, 0)
    assert not label_baselines((X, y), (X, y), answers)["majority"].as_good
    assert label_baselines((X, y), (X, y), answers, groups=groups)["majority"].as_good


def data(kind: str):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), np.arange(400) % 2
    X_test, y_test = rng.normal(size=(100, 3)), np.arange(100) % 2
    if kind == "rare":
        y = (np.arange(400) % 40 == 0).astype(int)
    if kind == "repeated":
        X_test[:30] = X[7:37]
    if kind == "alone":
        X[:, 1] = y + 0.1 * X[:, 1]
    if kind in ("flags", "sum"):
        X = rng.normal(size=(400, 7))
        X[:, 3:6] = rng.random((400, 3)) < 0.1
        y = X[:, 3:6].any(axis=1) if kind == "flags" else X[:, 0] + X[:, 1] + 2 * X[:, 2] > 0
        X[:, 2] += y - 0.5
        y, X_test = y.astype(int), rng.normal(size=(100, 7))
    if kind == "unseen":
        y_test = y_test + 1
    if kind == "constant":
        X, X_test = X * 0, X_test * 0
    return X, y, X_test, y_test


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("rare", "label 1 is rare, 2.5 % of the training rows: the accuracy hides that"),
        ("repeated", "30 of 100 test rows (30.0 %) are also among the training rows"),
        ("alone", "input 'b' alone predicts nearly every label"),
        ("flags", "inputs 'd', 'e', 'f' together predict nearly every label by a few splits"),
        ("sum", "inputs 'a', 'b', 'c' together predict nearly every label by a linear model"),
        ("unseen", "50 of 100 test rows have labels that do not occur in training"),
        ("constant", "all inputs are constant"),
        ("usual", ""),
    ],
)
def test_cautions(kind, expected):
    """Each thing that makes an accuracy mean little is said, and no option of a command."""
    X, y, X_test, y_test = data(kind)
    found = figures.compare(y_test, np.zeros(100, dtype=int), classes=(0, 1))
    lines = cautions(found, X, y, X_test, names="abcdefg"[: X.shape[1]])
    said = [line for line in lines if expected and expected in line]
    assert len(said) == bool(expected), lines
    assert "--" not in "".join(lines)
    if not expected:
        assert not lines


@pytest.mark.parametrize(("y", "got"), [((0, 1), ("a", "b")), (("0", "1"), (0, 1))])
def test_labels_of_another_kind_are_refused(y, got):
    """Text beside numbers is refused: nothing says which label stands for which."""
    refused(TinykernelError, figures.compare, y, got, classes=got)


@pytest.mark.parametrize("n", [50, 20 * KEPT])
def test_rows_seen_before(n):
    """The record of training rows is small, and tells the share of rows that were trained on."""
    X = RNG.integers(0, 256, size=(n, 6)).astype(np.uint8)
    X[:, :3] = np.arange(n)[:, None] // [65536, 256, 1] % 256  # no row twice
    record = record_of(X[: n // 2])
    assert len(record["digests"]) < 7000
    assert seen_before(X.astype(np.float64), record) == pytest.approx(0.5, abs=0.06 * (n > 50))
    assert seen_before(X[n // 2 :], record) == 0
    assert seen_before(X, {"digests": 3}) is None


class _Scoring:
    """Stands for a model of classes 0 and 1 whose scores are its inputs."""

    classes = (0, 1)

    def scores(self, X):
        return X


def test_one_answer_a_clip_is_the_sum_of_its_windows():
    """A sure window outvotes two unsure ones, and clips are counted once."""
    X = np.array([[9, 0], [0, 1], [0, 1], [0, 5], [3, 0], [2, 0]], dtype=np.int32)
    clip = np.array([4, 4, 4, 7, 7, 9])
    found = evaluate_clips(_Scoring(), X, [0, 0, 0, 1, 1, 1], clip)
    assert (found.rows, found.accuracy) == (3, 2 / 3)
    assert evaluate_clips(_Scoring(), X[:2], [0, 0], np.array([0, 1])) is None
    assert evaluate_clips(_Scoring(), X[:2], [0, 1], np.array([0, 0])) is None
