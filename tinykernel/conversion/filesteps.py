"""Steps before a model in a file of ONNX, as skl2onnx writes those of a Pipeline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import ConvertError, FormatError
from tinykernel.conversion.checks import check_fields

_Model = TypeVar("_Model")

#: By operator: what it makes of values and its number.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "MatMul": np.matmul,
    "ArrayFeatureExtractor": lambda values, places: values[:, places.astype(np.intp)],
}


@dataclass(frozen=True, eq=False)
class FileStep:
    """An operator between the inputs and the model, computed in float32 as runtimes do."""

    op: str
    number: NDArray[np.float32]  # one of all columns, or of each; a matrix; places of columns
    n_features_in_: int
    missing_values: float = np.nan  # of an Imputer

    def transform(self, values: ArrayLike) -> NDArray[Any]:
        """Compute rows of columns."""
        values = np.asarray(values, dtype=np.float32)
        if self.op != "Imputer":
            return np.asarray(_OPERATORS[self.op](values, self.number))
        gap = self.missing_values
        return np.where(np.isnan(values) if np.isnan(gap) else values == gap, self.number, values)


class FilePipeline:
    """Steps of a file and its model, with the names that a Pipeline has for them."""

    def __init__(self, steps: Sequence[FileStep], model: Any) -> None:
        self.named_steps = {f"{at} {step.op}": step for at, step in enumerate(steps)}
        self.steps = [*self.named_steps.items(), ("model", model)]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels or values."""
        for step in self.named_steps.values():
            X = step.transform(X)
        return np.asarray(self.steps[-1][1].predict(X))


def with_steps(
    reader: Callable[..., _Model], onnx: Any, graph: Any, entry: str, n_inputs: int
) -> _Model | FilePipeline:
    """Return the model that `reader` finds in a graph, behind the steps before it if any."""
    to_array = onnx.numpy_helper.to_array
    numbers = {item.name: np.asarray(to_array(item)) for item in graph.initializer}
    steps, nodes = list[FileStep](), list(graph.node)
    while nodes:
        node, *rest = nodes
        of = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        if node.op_type == "Sqrt" and node.input[0] in numbers:
            numbers[node.output[0]] = np.sqrt(numbers[node.input[0]])
        elif [*node.input[:1]] != [entry]:  # a Constant has none
            break
        elif node.op_type in ("Identity", "Reshape") or of.get("to") == onnx.TensorProto.FLOAT:
            entry = node.output[0]
        elif made := _steps_of(node, of, numbers, n_inputs):
            steps += made
            n_inputs = made[-1].transform(np.ones((1, made[-1].n_features_in_))).shape[1]
            entry = node.output[0]
        else:
            break
        nodes = rest
    model = reader(onnx, nodes, entry, n_inputs)
    return FilePipeline(steps, model) if steps else model


def _steps_of(node: Any, of: dict[str, Any], numbers: dict[str, Any], n: int) -> list[FileStep]:
    """Return the steps of a node; none if it is no step."""
    op, gap = node.op_type, np.nan
    if op == "Scaler":
        check_fields("a Scaler of ONNX", of, {"offset", "scale"})
        parts = [("Sub", of["offset"]), ("Mul", of["scale"])]
    elif op == "Imputer" and "imputed_value_floats" in of:
        check_fields("an Imputer of ONNX", of, {"imputed_value_floats", "replaced_value_float"})
        parts, gap = [(op, of["imputed_value_floats"])], of.get("replaced_value_float", 0.0)
    elif op in _OPERATORS and node.input[1] in numbers:
        number = numbers[node.input[1]]
        # Whole numbers divide otherwise, and a selection does not tell how many columns it has.
        is_clear = n > 0 if op == "ArrayFeatureExtractor" else number.dtype.kind == "f"
        parts = [(op, number)] if is_clear else []
    else:
        return []
    steps = []
    for name, number in parts:
        number = np.array(number, dtype=np.float32)
        number = number if name == "MatMul" else number.ravel()
        n = n or number.shape[0]
        is_matrix = name in ("MatMul", "ArrayFeatureExtractor")
        is_whole = np.isfinite(number).all() and (name != "Div" or number.all())
        if not is_whole or not (is_matrix or number.size in (1, n)):
            raise FormatError(f"convert: damaged numbers of {op}; write the file again")
        if name in ("Mul", "Div", "ArrayFeatureExtractor") and number.min() < 0:
            raise ConvertError(f"convert: {op} by numbers below 0; convert the fitted model itself")
        steps.append(FileStep(name, number, n, gap))
    return steps
