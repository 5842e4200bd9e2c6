"""ONNX files: networks of one chain of Conv, Gemm, Relu, pooling and the like, or trees."""

from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError, DataError, FormatError
from tinykernel.conversion.checks import first_line, intact
from tinykernel.conversion.filesteps import FilePipeline, with_steps
from tinykernel.conversion.networks import onnxnodes as nodes
from tinykernel.conversion.networks.sequence import RECURRENT, FloatNetwork, numbers_of
from tinykernel.conversion.onnxlinear import KINDS as LINEAR
from tinykernel.conversion.onnxlinear import LinearFile
from tinykernel.conversion.onnxtrees import KINDS, TreeFile

_SHAPES = ("Shape", "Gather", "Unsqueeze", "Concat", "Slice")
_MAPS = ("Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean")
_SUMS = ("Gemm", "MatMul", "BatchNormalization", "Add", "Sub", "Mul", "Div")
#: Operators that measure the levels of values as the network runs.
_DYNAMIC = ("DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "DynamicQuantizeMatMul")
#: Of operators on levels the plain one, which reads the other numbers, and where the weights are.
_ON_LEVELS = {
    "QLinearConv": ("Conv", 3),
    "QLinearMatMul": ("MatMul", 3),
    "QGemm": ("Gemm", 3),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", 0),
    "QLinearAveragePool": ("AveragePool", 0),
    "QLinearAdd": ("Add", 3),
    "QLinearMul": ("Mul", 3),
    "QLinearSigmoid": ("Sigmoid", 0),
    "QLinearLeakyRelu": ("LeakyRelu", 0),
    "QLinearSoftmax": ("Softmax", 0),
}
#: Those that take channels last, where these are turned.
_TURNED = ("Flatten", "Reshape", "Gemm", "MatMul", "QGemm", "QLinearMatMul", *nodes.LEVELS)
#: Operators that do the same on levels; and an attribute of others.
_OF_LEVELS = ("MaxPool", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity")
_LAST = ("channels_last", 0)
# What a file holds, and what reads the nodes of trees and of linear models.
OnnxModel = FloatNetwork | TreeFile | LinearFile | FilePipeline
_READERS: tuple[tuple[Collection[str], Callable[..., TreeFile | LinearFile]], ...] = (
    (KINDS, TreeFile),
    (LINEAR, LinearFile),
)


def of_onnx(path: Path) -> OnnxModel:
    """Return the network of a file, its trees or its weights, behind steps if any."""
    onnx = import_module("onnx")
    try:
        model = onnx.load(str(path))
    except Exception as error:  # of protobuf
        raise FormatError(f"{path}: onnx cannot read it: {first_line(error)}") from None
    with intact(f"{path}: the file", Exception):
        return _network_of(onnx, model, path)


def _network_of(onnx: Any, model: Any, path: Path) -> OnnxModel:
    """Return what a loaded file holds."""
    graph = model.graph
    if not graph.node:
        raise FormatError(f"{path}: holds no network; it is empty, damaged or of another format")
    for node in graph.node:
        if node.op_type in _DYNAMIC:
            raise ConvertError(
                f"{path}: {node.op_type} measures levels as it runs; quantize with "
                "onnxruntime.quantization.quantize_static, or convert the float file"
            )
        if node.op_type in RECURRENT:
            FloatNetwork(lambda _: None).add(f"node {node.name!r} ({node.op_type})", node.op_type)
    constant = {item.name for item in graph.initializer}
    entries = [item for item in graph.input if item.name not in constant]
    if len(entries) != 1:
        raise ConvertError(f"{path}: has {len(entries)} inputs; one is supported")
    sizes = [max(0, size.dim_value) for size in entries[0].type.tensor_type.shape.dim[1:]]
    for kinds, reader in _READERS:
        if any(node.op_type in kinds for node in graph.node):
            n_inputs = sizes[0] if len(sizes) == 1 else 0
            return with_steps(reader, onnx, graph, entries[0].name, n_inputs)
    reading = nodes.GraphReading(onnx, model, entries[0].name)
    network = FloatNetwork(partial(_read, reading), sizes or None, reading.answers)
    turns = [*range(len(sizes) + 1)]
    front = [node for node in graph.node if entries[0].name in node.input]
    if len(sizes) > 1 and [node.op_type for node in front] == ["Transpose"]:
        perm = {item.name: list(item.ints) for item in front[0].attribute}.get("perm")
        if perm == [0, turns[-1], *turns[1:-1]]:  # of Keras: channels come last
            network = FloatNetwork(network.read, [sizes[-1], *sizes[:-1]], reading.answers)
            network.is_last = reading.is_last = True
    return network


def _read(reading: nodes.GraphReading, network: FloatNetwork) -> None:
    """Add the nodes of a graph, the first of which reads the input."""
    try:
        with intact("convert: the network", Exception):
            _read_nodes(reading, network)
    except ConvertError as error:
        if reading.model.producer_name != "skl2onnx":
            raise
        raise ConvertError(f"{error}; convert the fitted model itself") from None


def _read_nodes(reading: nodes.GraphReading, network: FloatNetwork) -> None:
    """Add nodes, and check the outputs."""
    graph = reading.model.graph
    reading.take(network, reading.entry)
    with intact("convert: a weight of the file", Exception):
        to_array = import_module("onnx.numpy_helper").to_array
        reading.numbers = {item.name: to_array(item) for item in graph.initializer}
    for number, node in enumerate(graph.node):
        place = f"node {repr(node.name) if node.name else number} ({node.op_type})"
        with intact(f"convert: {place}", Exception):
            _read_node(reading, network, node, place)
            if not network.end:
                reading.n_nodes = number + 1
    more = {item.name for item in graph.output} & reading.marks.keys() - {reading.last}
    if not network.end and reading.last not in {item.name for item in graph.output}:
        raise ConvertError(
            f"convert: {place} gives {reading.last!r}, which is no output of the network"
        )
    if more:
        raise ConvertError(
            f"convert: the network has several outputs, {min(more)!r} beside the last; keep one"
        )


def _read_node(reading: nodes.GraphReading, network: FloatNetwork, node: Any, place: str) -> None:
    """Add a node, or remember the constants, shapes or labels that it makes."""
    get, numbers, kind = reading.onnx.helper.get_attribute_value, reading.numbers, node.op_type
    options = {item.name: get(item) for item in node.attribute}
    if kind == "Constant":
        numbers[node.output[0]] = _constant(reading.onnx, options, place)
        return
    if node.domain not in ("", "ai.onnx", "ai.onnx.ml") and kind not in _ON_LEVELS:
        raise ConvertError(f"convert: {place} of the domain {node.domain!r} is not supported")
    if kind in ("Identity", "Transpose") and node.input[0] in numbers:
        of, is_turned = numbers[node.input[0]], kind == "Transpose"
        numbers[node.output[0]] = np.transpose(of, options.get("perm")) if is_turned else of
        return
    if kind == "DequantizeLinear" and node.input[0] in numbers:
        axis = options.get("axis", 1)
        numbers[node.output[0]] = _dequantized(reading, node.input[:3], axis, node.output[0], place)
        return
    if kind == "Shape" or (kind in _SHAPES and reading.shapes & set(node.input)):
        reading.shapes.add(node.output[0])
        return
    is_label = kind in (*nodes.LABELLING, *nodes.LEVELS)
    if network.end and (is_label or _is_share(reading, network, node, options, place)):
        _read_label(reading, network, node, options, place)
        return
    _read_values(reading, network, node, options, place)


def _read_values(
    reading: nodes.GraphReading,
    network: FloatNetwork,
    node: Any,
    options: dict[str, Any],
    place: str,
) -> None:
    """Add a node that makes values or levels of other ones."""
    numbers, kind = reading.numbers, node.op_type
    others = _go_to(reading, network, node, place)
    _check_order(reading, network, [kind, *others], place)
    names = [name for name in node.input if name in numbers]
    constants = [numbers[name] for name in names]
    if kind in _ON_LEVELS or kind in nodes.LEVELS:
        _read_levels(reading, network, node, options, place)
    else:
        nodes.check_options(kind, options, place)
        is_first = node.input[0] == reading.last
        if _is_pair(reading, network, node):
            network.end, reading.share = "Sigmoid", reading.last
            reading.end = reading.rest = node.output[0]
            return
        if others:
            network.add_values(place, reading.marks[others[0]])
        elif kind in (*_MAPS, *_SUMS) and (constants or kind in _MAPS):
            arrays = [numbers_of(array, place) for array in constants]
            add = nodes.add_map if kind in _MAPS else nodes.add_sums
            scales = next((reading.scales[name] for name in names if name in reading.scales), None)
            add(network, nodes.Node(place, kind, arrays, options, is_first, scales))
        elif not is_first:
            raise ConvertError(f"convert: {place} is not supported")
        else:
            named = dict(zip(("", "min", "max"), node.input, strict=False))
            nodes.add_other(
                reading, network, nodes.Node(place, kind, constants, options, True), named
            )
        if reading.last in reading.levels:
            reading.levels.add(node.output[0])
    if node.output[0] in reading.marks:
        raise ConvertError(f"convert: {place} gives {node.output[0]!r}, which another node gives")
    if network.end == "Sigmoid" and not reading.is_end(node.output[0]):
        network.end_as_curve()
    if network.end:
        reading.end = reading.share = node.output[0]
    else:
        reading.take(network, node.output[0])


def _read_label(
    reading: nodes.GraphReading,
    network: FloatNetwork,
    node: Any,
    options: dict[str, Any],
    place: str,
) -> None:
    """Check what makes labels behind the end, and take their names."""
    for name in ("share", "rest"):
        if node.op_type != "Concat" and node.input[0] == getattr(reading, name):
            setattr(reading, name, node.output[0])  # of the same values
    if node.op_type == "ArgMax":
        if reading.share and network.n_values == 1:
            raise ConvertError(f"convert: {place} is of one value; put 1 - p before it")
        nodes.check_axis(network, options.get("axis", 0), place)
        nodes.check_options(node.op_type, options, place)
    if node.op_type == "ArrayFeatureExtractor" and node.input[0] in reading.numbers:
        labels = reading.numbers[node.input[0]].ravel().tolist()
        network.labels = np.array([v.decode() if isinstance(v, bytes) else v for v in labels])


def _is_share(
    reading: nodes.GraphReading,
    network: FloatNetwork,
    node: Any,
    options: dict[str, Any],
    place: str,
) -> bool:
    """Whether a node makes the share of the first class, or puts that before the second's."""
    if network.end != "Sigmoid" or network.n_values != 1:
        return False
    if node.op_type == "Concat" and [*node.input] == [reading.rest, reading.share]:
        nodes.check_axis(network, options.get("axis", 0), place)
        reading.share = ""
        return True
    one = reading.numbers.get(node.input[0])
    is_rest = node.op_type == "Sub" and node.input[-1] == reading.share
    if not is_rest or one is None or not np.allclose(one, 1):
        return False
    reading.rest = node.output[0]
    return True


def _is_pair(reading: nodes.GraphReading, network: FloatNetwork, node: Any) -> bool:
    """Whether a node makes the negative of one sum, which a Concat puts before the sum alone."""
    gain = reading.numbers.get(node.input[-1])
    if node.op_type != "Mul" or network.n_values != 1 or gain is None or not np.all(gain == -1):
        return False
    readers = [each for each in reading.model.graph.node if node.output[0] in each.input]
    both = [node.output[0], reading.last]
    is_read = [(each.op_type, [*each.input]) for each in readers] == [("Concat", both)]
    return is_read and reading.is_end(node.output[0])


def _check_order(
    reading: nodes.GraphReading, network: FloatNetwork, read: list[str], place: str
) -> None:
    """Refuse an operator that takes levels for values, or channels last for channels first."""
    kind, *others = read
    takes_levels = kind in _ON_LEVELS or kind == "DequantizeLinear"
    has_levels = [name in reading.levels for name in (reading.last, *others)]
    if kind not in _OF_LEVELS and set(has_levels) != {takes_levels}:
        how = "floats, without Quantize" if takes_levels else "levels, without Dequantize"
        raise ConvertError(f"convert: {place} reads {how}Linear before it")
    if network.is_turned and kind not in _TURNED:
        raise ConvertError(f"convert: {place} reads channels last; only Flatten can")


def _levels(reading: nodes.GraphReading, names: Any, place: str) -> tuple[float, int]:
    """Return the scale of levels and the level of 0, of uint8."""
    scale, zero = (reading.numbers.get(name) for name in (*names, "")[:2])
    if scale is None or scale.size != 1 or (zero is not None and zero.size != 1):
        raise ConvertError(f"convert: {place} has not one scale and level of 0 of all values")
    kind = "uint8" if zero is None else zero.dtype.name
    if kind not in ("int8", "uint8"):
        raise ConvertError(f"convert: {place} has levels of type {kind}; quantize to 8 bits")
    level = 0 if zero is None else int(np.ravel(zero)[0])
    return float(np.ravel(scale)[0]), level + (128 if kind == "int8" else 0)


def _dequantized(
    reading: nodes.GraphReading, names: Any, axis: int, output: str, place: str
) -> NDArray[np.float64]:
    """Return quantized numbers as floats, and note their scales."""
    of, scale, zero = (reading.numbers.get(name) for name in (*names, "")[:3])
    if of is None or scale is None or scale.ndim > 1 or not scale.size:
        raise ConvertError(f"convert: {place} has no numbers, or not one scale by channel")
    scale = numbers_of(scale, place)
    if scale.min() <= 0:
        raise DataError(f"convert: {place} has a scale of {scale.min():g}; quantize again")
    reading.scales[output] = scale.ravel()
    whole = of.astype(np.float64)
    shape = [-1 if i == axis % whole.ndim else 1 for i in range(whole.ndim)]
    scale, zero = (
        np.reshape(part, shape) if np.size(part) > 1 else np.ravel(part)[0]
        for part in (scale, 0.0 if zero is None else zero.astype(np.float64))
    )
    return np.asarray((whole - zero) * scale)


def _read_levels(
    reading: nodes.GraphReading,
    network: FloatNetwork,
    node: Any,
    options: dict[str, Any],
    place: str,
) -> None:
    """Add a node that makes levels of values, values of levels, or computes on levels."""
    op, numbers, inputs = node.op_type, reading.numbers, list(node.input)
    kind, at = _ON_LEVELS.get(op, ("", 0))
    if kind in ("Add", "Mul") and inputs[0] in numbers:  # constants behind the values
        inputs[:6] = [*inputs[3:6], *inputs[:3]]
    if op == "QuantizeLinear":
        network.quantize(place, *_levels(reading, inputs[1:], place))
    else:
        network.check_levels(place, *_levels(reading, inputs[1:3], place))
    levels = inputs[3:5]
    if kind:
        options = {name: value for name, value in options.items() if (name, value) != _LAST}
        nodes.check_options(kind, options, place)
        levels = {"Gemm": inputs[7:9]}.get(kind, inputs[at + 3 : at + 5])
    if kind == "Add" and inputs[3] in reading.marks:
        _check_levels_of(reading, network, inputs, place)
        network.add_values(place, reading.marks[inputs[3]])
    elif at:
        biases = inputs[6:7] if kind == "Gemm" else inputs[8:9] if kind == "Conv" else []
        axis = int(kind != "Conv" and not options.get("transB", 0))
        constants = [_dequantized(reading, inputs[3:6], axis, place, place)]
        scales = reading.scales[place]
        if any(biases):
            worth = float(np.ravel(numbers[inputs[1]])[0]) * scales
            worth = options.get("alpha", 1.0) * worth
            constants.append(numbers[biases[0]].astype(np.float64) * worth)
        add = nodes.add_map if kind in _MAPS else nodes.add_sums
        add(network, nodes.Node(place, kind, constants, options, True, scales))
    elif kind in _MAPS:
        nodes.add_map(network, nodes.Node(place, kind, [], options, True))
    elif kind:
        nodes.add_other(reading, network, nodes.Node(place, kind, [], options, True), {})
    if kind and any(levels) and not (network.end and reading.is_end(node.output[0])):
        network.quantize(place, *_levels(reading, levels, place))
    if op == "QuantizeLinear" or (kind and any(levels)):
        reading.levels.add(node.output[0])


def _check_levels_of(
    reading: nodes.GraphReading, network: FloatNetwork, inputs: list[str], place: str
) -> None:
    """Refuse levels that are added if they are not those of the branch that has them."""
    mark = network.mark(is_shared=False)
    network.go_to(reading.marks[inputs[3]])
    network.check_levels(place, *_levels(reading, inputs[4:6], place))
    network.go_to(mark)


def _constant(onnx: Any, options: dict[str, Any], place: str) -> NDArray[Any]:
    """Return the tensor of a node Constant, or its numbers or texts."""
    if len(options) != 1 or "sparse_value" in options:
        raise ConvertError(f"convert: {place} is not supported; give one value")
    (value,) = options.values()
    if isinstance(value, onnx.TensorProto):
        return np.asarray(import_module("onnx.numpy_helper").to_array(value))
    return np.array(value)


def _go_to(reading: nodes.GraphReading, network: FloatNetwork, node: Any, place: str) -> list[str]:
    """Go to the values that a node reads; return the others, which it adds."""
    constant = {*reading.numbers, *reading.shapes}
    read = [name for name in node.input if name and name not in constant]
    unknown = [name for name in read if name not in reading.marks]
    if unknown:
        raise ConvertError(
            f"convert: {place} reads {unknown[0]!r}, which no node before it gives; write the "
            "file again"
        )
    if not read or len(read) > 1 + (node.op_type in ("Add", "QLinearAdd")):
        joins = "joins branches, of which Add takes two" if read else "reads none of its values"
        raise ConvertError(f"convert: {place} {joins}; write the network with Add alone")
    if read[0] != reading.last:
        network.go_to(reading.marks[read[0]])
        reading.last = read[0]
    return read[1:]
