"""ONNX files: networks of one chain of Conv, Gemm, Relu, pooling and the like, or trees."""

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError, FormatError
from tinykernel.conversion.networks.sequence import FloatNetwork, numbers_of
from tinykernel.conversion.onnxtrees import KINDS, TreeFile

#: What files of skl2onnx have behind the end, for labels; behind a sigmoid, 1 - p as well.
_LABELLING = {"ArgMax", "ZipMap", "ArrayFeatureExtractor", "Reshape", "Identity", "Cast"}
_SHAPES = ("Shape", "Gather", "Unsqueeze", "Concat", "Slice")
_MAPS = ("Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean")
_FLOATS = ("FLOAT", "DOUBLE", "FLOAT16")
_SUMS = ("Gemm", "MatMul", "BatchNormalization", "Add", "Sub", "Mul", "Div")


@dataclass(frozen=True)
class _Node:
    """A node that computes values: its constant inputs, and whether the value comes before them."""

    place: str
    kind: str
    constants: list[NDArray[np.float64]]
    options: dict[str, Any]
    is_first: bool


def of_onnx(path: Path) -> FloatNetwork | TreeFile:
    """Return the network of a file, or its trees."""
    onnx = import_module("onnx")
    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # of protobuf
        raise FormatError(f"{path}: onnx cannot read it: {error}") from None
    constant = {item.name for item in graph.initializer}
    entries = [item for item in graph.input if item.name not in constant]
    if len(entries) != 1:
        raise ConvertError(f"{path}: has {len(entries)} inputs; one is supported")
    sizes = [size.dim_value for size in entries[0].type.tensor_type.shape.dim[1:]]
    if any(node.op_type in KINDS for node in graph.node):
        return TreeFile(onnx, graph, entries[0].name, sizes[0] if len(sizes) == 1 else 0)
    read = partial(_read, onnx, graph, entries[0].name)
    return FloatNetwork(read, sizes if sizes and all(sizes) else None)


def _read(onnx: Any, graph: Any, value: str, network: FloatNetwork) -> None:
    """Add the nodes of a graph, the first of which reads `value`."""
    to_array = import_module("onnx.numpy_helper").to_array
    numbers = {item.name: to_array(item) for item in graph.initializer}
    shapes = set[str]()  # values that are computed of shapes
    for number, node in enumerate(graph.node):
        place = f"node {number} ({node.op_type})"
        options = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        if node.op_type == "Constant":
            (value_of,) = options.values()  # a tensor, or one or several numbers
            is_tensor = isinstance(value_of, onnx.TensorProto)
            numbers[node.output[0]] = to_array(value_of) if is_tensor else np.array(value_of)
            continue
        if node.op_type in ("Identity", "Transpose") and node.input[0] in numbers:
            of, is_turned = numbers[node.input[0]], node.op_type == "Transpose"
            numbers[node.output[0]] = np.transpose(of, options.get("perm")) if is_turned else of
            continue
        if node.op_type == "Shape" or (node.op_type in _SHAPES and shapes & set(node.input)):
            shapes.add(node.output[0])
            continue
        is_share = network.end == "Sigmoid" and node.op_type in ("Sub", "Concat")
        if network.end and (node.op_type in _LABELLING or is_share):
            if node.op_type == "ArrayFeatureExtractor" and node.input[0] in numbers:
                labels = numbers[node.input[0]].ravel().tolist()
                text = [v.decode() if isinstance(v, bytes) else v for v in labels]
                network.labels = np.array(text)
            continue
        if [name for name in node.input if name and name not in {*numbers, *shapes}] != [value]:
            raise ConvertError(f"convert: {place} does not read the output of the node before it")
        constants = [numbers[name] for name in node.input if name in numbers]
        if node.op_type == "Cast" and onnx.TensorProto.DataType.Name(options["to"]) not in _FLOATS:
            raise ConvertError(f"convert: {place} to whole numbers is not supported")
        if node.op_type in ("Flatten", "Squeeze", "Reshape"):
            if node.op_type == "Reshape" and constants and constants[0].size > 2:
                raise ConvertError(f"convert: {place} is supported to rows of a table only")
            network.add(place, "Flatten")
        elif node.op_type in _MAPS or (node.op_type in _SUMS and constants):
            arrays, is_first = list(map(numbers_of, constants)), node.input[0] == value
            add = _add_map if node.op_type in _MAPS else _add_sums
            add(network, _Node(place, node.op_type, arrays, options, is_first))
        elif node.op_type == "Clip":
            inputs = (numbers.get(name) for name in node.input[1:])
            ends = dict(zip(("min", "max"), inputs, strict=False)) | options
            low, top = (ends.get(end) for end in ("min", "max"))
            network.add_clip(
                place, float(-np.inf if low is None else low), float(np.inf if top is None else top)
            )
        else:
            network.add(place, node.op_type)
        value = node.output[0]
    outputs = {item.name for item in graph.output}
    if not network.end and value not in outputs:
        raise ConvertError(f"convert: {place} gives {value!r}, which is no output of the network")


def _add_map(network: FloatNetwork, node: _Node) -> None:
    """Add a convolution or a pooling."""
    place, kind, constants, options = node.place, node.kind, node.constants, node.options
    size = options.get("kernel_shape", constants[0].shape[2:] if kind == "Conv" else None)
    sides = 2 if size is None else len(size)
    steps, pads = (
        list(options.get(name, n * [usual]))
        for name, n, usual in (("strides", sides, 1), ("pads", 2 * sides, 0))
    )
    is_usual = options.get("auto_pad", b"NOTSET") in (b"NOTSET", b"VALID")
    is_usual &= not options.get("ceil_mode", 0) and {*options.get("dilations", [1])} == {1}
    if kind == "ReduceMean":
        axes = options.get("axes", constants[0].astype(int).tolist() if constants else [])
        is_usual = network.shape[1] > 1 and sorted(axis % 4 for axis in axes) == [2, 3]
    elif kind in ("MaxPool", "AveragePool"):
        is_usual &= steps == list(size or ()) and not any(pads)
    if not is_usual or sides > 2:
        raise ConvertError(f"convert: {place} is not supported with these options")
    if kind == "Conv":
        bias = constants[1] if len(constants) > 1 else 0.0
        network.add_convolution(place, constants[0], bias, steps, pads, options.get("group", 1))
    else:
        network.add_pool(place, size, kind != "MaxPool")


def _add_sums(network: FloatNetwork, node: _Node) -> None:
    """Add a dense layer, or a gain and an offset."""
    place, kind, constants, options = node.place, node.kind, node.constants, node.options
    first, is_first = constants[0], node.is_first
    of_rows = network.is_table or first.size == 1 or first.shape[-2:] == (1, 1)
    if kind == "Gemm" and is_first and not options.get("transA", 0):
        weights = options.get("alpha", 1.0) * (first if options.get("transB", 0) else first.T)
        bias = options.get("beta", 1.0) * constants[1] if len(constants) > 1 else 0.0
        network.add_dense(place, weights, bias)
    elif kind == "MatMul" and is_first and first.ndim == 2:
        network.add_dense(place, first.T, 0.0)
    elif kind == "BatchNormalization" and len(constants) == 4 and not options.get("training_mode"):
        network.add_normalization(place, constants, options.get("epsilon", 1e-5))
    elif kind in ("Mul", "Div") and of_rows and (is_first or kind == "Mul"):
        network.add_line(place, first if kind == "Mul" else 1 / first, 0.0)
    elif kind in ("Add", "Sub") and of_rows and (is_first or kind == "Add"):
        network.add_line(place, 1.0, first if kind == "Add" else -first)
    else:
        raise ConvertError(f"convert: {place} is not supported")
