"""Bands of a spectrum for novelty: impacts in machines, and the anomalies that choose."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tinykernel import NoveltyDetector, verify
from tinykernel.training.signals.normal import anomalies, band_stages


def machine(rng, rate, resonance, axes, impact, n=4096):
    """Return the vibration of a machine: harmonics of its speed, noise, impacts at 61 Hz."""
    t, ringing = np.arange(n) / rate, np.arange(150) / rate
    decay = np.exp(-ringing / 0.006) * np.sin(2 * np.pi * resonance * ringing)
    speed, load = 25 * rng.normal(1, 0.02), np.exp(0.3 * rng.normal())
    hits = np.zeros(n)
    hits[(np.arange(rng.uniform(0, 0.016), n / rate - 0.02, 1 / 61) * rate).astype(int)] = impact
    x = np.empty((n, axes))
    for axis in range(axes):
        noise = rng.normal(size=n)
        swing = sum(
            rng.uniform(0.7, 1.3) / h * np.sin(2 * np.pi * h * speed * t) for h in (1, 2, 3)
        )
        x[:, axis] = load * swing + 0.25 * noise + 0.12 * np.convolve(noise, decay)[:n]
        x[:, axis] += np.convolve(hits, decay)[:n]
    return np.rint(400 * x).astype(np.int16)


def cut(rng, count, impact, rate, resonance, axes, samples=1024):
    """Return windows of recordings (n, samples, axes), and the recording of each."""
    many = [machine(rng, rate, resonance, axes, impact) for _ in range(count)]
    X = np.concatenate([each.reshape(-1, samples, axes) for each in many])
    return X, np.repeat(np.arange(count), len(X) // count)


@pytest.mark.parametrize(
    ("rate", "resonance", "axes"), [(3200, 900, 3), (1000, 310, 1), (6400, 2100, 1)]
)
def test_impacts_in_a_machine_are_found(rate, resonance, axes):
    """From 40 healthy recordings: patterns of samples found them with an area of 0.4 to 0.6."""
    rng = np.random.default_rng(0)
    how = (rate, resonance, axes)
    X, groups = cut(rng, 40, 0, *how)
    watch = NoveltyDetector(random_state=0).fit(X, groups=groups)
    usual, faulty = cut(rng, 15, 0, *how)[0], cut(rng, 15, 1.2, *how)[0]
    scores = -watch.score_samples(np.concatenate([usual, faulty]))
    assert roc_auc_score(np.repeat([0, 1], [len(usual), len(faulty)]), scores) >= 0.95
    assert max(watch.areas_, key=watch.areas_.get) != "patterns"
    again = NoveltyDetector(random_state=0).fit(X, groups=groups)
    assert again.quantize().fingerprint() == watch.quantize().fingerprint()


def test_patterns_are_for_those_who_name_their_number():
    """With a number of kernels, and of floats, nothing is compared."""
    X, _ = cut(np.random.default_rng(0), 10, 0, 1000, 310, 1)
    asked = NoveltyDetector(n_kernels=32, random_state=0).fit(X)
    floats = NoveltyDetector(random_state=0).fit(X.astype(np.float32))
    assert asked.areas_ == {}
    assert floats.areas_ == {}


def test_bands_and_streams_are_the_same_in_c(require_platforms):
    """Windows and a stream of the bands give the scores of Python on the host and on a board."""
    require_platforms("cortex-m0plus")
    rng = np.random.default_rng(0)
    X, _ = cut(rng, 12, 0, 3200, 900, 2, samples=256)
    model = NoveltyDetector(window_shape=(256, 2), hop=128, random_state=0).fit(
        X.reshape(len(X), -1)
    )
    assert model.quantize().stages[0].KIND == "spectrum"
    rows = np.concatenate([X[:8], cut(rng, 1, 2, 3200, 900, 2, samples=256)[0]]).reshape(-1, 512)
    stream = [machine(rng, 3200, 900, 2, 2, n=1500)]
    for target in ("host", "cortex-m0plus"):
        found = verify(model.quantize(), rows, target=target, recordings=stream)
        assert found.differences == 0
        assert found.hops


def test_windows_too_short_for_a_spectrum_have_none():
    """100 samples hold no dozen segments of 64; 40 channels leave one band each."""
    rows = np.zeros((4, 256), np.int16)
    assert band_stages(rows[:, :100], "int16", (100, 1), 0, 64) is None
    assert band_stages(np.zeros((4, 240 * 40), np.int16), "int16", (240, 40), 0, 64) is None
    assert band_stages(rows, "int16", (256, 1), 0, 64) is not None


def test_anomalies_are_unlike_their_windows():
    """Each kind differs from every window, keeps its type, and misses or scales what it says."""
    rng = np.random.default_rng(0)
    rows = rng.integers(-9000, 9000, (30, 128), dtype=np.int16)
    for kind, made in anomalies(rows, (64, 2), rng).items():
        assert made.dtype == rows.dtype
        assert made.shape == rows.shape
        assert (made != rows).any(axis=1).all(), kind
    lost = anomalies(rows, (64, 2), rng)["channel"].reshape(30, 64, 2)
    assert ((lost.max(axis=1) == lost.min(axis=1)).sum(axis=1) == 1).all()
