"""Quantized networks: their weights as they are, and answers within 0.5 points of the runtime's."""

import logging
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.neural_network import MLPClassifier

import tinykernel
from tests.refusals import refused
from tinykernel.base.errors import TinykernelError
from tinykernel.conversion.models import changes_by_layer, convert
from tinykernel.pieces.filters.spec import Filters

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
quantization = pytest.importorskip("onnxruntime.quantization")
NODE = onnx.helper.make_node
X, Y = load_digits(return_X_y=True)
X = X.astype(np.float32)


def saved(file, nodes, arrays, sizes):
    """Write a graph from x to y."""
    tensors = [
        onnx.numpy_helper.from_array(a if a.dtype.kind in "iu" else a.astype(np.float32), name)
        for name, a in arrays.items()
    ]
    value = onnx.helper.make_tensor_value_info
    ends = value("x", 1, ["n", *sizes]), value("y", 1, ["n", None])
    graph = onnx.helper.make_graph(nodes, "net", [ends[0]], [ends[1]], tensors)
    versions = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=versions, ir_version=8), file)


@cache
def perceptron():
    """Return nodes, arrays and rows of a perceptron that learned digits."""
    model = MLPClassifier((24, 16), max_iter=40, random_state=0).fit(X / 16, Y)
    arrays = {"a": model.coefs_[0] / 16, "b": model.coefs_[1], "c": model.coefs_[2]}
    arrays |= dict(zip("def", model.intercepts_, strict=True))
    nodes = [
        NODE("Gemm", ["x", "a", "d"], ["1"]),
        NODE("Relu", ["1"], ["2"]),
        NODE("Gemm", ["2", "b", "e"], ["3"]),
        NODE("Relu", ["3"], ["4"]),
        NODE("Gemm", ["4", "c", "f"], ["y"]),
    ]
    return nodes, arrays, X


@cache
def images():
    """Return those of convolutions whose last layer learned digits."""
    rng = np.random.default_rng(0)
    arrays = {"a": rng.normal(size=(8, 1, 3, 3)) / 3, "b": rng.normal(size=(12, 8, 3, 3)) / 8}
    arrays |= {"c": rng.normal(size=8), "d": rng.normal(size=12)}
    nodes = [
        NODE("Conv", ["x", "a", "c"], ["1"], pads=[1, 1, 1, 1]),
        NODE("Relu", ["1"], ["2"]),
        NODE("MaxPool", ["2"], ["3"], kernel_shape=[2, 2], strides=[2, 2]),
        NODE("Conv", ["3", "b", "d"], ["4"]),
        NODE("Relu", ["4"], ["5"]),
        NODE("Flatten", ["5"], ["6"]),
    ]
    rows = X.reshape(-1, 1, 8, 8)
    value = onnx.helper.make_tensor_value_info
    tensors = [onnx.numpy_helper.from_array(a.astype(np.float32), k) for k, a in arrays.items()]
    ends = value("x", 1, ["n", 1, 8, 8]), value("6", 1, ["n", 48])
    graph = onnx.helper.make_graph(nodes, "net", [ends[0]], [ends[1]], tensors)
    versions = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=versions, ir_version=8)
    session = runtime.InferenceSession(model.SerializeToString())
    features = session.run(None, {"x": rows})[0]
    last = RidgeClassifier().fit(features, Y)
    arrays |= {"w": last.coef_.T, "v": last.intercept_}
    return [*nodes, NODE("Gemm", ["6", "w", "v"], ["y"])], arrays, rows


class _Rows:
    """What `quantize_static` measures levels on."""

    def __init__(self, rows):
        self._left = iter(rows)

    def get_next(self):
        """Return the next row."""
        row = next(self._left, None)
        return None if row is None else {"x": row[None]}


def quantized(network, form, folder, kind="QInt8"):
    """Return a quantized file, and what onnxruntime answers by it."""
    nodes, arrays, rows = network()
    saved(folder / "float.onnx", nodes, arrays, rows.shape[1:])
    logging.disable(logging.WARNING)
    quantization.quantize_static(
        folder / "float.onnx",
        folder / "net.onnx",
        _Rows(rows[:60]),
        quant_format=getattr(quantization.QuantFormat, form),
        activation_type=getattr(quantization.QuantType, kind),
        weight_type=quantization.QuantType.QInt8,
        reduce_range=True,  # without it sums of older processors saturate
    )
    logging.disable(logging.NOTSET)
    session = runtime.InferenceSession(folder / "net.onnx")
    return folder / "net.onnx", session.run(None, {"x": rows})[0].argmax(axis=1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("network", [perceptron, images])
def test_files_of_onnxruntime_are_converted(network, form, tmp_path):
    """Both forms within 0.5 points; weights as they are; levels off by little; C agrees."""
    file, expected = quantized(network, form, tmp_path, "QInt8" if form == "QDQ" else "QUInt8")
    rows = network()[2]
    model = convert(file, rows[:300], task="classes", max_change=1.0)
    found = model.predict(rows)
    assert abs(np.mean(found == Y) - np.mean(expected == Y)) <= 0.005
    assert np.mean(found != expected) <= 0.02
    stage = model.find(Filters)
    weights = [
        onnx.numpy_helper.to_array(each)
        for each in onnx.load(file).graph.initializer
        if each.data_type == onnx.TensorProto.INT8 and len(each.dims) > 1
    ]
    first = next(each for each in weights if each.shape in ((64, 24), (8, 1, 3, 3)))
    assert np.array_equal(np.sort(stage.parts(0)[0].ravel()), np.sort(first.ravel()))
    for change in changes_by_layer(file, model, rows[:100]):
        assert change.mean < 0.2
        assert change.largest <= 4
        assert 0 < change.clipped < 0.9
    assert tinykernel.verify(model, rows[:9]).differences == 0


def _broken(model, how):
    """Change a quantized model."""
    numbers = {each.name: each for each in model.graph.initializer}
    node = next(each for each in model.graph.node if each.op_type == "QuantizeLinear")
    scale = numbers[node.input[1]]
    if how == "scale of 0":
        scale.CopyFrom(onnx.numpy_helper.from_array(np.float32(0), scale.name))
    if how == "scale of NaN":
        scale.CopyFrom(onnx.numpy_helper.from_array(np.float32(np.nan), scale.name))
    if how == "no scale":
        model.graph.initializer.remove(scale)
    if how == "16 bits":
        zero = numbers[node.input[2]]
        zero.CopyFrom(onnx.numpy_helper.from_array(np.int16(0), zero.name))
    if how == "weight":
        several = next(each for each in numbers.values() if each.name == "a_scale")
        several.CopyFrom(onnx.numpy_helper.from_array(np.float32(-1), several.name))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("how", ["scale of 0", "scale of NaN", "no scale", "16 bits", "weight"])
def test_levels_without_sense_are_refused(how, tmp_path):
    """One line says which node."""
    file, _ = quantized(perceptron, "QDQ", tmp_path)
    model = onnx.load(file)
    _broken(model, how)
    onnx.save(model, file)
    refused(TinykernelError, convert, file, X, task="classes", match="scale|reads|type|not finite")
