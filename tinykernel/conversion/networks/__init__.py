"""Networks of hidden layers: perceptrons of scikit-learn, and sequences of other libraries."""

from dataclasses import replace
from typing import Any

import numpy as np

from tinykernel.base.errors import ConvertError
from tinykernel.conversion import linear
from tinykernel.conversion.columns import ModelColumns
from tinykernel.conversion.networks.dense import integer_network, quantized_network
from tinykernel.conversion.networks.sequence import FloatNetwork
from tinykernel.conversion.networks.windows import Step, Window, lowered
from tinykernel.model.integer import IntegerModel


def read(model: Any, columns: ModelColumns, bits: int = 8) -> IntegerModel:
    """Convert a fitted perceptron or a network, with weights of 2, 4 or 8 bits."""
    classes = getattr(model, "classes_", None)
    if isinstance(model, FloatNetwork):
        layers, shape = model.layers, model.shape
    else:
        layers, shape = _of_perceptron(model), (1, 1, len(columns.columns))
    if classes is not None and model.n_outputs_ != (len(classes) if len(classes) > 2 else 1):
        raise ConvertError("convert: a classifier of several labels a row is not supported")
    # One layer is a linear model, which rounds its inputs more finely than the file.
    if getattr(model, "has_levels", False) and len(layers) > 1:
        columns.finite_rows("network")
        converted = quantized_network(layers, shape, columns, classes, model.quantum)
    elif any(step.bends or step.pools or step.curve for step in layers):
        columns.finite_rows("network")
        if columns.steps or columns.mixers:
            layers, shape = _of_inputs(layers, columns), (1, 1, columns.n_inputs)
        converted = integer_network(layers, shape, columns, classes, bits)
    else:
        (layer,) = lowered(layers, shape)
        converted = linear.of_weights(layer.weights, layer.bias, classes, columns, bits)
    axes = dict(getattr(model, "axes", {}))
    return replace(converted, input=replace(converted.input, **axes)) if axes else converted


def _of_perceptron(model: Any) -> list[Step]:
    """Return the layers of a perceptron of scikit-learn."""
    if not hasattr(model, "coefs_"):
        raise ConvertError(f"convert: the {type(model).__name__} is not fitted")
    if model.out_activation_ == "exp":
        raise ConvertError("convert: values of the loss 'poisson' are no sums")
    last, bends = len(model.coefs_) - 1, model.activation == "relu"
    curve = {"tanh": "Tanh", "logistic": "Sigmoid"}.get(model.activation, "")
    return [
        Step(
            f"layer {i}",
            Window(w.T[:, None, None], b),
            bends and i < last,
            curve=curve * (i < last),
        )
        for i, (w, b) in enumerate(zip(model.coefs_, model.intercepts_, strict=True))
    ]


def _of_inputs(layers: list[Step], columns: ModelColumns) -> list[Step]:
    """Return layers of raw inputs, where steps before a perceptron are straight lines."""
    first = layers[0]
    kernel, bias = linear.of_inputs(first.window.kernel[:, 0, 0], first.window.bias, columns)
    window = Window(kernel[:, None, None], np.asarray(bias))
    return [replace(first, window=window), *layers[1:]]
