"""Every estimator and transformer of the papers keeps scikit-learn's conventions."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from tinykernel.papers import PaperClassifier, classifiers, features

CHEAP = {"n_components": 16, "max_iter": 3, "n_weight_steps": 10, "n_map_steps": 10}
ESTIMATORS = [
    PaperClassifier(n_components=32, max_iter=3, random_state=0),
    features.BCSIK(n_components=16),
    features.BinaryJohnsonLindenstrauss(n_components=16),
    features.CirculantFeatures(n_components=16),
    features.Fastfood(n_components=40),
    features.KernelAlignment(n_components=16, n_candidates=40),
    features.RandomFourierFeatures(n_components=16),
    features.RMBCSIK(n_components=40),
    classifiers.CirculantMapClassifier(**CHEAP | {"max_iter": 12}),
    classifiers.CompactMapClassifier(**CHEAP | {"max_iter": 12}),
    classifiers.FourierLeastSquaresClassifier(n_components=50),
    classifiers.KernelLeastSquaresClassifier(),
    classifiers.KernelSVC(),
    classifiers.LearnedKernelFeatures(n_components=10, max_iter=5),
    classifiers.LeastSquaresClassifier(),
    classifiers.PegasosClassifier(max_iter=300, regularization=1e-3),
]


def test_every_estimator_is_listed() -> None:
    """A new estimator is checked, too."""
    public = {
        name
        for module in (features, classifiers)
        for name in module.__all__
        if hasattr(getattr(module, name), "fit")
    }
    assert {type(estimator).__name__ for estimator in ESTIMATORS} == public | {"PaperClassifier"}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_check_estimator(estimator: Any) -> None:
    """Protects every convention of scikit-learn, once for each class with its defaults."""
    check_estimator(estimator, on_skip=None)
