"""Files of TensorFlow Lite: one chain of layers, of floats or fully quantized."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError, DataError, FormatError
from tinykernel.conversion.checks import intact
from tinykernel.conversion.networks.sequence import FloatNetwork, numbers_of

_TYPES = {"FLOAT32": "<f4", "INT8": "i1", "UINT8": "u1", "INT32": "<i4"}
_SUMS = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "FULLY_CONNECTED": "FullyConnectedOptions",
}
_POOLS = ("MAX_POOL_2D", "AVERAGE_POOL_2D")
_ENDS = {"SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid"}
_SHAPES = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")
_CLIPS = {"RELU": np.inf, "RELU6": 6.0}
_SAME = 0  # of paddings


class _Graph:
    """The operators of a file and its tensors."""

    def __init__(self, library: Any, data: bytes) -> None:
        self.library, self._model = library, library.Model.GetRootAs(data, 0)
        if self._model.SubgraphsLength() != 1:
            raise ConvertError("convert: the file has several graphs; one is supported")
        self._graph = self._model.Subgraphs(0)
        if self._graph.InputsLength() != 1 or self._graph.OutputsLength() != 1:
            raise ConvertError("convert: the network has several inputs or outputs; keep one")
        self.entry, self.output = int(self._graph.Inputs(0)), int(self._graph.Outputs(0))
        self.operators = [self._graph.Operators(i) for i in range(self._graph.OperatorsLength())]

    def _name(self, kind: str, number: int) -> str:
        """Return the name of a number of an enumeration."""
        names = vars(getattr(self.library, kind)).items()
        return next((name for name, value in names if value == number), str(number))

    def kind(self, operator: Any) -> str:
        """Return the name of an operator."""
        code = self._model.OperatorCodes(operator.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        return self._name("BuiltinOperator", number)

    def options(self, operator: Any, kind: str) -> Any:
        """Return its options."""
        table, options = operator.BuiltinOptions(), getattr(self.library, kind)()
        options.Init(table.Bytes, table.Pos)
        return options

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Return the shape of a tensor without that of rows."""
        return tuple(map(int, self._graph.Tensors(tensor).ShapeAsNumpy()))[1:]

    def levels(self, tensor: int) -> tuple[float, int] | None:
        """Return the scale and the level of 0, of uint8, of values; None of floats."""
        of = self._graph.Tensors(tensor)
        kind = self._name("TensorType", of.Type())
        if kind == "FLOAT32":
            return None
        quantum = of.Quantization()
        if kind not in ("INT8", "UINT8") or quantum is None or quantum.ScaleLength() != 1:
            raise ConvertError(f"convert: tensor {tensor} has levels of {kind}, or not one scale")
        return float(quantum.Scale(0)), int(quantum.ZeroPoint(0)) + (128 if kind == "INT8" else 0)

    def numbers(
        self, tensor: int, place: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return constants as floats, and their scales by channel."""
        of = self._graph.Tensors(tensor)
        kind, data = self._name("TensorType", of.Type()), self._model.Buffers(of.Buffer())
        if kind not in _TYPES or data.DataLength() == 0:
            raise ConvertError(f"convert: {place} reads constants of {kind}, or none")
        values = np.frombuffer(data.DataAsNumpy().tobytes(), _TYPES[kind])
        values = values.reshape(tuple(of.ShapeAsNumpy()))
        quantum = of.Quantization()
        if kind in ("FLOAT32", "INT32") and (quantum is None or not quantum.ScaleLength()):
            return numbers_of(values, place), None
        if quantum is None or not quantum.ScaleLength():
            raise ConvertError(f"convert: {place} has quantized weights without scales")
        scales = numbers_of(quantum.ScaleAsNumpy(), place)
        if scales.min() <= 0:
            raise DataError(f"convert: {place} has a scale of {scales.min():g}; quantize again")
        shape = [1] * values.ndim
        shape[quantum.QuantizedDimension()] = -1
        zeros = quantum.ZeroPointAsNumpy() if quantum.ZeroPointLength() else np.zeros(1)
        whole = values.astype(np.float64) - np.reshape(zeros, shape)
        return np.asarray(whole * scales.reshape(shape)), scales


def of_tflite(path: Path) -> FloatNetwork:
    """Return the network of a file."""
    data = path.read_bytes()
    if data[4:8] != b"TFL3":
        raise FormatError(f"{path}: no file of TensorFlow Lite, or damaged")
    with intact(f"{path}: the file", Exception):
        graph = _Graph(import_module("tflite"), data)
        *axes, channels = graph.shape(graph.entry)
    network = FloatNetwork(partial(_read, graph), (channels, *axes))
    network.is_last = True
    return network


def _read(graph: _Graph, network: FloatNetwork) -> None:
    """Add the operators."""
    last = graph.entry
    with intact("convert: the network", Exception):
        levels = graph.levels(graph.entry)
        if levels is not None:
            network.quantize("the input", *levels)
    for number, operator in enumerate(graph.operators):
        place = f"operator {number}"
        with intact(f"convert: {place}", Exception):
            kind = graph.kind(operator)
            place = f"operator {number} ({kind})"
            inputs = [int(each) for each in operator.InputsAsNumpy()]
            if inputs[0] != last or operator.OutputsLength() != 1:
                raise ConvertError(
                    f"convert: {place} begins or joins a branch; networks are one chain of layers"
                )
            last = int(operator.Outputs(0))
            _add(graph, network, operator, kind, place)
    if last != graph.output:
        raise ConvertError("convert: the last operator gives no output of the network")


def _add(graph: _Graph, network: FloatNetwork, operator: Any, kind: str, place: str) -> None:
    """Add an operator, and the levels of what it gives."""
    output = int(operator.Outputs(0))
    if kind in _SUMS:
        _add_sums(graph, network, operator, kind, place)
    elif kind in _POOLS:
        options = graph.options(operator, "Pool2DOptions")
        size = [options.FilterHeight(), options.FilterWidth()]
        _, around = _sides(network, options, size)
        if size != [options.StrideH(), options.StrideW()] or any(around):
            raise ConvertError(f"convert: {place} pools patches that are not side by side")
        network.add_pool(place, size, kind != "MAX_POOL_2D")
        _clip(network, options, place)
    elif kind == "MEAN":
        axes = graph.numbers(int(operator.Inputs(1)), place)[0].astype(int).ravel().tolist()
        rank = len(graph.shape(int(operator.Inputs(0)))) + 1
        if sorted(axis % rank for axis in axes) != list(range(1, rank - 1)):
            raise ConvertError(f"convert: {place} is supported with all positions only")
        network.add_pool(place, None, True)
    elif kind in _SHAPES:
        before, after = graph.shape(int(operator.Inputs(0))), graph.shape(output)
        if [n for n in before if n > 1] != [n for n in after if n > 1]:
            network.add(place, "Flatten")
    elif kind in _CLIPS:
        network.add_clip(place, 0.0, _CLIPS[kind])
    elif kind in _ENDS:
        network.add(place, _ENDS[kind])
    elif kind not in ("QUANTIZE", "DEQUANTIZE"):
        raise ConvertError(f"convert: {place} is not supported")
    levels = graph.levels(output)
    if levels is not None and not network.end and kind not in _SHAPES:
        network.quantize(place, *levels)


def _add_sums(graph: _Graph, network: FloatNetwork, operator: Any, kind: str, place: str) -> None:
    """Add a dense layer or a convolution, whose weights have channels last."""
    options, inputs = graph.options(operator, _SUMS[kind]), operator.InputsAsNumpy()
    weights, scales = graph.numbers(int(inputs[1]), place)
    bias = np.zeros(1)
    if len(inputs) > 2 and inputs[2] >= 0:
        bias = graph.numbers(int(inputs[2]), place)[0]
    if scales is not None and graph.levels(int(inputs[0])) is None:
        raise ConvertError(f"convert: {place} has whole weights alone; quantize its values, too")
    if kind == "FULLY_CONNECTED":
        if not network.is_table:
            network.add(place, "Flatten")
        n, shape = len(weights), network.now
        if weights.size != n * network.n_values:
            raise ConvertError(f"convert: {place} takes values of another shape")
        weights = weights.reshape(n, *shape).transpose(0, 3, 1, 2).reshape(n, -1)
        network.add_dense(place, weights, bias, scales)
    else:
        own = kind == "DEPTHWISE_CONV_2D"
        kernel = weights.transpose(3, 0, 1, 2) if own else weights.transpose(0, 3, 1, 2)
        steps, around = _sides(network, options, list(kernel.shape[2:]))
        if (options.DilationHFactor(), options.DilationWFactor()) != (1, 1):
            raise ConvertError(f"convert: {place} is not supported with dilation")
        groups = network.now[2] // (1 if own else kernel.shape[1])
        network.add_convolution(place, kernel, bias, steps, around, groups, scales)
    _clip(network, options, place)


def _sides(network: FloatNetwork, options: Any, size: list[int]) -> tuple[list[int], list[int]]:
    """Return strides, and the zeros above, before, below and behind."""
    steps, ends = [int(options.StrideH()), int(options.StrideW())], list[tuple[int, int]]()
    for side, n, step in zip(network.now, size, steps, strict=False):
        total = max(0, (-(-side // step) - 1) * step + n - side)
        total = total if options.Padding() == _SAME else 0
        ends.append((total // 2, total - total // 2))
    (above, below), (before, behind) = ends
    return steps, [above, before, below, behind]


def _clip(network: FloatNetwork, options: Any, place: str) -> None:
    """Add the function in an operator."""
    number = options.FusedActivationFunction()
    tops = {0: None, 1: np.inf, 3: 6.0}
    if number not in tops:
        raise ConvertError(f"convert: {place} is supported with ReLU and ReLU6 only")
    top = tops[number]
    if top is not None:
        network.add_clip(place, 0.0, top)
