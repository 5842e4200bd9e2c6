"""Quantized networks: their weights as they are, and answers within 0.5 points of the runtime's."""

import logging
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.neural_network import MLPClassifier

import tinykernel
from tests.onnx_files import save_network
from tests.optional import import_tool
from tests.refusals import refused
from tinykernel.base.errors import ConvertError, TinykernelError
from tinykernel.conversion.models import changes_by_layer, convert
from tinykernel.pieces.filters.spec import Filters

onnx = import_tool("onnx")
runtime = import_tool("onnxruntime")
quantization = import_tool("onnxruntime.quantization")
NODE = onnx.helper.make_node
X, Y = load_digits(return_X_y=True)
X = X.astype(np.float32)


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


def quantized(network, form, folder, kind="QInt8", **options):
    """Return a quantized file, and what onnxruntime answers by it."""
    file, values = quantized_values(network, form, folder, kind, **options)
    return file, values.argmax(axis=1)


def quantized_values(network, form, folder, kind="QInt8", **options):
    """Return a quantized file, and the values that onnxruntime computes by it."""
    nodes, arrays, rows = network()
    save_network(onnx, folder / "float.onnx", nodes, arrays, rows.shape[1:])
    logging.disable(logging.WARNING)
    quantization.quantize_static(
        folder / "float.onnx",
        folder / "net.onnx",
        _Rows(rows[:60]),
        quant_format=getattr(quantization.QuantFormat, form),
        activation_type=getattr(quantization.QuantType, kind),
        # Without a reduced range sums of older processors saturate.
        **{"weight_type": quantization.QuantType.QInt8, "reduce_range": True, **options},
    )
    logging.disable(logging.NOTSET)
    session = runtime.InferenceSession(folder / "net.onnx")
    return folder / "net.onnx", session.run(None, {"x": rows})[0]


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
    whole = convert(file, rows[:300].astype(np.uint8), task="classes", max_change=1.0)
    assert np.array_equal(whole.predict(rows.astype(np.uint8)), found)


def test_one_layer_is_a_linear_model(tmp_path):
    """It ended in an error about stages: there is no layer whose levels others read."""
    scores = RidgeClassifier().fit(X, Y)

    def one():
        arrays = {"a": scores.coef_.T, "b": scores.intercept_}
        return [NODE("Gemm", ["x", "a", "b"], ["y"])], arrays, X

    file, expected = quantized(one, "QDQ", tmp_path)
    found = convert(file, X, task="classes", max_change=0.05).predict(X)
    assert np.mean(found != expected) <= 0.05


def drawn(nodes, **shapes):
    """Return nodes with random weights of these shapes, and rows of values around 0."""
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}
    return nodes, arrays, rng.normal(size=(400, shapes["a"][0])).astype(np.float32)


def gemm(number, before, weights, bias="", **options):
    """Return a dense layer."""
    names = [before, weights, *([bias] if bias else [])]
    return NODE("Gemm", names, [number], name=f"gemm{number}", **options)


def normalized():
    """A normalization behind a ReLU that the quantizer takes for the clipping of its levels."""
    norm = NODE("BatchNormalization", [*"2stuv"], ["3"])
    nodes = [gemm("1", "x", "a", "d"), NODE("Relu", ["1"], ["2"]), norm, gemm("y", "3", "b", "e")]
    nodes, arrays, rows = drawn(nodes, a=(12, 9), d=(9,), b=(9, 3), e=(3,), s=(9,), t=(9,), u=(9,))
    return nodes, arrays | {"v": np.full(9, 0.1)}, rows


def scaled():
    """A Gemm whose bias QGemm multiplies by alpha."""
    nodes = [gemm("1", "x", "a", "d"), NODE("Relu", ["1"], ["2"])]
    return drawn([*nodes, gemm("y", "2", "b", "e", alpha=0.5)], a=(12, 9), d=(9,), b=(9, 3), e=(3,))


def functions():
    """Tables of levels, also where the quantizer leaves the values before them in floats."""
    nodes = [gemm("1", "x", "a", "d"), NODE("LeakyRelu", ["1"], ["2"], alpha=0.2)]
    nodes += [gemm("3", "2", "b"), NODE("Sigmoid", ["3"], ["4"]), gemm("5", "4", "c")]
    nodes += [NODE("Tanh", ["5"], ["6"]), gemm("y", "6", "e")]
    return drawn(nodes, a=(12, 16), d=(16,), b=(16, 16), c=(16, 16), e=(16, 3))


def residual():
    """Two branches, of which one has a unit that never learned."""
    nodes = [gemm("1", "x", "a", "d"), NODE("Relu", ["1"], ["2"]), gemm("3", "2", "b", "e")]
    nodes += [NODE("Relu", ["3"], ["4"]), gemm("5", "4", "c"), NODE("Add", ["2", "5"], ["6"])]
    nodes += [NODE("Relu", ["6"], ["7"]), gemm("y", "7", "f")]
    shapes = {"a": (12, 9), "d": (9,), "b": (9, 9), "c": (9, 9), "e": (9,), "f": (9, 3)}
    nodes, arrays, rows = drawn(nodes, **shapes)
    arrays["b"][:, 0] = 0
    return nodes, arrays, rows


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("network", [normalized, scaled, functions, residual])
def test_what_levels_do_between_layers_is_read(network, form, tmp_path):
    """They were ReLUs, and a bias was halved, unnoticed; functions and branches are layers."""
    by_channel = {"per_channel": form == "QDQ"}
    file, expected = quantized_values(network, form, tmp_path, "QUInt8", **by_channel)
    rows = network()[2]
    model = convert(file, rows, task="values", max_change=1.0)
    assert "filters" in [stage.KIND for stage in model.stages]
    assert np.abs(model.predict(rows) - expected).mean() < 0.05 * expected.std()
    assert tinykernel.verify(model, rows[:9]).differences == 0


def test_last_weights_of_nine_bits_are_refused(tmp_path):
    """Those above 127 became negative."""
    kind = quantization.QuantType.QUInt8
    options = {"weight_type": kind, "reduce_range": False}

    def shifted():
        nodes, arrays, rows = scaled()
        return nodes, arrays | {"b": arrays["b"] + 2}, rows

    file, _ = quantized_values(shifted, "QDQ", tmp_path, "QUInt8", **options)
    refused(
        ConvertError, convert, file, shifted()[2], task="values", max_change=1.0, match="8 bits"
    )


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


class _Lite:
    """A file of TensorFlow Lite, built layer by layer with the levels that rows have."""

    def __init__(self, schema, x):
        self.schema, self.model, self.graph = schema, schema.ModelT(), schema.SubGraphT()
        self.model.version, self.model.subgraphs, self.model.description = 3, [self.graph], "t"
        self.model.operatorCodes, self.model.buffers = [], [schema.BufferT()]
        self.graph.tensors, self.graph.operators = [], []
        self.x, self.last = x, self.tensor((1, *x.shape[1:]), "FLOAT32")
        self.graph.inputs, self.entry = [self.last], self.last
        self.go_on("QUANTIZE", None, x)

    def tensor(self, shape, kind, scales=None, zeros=None, data=None, axis=0):
        """Add a tensor; return its number."""
        made = self.schema.TensorT()
        made.shape, made.type, made.buffer = list(shape), getattr(self.schema.TensorType, kind), 0
        made.name = f"t{len(self.graph.tensors)}"
        if scales is not None:
            made.quantization = self.schema.QuantizationParametersT()
            made.quantization.scale = np.ravel(scales).astype(np.float32)
            made.quantization.zeroPoint = np.ravel(zeros).astype(np.int64)
            made.quantization.quantizedDimension = axis
        if data is not None:
            made.buffer = len(self.model.buffers)
            buffer = self.schema.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), np.uint8)
            self.model.buffers.append(buffer)
        self.graph.tensors.append(made)
        return len(self.graph.tensors) - 1

    def go_on(self, kind, options, x, constants=(), levels=None):
        """Add an operator that makes x."""
        code = self.schema.OperatorCodeT()
        code.builtinCode = getattr(self.schema.BuiltinOperator, kind)
        code.deprecatedBuiltinCode = code.builtinCode
        code.version = 1 if kind == "RESHAPE" else 3
        operator = self.schema.OperatorT()
        operator.opcodeIndex = len(self.model.operatorCodes)
        if options is not None:
            name = type(options).__name__[:-1]
            operator.builtinOptionsType = getattr(self.schema.BuiltinOptions, name)
            operator.builtinOptions = options
        low, high = min(0, x[:200].min()), max(0, x[:200].max())
        scale = (high - low) / 255
        self.levels = levels or (scale, int(np.rint(-128 - low / scale)))
        kinds = ("FLOAT32",) if kind == "DEQUANTIZE" else ("INT8", *self.levels)
        made = self.tensor((1, *x.shape[1:]), *kinds)
        operator.inputs, operator.outputs = [self.last, *constants], [made]
        self.model.operatorCodes.append(code)
        self.graph.operators.append(operator)
        self.x, self.last = x, made

    def sums(self, kind, options, weights, bias, x):
        """Add a layer with ReLU or not."""
        scales = np.abs(weights).reshape(len(weights), -1).max(axis=1) / 127
        scales = scales if kind == "CONV_2D" else np.full(1, scales.max())
        worth = scales.reshape(-1, *[1] * (weights.ndim - 1))
        whole = np.rint(weights / worth).astype(np.int8)
        of_weights = self.tensor(weights.shape, "INT8", scales, 0 * scales, whole)
        worth = scales * self.levels[0]
        biases = np.rint(bias / worth).astype(np.int32)
        of_bias = self.tensor(bias.shape, "INT32", worth, 0 * scales, biases)
        self.go_on(kind, options, x, (of_weights, of_bias))

    def save(self, file, floats):
        """Write it; with `floats` it gives floats, else levels alone."""
        if floats:
            self.go_on("DEQUANTIZE", None, self.x)
        else:  # without the first operator
            self.graph.inputs = [self.graph.operators.pop(0).outputs[0]]
        self.graph.outputs = [self.last]
        flatbuffers = import_tool("flatbuffers")
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        file.write_bytes(builder.Output())


def lite_perceptron(schema):
    """Return a perceptron of levels alone."""
    _, arrays, rows = perceptron()
    lite, x = _Lite(schema, rows), rows
    for weights, bias in (("a", "d"), ("b", "e"), ("c", "f")):
        options = schema.FullyConnectedOptionsT()
        x = x @ arrays[weights] + arrays[bias]
        if weights != "c":
            options.fusedActivationFunction, x = 1, np.maximum(x, 0)
        lite.sums("FULLY_CONNECTED", options, arrays[weights].T, arrays[bias], x)
    return lite, rows


def lite_images(schema):
    """Return convolutions with ReLU6, strides and zeros around on two sides."""
    rng, rows = np.random.default_rng(0), X.reshape(-1, 8, 8, 1)
    lite, n = _Lite(schema, rows), len(rows)
    kernel, bias = rng.normal(size=(12, 3, 3, 1)) / 9, rng.normal(size=12) / 4
    padded = np.pad(rows, ((0, 0), (0, 1), (0, 1), (0, 0)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2, 0]
    x = np.clip(np.einsum("nyxij,oij->nyxo", views, kernel[..., 0]) + bias, 0, 6)
    options = schema.Conv2DOptionsT()
    options.strideH = options.strideW = 2
    options.dilationHFactor = options.dilationWFactor = 1
    options.padding, options.fusedActivationFunction = 0, 3
    lite.sums("CONV_2D", options, kernel, bias, x)
    pool = schema.Pool2DOptionsT()
    pool.strideH = pool.strideW = pool.filterHeight = pool.filterWidth = 2
    pool.padding = 1
    x = x.reshape(n, 2, 2, 2, 2, 12).max(axis=(2, 4))
    lite.go_on("MAX_POOL_2D", pool, x, levels=lite.levels)
    shape = lite.tensor((2,), "INT32", data=np.array([1, 48], np.int32))
    x = x.reshape(n, 48)
    lite.go_on("RESHAPE", schema.ReshapeOptionsT(), x, (shape,), lite.levels)
    last = RidgeClassifier().fit(x, Y)
    options = schema.FullyConnectedOptionsT()
    made = x @ last.coef_.T + last.intercept_
    lite.sums("FULLY_CONNECTED", options, last.coef_, last.intercept_, made)
    return lite, rows


def lite_residual(schema):
    """Return convolutions of a signal whose values are added behind a tanh."""
    rng, rows = np.random.default_rng(0), X.reshape(-1, 8, 8) / 16
    lite = _Lite(schema, rows)
    image = lite.tensor((4,), "INT32", data=np.array([1, 1, 8, 8], np.int32))
    lite.go_on("RESHAPE", schema.ReshapeOptionsT(), rows[:, None], (image,), lite.levels)
    x, earlier = rows, -1
    for number in range(2):
        kernel, bias = rng.normal(size=(32, 1, 3, x.shape[2])) / 4, rng.normal(size=32) / 4
        views = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, 1), (0, 0))), 3, 1)
        x = np.einsum("nxdj,ojd->nxo", views, kernel[:, 0]) + bias
        options = schema.Conv2DOptionsT()
        options.strideH = options.strideW = 1
        options.dilationHFactor = options.dilationWFactor = 1
        options.padding = 0
        lite.sums("CONV_2D", options, kernel, bias, x[:, None])
        if number == 0:
            x = np.tanh(x)
            lite.go_on("TANH", None, x[:, None], levels=(1 / 128, 0))
            earlier, values = lite.last, x
    x = x + values
    lite.go_on("ADD", schema.AddOptionsT(), x[:, None], (earlier,))
    shape = lite.tensor((2,), "INT32", data=np.array([1, 256], np.int32))
    x = x.reshape(-1, 256)
    lite.go_on("RESHAPE", schema.ReshapeOptionsT(), x, (shape,), lite.levels)
    last = RidgeClassifier(10).fit(x, Y)
    made = x @ last.coef_.T + last.intercept_
    options = schema.FullyConnectedOptionsT()
    lite.sums("FULLY_CONNECTED", options, last.coef_, last.intercept_, made)
    return lite, rows.astype(np.float32)


def lite_normalized(schema):
    """Return what Keras writes of Reshape, Normalization and a largest value of all positions."""
    rng, rows = np.random.default_rng(0), X.astype(np.float32)
    lite, x = _Lite(schema, rows), rows.reshape(-1, 8, 8, 1)
    shape = lite.tensor((4,), "INT32", data=np.array([1, 8, 8, 1], np.int32))
    lite.go_on("RESHAPE", schema.ReshapeOptionsT(), x, (shape,), lite.levels)
    middle = lite.tensor((1, 1, 1, 1), "INT8", 5 / 100, 0, np.int8([100]))
    x = x - 5
    lite.go_on("SUB", schema.SubOptionsT(), x, (middle,))
    kernel, bias = rng.normal(size=(160, 5, 5, 1)) / 9, rng.normal(size=160) / 4
    views = np.lib.stride_tricks.sliding_window_view(x[..., 0], (5, 5), (1, 2))
    x = np.maximum(np.einsum("nyxij,oij->nyxo", views, kernel[..., 0]) + bias, 0)
    options = schema.Conv2DOptionsT()
    options.strideH = options.strideW = options.dilationHFactor = options.dilationWFactor = 1
    options.padding = options.fusedActivationFunction = 1
    lite.sums("CONV_2D", options, kernel, bias, x)
    axes, x = lite.tensor((2,), "INT32", data=np.array([1, 2], np.int32)), x.max(axis=(1, 2))
    lite.go_on("REDUCE_MAX", schema.ReducerOptionsT(), x, (axes,), lite.levels)
    last = RidgeClassifier(10).fit(x, Y)
    made, options = x @ last.coef_.T + last.intercept_, schema.FullyConnectedOptionsT()
    lite.sums("FULLY_CONNECTED", options, last.coef_, last.intercept_, made)
    return lite, rows


@pytest.mark.parametrize("shape", [(1, 8, 1, 8), (1, 4, 16)])
def test_values_of_tensorflow_lite_that_lie_otherwise_are_refused(shape, tmp_path):
    """A signal along the rows of an image was read as one along its columns."""
    import_tool("tflite")
    schema, rows = import_tool("ai_edge_litert.schema_py_generated"), X.reshape(-1, 8, 8)
    lite = _Lite(schema, rows)
    image = lite.tensor((len(shape),), "INT32", data=np.array(shape, np.int32))
    lite.go_on("RESHAPE", schema.ReshapeOptionsT(), rows.reshape(-1, *shape[1:]), (image,))
    lite.sums("FULLY_CONNECTED", schema.FullyConnectedOptionsT(), np.eye(64)[:3], np.zeros(3), X)
    lite.save(tmp_path / "net.tflite", floats=False)
    refused(ConvertError, convert, tmp_path / "net.tflite", rows, task="values", match="order")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("network", "floats"),
    [(lite_perceptron, False), (lite_images, True), (lite_residual, True), (lite_normalized, True)],
)
def test_files_of_tensorflow_lite_are_converted(network, floats, tmp_path):
    """Labels of LiteRT within 0.5 points, rows with channels last; C agrees."""
    import_tool("tflite")
    schema = import_tool("ai_edge_litert.schema_py_generated")
    interpreters = import_tool("ai_edge_litert.interpreter")
    lite, rows = network(schema)
    file = tmp_path / "net.tflite"
    lite.save(file, floats)
    runner = interpreters.Interpreter(model_path=str(file))
    runner.allocate_tensors()
    first, last = runner.get_input_details()[0], runner.get_output_details()[0]
    scale, zero = first["quantization"]
    taken = rows if floats else np.rint(rows / scale + zero).clip(-128, 127).astype(np.int8)
    expected = np.empty(len(rows), int)
    for number, row in enumerate(taken):
        runner.set_tensor(first["index"], row[None])
        runner.invoke()
        expected[number] = runner.get_tensor(last["index"])[0].argmax()
    model = convert(file, rows[:300], task="classes", max_change=1.0)
    found = model.predict(rows)
    assert np.mean(expected == Y) > 0.85
    assert abs(np.mean(found == Y) - np.mean(expected == Y)) <= 0.005
    assert np.mean(found != expected) <= 0.02
    # A level before the tanh is 2.3 behind it.
    assert max(change.largest for change in changes_by_layer(file, model, rows[:100])) <= 3
    assert tinykernel.verify(model, rows[:9]).differences == 0
    data = file.read_bytes()
    for damaged in (data[: len(data) // 2], b"\0\0\0\0TFL3" + bytes(99), data[:4] + data[8:]):
        file.write_bytes(damaged)
        refused(TinykernelError, convert, file, rows, task="classes")
