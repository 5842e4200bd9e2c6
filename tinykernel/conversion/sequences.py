"""Networks of ONNX files and of PyTorch's `Sequential`: layers of sums with ReLU between them.

Sums that follow each other without ReLU become one. Convolutions and all else are refused by name
and place.
"""

from collections.abc import Iterable
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.conversion.layers import Affine
from tinykernel.errors import ConvertError, DataError, FormatError, OptionError

_NOTHING = ("Identity", "Dropout", "Flatten", "Cast")
_ENDS = ("Softmax", "LogSoftmax", "Sigmoid", "ArgMax")
#: What files of skl2onnx have behind the end, for labels; behind a sigmoid, 1 - p as well.
_LABELLING = {"ArgMax", "ZipMap", "ArrayFeatureExtractor", "Reshape", "Identity", "Cast"}
_TORCH_ENDS = {"Softmax": "Softmax", "LogSoftmax": "Softmax", "Sigmoid": "Sigmoid"}


class FloatNetwork:
    """Layers in their order; what `convert` takes.

    With a softmax or a sigmoid at the end it is a classifier of the classes 0, 1 and so on, or of
    the labels of a file. Else `for_task` says what it is; one output alone is a value.
    """

    activation = "relu"

    def __init__(self) -> None:
        self.layers: list[Affine] = []
        self._open: Affine | None = None  # sums that are not followed by ReLU yet
        self.end = ""
        self.labels: NDArray[Any] | None = None

    def add(self, place: str, layer: Affine | None, name: str = "") -> None:
        """Add sums, or of None the operation of that name."""
        if self.end:
            raise ConvertError(f"convert: {place} follows {self.end}; end the network there")
        if layer is not None:
            if self.width not in (0, layer.weights.shape[1]):
                raise ConvertError(f"convert: {place} takes values of another shape")
            self._open = layer if self._open is None else layer.after(self._open)
        elif name == "Relu":
            if self._open is None:
                raise ConvertError(f"convert: {place} has no weights before it")
            self.layers.append(self._open)
            self._open = None
        elif name in _ENDS:
            self.end = name
        elif name not in _NOTHING:
            raise ConvertError(f"convert: {place} is not supported")

    def closed(self) -> "FloatNetwork":
        """Return it, complete."""
        if self._open is None:
            raise ConvertError("convert: the network ends without weights after its last ReLU")
        self.layers.append(self._open)
        self.n_features_in_ = self.layers[0].weights.shape[1]
        self.n_outputs_ = len(self.layers[-1].bias)
        return self.for_task(None) if self.end else self

    def for_task(self, task: str | None) -> "FloatNetwork":
        """Make it one of "classes" or "values"; None is what its end says, or refused."""
        n, last = self.n_outputs_, self.layers[-1]
        if task == "values" and self.end:
            raise OptionError(f"task: the network ends with {self.end}, so it tells classes apart")
        if task is None and not self.end and n > 1:
            raise OptionError(
                f"task: the network has {n} outputs and no softmax; in Python, say what they are: "
                'convert(..., task="classes") or task="values"'
            )
        if (self.end or task == "classes") and not hasattr(self, "classes_"):
            labels = np.arange(max(2, n)) if self.labels is None else self.labels
            if len(labels) != max(2, n):
                raise ConvertError(f"convert: the network has {n} outputs for {len(labels)} labels")
            self.classes_ = labels
            if n == 2:  # the difference decides
                self.layers[-1] = Affine(np.diff(last.weights, axis=0), np.diff(last.bias))
                self.n_outputs_ = 1
        return self

    @property
    def width(self) -> int:
        """Number of values after the last layer so far."""
        last = self._open or (self.layers[-1] if self.layers else None)
        return 0 if last is None else len(last.bias)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels or values in floats."""
        x = np.asarray(X, dtype=np.float64).reshape(len(np.asarray(X)), -1)
        for layer in self.layers[:-1]:
            x = np.maximum(layer.of(x), 0)
        x = self.layers[-1].of(x)
        if not hasattr(self, "classes_"):
            return np.asarray(x[:, 0] if self.n_outputs_ == 1 else x)
        place = x.argmax(axis=1) if self.n_outputs_ > 1 else (x[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[place])


def of_torch(model: Iterable[Any]) -> FloatNetwork:
    """Return the layers of a Sequential of Linear, ReLU, BatchNorm1d, Flatten and Dropout."""
    sequence = FloatNetwork()
    for number, module in enumerate(model):
        name = type(module).__name__
        place = f"module {number} ({name})"
        if name == "Linear":
            weights = _array(module.weight)
            bias = np.zeros(len(weights)) if module.bias is None else _array(module.bias)
            sequence.add(place, Affine(weights, bias))
        elif name == "BatchNorm1d":
            parts = module.weight, module.bias, module.running_mean, module.running_var
            if any(part is None for part in parts):
                raise ConvertError(
                    f"convert: {place} has no scale, or statistics of its batch only"
                )
            scale, bias, mean, variance = map(_array, parts)
            sequence.add(place, _normalization(scale, bias, mean, variance, module.eps))
        else:
            names = {"ReLU": "Relu"} | _TORCH_ENDS
            sequence.add(place, None, names.get(name, name))
    return sequence.closed()


def of_onnx(path: Path) -> FloatNetwork:
    """Return the layers of a file of ONNX: one chain of Gemm, MatMul, Add, Relu and the like."""
    onnx, helper = import_module("onnx"), import_module("onnx.numpy_helper")
    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # of protobuf
        raise FormatError(f"{path}: onnx cannot read it: {error}") from None
    numbers = {item.name: helper.to_array(item) for item in graph.initializer}
    entries = [item for item in graph.input if item.name not in numbers]
    if len(entries) != 1:
        raise ConvertError(f"{path}: has {len(entries)} inputs; one is supported")
    sequence, value = FloatNetwork(), entries[0].name
    n_inputs = prod(size.dim_value for size in entries[0].type.tensor_type.shape.dim[1:])
    for number, node in enumerate(graph.node):
        place = f"node {number} ({node.op_type})"
        options = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        if node.op_type == "Constant":
            (value_of,) = options.values()  # a tensor, or one or several numbers
            is_tensor = isinstance(value_of, onnx.TensorProto)
            numbers[node.output[0]] = helper.to_array(value_of) if is_tensor else np.array(value_of)
            continue
        if node.op_type in ("Identity", "Transpose") and node.input[0] in numbers:
            of, is_turned = numbers[node.input[0]], node.op_type == "Transpose"
            numbers[node.output[0]] = np.transpose(of, options.get("perm")) if is_turned else of
            continue
        is_share = sequence.end == "Sigmoid" and node.op_type in ("Sub", "Concat")
        if sequence.end and (node.op_type in _LABELLING or is_share):
            if node.op_type == "ArrayFeatureExtractor" and node.input[0] in numbers:
                labels = numbers[node.input[0]].ravel().tolist()
                text = [v.decode() if isinstance(v, bytes) else v for v in labels]
                sequence.labels = np.array(text)
            continue
        constants = [numbers[name] for name in node.input if name in numbers]
        others = [name for name in node.input if name and name not in numbers]
        if others != [value]:
            raise ConvertError(f"convert: {place} does not read the output of the node before it")
        if node.op_type == "Reshape":
            sequence.add(place, None, "Flatten")
        elif constants:
            is_first = node.input[0] == value
            arguments = place, node.op_type, is_first, list(map(_array, constants)), options
            sequence.add(place, _onnx_layer(*arguments, sequence.width or n_inputs))
        else:
            sequence.add(place, None, node.op_type)
        value = node.output[0]
    return sequence.closed()


def _onnx_layer(
    place: str,
    kind: str,
    is_first: bool,
    constants: list[NDArray[Any]],
    options: dict[str, Any],
    width: int,
) -> Affine:
    """Return a node with constants as sums."""
    first = constants[0]
    if kind == "Gemm" and is_first and not options.get("transA", 0):
        weights = options.get("alpha", 1.0) * (first if options.get("transB", 0) else first.T)
        bias = options.get("beta", 1.0) * constants[1] if len(constants) > 1 else 0.0
        return Affine(weights, np.zeros(len(weights)) + np.ravel(bias))
    if kind == "MatMul" and is_first and first.ndim == 2:
        return Affine(first.T, np.zeros(first.shape[1]))
    if kind == "BatchNormalization" and len(constants) == 4:
        scale, bias, mean, variance = constants
        return _normalization(scale, bias, mean, variance, options.get("epsilon", 1e-5))
    width = width or first.size
    if kind in ("Add", "Sub", "Mul", "Div") and first.size in (1, width):
        factor = np.zeros(width) + np.ravel(first)
        if kind in ("Mul", "Div") and (is_first or kind == "Mul"):
            return Affine(np.diag(factor if kind == "Mul" else 1 / factor), np.zeros(width))
        if kind == "Add" or (kind == "Sub" and is_first):
            return Affine(np.eye(width), factor if kind == "Add" else -factor)
    raise ConvertError(f"convert: {place} is not supported")


def _normalization(
    scale: NDArray[Any], bias: NDArray[Any], mean: NDArray[Any], variance: NDArray[Any], eps: float
) -> Affine:
    """Return ``scale (x - mean) / sqrt(variance + eps) + bias`` as sums."""
    gain = scale / np.sqrt(variance + eps)
    return Affine(np.diag(gain), bias - gain * mean)


def _array(tensor: Any) -> NDArray[np.float64]:
    """Return the numbers of a tensor."""
    values = tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else tensor
    array = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise DataError("convert: a weight is not a finite number")
    return array
