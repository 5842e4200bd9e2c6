"""What quantization may cost a machine that was not trained in its integers."""

import numpy as np

from tinykernel.papers import PaperClassifier


def test_integers_cost_at_most_a_fifth_of_a_point_on_digits(digits) -> None:
    """The firmware is as good as the float model that was trained: 450 test rows."""
    options = {"n_components": 2048, "sigma": 8.0, "regularization": 0.1, "random_state": 0}
    classifier = PaperClassifier(**options).fit(digits.X_train, digits.y_train)
    right = classifier.quantize().predict(digits.X_test) == digits.y_test
    assert classifier.score(digits.X_test, digits.y_test) - np.mean(right) <= 0.002
