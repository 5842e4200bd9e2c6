"""Networks that become the stage *filters*: signals, and images of other kernels."""

import itertools
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import tinykernel
from tests.onnx_files import save_network
from tests.refusals import refused
from tests.torch_modules import conv, linear, module, normalized, pool, sequential
from tinykernel.base.errors import ConvertError, FormatError
from tinykernel.conversion.models import change_of, convert
from tinykernel.conversion.networks.torch import of_torch
from tinykernel.pieces.filters.spec import Filters

_RNG = np.random.default_rng(0)
Y = _RNG.integers(0, 4, 500)
_TIME = np.arange(96) * (0.2 + 0.8 * Y[:, None, None] + 0.02 * _RNG.normal(size=(500, 1, 1)))
_WAVE = np.sin(_TIME + _RNG.uniform(0, 6, (500, 3, 1)))
X = (_WAVE + 0.1 * _RNG.normal(size=(500, 3, 96)) + [[0], [0.2], [1]]).astype(np.float32)
RELU, FLATTEN = module("ReLU"), module("Flatten")
MEAN = module("AdaptiveAvgPool1d", output_size=1)


def drawn(*shape):
    """Return weights of a convolution or a layer."""
    rng = np.random.default_rng(shape)
    return rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))


def motion(*head):
    """Return the modules of the usual network of motion, with these in front of its last layer."""
    ones, some = np.ones(8), np.linspace(-0.2, 0.3, 8)
    first = [conv(drawn(8, 3, 5), some, sides=1, padding=(2,)), normalized(ones, some, some, ones)]
    second = conv(drawn(16, 8, 5), np.linspace(-0.3, 0.3, 16), sides=1)
    return [*first, RELU, pool("MaxPool", 2, 1), second, RELU, *head, FLATTEN]


#: Modules before the last layer, and the values that they make.
NETWORKS = {
    "mean": (motion(MEAN), 16),
    "flat": (motion(pool("MaxPool", 4, 1)), 176),
    "hidden": ([*motion(pool("AvgPool", 4, 1)), linear(drawn(30, 176)), RELU], 30),
    "strides": ([conv(drawn(12, 3, 8), sides=1, stride=(3,)), RELU, MEAN, FLATTEN], 12),
}


@cache
def completed(name):
    """Return a network whose last layer is fitted to the labels."""
    modules, n = NETWORKS[name]
    values = of_torch(sequential(*modules, linear(np.eye(n)))).ready(X, "values").predict(X)
    model = LogisticRegression(C=0.1, max_iter=500).fit(values / values.std(), Y)
    return sequential(*modules, linear(model.coef_ / values.std(), model.intercept_))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "target"),
    [*itertools.product(NETWORKS, ["host"]), ("mean", "cortex-m4"), ("hidden", "cortex-m4")],
)
def test_signals_become_filters_and_c_agrees(name, target, require_platforms):
    """The network of motion keeps its accuracy within 0.5 points, and C computes the same."""
    require_platforms(target)
    model = convert(completed(name), X[:250], task="classes", max_change=1.0)
    hidden = ["dense"] * (name == "hidden")
    assert [stage.KIND for stage in model.stages] == ["levels", "filters", *hidden, "scale"]
    expected = of_torch(completed(name)).ready(X, "classes").predict(X)
    assert np.mean(expected == Y) > 0.75
    assert abs(np.mean(model.predict(X) == Y) - np.mean(expected == Y)) <= 0.005
    assert change_of(completed(name), model, X).share <= 0.02
    assert tinykernel.verify(model, X[:9], target=target).differences == 0


def test_onnx_as_torch_exports_it(tmp_path, require_tool):
    """Means of signals as means of images of one row, a Reshape that allows 0, weights beside."""
    onnx = require_tool("onnx")
    node, network = onnx.helper.make_node, completed("mean")
    first, norm, second, last = network[0], network[1], network[4], network[-1]
    arrays = {"k": first.weight, "b": first.bias, "l": second.weight, "c": second.bias}
    arrays |= {"s": norm.weight, "o": norm.bias, "m": norm.running_mean, "v": norm.running_var}
    arrays |= {"w": last.weight, "d": last.bias, "two": np.array([2]), "ends": np.array([-2, -1])}
    arrays |= {"flat": np.array([-1, 16])}
    nodes = [
        node("Conv", ["x", "k", "b"], ["1"], pads=[2, 2], auto_pad="NOTSET"),
        node("BatchNormalization", ["1", "s", "o", "m", "v"], ["2"], epsilon=0.0),
        node("Relu", ["2"], ["3"]),
        node("MaxPool", ["3"], ["4"], kernel_shape=[2], strides=[2]),
        node("Conv", ["4", "l", "c"], ["5"]),
        node("Relu", ["5"], ["6"]),
        node("Unsqueeze", ["6", "two"], ["7"]),
        node("ReduceMean", ["7", "ends"], ["8"], keepdims=1),
        node("Squeeze", ["8", "two"], ["9"]),
        node("Reshape", ["9", "flat"], ["10"], allowzero=1),
        node("Gemm", ["10", "w", "d"], ["y"], transB=1),
    ]
    tensors = [
        onnx.numpy_helper.from_array(a if a.dtype.kind == "i" else a.astype(np.float32), name)
        for name, a in arrays.items()
    ]
    value = onnx.helper.make_tensor_value_info
    ends = value("x", 1, ["n", 3, 96]), value("y", 1, ["n", 4])
    graph = onnx.helper.make_graph(nodes, "net", [ends[0]], [ends[1]], tensors)
    versions = [onnx.helper.make_opsetid("", 18)]
    file = tmp_path / "net.onnx"
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=versions, ir_version=8),
        file,
        save_as_external_data=True,
        location="net.onnx.data",
        size_threshold=0,
    )
    model = convert(file, X[:200], task="classes")
    labels = of_torch(network).ready(X, "classes").predict(X)
    assert [stage.KIND for stage in model.stages] == ["levels", "filters", "scale"]
    assert np.mean(model.predict(X) != labels) <= 0.01
    (tmp_path / "net.onnx.data").unlink()
    refused(FormatError, convert, file, X, task="classes", match="net.onnx.data")


@pytest.mark.parametrize(("axes", "kind"), [((1, 2), "filters"), ((1, 3), "dense")])
def test_images_of_one_row_or_column_are_converted(axes, kind):
    """Zeros are around."""
    image = np.expand_dims(np.rint(9 * np.abs(X[:300, 0, :8])), axes).astype(np.uint8)
    mean = module("AdaptiveAvgPool2d", output_size=1)
    modules = [conv(drawn(4, 1, 3, 3), padding=1), RELU, mean, FLATTEN, linear(drawn(3, 4))]
    model = convert(sequential(*modules), image, task="values", max_change=0.1)
    assert [stage.KIND for stage in model.stages] == ["levels", kind, "scale"]


LEAKY, TANH = module("LeakyReLU", negative_slope=0.2), module("Tanh")
IMAGES = (9 * np.abs(X[:, :1, :81])).reshape(-1, 1, 9, 9).astype(np.float32)
FIVE = [conv(drawn(6, 1, 5, 5), np.full(6, 0.2), padding=2, stride=(2, 2)), RELU]
SAME = conv(drawn(5, 6, 3, 4), padding="same")
SAME_AGAIN = conv(drawn(4, 5, 2, 2), padding="same")
#: Modules of images behind each other, which no other stage takes, and how many values they make.
CURVED = {
    "first of 5 x 5": (FIVE, 150),
    "same, tanh, averages": ([*FIVE, SAME, TANH, pool("AvgPool", 2)], 20),
    "mean, top": (
        [*FIVE, pool("AvgPool", 2), module("ReLU6", min_val=0.0, max_val=1.0)],
        24,
    ),
    "leaky": ([conv(drawn(6, 1, 5, 5), groups=1), LEAKY, pool("MaxPool", 2)], 24),
    "sigmoid, ELU": ([*FIVE, SAME, module("Sigmoid"), SAME_AGAIN, module("ELU", alpha=1.0)], 100),
    "hard swish": ([conv(drawn(6, 1, 4, 4)), module("Hardswish"), pool("MaxPool", 3)], 24),
    "table": ([FLATTEN, linear(drawn(20, 81) / 9), TANH, linear(drawn(12, 20)), LEAKY], 12),
}


@pytest.mark.parametrize("name", CURVED)
def test_curves_and_other_kernels_change_values_little(name):
    """Tables of 256 levels between layers, kernels of other sizes; C computes the same."""
    modules, n = CURVED[name]
    network = sequential(*modules, FLATTEN, linear(drawn(3, n)))
    model = convert(network, IMAGES[:300], task="values", max_change=1.0)
    assert "filters" in [stage.KIND for stage in model.stages]
    expected = of_torch(network).ready(IMAGES, "values").predict(IMAGES)
    gap = np.abs(model.predict(IMAGES) - expected)
    assert gap.mean() < 0.02 * expected.std()
    assert tinykernel.verify(model, IMAGES[:9]).differences == 0


@pytest.mark.parametrize("way", ["SAME_UPPER", "SAME_LOWER"])
def test_same_pads_and_functions_of_onnx(way, tmp_path, require_tool):
    """The reference of ONNX computes the same values."""
    onnx = require_tool("onnx")
    from onnx.reference import ReferenceEvaluator

    node = onnx.helper.make_node
    arrays = {"k": drawn(4, 1, 4, 3), "l": drawn(5, 4, 3, 3), "w": drawn(125, 3)}
    nodes = [
        node("Conv", ["x", "k"], ["1"], auto_pad=way, strides=[2, 2], kernel_shape=[4, 3]),
        node("LeakyRelu", ["1"], ["2"], alpha=0.3),
        node("Conv", ["2", "l"], ["3"], auto_pad=way, kernel_shape=[3, 3]),
        node("Sigmoid", ["3"], ["4"]),
        node("Flatten", ["4"], ["5"]),
        node("Gemm", ["5", "w"], ["y"]),
    ]
    save_network(onnx, tmp_path / "net.onnx", nodes, arrays, (1, 9, 9))
    rows = IMAGES[:40]
    model = convert(tmp_path / "net.onnx", rows, task="values", max_change=1.0)
    expected = ReferenceEvaluator(str(tmp_path / "net.onnx")).run(None, {"x": rows})[0]
    assert np.abs(model.predict(rows) - expected).mean() < 0.02 * expected.std()


def test_files_of_keras_have_channels_last(tmp_path, require_tool):
    """A Transpose at the front, and one before Flatten; C and the reference agree."""
    onnx = require_tool("onnx")
    from onnx.reference import ReferenceEvaluator

    node, rows = onnx.helper.make_node, IMAGES[:60].reshape(60, 9, 9, 1)[..., [0, 0]]
    rows = rows * np.array([1, 0.5], np.float32)
    arrays = {"k": drawn(4, 2, 5, 5), "w": drawn(100, 3)}
    nodes = [
        node("Transpose", ["x"], ["0"], perm=[0, 3, 1, 2]),
        node("Conv", ["0", "k"], ["1"]),
        node("Relu", ["1"], ["2"]),
        node("Transpose", ["2"], ["3"], perm=[0, 2, 3, 1]),
        node("Flatten", ["3"], ["4"]),
        node("MatMul", ["4", "w"], ["y"]),
    ]
    file = tmp_path / "net.onnx"
    save_network(onnx, file, nodes, arrays, (9, 9, 2))
    model = convert(file, rows, task="values", max_change=1.0)
    expected = ReferenceEvaluator(str(file)).run(None, {"x": rows})[0]
    assert np.abs(model.predict(rows) - expected).mean() < 0.02 * expected.std()
    assert tinykernel.verify(model, rows[:9]).differences == 0


def test_residual_networks_add_their_branches(tmp_path, require_tool):
    """Of a block that adds its input, and of one with a convolution in both branches; C agrees."""
    onnx = require_tool("onnx")
    from onnx.reference import ReferenceEvaluator

    node = onnx.helper.make_node
    arrays = {"a": drawn(8, 3, 5), "b": drawn(8, 8, 3), "c": drawn(8, 8, 3), "d": drawn(12, 8, 3)}
    arrays |= {"e": drawn(12, 12, 3), "f": drawn(12, 8, 1), "w": drawn(12, 4), "g": np.ones(8) / 5}
    nodes = [
        node("Conv", ["x", "a"], ["1"], pads=[2, 2]),
        node("Relu", ["1"], ["2"]),
        node("Conv", ["2", "b", "g"], ["3"], pads=[1, 1]),
        node("Relu", ["3"], ["4"]),
        node("Conv", ["4", "c"], ["5"], pads=[1, 1]),
        node("Add", ["5", "2"], ["6"]),
        node("Relu", ["6"], ["7"]),
        node("Conv", ["7", "d"], ["8"], pads=[1, 1], strides=[2]),
        node("Conv", ["7", "f"], ["9"], strides=[2]),
        node("Relu", ["8"], ["10"]),
        node("Conv", ["10", "e"], ["11"], pads=[1, 1]),
        node("Add", ["11", "9"], ["12"]),
        node("Relu", ["12"], ["13"]),
        node("GlobalAveragePool", ["13"], ["14"]),
        node("Flatten", ["14"], ["15"]),
        node("Gemm", ["15", "w"], ["y"]),
    ]
    file = tmp_path / "net.onnx"
    save_network(onnx, file, nodes, arrays, (3, 96))
    model = convert(file, X[:200], task="values", max_change=1.0)
    stage = model.find(Filters)
    assert [form.adds for form in stage.layers] == [0, 0, 2, 0, 0, 6]
    expected = ReferenceEvaluator(str(file)).run(None, {"x": X})[0]
    assert np.abs(model.predict(X) - expected).mean() < 0.03 * expected.std()
    assert tinykernel.verify(model, X[:9]).differences == 0
    for kind, names, match in (("Mul", ["11", "9"], "joins"), ("Add", ["11", "7"], "shape")):
        others = [*nodes[:11], node(kind, names, ["12"]), *nodes[12:]]
        save_network(onnx, file, others, arrays, (3, 96))
        refused(ConvertError, convert, file, X, task="values", match=match)


@pytest.mark.usefixtures("page")
def test_recurrent_networks_are_refused_with_what_to_train():
    """One line names Conv1d."""
    layers = [module("GRU"), FLATTEN, linear(drawn(3, 9))]
    refused(ConvertError, convert, sequential(*layers), X, task="classes")


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("beside", ["net.onnx", "net.onnx.data"])
def test_networks_far_too_large_are_refused_unread(beside, tmp_path, require_tool):
    """One line, also where the weights lie beside."""
    require_tool("onnx")
    (tmp_path / "net.onnx").touch()
    with (tmp_path / beside).open("wb") as stream:
        stream.truncate(100 << 20)
    refused(FormatError, convert, tmp_path / "net.onnx", X, task="classes", match="100 MB")
