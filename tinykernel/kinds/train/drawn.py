"""Other methods, whose components are drawn: as many as fit a budget."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tinykernel.base.errors import BudgetError
from tinykernel.base.hadamard import padded_dimension
from tinykernel.kinds.kind import reduced
from tinykernel.kinds.sizing import Usage
from tinykernel.learn.inputs import WORD, components_within
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.pieces.ternary.spec import Ternary
from tinykernel.run.capacity import DRAWN, MOST_CHOSEN
from tinykernel.run.limits import Limits

# Components hardly ever take less code.
_LEAST_CODE = 1536


def train_drawn(
    method: Any,
    options: Mapping[str, Any],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    limits: Limits | None,
    target: str,
    measure: Callable[[IntegerModel], Usage],
    **rows: Any,
) -> tuple[Any, int]:
    """Train a method with as many components as fit; return the estimator and the trainings.

    Where flash decides, five ternary weights take a byte; two bits a weight take fewer
    instructions. A model that is over a limit is trained again with fewer components.
    """
    n_classes, n_inputs = np.unique(np.asarray(y)).size, np.shape(X)[1]
    sides = padded_dimension(n_inputs), 1 if n_classes == 2 else n_classes
    n, settings, is_open = 0, dict(options), "n_components" not in options
    layout = replace(DRAWN, ternary=not settings.get("binary"))
    if limits is not None and limits.flash is not None:
        least = 0 if is_open else layout.table_bytes(settings["n_components"], *sides)
        if least > limits.flash:
            raise BudgetError(
                f"a model of {settings['n_components']} components needs at least {least} bytes of "
                f"flash on {target}; use fewer {{n_components}} or a larger budget",
                n_components=None,
            )
        if is_open:
            most = components_within(max(1, limits.flash - _LEAST_CODE), layout, *sides)
            settings["n_components"] = n = int(np.clip(most, WORD, MOST_CHOSEN))
    trainings = 0
    while True:
        trainings += 1
        estimator = method(**settings).fit(X, y, sample_weight, **rows)
        if n:
            estimator.machine_ = _packed(estimator.machine_)
        model = as_integer_model(estimator)
        used = measure(model)
        if used.share <= 1:
            return estimator, trainings
        if not is_open or n <= WORD:
            advice = "give a larger budget" if is_open else "use fewer {n_components}"
            raise BudgetError(f"the trained model needs {used.text}; {advice}", n_components=None)
        n = max(reduced(n, WORD, used.excess(model), model), WORD)
        settings |= {"n_components": n, "sigma": estimator.sigma_}


def _packed(model: IntegerModel) -> IntegerModel:
    """Let five ternary weights share a byte."""
    parts = (
        replace(part, packed=True) if isinstance(part, Ternary) else part
        for part in model.readout.parts
    )
    return replace(model, readout=replace(model.readout, parts=tuple(parts)))
