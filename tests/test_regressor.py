"""The regressor: scikit-learn's conventions, fixed point, the C, and what it refuses."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

from tests.refusals import refused
from tinykernel import TernaryKernelRegressor, load, save
from tinykernel.base.errors import RangeError

# One that trains in a fraction of a second.
quick = partial(TernaryKernelRegressor, n_components=128, epochs=5, effort="quick", random_state=0)


@pytest.fixture(scope="module")
def rows():
    """400 rows of ten inputs, and 200 others."""
    X, y = make_friedman1(600, noise=0.5, random_state=0)
    X = X.astype(np.float32)
    return X[:400], y[:400], X[400:], y[400:]


def test_values_are_those_of_fixed_point(rows, tmp_path):
    """The whole path learns, says what the firmware says, and comes back from files and pickles."""
    X, y, X_test, y_test = rows
    model = quick().fit(X[:200], y[:200])
    integer = model.quantize()
    assert model.score(X_test, y_test) > 0.75
    np.testing.assert_array_equal(integer.predict(X_test), model.predict(X_test))
    fixed = integer.scores(X_test)
    assert fixed.shape == (200, 1)
    np.testing.assert_array_equal(fixed[:, 0] / 2**integer.answers.shift, integer.predict(X_test))
    for copy in (pickle.loads(pickle.dumps(model)), _saved(model, tmp_path / "a.tkm")):
        np.testing.assert_array_equal(copy.predict(X_test), model.predict(X_test))
        assert copy.outputs_ == model.outputs_
    assert _saved(integer, tmp_path / "b.tkm") == integer


def _saved(model, path):
    save(model, path)
    return load(path)


def test_the_unit_of_the_values_does_not_matter(rows):
    """Values of any size, far from 0 too, have a fixed point of their own."""
    X, y = rows[0][:100], rows[1][:100]
    known = quick(epochs=2, n_components=32).fit(X, y).predict(X)
    for factor in (1e-9, 1e9):
        model = quick(epochs=2, n_components=32).fit(X, (y + 1000) * factor)
        np.testing.assert_allclose(model.predict(X) / factor - 1000, known, atol=0.05)


def test_quantiles_cover_what_they_say(rows):
    """The share of rows below a quantile is its level, in its order of outputs."""
    X, y, X_test, y_test = rows
    model = quick(loss=(0.1, 0.9), epochs=30).fit(X, y)
    assert model.outputs_ == model.quantize().answers.names == ("value q0.1", "value q0.9")
    low, high = model.quantize().predict(X_test).T
    assert 0.02 < np.mean(y_test < low) < 0.25
    assert 0.75 < np.mean(y_test < high) < 0.98
    assert model.score(X_test, y_test) == pytest.approx(r2_score(y_test, high))


def test_absolute_loss_ignores_outliers(rows):
    """A few wild values move the mean, not the median."""
    X, y, X_test, y_test = rows
    X, wild = X[:200], y[:200].copy()
    wild[::20] += 500
    errors = {
        loss: np.abs(quick(loss=loss, epochs=15).fit(X, wild).predict(X_test) - y_test).mean()
        for loss in ("squared", "absolute")
    }
    assert errors["absolute"] < errors["squared"] / 2


def test_equal_and_weighted_rows_are_the_same(rows):
    """A repeated row is one of weight 2, in any order; equal inputs of other values are kept."""
    X, y, _, _ = rows
    twice = np.r_[np.arange(100), np.arange(50)]
    weight = np.where(np.arange(100) < 50, 2.0, 1.0)
    first = quick(epochs=2).fit(X[twice], y[twice]).quantize()
    second = quick(epochs=2).fit(X[:100][::-1], y[:100][::-1], weight[::-1]).quantize()
    assert first == second
    both = quick(epochs=2).fit(np.r_[X[:50], X[:50]], np.r_[y[:50], y[:50] + 1]).quantize()
    assert both.predict(X[:50]).mean() == pytest.approx(y[:50].mean() + 0.5, abs=1)


def test_validation_rows_choose_the_epoch(rows):
    """The best epoch by R2 is kept."""
    X, y, X_test, y_test = rows
    model = quick(epochs=12).fit(X[:150], y[:150], validation=(X_test, y_test))
    best = model.history_["accuracy"].max()
    assert model.quantize().score(X_test, y_test) == pytest.approx(best, abs=0.01)


def test_outputs_of_other_sizes_are_refused(rows):
    """One fixed point cannot hold values of which one is a million times the other."""
    X, y = rows[0][:60], rows[1][:60]
    both = np.stack([y, 1e8 * y], axis=1)
    refused(RangeError, lambda: quick(epochs=1).fit(X, both).quantize())
