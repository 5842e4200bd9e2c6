"""Networks of images and signals after conversion: the stages that they become."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import tinykernel
from tests.refusals import refused
from tests.torch_modules import conv, linear, module, normalized, pool, sequential
from tinykernel.base.errors import ConvertError
from tinykernel.conversion.models import convert
from tinykernel.conversion.networks.torch import of_torch
from tinykernel.conversion.networks.windows import rounded
from tinykernel.pieces.separable.spec import Separable

pytestmark = pytest.mark.usefixtures("page")

DIGITS, LABELS = load_digits(return_X_y=True)
IMAGES = DIGITS.reshape(-1, 1, 8, 8).repeat(2, axis=2).repeat(2, axis=3)
RELU, FLATTEN, MEAN = module("ReLU"), module("Flatten"), module("AdaptiveAvgPool2d", output_size=1)


RELU6 = module("ReLU6", min_val=0.0, max_val=6.0)


def drawn(*shape, seed=0):
    """Return weights of a convolution or a layer."""
    rng = np.random.default_rng([seed, *shape])
    return rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))


ONES, SOME = np.ones(8), np.full(8, 0.3)
BLOCKS = [
    *(conv(drawn(8, 1, 3, 3), padding=1), normalized(ONES, SOME, 0 * ONES, 2 * ONES, 2), RELU),
    *(conv(drawn(8, 1, 3, 3), groups=8, padding=1, stride=2), RELU, conv(drawn(24, 8, 1, 1)), RELU),
]
#: Behind a depthwise layer, and behind a pointwise one that follows another.
POOLED = [*BLOCKS[:5], pool("MaxPool", (2, 1)), *BLOCKS[5:]]
POOLED += [conv(drawn(24, 24, 1, 1)), RELU, pool("AvgPool", 2)]
CHAIN = [conv(drawn(8, 1, 3, 3)), normalized(ONES, SOME, SOME, ONES, 2), RELU, pool("MaxPool", 2)]
AGAIN = [conv(drawn(8, 1, 3, 3), groups=8), RELU]
HALF = [pool("AvgPool", 2), conv(drawn(4, 1, 3, 3)), RELU, conv(drawn(6, 4, 3, 3)), RELU]
FIRST = [conv(drawn(8, 1, 3, 3), SOME, padding=1), normalized(ONES, SOME, 0 * ONES, 2 * ONES, 2)]
SECOND = [conv(drawn(16, 8, 3, 3), padding=1), RELU6, pool("AvgPool", 2)]
TWO = [*FIRST, RELU, pool("MaxPool", 2), *SECOND]
SIDE_BY_SIDE = {"kernel_size": 2, "stride": 2, "padding": 0}
#: Modules before the last layer, the values that they make, the stages, and the labels to change.
NETWORKS = {
    "blocks": ([sequential(*BLOCKS), MEAN], 24, "separable", 0.15),
    "pointwise and pooled": ([*POOLED, MEAN], 24, "separable", 0.15),
    "chains": ([*CHAIN, *AGAIN], 200, "convolutions", 0.005),
    "chains, hidden": ([*CHAIN, FLATTEN, linear(drawn(40, 392)), RELU], 40, "convolutions", 0.01),
    "small": (HALF, 96, "separable", 0.01),
    "mixed twice": (TWO, 256, "separable", 0.005),
    "mixed twice, hidden": ([*TWO, FLATTEN, linear(drawn(30, 256)), RELU], 30, "dense", 0.03),
    "mixed twice, mean": ([*TWO, MEAN], 16, "separable", 0.07),
}


@cache
def completed(name):
    """Return a network whose last layer is fitted to the labels."""
    modules, n, _, _ = NETWORKS[name]
    values = of_torch(sequential(*modules, FLATTEN, linear(np.eye(n)))).ready(IMAGES, "values")
    features = values.predict(IMAGES)
    model = LogisticRegression(max_iter=300).fit(features / features.std(), LABELS)
    last = linear(model.coef_ / features.std(), model.intercept_)
    return sequential(*modules, FLATTEN, last)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "target"),
    [
        *itertools.product(NETWORKS, ["cortex-m4"]),
        *zip(NETWORKS, itertools.cycle(["host", "cortex-m0plus", "esp32c3"])),
        ("mixed twice", "atmega328p"),  # with room for it
    ],
)
def test_images_become_stages_and_c_agrees(name, target, require_platforms):
    """The layers reach the stage; few labels change; scores in C are those in Python."""
    require_platforms(target)
    X = IMAGES[:600].astype("float32" if target == "cortex-m4" else "uint8")
    model = convert(completed(name), X, task="classes", max_change=NETWORKS[name][3])
    assert NETWORKS[name][2] in [stage.KIND for stage in model.stages]
    assert tinykernel.verify(model, X[:12, 0], target=target).differences == 0
    assert np.array_equal(model.predict(X[:12]), model.predict(X[:12, 0]))


def test_images_of_values_below_zero_have_a_border():
    """Zeros around are the level of 0, in all three channels; patches of other sides."""
    rng = np.random.default_rng(0)
    X = rng.normal(0.2, 1, (200, 3, 9, 12)) + rng.normal(0, 2, (200, 3, 1, 1))
    layers = [conv(drawn(6, 3, 3, 3), SOME[:6], padding=1), RELU, pool("MaxPool", (3, 2))]
    network = sequential(*layers, conv(drawn(5, 6, 3, 3)), RELU, FLATTEN, linear(drawn(3, 20)))
    model = convert(network, X.astype(np.float32), task="values", max_change=1.0)
    stage = model.find(Separable)
    assert stage.border > 0
    assert stage.forms.tolist() == [[1, 1, 3, 2, 0], [1, 0, 1, 1, 0]]
    rows = X.astype(np.float32).transpose(0, 2, 3, 1)
    expected = of_torch(network).ready(X, "values").predict(X)
    assert np.abs(model.predict(rows) - expected).max() < 0.03 * np.ptp(expected)
    assert tinykernel.verify(model, rows[:12]).differences == 0


def slow(x, kernel, bias, stride, padding, groups):
    """Return a convolution as its definition: (channels, rows, columns)."""
    n, own, high, wide = kernel.shape
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    rows, columns = ((x.shape[i] - kernel.shape[i + 1]) // stride + 1 for i in (1, 2))
    result = np.empty((n, rows, columns))
    for o, y, z in np.ndindex(n, rows, columns):
        first = o // (n // groups) * own
        seen = x[first : first + own, y * stride :, z * stride :][:, :high, :wide]
        result[o, y, z] = (kernel[o] * seen).sum() + bias[o]
    return result


@settings(max_examples=40)
@given(
    *(st.integers(1, 3) for _ in range(5)),
    st.integers(0, 2),
    st.sampled_from([(6, 1), (4, 2), (4, 4), (8, 4)]),
    st.sampled_from(["MaxPool", "AvgPool", "mean"]),
)
def test_floats_are_those_of_the_definition(high, wide, stride, own, seed, padding, sizes, kind):
    """Any kernel, stride, padding and groups, a normalization and a pooling behind it."""
    (n, groups), rng = sizes, np.random.default_rng(seed)
    x, kernel = rng.normal(size=(2, own * groups, 7, 8)), rng.normal(size=(n, own, high, wide))
    bias, scale, mean, variance = rng.uniform(0.5, 2, (4, n))
    first = conv(kernel, bias, stride=(stride, stride), padding=padding, groups=groups)
    second = MEAN if kind == "mean" else pool(kind, 2)
    maps = [slow(image, kernel, bias, stride, padding, groups) for image in x]
    maps = np.stack(maps) - mean[:, None, None]
    maps = np.maximum(maps * (scale / np.sqrt(variance))[:, None, None], 0)
    if kind == "mean":
        expected = maps.mean(axis=(2, 3))
    elif min(maps.shape[2:]) < 2:
        return
    else:
        of = np.max if kind == "MaxPool" else np.mean
        cut = maps[:, :, : maps.shape[2] // 2 * 2, : maps.shape[3] // 2 * 2]
        cut = cut.reshape(2, n, maps.shape[2] // 2, 2, maps.shape[3] // 2, 2)
        expected = of(cut, axis=(3, 5)).reshape(2, -1)
    middle = [normalized(scale, 0 * bias, mean, variance, 2), RELU, second, FLATTEN]
    network = sequential(first, *middle, linear(np.eye(expected.shape[1])))
    found = of_torch(network).ready(x, "values").predict(x)
    np.testing.assert_allclose(found, expected.reshape(found.shape), atol=1e-9)


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from([1, 7, 127]))
def test_rounded_weights_are_never_worse_than_the_nearest(seed, n, most):
    """Of the error of sums; without correlations they are the nearest."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(3, n)) * most / 2
    read = rng.normal(size=(30, n)) @ rng.normal(size=(n, n))

    def error(whole):
        return ((read @ (weights - whole).T) ** 2).sum(axis=0)

    nearest = np.clip(np.rint(weights), -most, most)
    whole = rounded(weights, read.T @ read, most)
    assert np.all(error(whole) <= error(nearest) * (1 + 1e-9))
    assert np.array_equal(rounded(weights, np.eye(n), most), nearest)
    assert np.abs(whole).max() <= most


@pytest.mark.parametrize(
    "modules",
    [
        [conv(drawn(4, 2, 3, 3))],
        [conv(drawn(4, 1, 3, 3)), module("Hardtanh", min_val=-1, max_val=1)],
        [conv(drawn(4, 1, 16, 16)), pool("MaxPool", 2), MEAN],
        [conv(drawn(4, 1, 3, 3), dilation=(2, 2))],
        [conv(drawn(4, 1, 3, 3)), module("AvgPool2d", **SIDE_BY_SIDE, divisor_override=1)],
        [conv(drawn(4, 1, 3, 3)), RELU],
        [FLATTEN, linear(drawn(9, 256)), module("Softmax"), linear(drawn(3, 9))],
        [conv(drawn(8, 1, 3, 3)), module("Softmax"), pool("MaxPool", 2)],
    ],
)
def test_what_no_stage_does_is_named_with_its_place(modules):
    """One line says which module it is."""
    refused(ConvertError, convert, sequential(*modules), IMAGES[:50], task="classes")
