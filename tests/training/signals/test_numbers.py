"""Training with numbers beside the windows of a signal."""

import numpy as np
import pytest

from tests.refusals import refused
from tinykernel import Classifier, train
from tinykernel.base.errors import DataError, OptionError
from tinykernel.model.pipelines import as_integer_model
from tinykernel.pieces.beside.spec import Beside
from tinykernel.run.parity import verify


def rows_of(n, samples=64, channels=1, seed=0):
    """Draw slow and fast waves beside which a temperature is low, middling or high."""
    rng = np.random.default_rng(seed)
    fast, warm = rng.integers(0, 2, n), rng.integers(0, 3, n)
    t = np.arange(samples) + 40 * rng.random((n, 1))
    wave = np.sin(2 * np.pi * np.where(fast, 0.15, 0.05)[:, None] * t)[:, :, None]
    X = np.rint(900 * wave + 150 * rng.standard_normal((n, samples, channels)))
    temperature = 200 + 60 * warm + rng.normal(0, 8, n)
    rows = np.hstack([X.reshape(n, -1), np.rint(temperature)[:, None], rng.integers(0, 9, (n, 1))])
    # A middling temperature is told by where a ramp of the number ends.
    return rows.astype(np.int16), 2 * fast + (warm == 1)


def fitted(X, y, **options):
    """Train quickly on windows of one channel."""
    return Classifier(n_kernels=24, window_shape=(64, 1), hop=16, random_state=0, **options).fit(
        X, y
    )


@pytest.mark.slow
@pytest.mark.parametrize("n", [240, 1200])
def test_a_number_tells_what_windows_do_not(n):
    """Of few windows and of many, also where classes lie between values."""
    X, y = rows_of(n)
    new, known = rows_of(400, seed=1)
    classifier = fitted(X, y, beside=2)
    model = as_integer_model(classifier)
    without = as_integer_model(fitted(X[:, :-2], y))
    assert np.mean(model.predict(new) == known) > 0.9
    assert np.mean(without.predict(new[:, :-2]) == known) < 0.75
    stage = model.find(Beside)
    assert stage is not None
    assert stage.n_numbers == 2


@pytest.mark.slow
def test_numbers_beside_sounds_and_in_a_budget():
    """A spectrum leaves them alone, and so do varied copies; `train` counts their bytes."""
    X, y = rows_of(120, samples=1024)
    trained = train(
        X,
        y,
        budget="4KB",
        window_shape=(1024, 1),
        rate=2000.0,
        beside=2,
        augment={"shift": 20},
        random_state=0,
    )
    kinds = [stage.KIND for stage in trained.model.stages]
    assert kinds == ["spectrum", "levels", "kernels", "beside", "scale"]
    assert np.mean(trained.model.predict(X) == y) > 0.9
    assert verify(trained.model, X[:10]).ok


def test_windows_without_their_numbers_are_one_line():
    """Arrays of windows have no place for numbers; 64 are the most, and each varies."""
    X, y = rows_of(60)
    still = X.copy()
    still[:, -1] = 7
    refused(DataError, fitted, still, y, beside=2)
    options = {"random_state": 0}
    refused(OptionError, Classifier(**options, beside=1).fit, X[:, :64].reshape(60, 64, 1), y)
    refused(OptionError, fitted, np.hstack([X[:, :64], np.tile(X[:, 64:65], 65)]), y, beside=65)
