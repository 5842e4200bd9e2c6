"""What quantization may cost a machine that was not trained in its integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinykernel.papers import PaperClassifier


def _cost(X: Any, y: Any, X_test: Any, y_test: Any, sigma: float) -> float:
    """Return by how much the integer model is less accurate than the float one."""
    classifier = PaperClassifier(
        n_components=2048, sigma=sigma, regularization=0.1, random_state=0
    ).fit(X, y)
    return classifier.score(X_test, y_test) - float(
        np.mean(classifier.quantize().predict(X_test) == y_test)
    )


def test_integers_cost_at_most_a_fifth_of_a_point_on_digits(digits: Any) -> None:
    """The firmware is as good as the model that was trained: 450 test rows."""
    assert _cost(digits.X_train, digits.y_train, digits.X_test, digits.y_test, 8.0) <= 0.002


@pytest.mark.slow
def test_integers_cost_at_most_a_fifth_of_a_point_on_usps(data_folder: Path) -> None:
    """The same for the 2007 test rows of USPS, with 256 float inputs."""
    with np.load(data_folder / "usps.npz") as data:
        X, y, X_test, y_test = (data[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    assert _cost(X, y, X_test, y_test, 10.0) <= 0.002
