"""Models that have no components: a linear part alone, or prototypes alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.hadamard import padded_dimension
from tinykernel.model.integer.model import IntegerModel
from tinykernel.model.permutation import Permutation
from tinykernel.model.scaler import InputScaler


def without_components(
    n_features: int, scaler: InputScaler, offset: NDArray[np.int32], **parts: Any
) -> IntegerModel:
    """Make a model whose transforms, blocks and components are void.

    Parameters
    ----------
    n_features : int
    scaler : InputScaler
    offset : ndarray of int32, shape (n_outputs,)
    **parts
        Further fields of `IntegerModel`: `classes`, and `linear` or `prototypes` with what belongs
        to them.

    Returns
    -------
    IntegerModel

    Raises
    ------
    TinykernelError
        As from `IntegerModel`.
    """
    dimension = padded_dimension(n_features)
    none = np.zeros(0, dtype=np.uint8)
    schedule = (False,) * (dimension.bit_length() - 1)
    return IntegerModel(
        n_features=n_features,
        scaler=scaler,
        sign=np.where(scaler.constant(n_features), 0, 1).astype(np.int8),
        permutation=Permutation(),
        diagonal=np.zeros((0, dimension), dtype=np.int8),
        diagonal_kind="sign",
        halve_first=schedule,
        halve_second=schedule,
        row_kept=np.zeros((0, dimension), dtype=np.bool_),
        scale=none,
        start=none,
        width=none,
        phase_shift=0,
        weights=np.zeros((offset.size, 0), dtype=np.int8),
        multiplier=np.ones(offset.size, dtype=np.int32),
        offset=offset,
        **parts,
    )
