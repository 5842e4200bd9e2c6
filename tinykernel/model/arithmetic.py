"""The arithmetic of the firmware, for trainers, which stand below this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.hadamard import padded_dimension
from tinykernel.model.machine import KernelMachine
from tinykernel.model.permutation import Permutation
from tinykernel.model.quantize_inputs import quantize_scaler
from tinykernel.model.ranges import choose_schedules
from tinykernel.model.scaling import InputScaling
from tinykernel.training.problem import FirmwareArithmetic

__all__ = ["FIRMWARE", "input_levels"]


def input_levels(
    scaling: InputScaling, raw_dtype: str, bits: int
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the function that quantises raw inputs as the firmware does.

    Parameters
    ----------
    scaling : InputScaling
    raw_dtype : str
        As in `KernelMachine`.
    bits : {8, 16}

    Returns
    -------
    callable
        From raw rows, shape (n, n_features), to int8 or int16 of that shape.

    Examples
    --------
    >>> one = np.ones(1)
    >>> scaling = InputScaling(128 * one, one / 128, -one, one * 127 / 128)
    >>> input_levels(scaling, "uint8", 8)(np.array([[0], [255]], dtype=np.uint8)).ravel().tolist()
    [-128, 127]
    """
    n = scaling.offset.size
    row = np.zeros((1, padded_dimension(n)))
    machine = KernelMachine(
        classes=(0, 1), raw_dtype=raw_dtype, input_offset=scaling.offset,
        input_scale=scaling.scale, input_low=scaling.low, input_high=scaling.high,
        sign=np.ones(n, dtype=np.int8), permutation=Permutation(), diagonal=row,
        diagonal_kind="int8", row_scale=row, start=row, width=row,
        weights=row.astype(np.int8), output_scale=np.ones(1), output_offset=np.zeros(1),
        input_bits=bits,
    )  # fmt: skip
    return quantize_scaler(machine).scaler.quantize


#: What `fit_joint` and `TrainingOptions` take, so that the end of a training keeps to it.
FIRMWARE = FirmwareArithmetic(schedules=choose_schedules, input_levels=input_levels)
