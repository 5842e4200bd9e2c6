"""The estimator of the papers keeps scikit-learn's conventions."""

from sklearn.utils.estimator_checks import check_estimator

from tinykernel.papers import PaperClassifier


def test_check_estimator() -> None:
    """Protects every convention of scikit-learn."""
    quick = {"n_components": 32, "max_iter": 3, "sigma": 1.0, "regularization": 0.1}
    check_estimator(PaperClassifier(**quick, random_state=0), on_skip=None)
