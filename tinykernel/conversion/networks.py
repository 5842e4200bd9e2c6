"""Networks of hidden layers: perceptrons of scikit-learn, and sequences of other libraries."""

from typing import Any

import numpy as np

from tinykernel.conversion import linear
from tinykernel.conversion.columns import ModelColumns
from tinykernel.conversion.layers import Affine, integer_network
from tinykernel.errors import ConvertError
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel


def read(model: Any, columns: ModelColumns, bits: int = 8) -> IntegerModel:
    """Convert a fitted perceptron, with weights of 2, 4 or 8 bits."""
    name, classes = type(model).__name__, getattr(model, "classes_", None)
    layers = getattr(model, "layers", None)
    if layers is None:
        if not hasattr(model, "coefs_"):
            raise ConvertError(f"convert: the {name} is not fitted")
        layers = [Affine(w.T, b) for w, b in zip(model.coefs_, model.intercepts_, strict=True)]
    if classes is not None and model.n_outputs_ != (len(classes) if len(classes) > 2 else 1):
        raise ConvertError("convert: a classifier of several labels a row is not supported")
    if model.activation == "identity":
        whole = layers[0]
        for layer in layers[1:]:
            whole = layer.after(whole)
        layers = [whole]
    elif model.activation != "relu" and len(layers) > 1:
        raise ConvertError(
            f"convert: the activation {model.activation!r} of the {name} is not supported; "
            "train with activation='relu'"
        )
    if len(layers) == 1:
        return linear.of_weights(layers[0].weights, layers[0].bias, classes, columns, bits)
    columns.finite_rows("network")
    weights, bias = linear.of_inputs(layers[0].weights, layers[0].bias, columns)
    layers = [Affine(weights, np.asarray(bias)), *layers[1:]]
    grid = Grid.table(columns.raw_dtype, columns.n_inputs)
    return integer_network(layers, columns, classes, bits, grid)
