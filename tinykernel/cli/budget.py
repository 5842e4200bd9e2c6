"""Choose how many components a budget allows, before the long training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tinykernel.errors import TinykernelError
from tinykernel.hadamard import padded_dimension
from tinykernel.integer import quantize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.integer import IntegerModel
    from tinykernel.training.machine import KernelMachine

__all__ = ["MOST_COMPONENTS", "components_within", "flash_of"]

#: More components than this are not chosen, however large the budget: training time grows in
#: proportion and the accuracy hardly.
MOST_COMPONENTS = 16384
_WORD = 32  # components are stored in words of 32
_ROWS_A_CLASS = 4
_MARGIN = 0.97  # the estimate is within 3 % of the linked size


def components_within(
    X: NDArray[Any],
    y: NDArray[Any],
    parameters: Mapping[str, Any],
    *,
    budget: int,
    target: str,
) -> int:
    """Return the largest number of components whose firmware keeps to a budget.

    Parameters
    ----------
    X : ndarray, shape (n_rows, n_features)
    y : ndarray, shape (n_rows,)
    parameters : mapping
        Parameters of `TernaryKernelClassifier` other than the number of components.
    budget : int
        Bytes of flash.
    target : str
        A microcontroller.

    Returns
    -------
    int
        A multiple of 32, at most `MOST_COMPONENTS`.

    Raises
    ------
    TinykernelError
        If not even 32 components fit.
    """
    allowed = int(budget * _MARGIN)
    machine = _small_machine(X, y, parameters)

    def flash(words: int) -> int:
        return flash_of(quantize(_enlarged(machine, words * _WORD)), target)

    smallest = flash(1)
    if smallest > allowed:
        raise TinykernelError(
            f"no model for this data fits into {budget} bytes on {target}: with {_WORD} components "
            f"it needs about {smallest}; give a larger --budget"
        )
    low, high = 1, MOST_COMPONENTS // _WORD  # in words; `low` fits
    while low < high:
        middle = (low + high + 1) // 2
        if flash(middle) <= allowed:
            low = middle
        else:
            high = middle - 1
    return low * _WORD


def flash_of(integer: IntegerModel, target: str) -> int:
    """Estimate the flash of a model without a compiler, in bytes."""
    from tinykernel.measure.report import report

    return report(integer, target, compiler="none").flash


def _small_machine(
    X: NDArray[Any], y: NDArray[Any], parameters: Mapping[str, Any]
) -> KernelMachine:
    """Train one block on a few rows: the scaler has its final size, nothing else matters."""
    from tinykernel.estimator import TernaryKernelClassifier

    classes, codes = np.unique(y, return_inverse=True)
    rows = np.concatenate([np.flatnonzero(codes == c)[:_ROWS_A_CLASS] for c in range(len(classes))])
    # The extremes of each feature tell constant features from those that vary.
    rows = np.unique(np.concatenate([rows, X.argmin(axis=0), X.argmax(axis=0)]))
    given = dict(parameters) | {"n_components": padded_dimension(X.shape[1]), "max_iter": 1}
    given |= {"init": "random", "sigma": given.get("sigma") or 1.0, "regularization": 0.1}
    given["epochs"] = 1
    return TernaryKernelClassifier(**given).fit(X[rows], y[rows]).machine_


def _enlarged(machine: KernelMachine, n_components: int) -> KernelMachine:
    """Repeat the blocks of a machine; its weights use every component and both bit planes."""
    d = machine.dimension
    shape = (-(-n_components // d), d)
    levels = [-1, 1] if np.all(machine.weights) else [-1, 0, 1]
    weights = np.random.default_rng(0).choice(levels, (len(machine.weights), shape[0] * d))
    weights[0, weights[0] == 0] = 1  # no component is dropped
    weights[:, n_components:] = 0
    return replace(
        machine,
        diagonal=np.resize(machine.diagonal, shape),
        row_scale=np.resize(machine.row_scale, shape),
        start=np.resize(machine.start, shape),
        width=np.resize(machine.width, shape),
        weights=weights.astype(np.int8),
    )
