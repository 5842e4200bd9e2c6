"""Every estimator and transformer of the papers keeps scikit-learn's conventions."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from tinykernel.papers import PaperClassifier, features

ESTIMATORS = [
    PaperClassifier(n_components=32, max_iter=3, sigma=1.0, regularization=0.1, random_state=0),
    features.BCSIK(n_components=16),
    features.Fastfood(n_components=40),
    features.RandomFourierFeatures(n_components=16),
    features.RMBCSIK(n_components=40),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_check_estimator(estimator: Any) -> None:
    """Protects every convention of scikit-learn, once for each class."""
    check_estimator(estimator, on_skip=None)
