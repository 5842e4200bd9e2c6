"""Events against what was said: the count of hits and alarms, and thresholds for a rate."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.firmware.local_models import SIGNALS
from tests.refusals import refused
from tinykernel.base.errors import RowsError
from tinykernel.data.reading import Recording
from tinykernel.data.recordings import windows
from tinykernel.judge import event_rules as rules
from tinykernel.judge.events import TABLE, Mistake, in_pauses, save_worst
from tinykernel.model.answers import Events, sums_over

SECOND = 10


def _stream(labels: list[int], spans: list[list[int]], height: int = 9) -> rules.Stream:
    """A decision each tenth of a second, whose label has this margin."""
    scores = np.zeros((len(labels), 3), np.int32)
    scores[np.arange(len(labels)), labels] = height
    ends = np.arange(len(labels), dtype=np.int64)
    groups = np.array([[0, 0], [len(labels) // 2, 1]])
    return rules.Stream(scores, ends, np.array(spans).reshape(-1, 3), groups, len(labels), SECOND)


def test_hits_alarms_and_double_counts():
    """A hit lies in its span or a second after, where a second one is double, another confused."""
    labels = np.zeros(80, int)
    labels[[12, 16, 38, 55, 59, 75]] = [1, 1, 2, 1, 2, 2]
    events = Events(np.array([0, 5, 5], np.uint32), 0, 0)
    found = rules.judge([_stream(labels.tolist(), [[10, 15, 1], [25, 30, 2], [50, 60, 2]])], events)
    assert found.hit.tolist() == [True, True, True]  # 38 is within a second of 30
    assert (found.after.tolist(), found.behind.tolist()) == ([2, 13, 9], [-2, 9, 0])
    assert (found.doubles, found.alarms.tolist(), found.confused) == (1, [2], 1)
    assert found.groups.tolist() == [1]


def test_the_bound_is_that_of_poisson():
    """Three hours without an alarm promise one an hour; alarms of one group count as fewer."""
    assert rules.rate_after(0, 3.0, 0.95) == pytest.approx(0.9986, abs=1e-4)
    assert rules.rate_after(4, 10.0, 0.95) == pytest.approx(0.9154, abs=1e-4)
    assert rules.rate_after(4, 10.0, None) == 0.5
    halves = {0: 1.0, 1: 1.0}
    assert rules.spread(halves, np.array([1])) == 1.0
    assert rules.spread(halves, np.array([1] * 8)) == pytest.approx(8.0)


@given(st.integers(0, 40), st.floats(0.1, 50), st.floats(0.5, 0.99))
def test_rates_are_those_of_poisson(n, hours, confidence):
    """At the bound so few events are as rare as told; the mean is that of all rates they allow."""
    bound = rules.rate_after(n, hours, confidence)
    terms = [math.exp(-bound * hours + k * math.log(bound * hours)) for k in range(n + 1)]
    few = sum(term / math.factorial(k) for k, term in enumerate(terms))
    assert few == pytest.approx(1 - confidence, rel=1e-6)
    rates = np.linspace(0, 20 * (n + 1) / hours, 20001)
    likely = (rates * hours) ** n * np.exp(-rates * hours)
    mean = (rates * likely).sum() / likely.sum()
    assert rules.rate_after(n, hours, None) == pytest.approx(mean, rel=1e-3)


@settings(max_examples=50)
@given(
    arrays(np.int32, st.tuples(st.integers(8, 40), st.just(3)), elements=st.integers(0, 9)),
    st.integers(1, 4),
    st.sampled_from([None, 0.8]),
    st.data(),
)
def test_the_threshold_is_the_least_that_keeps_a_rate(scores, n_groups, confidence, data):
    """Halving finds it, or a multiple that hits more; then comes half of the way to a hit."""
    n, silent = len(scores), np.array([True, False, False])
    first = np.arange(n_groups) * n // n_groups
    groups, ends = np.stack([first, np.arange(n_groups)], axis=1), np.arange(n)
    scores[: first[data.draw(st.integers(0, n_groups - 1))], 1:] = 0  # groups without an alarm
    spans = [[n // 3, n // 3 + 2, 1]] if data.draw(st.booleans()) else []
    stream = rules.Stream(scores, ends, np.array(spans).reshape(-1, 3), groups, n, 1)
    left_out = data.draw(st.integers(0, n_groups - 1))
    lengths = np.diff(np.append(first, n))[left_out:] / 3600

    def heard(threshold: int) -> rules.Heard:
        return rules.judge([stream], Events(np.array([0, threshold, threshold], np.uint32), 1, 0))

    def rate(threshold: int) -> float:
        counts = np.bincount(heard(threshold).groups, minlength=n_groups)[left_out:]
        even, wide = counts.sum() * lengths / lengths.sum(), 1.0
        if counts.any() and counts.size > 1:
            wide = max(1.0, float(((counts - even) ** 2 / even).sum()) / (counts.size - 1))
        hours, share = n / 3600, lengths.sum() * 3600 / n
        return rules.rate_after(counts.sum() / share / wide, hours / wide, confidence)

    rates = [rate(threshold) for threshold in range(1, 21)]
    an_hour = data.draw(st.sampled_from(sorted(set(rates)))) * 1.001
    keeps = np.array(rates) <= an_hour
    assume(not np.any(keeps[:-1] & ~keeps[1:]))  # a long event may hide others.
    labels, sums = sums_over(scores, silent, 1, np.zeros(3, np.int64))
    told = [span for span in spans if np.searchsorted(first, span[0], side="right") > left_out]
    least = 1 + int(keeps.argmax())
    kept = [least << n for n in range(5) if rate(least << n) <= an_hour]
    least = expected = max(kept, key=lambda threshold: len(told) * heard(threshold).hit.sum())
    in_spans = [int(sums[t, k]) for a, b, k in told for t in range(a, b + 1) if labels[t] == k]
    if max(in_spans, default=0) >= least:
        expected += (max(in_spans) - least) // 2
    events = rules._DecayedStreams([stream], silent, 1, 0).events(
        an_hour, confidence, tuple(range(left_out))
    )
    assert events.thresholds.tolist() == [0, expected, expected]


def test_a_threshold_that_hits_more_is_taken():
    """At the least one an early event of a wrong class hid the right one by its pause."""
    stream = _stream([0] * 80, [[10, 20, 1], [30, 40, 1], [50, 60, 1]], 0)
    stream.scores[[10, 12, 30, 32, 55], [2, 1, 2, 1, 1]] = [3, 9, 3, 9, 2]
    trial = rules._DecayedStreams([stream], np.array([True, False, False]), 0, 5)
    found = rules.judge([stream], trial.events(1e6, None))
    assert found.hit.tolist() == [True, True, False]


def test_thresholds_keep_a_rate():
    """What is louder than every alarm stays; no threshold is below the alarms of the recording."""
    model, n = SIGNALS["events"](), 3600 * SECOND
    quiet, loud = np.zeros(n, int), list(range(100, n - 100, 200))
    quiet[loud] = 1
    spans = [[at - 5, at + 5, 1] for at in loud[::2]]
    stream = _stream(quiet.tolist(), spans)
    scores = stream.scores.copy()
    scores[loud[::2], 1] = 40
    chosen = rules.choose_events(model, [replace(stream, scores=scores)], [0], 4.0, 0.95)
    assert chosen.heard.hit.all()
    assert len(chosen.heard.alarms) == 0
    assert chosen.model.events.thresholds[0] == 0
    assert 9 < chosen.model.events.thresholds[1] <= 40
    refused(RowsError, rules.choose_events, model, [stream], [0], 2.0, 0.95)


def test_the_tail_of_peaks_keeps_a_rate_that_hours_cannot_show():
    """Nine minutes choose a threshold for one alarm an hour: it holds on average, and is said."""
    rng, height, n, rates = np.random.default_rng(0), 500, 540, []
    for _ in range(150):  # 200 peaks an hour with an exponential tail
        scores = np.zeros((n, 2), np.int32)
        loud = rng.random(n) < 200 / 3600
        scores[loud, 1] = rng.exponential(height, loud.sum()) + 1
        stream = rules.Stream(
            scores, np.arange(n), np.zeros((0, 3), int), np.zeros((1, 2), int), n, 1
        )
        trial = rules._DecayedStreams([stream], np.array([True, False]), 0, 0)
        least = int(trial.events(1.0, None).thresholds[1])
        rates.append(200 * np.exp(-least / height))
    assert 0.5 < np.mean(rates) < 1.5
    spoken = rules.Stream(scores, np.arange(n), np.array([[0, n, 1]]), np.zeros((1, 2), int), n, 1)
    model = SIGNALS["events"]()
    wide = [
        replace(each, scores=np.pad(each.scores, ((0, 0), (0, 1)))) for each in (stream, spoken)
    ]
    chosen = rules.choose_events(model, wide, [0], 1.0, None)
    assert (chosen.hours, chosen.is_beyond, len(chosen.unknown)) == (0.15, True, 1)
    assert not rules.choose_events(model, wide[:1], [0], 40.0, None).is_beyond


@pytest.mark.parametrize(("peaks", "least"), [((), 300), ((40, 20), 300), ((700, 20), 701)])
def test_words_say_what_few_peaks_cannot(peaks, least):
    """From no peak the threshold 1 followed, and 100 alarms; from two one that no word reached."""
    scores, n, at = np.zeros((540, 2), np.int32), 540, np.arange(10, 500, 50)
    scores[at, 1] = 900
    scores[at[: len(peaks)] + 20, 1] = peaks
    spans = np.stack([at, at + 1, np.ones_like(at)], axis=1)
    stream = rules.Stream(scores, np.arange(n), spans, np.zeros((1, 2), int), n, 1)
    trial = rules._DecayedStreams([stream], np.array([True, False]), 0, 0)
    assert trial.events(1.0, None).thresholds[1] == least + (900 - least) // 2


def test_alarms_of_one_group_cost_more():
    """Four alarms in five hours promise one an hour if four groups raise them, two of one group."""
    model, n = SIGNALS["events"](), 5 * 3600
    groups = np.array([[at * n // 10, at] for at in range(10)])
    least = []
    for places in ([500 + at * n // 10 for at in range(5)], range(500, 1000, 100)):
        stream = _stream(np.zeros(n, int).tolist(), [])
        for rank, at in enumerate(places):
            stream.scores[at, 1] = 40 + 10 * rank
        chosen = rules.choose_events(
            model, [replace(stream, groups=groups, second=1)], [0], 1.0, None
        )
        least.append(chosen.threshold)
    assert least == [32, 55]  # heights less the margin of the background, and what sums keep


@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=80),
    st.integers(1, 200),
    st.integers(1, 200),
    st.integers(0, 9),
)
def test_a_lower_threshold_hides_only_what_follows_another_event(labels, low, more, pause):
    """It tells each event of the higher one, but in the pause of another or as its second."""
    scores = _stream(labels, []).scores
    told = [
        Events(np.array([0, least, least], np.uint32), 3, pause).follow(scores)
        for least in (low, low + more)
    ]
    for at in np.flatnonzero((told[1] >= 0) & (told[0] < 0)).tolist():
        before = np.flatnonzero(told[0][:at] >= 0)
        assert before.size
        assert at - before[-1] <= pause or told[0][before[-1]] == told[1][at]


def test_a_lower_threshold_may_hit_less():
    """It tells the event before its span, and no second one until the sum fell to half of that."""
    labels = np.zeros(40, int)
    labels[8:14] = 1
    stream = _stream(labels.tolist(), [[11, 14, 1]])
    hits = {}
    for threshold in (9, 30):
        heard = rules.judge([stream], Events(np.array([0, threshold, threshold], np.uint32), 3, 5))
        hits[threshold] = heard.hit.tolist(), heard.alarms.tolist()
    assert hits == {9: ([False], [1]), 30: ([True], [])}


def test_pieces_of_tables_are_recordings(tmp_path):
    """A missed span is labelled within, a false alarm is background; both are read again."""
    X = np.random.default_rng(0).integers(-99, 99, (300, 2)).astype(np.int16)
    day = Recording("day.csv", X, channels=("ax", "ay"), rate=50.0)
    miss = Mistake("miss", day, "wave", 100, 120, 3, 50)
    alarm = Mistake("false alarm", day, "wave", 200, 230, 99, 50)
    save_worst(tmp_path / "worst", [miss, alarm], 40, "rest")
    one, two = (windows(file, 10, 10, labels_needed=False) for file in pieces(tmp_path))
    assert (one.channels, one.rate, set(one.y)) == (("ax", "ay"), 50, {"rest", "wave"})
    np.testing.assert_array_equal(one.X[one.y == "wave"].reshape(-1, 2), X[100:120])
    assert set(two.y) == {"rest"}


def pieces(folder):
    return sorted(file for file in (folder / "worst").rglob("*.csv") if file.name != TABLE)


def test_words_that_are_found_in_pauses_are_counted():
    """Where only clips of words have pauses, these are taken for the words, and that is said."""
    clip = np.zeros((40, 1), np.int16)
    clip[20:28] = [[900], [-900]] * 4
    model = SimpleNamespace(input=SimpleNamespace(rows=8))
    clips = [(clip, "word", str(i)) for i in range(10)]
    places = dict.fromkeys(map(str, range(10)), 18)
    assert in_pauses(model, clips, places) == ()
    (note,) = in_pauses(model, clips, places | {"0": 2, "1": 30})
    assert note.startswith("2 of 10 words")
