"""Files of TensorFlow Lite: one chain of layers, of floats or fully quantized."""

from functools import partial
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError, DataError, FormatError
from tinykernel.conversion.checks import intact
from tinykernel.conversion.networks.sequence import FloatNetwork, Mark, numbers_of

_TYPES = {"FLOAT32": "<f4", "INT8": "i1", "UINT8": "u1", "INT32": "<i4"}
_SUMS = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "FULLY_CONNECTED": "FullyConnectedOptions",
}
_POOLS = ("MAX_POOL_2D", "AVERAGE_POOL_2D")
_ENDS = {"SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid"}
_CURVES = {"TANH": "Tanh", "LOGISTIC": "Sigmoid", "ELU": "Elu", "HARD_SWISH": "HardSwish"}
_LEVELS = ("QUANTIZE", "DEQUANTIZE")
_OF_POSITIONS = ("MEAN", "REDUCE_MAX")
_VALUES = ("ADD", "SUB", "MUL", *_OF_POSITIONS)
#: Of the shape for a Reshape, which the tensor behind that has, too.
_OF_SHAPES = ("SHAPE", "STRIDED_SLICE", "PACK")
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

    def _readers(self, tensor: int) -> list[Any]:
        readers = [each for each in self.operators if tensor in each.InputsAsNumpy()]
        return [each for each in readers if self.kind(each) not in _OF_SHAPES]

    def mark(self, network: FloatNetwork, tensor: int) -> Mark:
        """Return where to go on from a tensor, the values of the network so far."""
        return network.mark(is_shared=len(self._readers(tensor)) > 1)

    def is_end(self, tensor: int) -> bool:
        """Whether a tensor is the output, but for its levels."""
        readers = self._readers(tensor)
        return tensor == self.output or all(
            self.kind(each) in _LEVELS and self.is_end(int(each.Outputs(0))) for each in readers
        )

    def check_shape(self, network: FloatNetwork, tensor: int, place: str) -> None:
        """Refuse values that lie otherwise than those of the network so far."""
        shape = self.shape(tensor)
        shapes = {network.now, (network.n_values,)}
        if network.now[0] == 1:  # a signal
            shapes.add(network.now[1:])
        if shape not in shapes:
            sizes = " x ".join(map(str, shape))
            raise ConvertError(
                f"convert: {place} gives {sizes} values in an order that is not known; put Reshape "
                "first, keep rows, columns and channels, or use Flatten"
            )

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
        if shape:
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
    with intact("convert: the network", Exception):
        levels = graph.levels(graph.entry)
        if levels is not None:
            network.quantize("the input", *levels)
    last, marks = graph.entry, {graph.entry: graph.mark(network, graph.entry)}
    for number, operator in enumerate(graph.operators):
        place = f"operator {number}"
        with intact(f"convert: {place}", Exception):
            kind = graph.kind(operator)
            place = f"operator {number} ({kind})"
            inputs = [int(each) for each in operator.InputsAsNumpy()]
            if kind in _OF_SHAPES:
                continue
            if network.end and kind in _LEVELS and inputs[0] == last:
                last = int(operator.Outputs(0))
                continue
            others = [each for each in inputs[1:] if each in marks]
            if inputs[0] not in marks or len(others) > (kind == "ADD"):
                raise ConvertError(
                    f"convert: {place} joins branches, of which ADD takes two; write the network "
                    "with ADD alone"
                )
            if inputs[0] != last:
                network.go_to(marks[inputs[0]])
            last = int(operator.Outputs(0))
            _add(graph, network, operator, kind, place, [marks[each] for each in others])
            if not network.end:
                graph.check_shape(network, last, place)
                marks[last] = graph.mark(network, last)
    if last != graph.output:
        raise ConvertError("convert: the last operator gives no output of the network")


def _add(
    graph: _Graph, network: FloatNetwork, operator: Any, kind: str, place: str, others: list[Mark]
) -> None:
    """Add an operator of values and of others, and the levels of what it gives."""
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
    elif kind in _VALUES:
        _add_values(graph, network, operator, kind, place, others)
    elif kind in _SHAPES:
        *axes, channels = graph.shape(output)
        if not axes:
            network.add(place, "Flatten")
        elif network.is_untouched and prod(axes) > 1:
            network.lay_out((channels, *axes))
    elif kind in _CLIPS:
        network.add_clip(place, 0.0, _CLIPS[kind])
    elif kind == "LEAKY_RELU":
        network.add_curve(place, "LeakyRelu", graph.options(operator, "LeakyReluOptions").Alpha())
    elif kind in _ENDS and graph.is_end(output):
        network.add(place, _ENDS[kind])
    elif kind in _CURVES:
        network.add_curve(place, _CURVES[kind])
    elif kind not in _LEVELS:
        network.add(place, kind)
    levels = graph.levels(output)
    if levels is not None and not network.end and kind not in _SHAPES:
        network.quantize(place, *levels)


def _add_values(
    graph: _Graph, network: FloatNetwork, operator: Any, kind: str, place: str, others: list[Mark]
) -> None:
    """Add values of another branch, constants by channel, or one value of all positions."""
    if others:
        network.add_values(place, others[0])
    else:
        constant = graph.numbers(int(operator.Inputs(1)), place)[0]
        rank = len(graph.shape(int(operator.Inputs(0)))) + 1
        if kind in _OF_POSITIONS:
            if sorted(constant.astype(int).ravel() % rank) != list(range(1, rank - 1)):
                raise ConvertError(f"convert: {place} is supported with all positions only")
            network.add_pool(place, None, kind == "MEAN")
            return
        if constant.size > 1 and constant.shape[-1] != constant.size:
            raise ConvertError(f"convert: {place} has constants by position, not by channel")
        gain = constant if kind == "MUL" else np.ones(1)
        bias = {"ADD": constant, "SUB": -constant}.get(kind, np.zeros(1))
        network.add_line(place, gain, bias)
    _clip(network, graph.options(operator, f"{kind.title()}Options"), place)


def _add_sums(graph: _Graph, network: FloatNetwork, operator: Any, kind: str, place: str) -> None:
    """Add a dense layer or a convolution, whose weights have channels last."""
    options, inputs = graph.options(operator, _SUMS[kind]), operator.InputsAsNumpy()
    if kind == "FULLY_CONNECTED" and options.WeightsFormat() != 0:
        raise ConvertError(f"convert: {place} has shuffled weights; convert the network again")
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
