"""ONNX files: networks of one chain of Conv, Gemm, Relu, pooling and the like, or trees."""

from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError, DataError, FormatError
from tinykernel.conversion.checks import first_line, intact
from tinykernel.conversion.networks.sequence import RECURRENT, FloatNetwork, Mark, numbers_of
from tinykernel.conversion.onnxlinear import KINDS as LINEAR
from tinykernel.conversion.onnxlinear import LinearFile
from tinykernel.conversion.onnxtrees import KINDS, TreeFile

#: What files of skl2onnx have behind the end, for labels; behind a sigmoid, 1 - p as well.
_LABELLING = {"ArgMax", "ZipMap", "ArrayFeatureExtractor", "Reshape", "Identity", "Cast"}
_LEVELS = ("QuantizeLinear", "DequantizeLinear")
#: What reads values without a second branch of layers.
_NO_BRANCH = ("Shape", "Concat", "ArgMax", "ZipMap")
_SHAPES = ("Shape", "Gather", "Unsqueeze", "Concat", "Slice")
_MAPS = ("Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean")
_FLOATS = ("FLOAT", "DOUBLE", "FLOAT16")
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
_TURNED = ("Flatten", "Reshape", "Gemm", "MatMul", "QGemm", "QLinearMatMul", *_LEVELS)
#: Operators that do the same on levels; and an attribute of others.
_OF_LEVELS = ("MaxPool", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity")
_LAST = ("channels_last", 0)
#: Attributes that change no answer here.
_IDLE = (
    *("name", "seed", "saturate", "round_mode", "momentum", "storage_order", "ratio", "is_test"),
    *("opset", "classlabels_strings", "classlabels_int64s", "count_include_pad", "keepdims"),
)
#: By operator, attributes that are read; None reads all.
_READ: dict[str, tuple[str, ...]] = {
    "Conv": ("group", "pads", "strides", "kernel_shape", "auto_pad", "dilations"),
    "MaxPool": ("pads", "strides", "kernel_shape", "auto_pad", "dilations", "ceil_mode"),
    "AveragePool": ("pads", "strides", "kernel_shape", "auto_pad", "dilations", "ceil_mode"),
    "ReduceMean": ("axes", "noop_with_empty_axes"),
    "Gemm": ("alpha", "beta", "transA", "transB"),
    "BatchNormalization": ("epsilon", "training_mode", "spatial"),
    "Softmax": ("axis",),
    "LogSoftmax": ("axis",),
    "ArgMax": ("axis", "select_last_index"),
    "Flatten": ("axis",),
    "Squeeze": ("axes",),
    "Unsqueeze": ("axes",),
    "Reshape": ("allowzero",),
    "Clip": ("min", "max"),
    "Cast": ("to",),
    "QuantizeLinear": ("axis", "output_dtype", "block_size"),
    "DequantizeLinear": ("axis", "output_dtype", "block_size"),
    "Transpose": ("perm",),
    "LeakyRelu": ("alpha",),
    "Elu": ("alpha",),
    "Scaler": ("offset", "scale"),
    "Concat": ("axis",),
}
#: Attributes that have to be as usual.
_FIXED = {
    "auto_pad": (b"NOTSET", b"VALID", b"SAME_UPPER", b"SAME_LOWER"),
    "ceil_mode": (0,),
    "dilations": (1,),
    "transA": (0,),
}
_FIXED |= {"training_mode": (0,), "spatial": (1,), "select_last_index": (0,)}
_FIXED |= {"noop_with_empty_axes": (0,)}


@dataclass(frozen=True)
class _Node:
    """A node that computes values: its constant inputs, and whether the value comes before them."""

    place: str
    kind: str
    constants: list[NDArray[np.float64]]
    options: dict[str, Any]
    is_first: bool
    scales: NDArray[np.float64] | None = None  # of the weights

    def refuse(self, problem: str = "is not supported") -> ConvertError:
        """Return the error that names the node."""
        return ConvertError(f"convert: {self.place} {problem}")


@dataclass
class _Reading:
    """A graph, and what is known of its values while its nodes are read."""

    onnx: Any
    model: Any
    entry: str
    numbers: dict[str, NDArray[Any]] = field(default_factory=dict)
    scales: dict[str, NDArray[Any]] = field(default_factory=dict)  # of numbers that are quantized
    shapes: set[str] = field(default_factory=set)  # values that are computed of shapes
    marks: dict[str, Mark] = field(default_factory=dict)  # of all other values
    levels: set[str] = field(default_factory=set)  # those that are levels
    last: str = ""  # the value before the end
    end: str = ""  # the value of the end
    share: str = ""  # that of the second of two classes, until the first stands beside it
    rest: str = ""  # that of the first
    n_nodes: int = 0  # that it takes
    is_last: bool = False  # whether rows have channels last, until a Transpose at the front

    def take(self, network: FloatNetwork, name: str) -> None:
        """Note the name of the values of the network so far."""
        readers = [node for node in self.model.graph.node if name in node.input]
        n_readers = sum(node.op_type not in _NO_BRANCH for node in readers)
        self.last, self.marks[name] = name, network.mark(is_shared=n_readers > 1)

    def is_end(self, name: str) -> bool:
        """Whether nothing but labels, shares and levels is made of a value."""
        names, kinds = {name}, {*_LABELLING, *_LEVELS, "Sub", "Concat"}
        for node in self.model.graph.node:
            if names & set(node.input):
                if node.op_type not in kinds:
                    return False
                names |= set(node.output)
        return True

    @property
    def version(self) -> int:
        """The version of the operators."""
        versions = [item.version for item in self.model.opset_import if not item.domain]
        return max(versions, default=1)

    def answers(self, X: NDArray[Any]) -> tuple[NDArray[Any], float] | None:
        """Return what the reference of ONNX computes of rows, and the precision of float32."""
        kinds = {node.op_type for node in self.model.graph.node}
        if self.version < 14 and "BatchNormalization" in kinds:
            return None  # the reference takes the statistics of its batch, which runtimes do not
        is_old = self.version < 19 and "DequantizeLinear" in kinds
        if is_old or any(node.domain == "com.microsoft" for node in self.model.graph.node):
            return None  # it lacks these operators
        evaluator = import_module("onnx.reference").ReferenceEvaluator
        model = self.onnx.ModelProto()
        model.CopyFrom(self.model)
        del model.graph.output[:], model.graph.node[self.n_nodes :]
        model.graph.output.add().name = self.last
        for node in model.graph.node:
            # VALID is no padding, which the reference before onnx 1.21 takes for another one.
            others = [each for each in node.attribute if each.s != b"VALID"]
            del node.attribute[:]
            node.attribute.extend(others)
        (entry,) = (item for item in model.graph.input if item.name == self.entry)
        dtype = self.onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type)
        run = evaluator(model).run
        X = np.moveaxis(X, 1, -1) if self.is_last else X
        rows = [run(None, {self.entry: row[np.newaxis].astype(dtype)})[0] for row in X]
        return np.stack(rows).astype(np.float64), float(np.finfo(np.float32).eps)


def of_onnx(path: Path) -> FloatNetwork | TreeFile | LinearFile:
    """Return the network of a file, its trees or its weights."""
    onnx = import_module("onnx")
    try:
        model = onnx.load(str(path))
    except Exception as error:  # of protobuf
        raise FormatError(f"{path}: onnx cannot read it: {first_line(error)}") from None
    with intact(f"{path}: the file", Exception):
        return _network_of(onnx, model, path)


def _network_of(onnx: Any, model: Any, path: Path) -> FloatNetwork | TreeFile | LinearFile:
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
    if any(node.op_type in KINDS for node in graph.node):
        return TreeFile(onnx, graph, entries[0].name, sizes[0] if len(sizes) == 1 else 0)
    if any(node.op_type in LINEAR for node in graph.node):
        return LinearFile(onnx, graph, entries[0].name, sizes[0] if len(sizes) == 1 else 0)
    reading = _Reading(onnx, model, entries[0].name)
    network = FloatNetwork(partial(_read, reading), sizes or None, reading.answers)
    turns = [*range(len(sizes) + 1)]
    front = [node for node in graph.node if entries[0].name in node.input]
    if len(sizes) > 1 and [node.op_type for node in front] == ["Transpose"]:
        perm = {item.name: list(item.ints) for item in front[0].attribute}.get("perm")
        if perm == [0, turns[-1], *turns[1:-1]]:  # of Keras: channels come last
            network = FloatNetwork(network.read, [sizes[-1], *sizes[:-1]], reading.answers)
            network.is_last = reading.is_last = True
    return network


def _read(reading: _Reading, network: FloatNetwork) -> None:
    """Add the nodes of a graph, the first of which reads the input."""
    try:
        with intact("convert: the network", Exception):
            _read_nodes(reading, network)
    except ConvertError as error:
        if reading.model.producer_name != "skl2onnx":
            raise
        raise ConvertError(f"{error}; convert the fitted model itself") from None


def _read_nodes(reading: _Reading, network: FloatNetwork) -> None:
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


def _read_node(reading: _Reading, network: FloatNetwork, node: Any, place: str) -> None:
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
    is_label = kind in (*_LABELLING, *_LEVELS)
    if network.end and (is_label or _is_share(reading, network, node, options, place)):
        _read_label(reading, network, node, options, place)
        return
    _read_values(reading, network, node, options, place)


def _read_values(
    reading: _Reading, network: FloatNetwork, node: Any, options: dict[str, Any], place: str
) -> None:
    """Add a node that makes values or levels of other ones."""
    numbers, kind = reading.numbers, node.op_type
    others = _go_to(reading, network, node, place)
    _check_order(reading, network, [kind, *others], place)
    names = [name for name in node.input if name in numbers]
    constants = [numbers[name] for name in names]
    if kind in _ON_LEVELS or kind in _LEVELS:
        _read_levels(reading, network, node, options, place)
    else:
        _check_options(kind, options, place)
        is_first = node.input[0] == reading.last
        if _is_pair(reading, network, node):
            network.end, reading.share = "Sigmoid", reading.last
            reading.end = reading.rest = node.output[0]
            return
        if others:
            network.add_values(place, reading.marks[others[0]])
        elif kind in (*_MAPS, *_SUMS) and (constants or kind in _MAPS):
            arrays = [numbers_of(array, place) for array in constants]
            add = _add_map if kind in _MAPS else _add_sums
            scales = next((reading.scales[name] for name in names if name in reading.scales), None)
            add(network, _Node(place, kind, arrays, options, is_first, scales))
        elif not is_first:
            raise ConvertError(f"convert: {place} is not supported")
        else:
            named = dict(zip(("", "min", "max"), node.input, strict=False))
            _add_other(reading, network, _Node(place, kind, constants, options, True), named)
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
    reading: _Reading, network: FloatNetwork, node: Any, options: dict[str, Any], place: str
) -> None:
    """Check what makes labels behind the end, and take their names."""
    for name in ("share", "rest"):
        if node.op_type != "Concat" and node.input[0] == getattr(reading, name):
            setattr(reading, name, node.output[0])  # of the same values
    if node.op_type == "ArgMax":
        if reading.share and network.n_values == 1:
            raise ConvertError(f"convert: {place} is of one value; put 1 - p before it")
        _check_axis(network, options.get("axis", 0), place)
        _check_options(node.op_type, options, place)
    if node.op_type == "ArrayFeatureExtractor" and node.input[0] in reading.numbers:
        labels = reading.numbers[node.input[0]].ravel().tolist()
        network.labels = np.array([v.decode() if isinstance(v, bytes) else v for v in labels])


def _is_share(
    reading: _Reading, network: FloatNetwork, node: Any, options: dict[str, Any], place: str
) -> bool:
    """Whether a node makes the share of the first class, or puts that before the second's."""
    if network.end != "Sigmoid" or network.n_values != 1:
        return False
    if node.op_type == "Concat" and [*node.input] == [reading.rest, reading.share]:
        _check_axis(network, options.get("axis", 0), place)
        reading.share = ""
        return True
    one = reading.numbers.get(node.input[0])
    is_rest = node.op_type == "Sub" and node.input[-1] == reading.share
    if not is_rest or one is None or not np.allclose(one, 1):
        return False
    reading.rest = node.output[0]
    return True


def _is_pair(reading: _Reading, network: FloatNetwork, node: Any) -> bool:
    """Whether a node makes the negative of one sum, which a Concat puts before the sum alone."""
    gain = reading.numbers.get(node.input[-1])
    if node.op_type != "Mul" or network.n_values != 1 or gain is None or not np.all(gain == -1):
        return False
    readers = [each for each in reading.model.graph.node if node.output[0] in each.input]
    both = [node.output[0], reading.last]
    is_read = [(each.op_type, [*each.input]) for each in readers] == [("Concat", both)]
    return is_read and reading.is_end(node.output[0])


def _check_order(reading: _Reading, network: FloatNetwork, read: list[str], place: str) -> None:
    """Refuse an operator that takes levels for values, or channels last for channels first."""
    kind, *others = read
    takes_levels = kind in _ON_LEVELS or kind == "DequantizeLinear"
    has_levels = [name in reading.levels for name in (reading.last, *others)]
    if kind not in _OF_LEVELS and set(has_levels) != {takes_levels}:
        how = "floats, without Quantize" if takes_levels else "levels, without Dequantize"
        raise ConvertError(f"convert: {place} reads {how}Linear before it")
    if network.is_turned and kind not in _TURNED:
        raise ConvertError(f"convert: {place} reads channels last; only Flatten can")


def _levels(reading: _Reading, names: Any, place: str) -> tuple[float, int]:
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
    reading: _Reading, names: Any, axis: int, output: str, place: str
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
    reading: _Reading, network: FloatNetwork, node: Any, options: dict[str, Any], place: str
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
        _check_options(kind, options, place)
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
        add = _add_map if kind in _MAPS else _add_sums
        add(network, _Node(place, kind, constants, options, True, scales))
    elif kind in _MAPS:
        _add_map(network, _Node(place, kind, [], options, True))
    elif kind:
        _add_other(reading, network, _Node(place, kind, [], options, True), {})
    if kind and any(levels) and not (network.end and reading.is_end(node.output[0])):
        network.quantize(place, *_levels(reading, levels, place))
    if op == "QuantizeLinear" or (kind and any(levels)):
        reading.levels.add(node.output[0])


def _check_levels_of(
    reading: _Reading, network: FloatNetwork, inputs: list[str], place: str
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


def _go_to(reading: _Reading, network: FloatNetwork, node: Any, place: str) -> list[str]:
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


def _check_options(kind: str, options: dict[str, Any], place: str) -> None:
    """Refuse attributes that nothing reads, and values that are not supported."""
    for name, value in options.items():
        allowed = _FIXED.get(name, ())
        is_read = name in _IDLE or name in _READ.get(kind, ())
        values = value if isinstance(value, list | tuple) else [value]
        if not is_read or (allowed and any(item not in allowed for item in values)):
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            how = f" with {name}={str(text)[:40]}" if kind in _READ else ""
            raise ConvertError(f"convert: {place} is not supported{how}")


def _check_axis(network: FloatNetwork, axis: int, place: str) -> None:
    """Refuse another axis than that of the channels."""
    if not -network.rank < axis < network.rank or axis % network.rank != 1:
        raise ConvertError(f"convert: {place} is not supported with axis={axis}, only with 1")


def _add_other(
    reading: _Reading, network: FloatNetwork, node: _Node, named: dict[str, str]
) -> None:
    """Add a node of one value; `named` are the names of its inputs."""
    place, kind, options = node.place, node.kind, node.options
    if kind == "Cast":
        if reading.onnx.TensorProto.DataType.Name(options["to"]) not in _FLOATS:
            raise node.refuse("to whole numbers is not supported")
        return
    if kind == "Scaler":
        offset, scale = (np.array(options[name], np.float64) for name in ("offset", "scale"))
        network.add_line(place, scale, -offset * scale)
        return
    if kind == "Dropout" and any(np.any(array) for array in node.constants[1:]):
        raise node.refuse("is not supported with training_mode=1")
    if kind == "Clip":
        ends = {name: reading.numbers[of] for name, of in named.items() if name and of}
        low, top = ((ends | options).get(name) for name in ("min", "max"))
        network.add_clip(place, _number(low, -np.inf, node), _number(top, np.inf, node))
        return
    if kind == "LeakyRelu":
        network.add_curve(place, kind, options.get("alpha", 0.01))
        return
    if kind == "Elu" and options.get("alpha", 1.0) != 1:
        raise node.refuse("is supported with alpha=1 only")
    if kind in ("Softmax", "LogSoftmax", "ArgMax"):
        if network.n_values == 1:
            raise node.refuse("is of one value, so all answers are the same")
        usual = 0 if kind == "ArgMax" else 1 if reading.version < 13 else -1
        _check_axis(network, options.get("axis", usual), place)
    if kind == "Transpose" and _turns(reading, network, node):
        return
    if kind in ("Squeeze", "Unsqueeze") and _moves_signal(network, node):
        return
    is_flat = kind in ("Flatten", "Squeeze", "Reshape")
    if is_flat and not _is_flattening(network, node):
        raise node.refuse("is supported to rows of a table only")
    network.add(place, "Flatten" if is_flat else kind)


def _axes(node: _Node) -> list[int] | None:
    """Return the axes of a node, of its constant or its option."""
    axes = node.options.get("axes", node.constants[0].ravel().tolist() if node.constants else None)
    return None if axes is None else [int(axis) for axis in axes]


def _turns(reading: _Reading, network: FloatNetwork, node: _Node) -> bool:
    """Whether a Transpose puts channels first at the front, or last before a Flatten."""
    perm, axes = list(node.options.get("perm", ())), [*range(network.rank)]
    if perm == [0, axes[-1], *axes[1:-1]] and reading.is_last and not network.layers:
        return reading.last == reading.entry
    network.is_turned = perm == [0, *axes[2:], 1] and network.rank > 2 and not network.is_turned
    return network.is_turned


def _moves_signal(network: FloatNetwork, node: _Node) -> bool:
    """Whether a signal becomes an image of one row, or such an image a signal again."""
    before, after = (3, 4) if node.kind == "Unsqueeze" else (4, 3)
    axes = [axis % 4 for axis in _axes(node) or ()]
    if network.rank != before or axes != [2] or network.now[0] != 1:
        return False
    network.rank = after
    return True


def _number(value: Any, usual: float, node: _Node) -> float:
    """Return one number of a constant; of None the usual one."""
    if value is not None and np.size(value) != 1:
        raise node.refuse("has several ends")
    return usual if value is None else float(np.ravel(value)[0])


def _is_flattening(network: FloatNetwork, node: _Node) -> bool:
    """Whether a node makes a row of all values, in their order."""
    rank, options = network.rank, node.options
    if node.kind == "Flatten":
        axis = options.get("axis", 1)
        return bool(-rank < axis < rank and axis % rank == 1)
    if node.kind == "Reshape":
        shape = node.constants[0].ravel().tolist() if node.constants else [0, -1]
        if options.get("allowzero") and 0 in shape:
            return False
        return len(shape) == 2 and (shape[1] == network.n_values or shape in ([0, -1], [1, -1]))
    axes = _axes(node)
    if axes is None:  # all of one value
        return network.is_table and network.n_values > 1
    return network.is_table and sorted(axis % rank for axis in axes) == list(range(2, rank))


def _add_map(network: FloatNetwork, node: _Node) -> None:
    """Add a convolution or a pooling."""
    place, kind, constants, options = node.place, node.kind, node.constants, node.options
    rank = network.rank
    if not node.is_first:
        raise node.refuse()
    if kind == "ReduceMean":
        axes = _axes(node) or []
        if rank < 3 or sorted(axis % rank for axis in axes) != list(range(2, rank)):
            raise node.refuse(f"is not supported with axes={axes}, only of all positions")
    size = list(constants[0].shape[2:]) if kind == "Conv" else options.get("kernel_shape")
    sides = rank - 2 if size is None else len(size)
    if sides != rank - 2 or not 1 <= sides <= 2 or options.get("kernel_shape", size) != size:
        raise node.refuse("takes values of another shape")
    steps = list(options.get("strides", sides * [1]))
    pads = list(options.get("pads", 2 * sides * [0]))
    way = options.get("auto_pad", b"NOTSET")
    if len(steps) != sides or len(pads) != 2 * sides or (way != b"NOTSET" and any(pads)):
        raise node.refuse(f"is not supported with strides={steps} and pads={pads}")
    if size is not None and way.startswith(b"SAME"):
        pads = _same_pads(network.now[2 - sides : 2], size, steps, way == b"SAME_UPPER")
    if kind == "Conv":
        bias = constants[1] if len(constants) > 1 else 0.0
        group = options.get("group", 1)
        network.add_convolution(place, constants[0], bias, steps, pads, group, node.scales)
        return
    if size is not None and (steps != size or any(pads)):
        raise node.refuse(
            f"is not supported with strides={steps} and pads={pads}, only side by side"
        )
    network.add_pool(place, size, kind != "MaxPool")
    if kind == "ReduceMean" and not options.get("keepdims", 1):
        network.rank = 2


def _same_pads(
    lengths: tuple[int, ...], size: list[int], steps: list[int], is_upper: bool
) -> list[int]:
    """Return the zeros before and behind each side by which strides alone make it shorter."""
    sides = zip(lengths, size, steps, strict=True)
    totals = [max(0, (-(-side // step) - 1) * step + n - side) for side, n, step in sides]
    less, more = [total // 2 for total in totals], [-(-total // 2) for total in totals]
    return less + more if is_upper else more + less


def _add_sums(network: FloatNetwork, node: _Node) -> None:
    """Add a dense layer, or a gain and an offset."""
    place, kind, constants, options = node.place, node.kind, node.constants, node.options
    first, is_first = constants[0], node.is_first
    of_rows = len(constants) == 1 and _is_by_channel(first, network)
    if kind == "Gemm" and is_first and first.ndim == 2 and network.rank == 2:
        weights = options.get("alpha", 1.0) * (first if options.get("transB", 0) else first.T)
        bias = options.get("beta", 1.0) * constants[1] if len(constants) > 1 else np.zeros(1)
        if bias.size not in (1, len(weights)) or bias.shape[:-1] not in ((), (1,)):
            raise node.refuse("has offsets of another shape")
        scales = None if node.scales is None else abs(options.get("alpha", 1.0)) * node.scales
        network.add_dense(place, weights, bias, scales)
    elif kind == "MatMul" and is_first and first.ndim == 2 and network.rank == 2:
        network.add_dense(place, first.T, 0.0, node.scales)
    elif kind == "BatchNormalization" and is_first and len(constants) == 4:
        network.add_normalization(place, constants, options.get("epsilon", 1e-5))
    elif kind in ("Mul", "Div") and of_rows and (is_first or kind == "Mul"):
        network.add_line(place, first if kind == "Mul" else 1 / first, 0.0)
    elif kind in ("Add", "Sub") and of_rows and (is_first or kind == "Add"):
        network.add_line(place, 1.0, first if kind == "Add" else -first)
    else:
        raise node.refuse()


def _is_by_channel(array: NDArray[np.float64], network: FloatNetwork) -> bool:
    """Whether a constant is one number, or one of each channel, for all rows and positions."""
    if array.ndim > network.rank:
        return False
    shape = (1,) * (network.rank - array.ndim) + array.shape
    return array.size == 1 or array.size == shape[1]
