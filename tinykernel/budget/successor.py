"""A training whose model takes the place of another one: the same shape, other numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tinykernel.codegen.blobs.layout import NEVER_DATA, difference
from tinykernel.codegen.pack.components import block_scales
from tinykernel.codegen.pack.linear import weight_bits
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.kernels import Kernels
from tinykernel.training.layouts import LAYOUTS
from tinykernel.training.options import LINEAR_BITS

#: What a search chooses; a model file remembers it for a training of the same shape.
_FOUND = ("n_components", "noise")


def recipe_of(classifier: Any) -> dict[str, Any]:
    """Return what was chosen for a training of components; empty for others."""
    options = getattr(classifier, "options_", {})
    if not getattr(classifier, "n_components_", 0) or any(name not in options for name in _FOUND):
        return {}
    return {"sigma": classifier.sigma_, **{name: options[name] for name in _FOUND}}


def parameters_like(old: IntegerModel, recipe: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the parameters of `train` that lead to a model of the shape of another one.

    The shifts of the transforms are those of the other model, and the levels of G become smaller
    where these would overflow. With what `recipe_of` returned of its classifier nothing needs to be
    searched. A model of one class, which nothing trains, is a TinykernelError, and so is one that
    cannot be data, such as one of trees.
    """
    if old.is_one_class:
        raise TinykernelError("holds prototypes only, which are not trained; give another model")
    if old.beside is not None:
        raise TinykernelError("takes numbers beside a window, so that no model takes its place")
    for piece in NEVER_DATA:
        if old.find(piece) is not None:
            raise TinykernelError(f"holds {piece.KIND}, so that no model takes its place as data")
    if not old.input.is_table:
        return _like_local(old)
    given: dict[str, Any] = {"input_bits": old.scaler.bits}
    given["scaler_scope"] = _scope(old)
    linear, components = _bits(old), old.find(Components)
    if old.is_regressor:
        given["loss"] = "squared"
    if components is None:
        return given | {"n_components": 0, "linear": linear, "effort": "quick"}
    layout = _layout(components)
    given |= {"layout": layout, "n_components": _n_components(layout, components)}
    given |= {"linear": linear or "off", "code": "small" if components.small_code else "fast"}
    given |= {"held_first": components.halve_first, "held_second": components.halve_second}
    if LAYOUTS[layout].scale_per_row:
        given["held_shift"] = components.phase_shift
    return given | _found(recipe)


def _found(recipe: object) -> dict[str, Any]:
    """Return what a file says was found by a search; nothing unless it is all there."""
    names = ("sigma", *_FOUND)
    if not isinstance(recipe, Mapping):
        return {}
    numbers = {name: recipe.get(name) for name in names}
    if any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers.values()):
        return {}
    return {"effort": "quick", **numbers}


def _like_local(old: IntegerModel) -> dict[str, Any]:
    given: dict[str, Any]
    kernels = old.find(Kernels)
    assert kernels is not None
    size = kernels.n_kernels
    given = {"n_kernels": size, "linear": _bits(old), "effort": "quick"}
    if old.input.is_signal:
        # Which kernels a pool gives is chance: take these, with new thresholds.
        given["held_stages"] = old.stages[: old.stages.index(kernels) + 1]
        given |= {"window_shape": old.input.shape, "spectrum": "auto"}  # that of these stages
        return given | {"hop": old.hop or None}
    return given | {"image_shape": old.input.shape}


def _bits(model: IntegerModel) -> int | None:
    """Return the width of the linear part that training was asked for; None without one."""
    part = model.find(Linear)
    return None if part is None else max(weight_bits(part.weights), LINEAR_BITS[0])


def _layout(components: Components) -> str:
    """Return the layout by what the components have in common."""
    return "windows" if block_scales(components) is None else "compact"


def _n_components(layout: str, components: Components) -> int:
    """Return the number of components that training was asked for."""
    kept = components.row_kept
    if layout != "windows":
        return int(kept.sum())
    # Those without any weight are left out.
    return int((len(kept) - 1) * kept.shape[1] + np.flatnonzero(kept[-1])[-1] + 1)


def _scope(model: IntegerModel) -> str:
    """Return whether all inputs have one scale."""
    used = ~model.scaler.constant(model.n_features)
    arrays = (np.broadcast_to(a, used.shape)[used] for a in model.scaler.arrays.values())
    return "global" if all(np.all(a == a[:1]) for a in arrays) else "feature"


def check_rows_alike(
    old: IntegerModel, X: ArrayLike, y: ArrayLike, names: tuple[str, ...] | None
) -> None:
    """Refuse rows to train on that are not like those of another model, before the training."""
    rows = np.asarray(X)
    n_inputs = int(np.prod(rows.shape[1:]))
    if n_inputs != old.n_inputs:
        raise TinykernelError(
            f"rows have {n_inputs} inputs, those of the other model {old.n_inputs}"
        )
    if old.feature_names is not None and names is not None and names != old.feature_names:
        pairs = zip(names, old.feature_names, strict=True)
        name, before = next(pair for pair in pairs if pair[0] != pair[1])
        raise TinykernelError(f"there is an input {name!r} where the other model has {before!r}")
    if old.classes:
        classes = set(np.unique(y).tolist())
        if classes != set(old.classes):
            what = sorted(map(str, classes ^ set(old.classes)))
            raise TinykernelError(f"the classes are not those of the other model: {what[0]}")


def check_alike(old: IntegerModel, new: IntegerModel) -> None:
    """Refuse a trained model that cannot take the place of another one.

    Decisions are left out where the new model has none yet.

    Raises
    ------
    TinykernelError
        Says by what their shapes differ, as the macros of the C source name it.
    """
    if new.decision is None:
        old = replace(old, decision=None)
    found = difference(old, new)
    if found:
        raise TinykernelError(
            f"the trained model is not of the shape of the other one ({found}); train it without "
            "like, and export its code anew"
        )
