"""In how many cells kernels of signals count, found on held-out windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tinykernel.budget.standins import Asked
from tinykernel.training.options import TrainerOptions
from tinykernel.training.signals.spectrum import spectrum_of
from tinykernel.training.signals.training import CELLS, FEW_WINDOWS, counted_ahead
from tinykernel.training.trainset import prepare

# Cells take the room of kernels, of which a small budget has too few.
_LEAST_FLASH = 4096


def cells_of(
    asked: Asked,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> dict[str, Any]:
    """Return the options that are ahead; none where nothing is to be chosen."""
    rows, labels, shape, options = np.asarray(X), np.asarray(y), asked.shape, asked.options
    if shape is None or len(shape) != 2 or len(rows) <= FEW_WINDOWS:
        return {}
    if asked.flash < _LEAST_FLASH or shape[0] < 4 * CELLS:
        return {}
    if options.keys() & {"loss", "cells"} or options.get("effort") == "quick":
        return {}
    if rows.dtype.kind not in "iuf" or not np.isfinite(rows).all() or len(labels) != len(rows):
        return {}  # training says what is wrong with them
    checked = TrainerOptions(**options)
    if spectrum_of(checked, shape, rows.dtype.name)[0] is not None:
        return {}
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    _, data = prepare(
        rows.reshape(len(rows), -1),
        labels,
        weight,
        class_weight=checked.class_weight,
        groups=groups,
    )
    return counted_ahead(data, checked, shape)
