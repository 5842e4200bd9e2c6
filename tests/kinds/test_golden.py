"""For a fixed spec and seed a model has the same bytes, whatever else changes."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from tests.firmware.local_models import SIGNALS
from tinykernel import Classifier, NoveltyDetector, TernaryKernelClassifier, calibrate, convert
from tinykernel.judge.event_rules import Stream, choose_events
from tinykernel.kinds.selection import KINDS
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model

X, y = load_digits(return_X_y=True)
X, y = X[:300].astype(np.uint8), y[:300]
WINDOWS = np.tile(X.astype(np.int16).reshape(-1, 64, 1), (1, 2, 1))
QUICK = {"effort": "quick", "random_state": 0}
SHORT = QUICK | {"epochs": 2}
LAYERS = {"n_channels": 8, "image_shape": (8, 8)} | SHORT
SOUNDS = np.tile(X.astype(np.int16), (1, 8)) * np.arange(1, 513, dtype=np.int16) % 97


def _perceptron() -> IntegerModel:
    """Convert a network whose weights no BLAS has rounded."""
    network = MLPClassifier((12,), max_iter=1, solver="sgd")
    network.partial_fit(X, y, classes=np.unique(y))
    rng = np.random.default_rng(0)
    network.coefs_ = [rng.integers(-8, 9, each.shape) / 64 for each in network.coefs_]
    network.intercepts_ = [rng.integers(-8, 9, each.shape) / 8 for each in network.intercepts_]
    return convert(network, X)


def _known() -> IntegerModel:
    """Calibrate novelty by prototypes beside a linear part."""
    model = MODELS["linear"]().quantize()
    return calibrate(model, X, y, false_alarms=0.1, known=(X[:100], y[:100])).model


def _events() -> IntegerModel:
    """Choose the sums of events on scores with spans that are louder than the rest."""
    model, n = SIGNALS["averaged"](), 4000
    scores = np.random.default_rng(0).integers(-999, 1000, (n, 3)).astype(np.int32)
    spans = np.array([[first, first + 12, 1 + first // 100 % 2] for first in range(100, n, 100)])
    for first, end, spoken in spans:
        scores[first:end, spoken] += 2000
    groups = np.stack([np.arange(0, n, 1000), np.arange(4)], axis=1)
    stream = Stream(scores, np.arange(n), spans, groups, n, 10)
    return choose_events(model, [stream], ["class 0"], 200.0, None).model


MODELS = {
    "components": lambda: TernaryKernelClassifier(n_components=96, **SHORT).fit(X, y),
    "beside": lambda: TernaryKernelClassifier(
        n_components=64, layout="full", linear=4, **SHORT
    ).fit(X, y),
    "linear": lambda: Classifier(model="linear", **SHORT).fit(X, y),
    "trees": lambda: Classifier(model="trees", **QUICK).fit(X, y),
    "perceptron": lambda: Classifier(model="perceptron", n_units=20, **SHORT).fit(X, y),
    "kernels": lambda: Classifier(n_kernels=40, **QUICK).fit(WINDOWS, y),
    "chains": lambda: Classifier(model="chains", **LAYERS).fit(X, y),
    "spectrum": lambda: Classifier(
        window_shape=(512, 1), spectrum="64/32/8", rate=1000, n_kernels=8, **QUICK
    ).fit(SOUNDS, y),
    "separable": lambda: Classifier(model="separable", **LAYERS).fit(X, y),
    "prototypes": lambda: NoveltyDetector(random_state=0).fit(X[y < 5]),
    "converted": _perceptron,
    "known": _known,
    "events": _events,
}
FINGERPRINTS = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", list(MODELS))
def test_a_fixed_spec_keeps_its_bytes(name):
    """Who means to change the bytes of a kind changes its line, here and in the changelog."""
    assert as_integer_model(MODELS[name]()).fingerprint() == FINGERPRINTS[name]


def test_every_kind_has_its_bytes():
    """Whoever adds a kind of model gives it a line."""
    assert {kind.name for kind in KINDS} <= MODELS.keys() == FINGERPRINTS.keys()
