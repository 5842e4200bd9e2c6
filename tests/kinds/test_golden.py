"""For a fixed spec and seed a model has the same bytes, whatever else changes."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tinykernel import Classifier, NoveltyDetector, TernaryKernelClassifier

X, y = load_digits(return_X_y=True)
X, y = X[:300].astype(np.uint8), y[:300]
WINDOWS = np.tile(X.astype(np.int16).reshape(-1, 64, 1), (1, 2, 1))
QUICK = {"effort": "quick", "random_state": 0}
SHORT = QUICK | {"epochs": 2}
LAYERS = {"n_channels": 8, "image_shape": (8, 8)} | SHORT

MODELS = {
    "components": lambda: TernaryKernelClassifier(n_components=96, **SHORT).fit(X, y),
    "beside": lambda: TernaryKernelClassifier(
        n_components=64, layout="full", linear=4, **SHORT
    ).fit(X, y),
    "linear": lambda: Classifier(model="linear", **SHORT).fit(X, y),
    "trees": lambda: Classifier(model="trees", **QUICK).fit(X, y),
    "kernels": lambda: Classifier(n_kernels=40, **QUICK).fit(WINDOWS, y),
    "chains": lambda: Classifier(model="chains", **LAYERS).fit(X, y),
    "prototypes": lambda: NoveltyDetector(random_state=0).fit(X[y < 5]),
}
FINGERPRINTS = {
    "components": "ce3019272270abf9a8e9306be0c22714cc3c0f5163a6c2c5248dd6d1465b911d",
    "beside": "85a70a0c53cbc6d6f93a48d2095838ab97507d65c8d7ecd9c412581a39eabb5b",
    "linear": "106802abd8679faa1ade41980bfc5f0483b0d841524bb87e8c3882ad7d9faa11",
    "trees": "90ae82c2a53c71164c971dd004de497805300261ab70d991c21c43e32be183ac",
    "kernels": "cff0d368a8e965c8e541ae38d93e85e99e0690690107199c322d1ab4289f2a66",
    "chains": "90f32c77aa5dbdc32c1ddcc87a9a599621dc259f09cc3b8bb6ebc38667049c47",
    "prototypes": "5005785660fb5dc8ffd4ee53fb04e191f9eb14a0ca781c4db7054c590c5df52d",
}


@pytest.mark.parametrize("name", list(MODELS))
def test_a_fixed_spec_keeps_its_bytes(name):
    """Who means to change the bytes of a kind changes its line, here and in the changelog."""
    assert MODELS[name]().quantize().fingerprint() == FINGERPRINTS[name]
