"""The rate of a sensor is that of its samples, whatever stands between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinykernel.run.samples import Arrivals


def arrived(times: np.ndarray, samples: np.ndarray | None = None) -> Arrivals:
    """Return arrivals of one sample each, or of so many."""
    arrivals = Arrivals()
    counts = np.ones(len(times), dtype=int) if samples is None else samples
    for seconds, count in zip(times.tolist(), counts.tolist(), strict=True):
        arrivals.add(seconds, count)
    return arrivals


@given(
    rate=st.sampled_from([0.5, 1.0, 10.0, 50.0, 99.5, 1000.0]),
    jitter=st.floats(0.0, 0.3),
    at=st.integers(40, 160),
    steps=st.integers(20, 400),
    seed=st.integers(0, 9),
)
def test_a_pause_changes_no_rate(rate, jitter, at, steps, seed) -> None:
    """Between 200 samples with jitter, the pause is where and as long as it was."""
    pause = max(steps / rate, 0.4)
    times = np.arange(200) / rate + np.random.default_rng(seed).uniform(0, jitter, 200) / rate
    times[at:] += pause
    measured, pauses = arrived(times).measured()
    assert measured == pytest.approx(rate, rel=0.02)
    (found,) = pauses
    assert abs(found.sample - at) <= 0.02 * rate + 1  # what came within 20 ms is one arrival
    assert found.seconds == pytest.approx(pause, rel=0.1, abs=3 / rate)


@given(stall=st.floats(0.3, 3.0), at=st.integers(10, 50), seed=st.integers(0, 9))
def test_samples_that_come_late_are_no_pause(stall, at, seed) -> None:
    """A driver that keeps samples, and then gives them at once, takes none away."""
    sent = np.arange(500) / 100.0 + np.random.default_rng(seed).uniform(0, 0.002, 500)
    begin = sent[at]
    times = np.where((sent >= begin) & (sent < begin + stall), begin + stall, sent)
    measured, pauses = arrived(times).measured()
    assert pauses == []
    assert measured == pytest.approx(100.0, rel=0.02)


def test_a_radio_that_sends_a_hundred_at_once_has_no_pauses() -> None:
    """Packets a second apart, each read in three parts, are 100 samples a second."""
    times = np.repeat(np.arange(12.0), 3) + np.tile([0.0, 0.001, 0.002], 12)
    measured, pauses = arrived(times, np.tile([40, 40, 20], 12)).measured()
    assert (round(measured, 6), pauses) == (100.0, [])


@pytest.mark.parametrize("times", [[], [1.0], [1.0, 1.001], [1.0, 2.0], [1.0, 1.03, 1.06, 1.2]])
def test_few_or_brief_arrivals_tell_no_rate(times) -> None:
    """One step may be as long as it likes, and many at once be a buffer that is emptied."""
    assert arrived(np.array(times)).measured() == (0.0, [])
