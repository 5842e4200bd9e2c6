"""Bands and filters for novelty: faults of machines, and the anomalies that choose."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tinykernel import NoveltyDetector, verify
from tinykernel.kinds.estimators.oneclass import PrototypesKind


@pytest.fixture
def shop(import_benchmark):
    """Return the simulation of machines, with impacts at 61 Hz or without."""
    return import_benchmark("one_class")


@pytest.mark.parametrize(
    ("rate", "axes", "samples", "dtype", "left_out"),
    [
        (6400, 1, 1024, np.float32, []),
        (3200, 3, 256, np.float32, []),
        # A window holds one rotation, and 2.4 impacts at 61 Hz.
        (25600, 3, 1024, np.int16, ["", "imbalance"]),
    ],
)
def test_faults_of_a_machine_are_found(rate, axes, samples, dtype, left_out, shop):
    """From 40 healthy recordings: impacts at two rates, a lost or clipped axis, imbalance."""
    rng, shape = np.random.default_rng(0), (rate, axes, samples)
    X, groups = shop.windows_of(rng, 40, *shape)
    watch = NoveltyDetector(random_state=0).fit(X.astype(dtype), groups=groups)
    usual = watch.score_samples(shop.windows_of(rng, 15, *shape)[0].astype(dtype))
    faults = {"", "impacts at 107 Hz", "imbalance", "clipped", "an axis is 0"}
    assert faults == {"", *shop.FAULTS}
    for name in sorted(faults.difference(left_out)):
        impact = 0 if name else 1.2  # at 61 Hz
        rows, _ = shop.windows_of(rng, 15, *shape, impact=impact, fault=name)
        scores = np.concatenate([usual, watch.score_samples(rows.astype(dtype))])
        assert roc_auc_score(np.arange(len(scores)) >= len(usual), -scores) >= 0.95, name


@pytest.mark.parametrize(("dtype", "first"), [(np.int16, "spectrum"), (np.float32, "levels")])
def test_bands_filters_and_streams_are_the_same_in_c(
    dtype, first, shop, require_platforms, monkeypatch
):
    """Windows and a stream give the scores of Python on the host and on a board."""
    require_platforms("cortex-m0plus")
    every, chosen = PrototypesKind.specs, {"spectrum": "segment", "levels": "has_filters"}[first]
    only = lambda *given: [spec for spec in every(*given) if getattr(spec, chosen)]  # noqa: E731
    monkeypatch.setattr(PrototypesKind, "specs", only)
    rng = np.random.default_rng(0)
    X = shop.windows_of(rng, 12, 3200, 2, 256)[0].reshape(-1, 512).astype(dtype)
    model = NoveltyDetector(window_shape=(256, 2), hop=128, random_state=0).fit(X)
    stages = model.quantize().stages
    assert {stages[0].KIND} == {first}
    rows = np.concatenate(
        [X[:8], shop.windows_of(rng, 1, 3200, 2, 256, impact=2)[0].reshape(-1, 512)]
    )
    stream = [shop.machine(rng, 3200, 2, 2, 1500).astype(dtype)]
    for target in ("host", "cortex-m0plus"):
        found = verify(model.quantize(), rows.astype(dtype), target=target, recordings=stream)
        assert found.differences == 0
        assert found.hops
