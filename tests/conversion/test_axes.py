"""The order of axes of converted networks: rows with channels first, in Python and in commands."""

import numpy as np
import pytest

import tinykernel
from tests.cli.tools import json_of, run, succeeded
from tests.refusals import refused
from tests.torch_modules import conv, linear, module, sequential
from tinykernel.base.errors import ShapeError
from tinykernel.conversion.models import convert
from tinykernel.conversion.networks.sequence import FloatNetwork
from tinykernel.conversion.networks.torch import of_torch

pytestmark = pytest.mark.usefixtures("page")

RELU, FLATTEN, MEAN = module("ReLU"), module("Flatten"), module("AdaptiveAvgPool2d", output_size=1)
_RNG = np.random.default_rng(0)


def _weights(*shape):
    return _RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:]))


#: Modules, and the shape of a row with channels first.
NETWORKS = {
    "image": ([conv(_weights(4, 3, 3, 3)), RELU, FLATTEN, linear(_weights(3, 144))], (3, 8, 8)),
    "signal": ([conv(_weights(4, 3, 5), sides=1), RELU, FLATTEN, linear(_weights(3, 64))], (3, 20)),
    "without a bend": (
        [conv(_weights(2, 3, 5), sides=1), FLATTEN, linear(_weights(3, 32))],
        (3, 20),
    ),
    "one channel": (
        [conv(_weights(4, 1, 5), sides=1), RELU, FLATTEN, linear(_weights(3, 64))],
        (1, 20),
    ),
}


@pytest.fixture(scope="module", params=NETWORKS)
def network(request, tmp_path_factory):
    """A model, rows with channels first, and their labels by the floats; and a folder."""
    modules, shape = NETWORKS[request.param]
    X = np.random.default_rng(1).normal(size=(120, *shape)).astype(np.float32)
    y = of_torch(sequential(*modules)).ready(X, "classes").predict(X)
    model = convert(sequential(*modules), X, task="classes", max_change=0.05)
    return model, X, y, tmp_path_factory.mktemp("axes")


def test_rows_with_channels_first_are_turned(network):
    """Python's predict, and every command that takes data, see the rows of the library."""
    model, X, y, folder = network
    last = np.moveaxis(X, 1, -1)
    expected = model.predict(last.reshape(len(X), -1))
    assert np.mean(expected == y) > 0.95
    for rows in (X, last):
        assert np.array_equal(model.predict(rows), expected)
    tinykernel.save(model, folder / "net.tkm")
    for name, rows in (("first", X), ("last", last)):
        file = folder / f"{name}.npz"
        np.savez(file, X=rows, y=expected)
        assert json_of("evaluate", folder / "net.tkm", file)["accuracy"] == 1.0
        assert json_of("verify", folder / "net.tkm", file)["accuracy"] == 1.0
        labels = json_of("predict", folder / "net.tkm", file)["labels"]
        assert labels == expected.tolist()
        target = ("--target", "cortex-m4", "--data", file)
        succeeded("export", folder / "net.tkm", *target, "-o", folder / name)
    vectors = [next((folder / name).rglob("*vectors.h")).read_bytes() for name in ("first", "last")]
    assert vectors[0] == vectors[1]
    header = next((folder / "first").rglob("net.h")).read_text()
    assert ("row by row, channels last" in header) == (X.shape[1] > 1)
    np.savez(folder / "wrong.npz", X=X[:, :, 1:], y=expected)
    refusal = run("evaluate", folder / "net.tkm", folder / "wrong.npz")
    assert refusal.exit_code == 1
    assert "inputs" in refusal.stderr


def test_axes_of_one_length_are_refused():
    """Both orders fit; flat rows, and a model trained here, say which one it is."""
    X = np.random.default_rng(0).normal(size=(60, 3, 3, 3)).astype(np.float32)
    network = sequential(
        conv(_weights(4, 3, 3, 3), padding=1), RELU, FLATTEN, linear(_weights(2, 36))
    )
    model = convert(network, X, task="classes", max_change=0.1)
    refused(ShapeError, model.predict, X)
    model.predict(np.moveaxis(X, 1, -1).reshape(60, -1))


def test_values_behind_flatten_keep_their_order():
    """An image of 8 x 6 before Linear was turned to 6 x 8, on the chip as well."""
    X = np.random.default_rng(0).normal(size=(60, 8, 6)).astype(np.float32)
    layers = [FLATTEN, linear(_weights(9, 48)), RELU, linear(_weights(2, 9))]
    model = convert(sequential(*layers), X, task="values", max_change=0.1)
    expected = of_torch(sequential(*layers)).ready(X, "values").predict(X)
    for rows in (X, X.reshape(60, -1)):
        assert np.abs(model.predict(rows) - expected).max() < 0.1
    refused(ShapeError, model.predict, X.transpose(0, 2, 1))


def test_a_file_says_the_order_of_rows_to_convert_with():
    """Channels last are turned, flat rows of several channels and other shapes refused."""

    def read(network):
        network.add_convolution("c", _weights(2, 3, 3, 3), 0.0, [1, 1], [0] * 4, 1)
        network.add("f", "Flatten")
        network.add_dense("d", _weights(2, 72), 0.0)

    X = np.random.default_rng(0).normal(size=(9, 3, 8, 8))
    for sizes in ((3, 8, 8), (3, 0, 0)):
        network, last = FloatNetwork(read, sizes), np.moveaxis(X, 1, -1)
        network.ready(last, "values")
        assert np.array_equal(network.rows_of(X), network.rows_of(last))
        refused(ShapeError, network.rows_of, X.reshape(9, -1))
        refused(ShapeError, network.rows_of, X[:, :, 1:])
