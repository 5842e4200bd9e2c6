"""Events of a stream: the rule against a slow one, its limits, and C against Python."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.firmware.local_models import SIGNALS, with_events
from tests.refusals import refused
from tinykernel.base.errors import TinykernelError
from tinykernel.model.answers import LARGEST_SUM, NO_EVENT, Events, EventState
from tinykernel.run.parity import verify

pytestmark = pytest.mark.usefixtures("page")

SCORES = st.integers(1, 60).flatmap(
    lambda n: st.integers(2, 4).flatmap(
        lambda k: st.sampled_from([3, 40, 2**31 - 1]).flatmap(
            lambda top: arrays(np.int32, (n, k), elements=st.integers(-top - 1, top))
        )
    )
)


def _slow(events: Events, scores: np.ndarray) -> tuple[list[int], int]:
    """Follow the rule number by number, as the C does; also return the largest sum."""
    k = events.shift
    sums, wait, held, made, most = [0] * scores.shape[1], 0, -1, [], 0
    for row in scores.tolist():
        silent = [score for score, least in zip(row, events.thresholds, strict=True) if not least]
        rest = max(silent, default=sorted(row)[-2])
        others = [max(row[:c] + row[c + 1 :]) for c in range(len(row))]
        parts = [max(other - rest, 0) // 4 for other in others]
        gaps = [score - rest - part for score, part in zip(row, parts, strict=True)]
        gaps = [min(max(gap, 0), LARGEST_SUM >> k) for gap in gaps]
        sums = [s - (s >> k) + gap for s, gap in zip(sums, gaps, strict=True)]
        label = row.index(max(row))
        most = max(most, *sums)
        if held >= 0 and sums[held] < int(events.thresholds[held]) >> 1:
            held = -1
        least = int(events.thresholds[label])
        if wait:
            wait -= 1
            made.append(NO_EVENT)
        elif 0 < least <= sums[label] and held != label:
            made.append(label)
            held, wait = label, events.pause
        else:
            made.append(NO_EVENT)
    return made, most


@given(SCORES, st.integers(0, 15), st.integers(0, 4), st.data())
def test_events_follow_the_rule(scores, shift, pause, data):
    """What is looked up in sums is what the rule says step by step, and no sum leaves 31 bits."""
    top = int(min(LARGEST_SUM >> shift << shift, 4 * np.abs(scores.astype(np.int64)).max() + 1))
    limits = data.draw(arrays(np.uint32, scores.shape[1], elements=st.integers(0, top)))
    limits[0] = max(1, limits[0])
    events = Events(limits, shift, pause)
    expected, most = _slow(events, scores)
    assert events.follow(scores).tolist() == expected
    assert most <= LARGEST_SUM
    ends = sorted(data.draw(st.lists(st.integers(0, len(scores)), max_size=4)))
    state = EventState(scores.shape[1])
    parts = [events.follow(part, state) for part in np.split(scores, ends)]
    assert np.concatenate(parts).tolist() == expected  # a stream in pieces


@pytest.mark.parametrize(
    ("thresholds", "shift", "pause"),
    [
        ([0, 0], 1, 1),
        ([1, 2**31], 1, 1),
        ([1, 2**31 - 1], 15, 1),
        ([1, 1], 16, 1),
        ([1, 1], 1, 65536),
    ],
)
def test_events_that_cannot_be(thresholds, shift, pause):
    """A rule that the C could not follow is refused where it is made, and so at load."""
    refused(TinykernelError, Events, np.array(thresholds, np.uint32), shift, pause)


@pytest.mark.parametrize(
    ("core", "background"), [("host", True), ("host", False), ("cortex-m4", True)]
)
def test_events_of_c_and_python(core, background, require_platforms):
    """Two streams, each from a fresh state, give the same events: more than two."""
    require_platforms(core)
    model = with_events(SIGNALS["events"](), 2, 3)
    if not background:
        limits = np.maximum(model.events.thresholds, model.events.thresholds[1])
        model = replace(model, events=replace(model.events, thresholds=limits))
    rng = np.random.default_rng(0)
    size = (1500, model.input.channels)
    loud = rng.normal(size=size) * 8000 * np.repeat(rng.random((30, 1)), 50, axis=0)
    samples = [loud.astype(np.int16), loud[700:].astype(np.int16)]
    row = samples[0][: model.input.rows].reshape(1, -1)
    result = verify(model, row, target=core, recordings=samples)
    assert result.first_difference is None
    assert 2 < result.events < result.hops // 4
