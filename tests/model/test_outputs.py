"""What outputs add up in whole numbers."""

import numpy as np
import pytest

from tests.random_models import random_model
from tinykernel.model.fixed import Sums, kernel_model
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.ternary.spec import Ternary


@pytest.mark.parametrize("worth", [3e-6, 3e-7, 9e-8, 6e-8, 3e-14])
def test_a_small_linear_part_overflowed_the_scores(worth: float) -> None:
    """Whatever a level is worth: the scores fit, and follow the floats as far as they can."""
    rng = np.random.default_rng(0)
    given = {"n_features": 60, "n_blocks": 4, "bits": 16, "raw_dtype": "float32"}
    plain = random_model(5, shared_scaler=True, **given)
    levels = rng.integers(-7, 8, (3, 60)).astype(np.int8)
    sums = Sums(rng.uniform(0.5, 1, 3), rng.normal(size=3), levels, worth)
    components, weights = plain.find(Components), plain.find(Ternary).weights
    model = kernel_model(plain.scaler, components, weights, sums, (0, 1, 2))
    X = rng.uniform(0, 200, (300, 60)).astype(np.float32)
    only = kernel_model(plain.scaler, components, weights, Sums(sums.scale, sums.offset), (0, 1, 2))
    expected = only.decision_function(X) + worth * (only.scaler.quantize(X) @ levels.T.astype(int))
    actual = model.decision_function(X)
    assert np.sqrt(np.mean((actual - expected) ** 2)) < 0.2 * expected.std()
    assert np.any(model.find(Linear).multiplier) == (worth > 8e-8)
