"""Nodes of ONNX files: what each adds to a network, and what is known while they are read."""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.networks.sequence import FloatNetwork, Mark

#: What files of skl2onnx have behind the end, for labels; behind a sigmoid, 1 - p as well.
LABELLING = {"ArgMax", "ZipMap", "ArrayFeatureExtractor", "Reshape", "Identity", "Cast"}
LEVELS = ("QuantizeLinear", "DequantizeLinear")
#: What reads values without a second branch of layers.
_NO_BRANCH = ("Shape", "Concat", "ArgMax", "ZipMap")
_FLOATS = ("FLOAT", "DOUBLE", "FLOAT16")
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
    "Imputer": ("imputed_value_floats", "replaced_value_float"),
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
class Node:
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
class GraphReading:
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
        names, kinds = {name}, {*LABELLING, *LEVELS, "Sub", "Concat"}
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


def check_options(kind: str, options: dict[str, Any], place: str) -> None:
    """Refuse attributes that nothing reads, and values that are not supported."""
    for name, value in options.items():
        allowed = _FIXED.get(name, ())
        is_read = name in _IDLE or name in _READ.get(kind, ())
        values = value if isinstance(value, list | tuple) else [value]
        if not is_read or (allowed and any(item not in allowed for item in values)):
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            how = f" with {name}={str(text)[:40]}" if kind in _READ else ""
            raise ConvertError(f"convert: {place} is not supported{how}")


def check_axis(network: FloatNetwork, axis: int, place: str) -> None:
    """Refuse another axis than that of the channels."""
    if not -network.rank < axis < network.rank or axis % network.rank != 1:
        raise ConvertError(f"convert: {place} is not supported with axis={axis}, only with 1")


def add_other(
    reading: GraphReading, network: FloatNetwork, node: Node, named: dict[str, str]
) -> None:
    """Add a node of one value; `named` are the names of its inputs."""
    place, kind, options = node.place, node.kind, node.options
    if kind == "Cast":
        if reading.onnx.TensorProto.DataType.Name(options["to"]) not in _FLOATS:
            raise node.refuse("to whole numbers is not supported")
        return
    if kind == "Imputer" and np.isnan(options.get("replaced_value_float", 0.0)):
        return  # rows with missing values are refused
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
        check_axis(network, options.get("axis", usual), place)
    if kind == "Transpose" and _turns(reading, network, node):
        return
    if kind in ("Squeeze", "Unsqueeze") and _moves_signal(network, node):
        return
    is_flat = kind in ("Flatten", "Squeeze", "Reshape")
    if is_flat and not _is_flattening(network, node):
        raise node.refuse("is supported to rows of a table only")
    network.add(place, "Flatten" if is_flat else kind)


def _axes(node: Node) -> list[int] | None:
    """Return the axes of a node, of its constant or its option."""
    axes = node.options.get("axes", node.constants[0].ravel().tolist() if node.constants else None)
    return None if axes is None else [int(axis) for axis in axes]


def _turns(reading: GraphReading, network: FloatNetwork, node: Node) -> bool:
    """Whether a Transpose puts channels first at the front, or last before a Flatten."""
    perm, axes = list(node.options.get("perm", ())), [*range(network.rank)]
    if perm == [0, axes[-1], *axes[1:-1]] and reading.is_last and not network.layers:
        return reading.last == reading.entry
    network.is_turned = perm == [0, *axes[2:], 1] and network.rank > 2 and not network.is_turned
    return network.is_turned


def _moves_signal(network: FloatNetwork, node: Node) -> bool:
    """Whether a signal becomes an image of one row, or such an image a signal again."""
    before, after = (3, 4) if node.kind == "Unsqueeze" else (4, 3)
    axes = [axis % 4 for axis in _axes(node) or ()]
    if network.rank != before or axes != [2] or network.now[0] != 1:
        return False
    network.rank = after
    return True


def _number(value: Any, usual: float, node: Node) -> float:
    """Return one number of a constant; of None the usual one."""
    if value is not None and np.size(value) != 1:
        raise node.refuse("has several ends")
    return usual if value is None else float(np.ravel(value)[0])


def _is_flattening(network: FloatNetwork, node: Node) -> bool:
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


def add_map(network: FloatNetwork, node: Node) -> None:
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


def add_sums(network: FloatNetwork, node: Node) -> None:
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
