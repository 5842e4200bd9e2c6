"""Untrained models, which stand for trained ones, and the estimator of a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel import progress
from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.model import IntegerModel
from tinykernel.model.machine import KernelMachine
from tinykernel.model.quantize import as_integer_model
from tinykernel.regressor import TernaryKernelRegressor

#: The method of this package. Any other is a class of classifiers, whose components are drawn.
LEARNED = "learned"
# Chosen by a search, or taken from another model or the data, and no parameters of the classifier.
FOUND_ONLY = (
    "slope",
    "dropout",
    "held_first",
    "held_second",
    "held_shift",
    "held_stages",
    "passes",
)
# Parameters of the regressor only: where there is a loss, values are predicted.
OF_VALUES = ("loss", "quantiles")


def untrained(
    X: NDArray[Any], y: NDArray[Any], given: Mapping[str, Any], layout: str, n_components: int
) -> KernelMachine:
    """Make a machine of random values with so many components."""
    names = ("scaler_scope", "input_bits", "code", *OF_VALUES)
    kept = {name: given[name] for name in names if name in given}
    kept |= {"layout": layout, "n_components": n_components, "epochs": 1, "effort": "quick"}
    kept |= {"random_state": 0, "n_jobs": 1}
    if kept.get("loss") == "squared":
        kept["loss"] = "absolute"  # as large, and takes no smooth fit
    with progress.observing(None):
        machine: KernelMachine = fitted(LEARNED, kept, X, y).machine_
    # Training gives each block a scale of its own, which takes a table.
    factor = np.random.default_rng(0).uniform(0.7, 1.0, (machine.n_blocks, 1))
    return replace(machine, row_scale=machine.row_scale * factor)


def untrained_trees(X: NDArray[Any], y: NDArray[Any], given: Mapping[str, Any]) -> IntegerModel:
    """Make a model of trees that has seen few rows, each four times."""
    names = ("scaler_scope", "input_bits", "loss")
    kept = {name: given[name] for name in names if name in given} | {"model": "trees"}
    kept |= {"tree_bytes": 64, "random_state": 0, "n_jobs": 1, "effort": "quick"}
    with progress.observing(None):
        return as_integer_model(fitted(LEARNED, kept, X, y))


def untrained_integers(
    X: NDArray[Any], y: NDArray[Any], given: Mapping[str, Any], size: Mapping[str, Any]
) -> IntegerModel:
    """Make a model without components that has seen few rows."""
    names = (
        "scaler_scope",
        "input_bits",
        "window_shape",
        "image_shape",
        "local",
        "hop",
        "rate",
        "spectrum",
        "n_kernels",
        "linear",
        *OF_VALUES,
    )
    kept = {name: given[name] for name in names if name in given} | dict(size)
    kept |= {"epochs": 1, "effort": "quick", "random_state": 0, "n_jobs": 1}
    with progress.observing(None):
        return as_integer_model(fitted(LEARNED, kept, X, y))


def fitted(
    method: Any,
    parameters: Mapping[str, Any],
    X: ArrayLike,
    y: ArrayLike,
    *args: Any,
    **named: Any,
) -> Any:
    """Train the classifier of a method; slope and dropout of an earlier training are no options."""
    if method != LEARNED:
        return method(**parameters).fit(X, y, *args, **named)
    given = dict(parameters)
    recipe = {name: given.pop(name) for name in FOUND_ONLY if name in given}
    if "loss" in given:
        return TernaryKernelRegressor(**given)._fit(X, y, *args, recipe=recipe, **named)
    return TernaryKernelClassifier(**given)._fit(X, y, *args, recipe=recipe, **named)
