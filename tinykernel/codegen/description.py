"""Short descriptions of a model for headers, pages and terminals."""

from tinykernel.codegen.pack.machine import weight_bits
from tinykernel.model import IntegerModel
from tinykernel.model.readouts import Linear, Prototypes, Trees
from tinykernel.model.stage import Stage
from tinykernel.model.stages import Components, Kernels
from tinykernel.text import count

# Pieces that say what kind of model it is.
_MAIN = ("spectrum", "kernels", "convolutions", "separable", "components", "trees", "prototypes")


def taken_by(model: IntegerModel) -> str:
    """Describe the input of a model: values, or windows or images of a shape, and numbers."""
    first = model.stages[0]
    taken = first.title if first.GIVES == "image" else _looked_at(model)
    return taken + (f" and {model.beside.title}" if model.beside is not None else "")


def seen_shape(model: IntegerModel) -> tuple[int, ...]:
    """Return the shape of a window, or of an image as it is resized."""
    return (model.grids()[1] if model.stages[0].GIVES == "image" else model.input).shape


def _looked_at(model: IntegerModel) -> str:
    """Describe the input of the first stage."""
    shape = " x ".join(map(str, seen_shape(model)))
    if model.input.is_table:
        return count(model.n_inputs, "input")
    return f"windows of {shape}" if model.input.is_signal else f"images of {shape}"


def made_of(model: IntegerModel) -> str:
    """Name the main pieces of a model, for instance "spectrum and kernels"."""
    kinds = [piece.KIND for piece in (*model.stages, *model.readout.parts)]
    main = [kind for kind in kinds if kind in _MAIN]
    return " and ".join(main) if main else "a linear part"


def consists_of(model: IntegerModel) -> str:
    """List the stages and parts of a model, and what they take."""
    inputs, pieces = count(model.n_features, "input"), []
    for piece in (*model.stages, *model.readout.parts):
        if isinstance(piece, Kernels):
            pieces.append(f"{count(piece.n_kernels, 'kernel')} on {_looked_at(model)}")
            inputs = count(model.n_features, "count")
        elif isinstance(piece, Components):
            code = " in small code" if piece.small_code else ""
            pieces.append(f"{count(piece.n_components, 'component')} of {inputs}{code}")
        elif isinstance(piece, Prototypes):
            pieces.append(f"{count(len(piece.levels), 'prototype')} of {inputs}")
        elif isinstance(piece, Trees):
            pieces.append(
                f"{count(piece.size.size, 'tree')} of {piece.leaves.size} leaves, {inputs}"
            )
        elif isinstance(piece, Linear):
            pieces.append(f"linear part of {inputs}, {weight_bits(piece.weights)} bits")
        elif isinstance(piece, Stage) and piece.title:
            pieces.append(piece.title)
    return ", ".join(pieces)
