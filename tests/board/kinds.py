"""A small model of every kind, for every emulated board, and rows to send it."""

from collections.abc import Callable
from typing import Any

from tests.codegen.kinds import calibrated, regressor
from tests.convolutions import convolution_model
from tests.random_fronts import local_model, random_signal_stage
from tests.random_models import one_class, random_model, random_raw, tree_model
from tinykernel.model.integer import IntegerModel

SMALL: dict[str, Any] = {"n_features": 9, "n_blocks": 1, "raw_dtype": "int16"}


def signal() -> IntegerModel:
    """Return a small model of a stream."""
    return local_model(
        random_signal_stage(1, height=32, channels=2, n_kernels=6, dilations=(1,), hop=8), 1
    )


KINDS: dict[str, Callable[[], IntegerModel]] = {
    "table": lambda: random_model(1, n_classes=4, **SMALL),
    "calibrated": lambda: calibrated(KINDS["table"], "margin"),
    "trees": lambda: tree_model(1),
    "signal": signal,
    "image": lambda: convolution_model(1, (8, 9)),
    "values": lambda: regressor(random_model(2, n_classes=3, **SMALL)),
    "one class": lambda: one_class(random_model(3, **SMALL), 3),
}


def rows_of(model: IntegerModel, n: int) -> Any:
    """Return raw inputs of a model."""
    return random_raw(model, 1, n)
