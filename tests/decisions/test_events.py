"""Events against what was said: the count of hits and alarms, and thresholds for a rate."""

from dataclasses import replace

import numpy as np
import pytest

from tests.firmware.local_models import SIGNALS
from tests.refusals import refused
from tinykernel.decisions.events import Stream, choose_events, judged, most_often, spread
from tinykernel.errors import RowsError
from tinykernel.evaluation.events import curve_in_words, evaluate_events
from tinykernel.model.answers.events import Events

SECOND = 10


def _stream(labels: list[int], spans: list[list[int]], height: int = 9) -> Stream:
    """A decision each tenth of a second, whose label has this margin."""
    scores = np.zeros((len(labels), 3), np.int32)
    scores[np.arange(len(labels)), labels] = height
    ends = np.arange(len(labels), dtype=np.int64)
    groups = np.array([[0, 0], [len(labels) // 2, 1]])
    return Stream(scores, ends, np.array(spans).reshape(-1, 3), groups, len(labels), SECOND)


def test_hits_alarms_and_double_counts():
    """A hit lies in its span or a second after, where a second one is double, another confused."""
    labels = np.zeros(80, int)
    labels[[12, 16, 38, 55, 59, 75]] = [1, 1, 2, 1, 2, 2]
    events = Events(np.array([0, 5, 5], np.uint32), 0, 0)
    found = judged([_stream(labels.tolist(), [[10, 15, 1], [25, 30, 2], [50, 60, 2]])], events)
    assert found.hit.tolist() == [True, True, True]  # 38 is within a second of 30
    assert (found.after.tolist(), found.behind.tolist()) == ([2, 13, 9], [-2, 9, 0])
    assert (found.doubles, found.alarms.tolist(), found.confused) == (1, [2], 1)
    assert found.groups.tolist() == [1]


def test_the_bound_is_that_of_poisson():
    """Three hours without an alarm promise one an hour; alarms of one group count as fewer."""
    assert most_often(0, 3.0, 0.95) == pytest.approx(0.9986, abs=1e-4)
    assert most_often(4, 10.0, 0.95) == pytest.approx(0.9154, abs=1e-4)
    stream = _stream([0] * 79 + [1], [])
    heard = judged([stream], Events(np.array([0, 5, 5], np.uint32), 0, 0))
    assert spread([stream], heard) == 1.0
    many = replace(heard, groups=np.array([1] * 8), alarms=np.array([1] * 8))
    assert spread([stream], many) == pytest.approx(8.0)


def test_thresholds_keep_a_rate():
    """What is louder than every alarm stays; no threshold is below the alarms of the recording."""
    model, n = SIGNALS["events"](), 3600 * SECOND
    quiet, loud = np.zeros(n, int), list(range(100, n - 100, 200))
    quiet[loud] = 1
    spans = [[at - 5, at + 5, 1] for at in loud[::2]]
    stream = _stream(quiet.tolist(), spans)
    scores = stream.scores.copy()
    scores[loud[::2], 1] = 40
    chosen = choose_events(model, [replace(stream, scores=scores)], [0], 4.0, 0.95)
    assert chosen.heard.hit.all()
    assert len(chosen.heard.alarms) == 0
    assert chosen.model.events.thresholds[0] == 0
    assert 9 < chosen.model.events.thresholds[1] <= 40
    refused(RowsError, choose_events, model, [stream], [0], 2.0, 0.95)


def test_hits_of_recordings_without_events_are_unknown():
    """They count as neither hit nor missed, and a remark says so."""
    n = 3600
    stream = replace(_stream(np.zeros(n, int).tolist(), []), second=1)
    chosen = choose_events(SIGNALS["events"](), [stream], [0], 4.0, 0.8)
    assert "how many are hit is unknown" in chosen.remarks[-1]
    rows = curve_in_words(evaluate_events(chosen.model, [stream]))
    assert {missed for _, missed, _ in rows} == {"-"}


def test_thresholds_held_for_the_speakers_that_chose_them_only():
    """Two groups raise an alarm each, as loud as the spans of others: that is two, not one."""
    model, n = SIGNALS["events"](), 3600 * SECOND
    labels = np.zeros(n, int)
    spans = [[at, at + 10, 1 + at // 100 % 2] for at in range(200, n - 100, 100)]
    for first, _, label in spans:
        labels[first] = label
    stream = _stream(labels.tolist(), spans, height=20)
    scores = stream.scores.copy()
    scores[50, 1] = scores[n - 50, 2] = 60
    scores[n - 50, 0] = scores[50, 0] = 30
    chosen = choose_events(model, [replace(stream, scores=scores)], [0], 5.0, 0.95)
    assert (chosen.model.events.thresholds[1:] > 30).all()
    assert len(chosen.heard.alarms) <= 1
