"""What the classifier refuses: parameters and rows, each in one line."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.estimators import quick
from tinykernel import TinykernelError


@pytest.fixture(scope="module")
def rows():
    """600 digits as bytes."""
    X, y = load_digits(return_X_y=True)
    return X[:600].astype(np.uint8), y[:600]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": {}}, "an empty mapping; its layouts are compact"),
        ({"n_components": {"small": 64}}, "'small'; its layouts are compact"),
        ({"n_components": {"compact": 0}}, r"n_components\['compact'\] must be a whole number"),
        ({"n_components": {"compact": 70000}}, "must be at most 65536"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"effort": "no"}, "effort must be one of"),
        ({"augment": "shift"}, "augment: give a mapping"),
        ({"augment": {"turn": 1}}, "'turn' is not known"),
        ({"augment": {"shift": 1.5}, "image_shape": (8, 8)}, "shift must be a whole number"),
        ({"augment": {"noise": 1}}, "noise is not for rows"),
        ({"noise": -1}, "noise must be a number from 0"),
        ({"augment": {"shift": 1}}, "give image_shape or window_shape"),
        (
            {"augment": {"shift": 1}, "image_shape": (8, 9), "n_components": None},
            "8 x 9 makes 72 values, but rows have 64",
        ),
        ({"augment": {"shift": 9}, "image_shape": (8, 8)}, "out of sight; give at most 4"),
        ({"augment": {"shift": 33}, "window_shape": (64, 1)}, "out of sight; give at most 32"),
        ({"augment": {"shift": 1}, "image_shape": 64}, r"give \(height, width\)"),
        ({"validation_fraction": 0.7}, "validation_fraction must be a number above 0"),
        ({"n_components": 2.5}, "n_components must be a whole number"),
        ({"sigma": -1.0}, "sigma must be a positive number"),
        ({"scaler_scope": "row"}, "scaler_scope must be one of"),
        ({"n_jobs": 0}, "n_jobs must be a whole number"),
        ({"class_weight": "heavy"}, "class_weight must be balanced, or weights"),
        ({"class_weight": {99: 1.0}}, "99 is not a label"),
    ],
)
def test_wrong_parameters(rows, parameters, message):
    """Protects the user: one line that names the parameter and what it may be."""
    with pytest.raises(TinykernelError, match=message) as caught:
        quick(**parameters).fit(rows[0][:50], rows[1][:50])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": np.zeros(49)}, "for each of the 50 rows"),
        ({"validation": np.zeros((3, 64))}, "give a pair"),
        ({"validation": (np.zeros((2, 64), int), [0, 77])}, "label 77 is not in the training"),
        ({"validation": (np.full((2, 64), 0.5), [0, 1])}, "not whole numbers"),
        ({"validation": (np.full((2, 64), 300), [0, 1])}, "validation: X: row 0, column 0 is 300"),
    ],
)
def test_what_does_not_fit_to_the_rows(rows, given, message):
    """Protects the user from groups and validation rows that do not fit to the rows."""
    with pytest.raises(TinykernelError, match=message):
        quick().fit(rows[0][:50], rows[1][:50], **given)


@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        ([[1.0], [2.0]], [1, 1], None, r"one class only \(1\)"),
        ([[1.0], [2.0]], [0, 1], [0.0, 0.0], "non-zero number|weights are 0"),
        ([[1.0], [2.0]], [0, 1], [1.0, -1.0], "Negative values"),
        ([[1], [2**40]], [0, 1], None, "row 1, column 0 is 1099511627776"),
        ([[1.0], [1e300]], [0, 1], None, "row 1, column 0"),
        ([[1.0], [np.nan]], [0, 1], None, "NaN"),
        ([[1.0], [np.inf]], [0, 1], None, "infinity"),
        ([[1.0], [2.0]], [0.5, 1.7], None, "Unknown label type"),
    ],
)
def test_wrong_data(X, y, weight, message):
    """Protects the user from data that cannot be learnt from or that firmware cannot hold."""
    with pytest.raises(ValueError, match=message):
        quick().fit(X, y, sample_weight=weight)
