"""Networks of ONNX files and of PyTorch after conversion."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import tinykernel
from tests.refusals import refused
from tests.torch_modules import linear, module, normalized, sequential
from tinykernel.base.errors import ConvertError, OptionError, ShapeError
from tinykernel.conversion.models import change_of, convert
from tinykernel.conversion.networks.onnx import of_onnx
from tinykernel.conversion.networks.torch import of_torch

pytestmark = pytest.mark.usefixtures("page")


@pytest.fixture(scope="module")
def digits():
    """Rows, and a fitted perceptron whose weights the networks have."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    return X, MLPClassifier((16,), max_iter=60, random_state=0).fit(X / 16, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_sequential_is_its_layers(digits):
    """Objects with the names and members of PyTorch's; normalizations become part of the sums."""
    X, model = digits
    one, sixteenth = np.ones(64), np.full(64, 1 / 16)
    (first, last), (bias, last_bias) = model.coefs_, model.intercepts_
    network = sequential(
        module("Flatten"),
        normalized(sixteenth, 0 * one, 0 * one, one),
        module("Linear", weight=first.T, bias=bias),
        module("ReLU"),
        module("Dropout"),
        module("Linear", weight=last.T, bias=last_bias),
    )
    refused(OptionError, convert, network, X)
    converted = convert(network, X, task="classes")
    predicted = of_torch(network).ready(X, "classes").predict(X)
    assert np.array_equal(predicted, model.predict(X / 16))
    values = convert(network, X, task="values", max_change=0.01)
    assert values.predict(X).shape == (len(X), 10)
    assert change_of(network, converted, X).share <= 0.005
    assert tinykernel.verify(converted, X[:50]).differences == 0
    two = sequential(*network[:-1], module("Linear", weight=last.T[:2], bias=last_bias[:2]))
    assert set(convert(two, X, task="classes").predict(X)) == {0, 1}
    for added in [
        module("Mish"),
        module("ConvTranspose2d"),
        module("ReLU"),
        module("Linear", weight=np.ones((3, 9))),
    ]:
        refused(ConvertError, convert, sequential(*network, added), X, task="classes")
    refused(
        ConvertError,
        convert,
        sequential(*network[2:5], module("Linear", weight=np.ones((3, 9)))),
        X,
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_file_of_onnx_is_its_layers(digits, tmp_path, require_tool):
    """Gemm, MatMul with Add and a division; the reference of onnx computes the same labels."""
    onnx = require_tool("onnx")
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    X, model = digits
    arrays = {
        "sixteen": np.array([16.0]),
        "w": model.coefs_[0].T,
        "b": model.intercepts_[0],
        "v": model.coefs_[1],
        "c": model.intercepts_[1],
    }
    nodes = [
        helper.make_node("Div", ["x", "sixteen"], ["s"]),
        helper.make_node("Gemm", ["s", "w", "b"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["m"]),
        helper.make_node("Add", ["c", "m"], ["a"]),
        helper.make_node("Softmax", ["a"], ["y"]),
    ]
    file = tmp_path / "net.onnx"

    def save(nodes):
        ends = [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, size])
            for name, size in (("x", 64), ("y", 10))
        ]
        tensors = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()]
        graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], tensors)
        onnx.save(helper.make_model(graph), file)

    save(nodes)
    converted = convert(file, X)
    expected = ReferenceEvaluator(str(file)).run(None, {"x": X})[0].argmax(axis=1)
    assert np.mean(converted.predict(X) != expected) <= 0.005
    names = np.array([f"digit {label}" for label in range(10)], dtype=object)
    labelled = [  # as skl2onnx writes it, and a transposed weight
        helper.make_node("Constant", [], ["names"], value_strings=names.tolist()),
        helper.make_node("Transpose", ["w"], ["wt"]),
        nodes[0],
        helper.make_node("MatMul", ["s", "wt"], ["n"]),
        helper.make_node("Add", ["n", "b"], ["h"]),
        *nodes[2:],
        helper.make_node("ArgMax", ["y"], ["place"], axis=1),
        helper.make_node("ArrayFeatureExtractor", ["names", "place"], ["label"]),
    ]
    save(labelled)
    assert np.mean(convert(file, X).predict(X) != names[expected].astype(str)) <= 0.005
    refused(ShapeError, convert, file, X[:, 1:])
    save([*nodes[:2], helper.make_node("Mish", ["h"], ["r"]), *nodes[3:]])
    refused(ConvertError, convert, file, X)
    cast = helper.make_node("Cast", ["h"], ["r"], to=onnx.TensorProto.INT32)
    save([*nodes[:2], cast, *nodes[3:]])
    refused(ConvertError, convert, file, X)
    behind = helper.make_node("Mul", ["y", "sixteen"], ["z"])
    save([*nodes[:4], helper.make_node("Add", ["m", "c"], ["y"]), behind])
    refused(ConvertError, convert, file, X)
    save([*nodes[:3], helper.make_node("Gemm", ["h", "v"], ["m"]), *nodes[4:]])
    refused(ConvertError, convert, file, X)


def test_hidden_units_are_clipped_at_the_top_of_a_relu6():
    """Behind the first hidden layer they were not; a small unit beside them left weights of 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12)).astype(np.float32)
    scales = np.where(np.arange(20) == 0, 1e-4, 3.0)[:, np.newaxis]
    hidden = [linear(rng.normal(size=(20, n)) * scales, scales[:, 0]) for n in (12, 20)]
    six = module("ReLU6", min_val=0.0, max_val=6.0)
    network = sequential(hidden[0], six, hidden[1], six, linear(rng.normal(size=(3, 20))))
    expected = of_torch(network).ready(X, "values").predict(X)
    model = convert(network, X, task="values", max_change=1.0)
    assert np.abs(model.predict(X) - expected).mean() < 0.06 * expected.std()
    assert tinykernel.verify(model, X[:50]).differences == 0


@pytest.mark.parametrize("seed", range(4))
def test_random_convolutions_are_those_of_onnx(seed, tmp_path, require_tool):
    """Two layers of any padding, stride, clip and pooling: its reference, and the integers."""
    onnx = require_tool("onnx")
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    rng = np.random.default_rng(seed)
    n, image = int(rng.choice([1, 3])), rng.uniform(-seed % 2, 3, (60, 1, 26, 27))
    X = (image + rng.normal(0, 0.1, (60, n, 26, 27))).clip(-seed % 2, 3).astype(np.float32)
    arrays, nodes, now = {}, [], "x"

    def add(kind, *constants, **options):
        nonlocal now
        names = [f"{kind}{len(nodes)}_{i}" for i in range(len(constants))]
        arrays.update(zip(names, constants, strict=True))
        nodes.append(helper.make_node(kind, [now, *names], [f"v{len(nodes)}"], **options))
        now = nodes[-1].output[0]

    for before, after in ((n, 5), (5, 6)):
        around, step = int(rng.integers(2)), int(rng.choice([1, 1, 2]))
        weights = rng.normal(size=(after, before, 3, 3)) / np.sqrt(9 * before)
        add("Conv", weights, rng.normal(size=after) / 9, pads=[around] * 4, strides=[step] * 2)
        add("BatchNormalization", *rng.uniform(0.5, 1.5, (4, after)))
        add("Relu") if rng.integers(2) else add("Clip", np.array(0.0), np.array(1.5))
        sides = [int(side) for side in rng.integers(1, 3, 2)]
        add(str(rng.choice(["MaxPool", "AveragePool"])), kernel_shape=sides, strides=sides)
    add("Flatten")

    def run():
        tensors = [numpy_helper.from_array(a.astype(np.float32), k) for k, a in arrays.items()]
        shapes = {"x": [None, *X.shape[1:]], now: [None, None]}
        value = helper.make_tensor_value_info
        ends = [value(k, onnx.TensorProto.FLOAT, shape) for k, shape in shapes.items()]
        graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], tensors)
        onnx.save(helper.make_model(graph), tmp_path / "net.onnx")
        return ReferenceEvaluator(str(tmp_path / "net.onnx")).run(None, {"x": X})[0]

    add("Gemm", rng.normal(size=(run().shape[1], 3)))
    expected = run()
    model = convert(tmp_path / "net.onnx", X, task="values", max_change=1.0)
    assert "separable" in [stage.KIND for stage in model.stages]
    network = of_onnx(tmp_path / "net.onnx").ready(X, "values")
    np.testing.assert_allclose(network.predict(X), expected, rtol=1e-3, atol=1e-4)
    rows = X.transpose(0, 2, 3, 1)
    assert np.abs(model.predict(rows) - expected).max() < 0.05 * np.ptp(expected)
    assert tinykernel.verify(model, rows[:10]).differences == 0
