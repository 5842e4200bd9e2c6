"""Perceptrons of scikit-learn after conversion."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tinykernel
from tests.refusals import refused
from tinykernel.base.errors import TinykernelError
from tinykernel.conversion.models import change_of, convert
from tinykernel.conversion.networks.dense import levels_of
from tinykernel.pieces.grid import Grid

pytestmark = pytest.mark.usefixtures("page")


def _fitted(load, kind=MLPClassifier, dtype="float32", **options):
    X, y = load(return_X_y=True)
    X = X.astype(dtype)
    options = {"random_state": 0, "max_iter": 80, "hidden_layer_sizes": (24, 12)} | options
    return make_pipeline(StandardScaler(), kind(**options)).fit(X, y), X


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("target", ["host", "cortex-m0plus", "atmega328p"])
@pytest.mark.parametrize("load", [load_digits, load_breast_cancer])
def test_few_labels_change_and_c_agrees(load, target, require_platforms):
    """Two hidden layers on floats and on integers: 0.5 % of the labels at most, equal scores."""
    require_platforms(target)
    model, X = _fitted(load, dtype="float32" if load is load_digits else "int16")
    converted = convert(model, X)
    assert change_of(model, converted, X).share <= 0.005
    assert tinykernel.verify(converted, X[:40], target=target).differences == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_values_change_by_one_or_two_hundredths():
    """A perceptron of one value keeps it within 1 % of its deviation, of two each within 2 %."""
    model, X = _fitted(load_diabetes, MLPRegressor, max_iter=600)
    converted = convert(model, X, max_change=0.01)
    assert tinykernel.verify(converted, X[:40]).differences == 0
    both = MLPRegressor(hidden_layer_sizes=(9,), random_state=0, max_iter=600)
    both.fit(X, np.stack([model.predict(X), 90 * X[:, 0]], axis=1))
    assert convert(both, X, max_change=0.02).predict(X).shape == (len(X), 2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_layers_without_a_bend_are_one_linear_part():
    """With activation "identity" nothing is between the layers, so one dot product is left."""
    model, X = _fitted(load_digits, activation="identity", max_iter=30)
    converted = convert(model, X)
    assert [stage.KIND for stage in converted.stages] == ["scale"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_a_constant_column_is_part_of_the_offsets(dtype):
    """Whatever its value, as scikit-learn's weights of it are not 0."""
    rng = np.random.default_rng(0)
    X = np.hstack([10 * rng.normal(size=(400, 2)), np.full((400, 1), -100)]).astype(dtype)
    model = MLPRegressor(hidden_layer_sizes=(24,), random_state=0, max_iter=100)
    model.fit(X, X[:, 0] * X[:, 1])
    converted = convert(model, X, max_change=0.02)
    assert tinykernel.verify(converted, X[:40]).differences == 0


@settings(max_examples=50)
@given(
    st.sampled_from(["float32", "uint8", "int16", "int32"]),
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=20, unique=True),
)
def test_levels_stand_for_the_values(dtype, values):
    """A level times its step is within one step of the value, and exact of few integers."""
    values = np.array(values, dtype=np.int64)
    rows = values[:, None].astype(dtype)
    _, signal = levels_of(rows, Grid.table(dtype, 1))
    off = np.abs(signal.low + signal.step * signal.levels - rows)
    assert off.max() <= 1.01 * signal.step[0]
    if dtype != "float32" and np.ptp(rows.astype(np.int64)) <= 255:
        assert off.max() == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_activations_of_perceptrons_are_tables(activation):
    """Few labels change."""
    model, X = _fitted(load_digits, max_iter=30, activation=activation)
    converted = convert(model, X, max_change=0.01)
    assert "filters" in [stage.KIND for stage in converted.stages]
    assert tinykernel.verify(converted, X[:9]).differences == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_cannot_be_converted_is_named():
    """Missing rows, and another loss."""
    model, X = _fitted(load_digits, max_iter=1)
    refused(TinykernelError, convert, model)
    counts = MLPRegressor(max_iter=1).fit(X, X[:, 2])
    counts.out_activation_ = "exp"  # of the loss "poisson", since scikit-learn 1.7
    refused(TinykernelError, convert, counts, X)
    several = MLPClassifier(max_iter=1).fit(X, np.stack([X[:, 2] > 3, X[:, 3] > 3], axis=1))
    refused(TinykernelError, convert, several, X)
