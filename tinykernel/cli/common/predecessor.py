"""like=MODEL: train a model that takes the place of another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.cli.common.memory import remembered
from tinykernel.cli.settings.table import SETTINGS
from tinykernel.errors import TinykernelError

if TYPE_CHECKING:
    from tinykernel.data.partition import Dataset
    from tinykernel.model import IntegerModel

# What the other model says. A window or a hop is needed to cut recordings.
_SAID = (
    "budget",
    "code",
    "n_components",
    "layout",
    "linear",
    "n_kernels",
    "cells",
    "offset",
    "spectrum",
    "convolutions",
    "model",
    "image_shape",
    "window_shape",
    "input_bits",
    "scaler_scope",
    "input_type",
    "loss",
    "quantiles",
)


@dataclass(frozen=True)
class Other:
    """The model of `like`, and the parameters of a training that keeps to its shape."""

    path: Path
    model: IntegerModel
    parameters: dict[str, Any]

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options by which data are loaded: rows as the firmware takes them."""
        from tinykernel.data.paths import is_pictures, is_recording

        data = given["data"]
        if given["window"] is not None or is_recording(data) or is_pictures(data):
            return dict(given)
        coding = remembered(self.path).everything.get("coding")
        return {**given, "input_type": self.model.raw_dtype, "coding": coding}

    def check_rows(self, dataset: Dataset) -> None:
        """Refuse other inputs and classes before the training."""
        from tinykernel.budget.successor import check_rows_alike

        columns = None if dataset.columns is None else tuple(dataset.columns)
        try:
            check_rows_alike(self.model, dataset.X_train, dataset.y_train, columns)
        except TinykernelError as error:
            raise TinykernelError(f"{dataset.source}: {error} ({self.path})") from None

    def check(self, model: IntegerModel) -> None:
        """Refuse the trained model if it is of another shape."""
        from tinykernel.budget.successor import check_alike

        check_alike(self.model, model)


def other_model(path: Path, options: Mapping[str, Any], given: set[str]) -> Other:
    """Read the model of `like`; what it says cannot be given, too."""
    from tinykernel.budget.successor import parameters_like, recipe_of
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    twice = [name for name in _SAID if name in given]
    if twice:
        hint = SETTINGS[twice[0]].hint
        raise typer.BadParameter("is that of the model of like: leave it out", param_hint=hint)
    old = load(path)
    model = as_integer_model(old)
    recipe = remembered(path).everything.get("recipe") or recipe_of(old)
    task = "numbers" if model.is_regressor else "classes"
    if options["task"] != task:
        raise typer.BadParameter(f"{path} is of --task {task}", param_hint="--set like")
    kept = {name: options[name] for name in ("effort", "sigma", "noise") if name in given}
    try:
        return Other(path, model, parameters_like(model, recipe) | kept)
    except TinykernelError as error:
        raise TinykernelError(f"{path}: {error}") from None
