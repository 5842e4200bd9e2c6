"""Training of a linear part: learned as it is stored."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tests.refusals import refused
from tinykernel import Classifier
from tinykernel.base.errors import RangeError
from tinykernel.learn.linear.training import LinearLearner, LinearRecipe, TrainingRows, round_linear
from tinykernel.learn.loop import run_epochs
from tinykernel.learn.loss import targets_of
from tinykernel.pieces.linear.spec import Linear


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_linear_part_is_learned_as_it_is_stored(bits):
    """Protects its levels, and that the scores of the model are the decisions in training."""
    rng = np.random.default_rng(bits)
    linear = rng.standard_normal((30, 4)).astype(np.float32)
    levels, step = round_linear(linear, bits)
    assert np.abs(levels).max() == 2 ** (bits - 1) - 1
    assert np.abs(levels * step - linear).mean() < (0.6 if bits == 2 else 0.2)
    X, y = load_iris(return_X_y=True)
    options = {"epochs": 40, "effort": "quick", "random_state": 0}
    model = Classifier(model="linear", linear=bits, **options).fit(X, y)
    assert model.score(X, y) > 0.85
    assert np.abs(model.quantize().find(Linear).weights).max() == 2 ** (bits - 1) - 1


def test_dropout_and_interruption_keep_the_best():
    """Protects dropout, two classes, and Ctrl-C after the first epoch."""
    rng = np.random.default_rng(0)
    q = rng.integers(-100, 100, (200, 6)).astype(np.int8)
    codes = (q[:, 0] > q[:, 1]).astype(np.int64)
    recipe = LinearRecipe(bits=8, epochs=30, dropout=0.2, batch_rows=32)
    learner = LinearLearner(TrainingRows(q, targets_of(codes, 2), np.ones(200, np.float32)), recipe)
    calls = iter([0.5, 0.9])

    def judge():
        try:
            return next(calls)
        except StopIteration:
            raise KeyboardInterrupt from None

    history = run_epochs(learner, 30, judge)
    assert history.interrupted
    assert len(history.epochs) == 2
    assert np.mean((learner.decide(q)[:, 0] > 0) == codes) > 0.7


@pytest.mark.slow
def test_a_linear_part_that_may_overflow_says_what_to_do():
    """The message speaks of the sums and the bits of the linear part, not of halving."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(-32768, 32767, (40, 3000)).astype(np.int16), np.arange(40) % 2
    X = X // np.arange(1, 3001, dtype=np.int16)  # a scale for each input
    model = Classifier(model="linear", linear=8, epochs=1)
    refused(RangeError, model.fit, X, y)
