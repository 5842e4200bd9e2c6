"""The check of a `KernelMachine` that comes out of a file."""

from __future__ import annotations

import numpy as np

from tinykernel.errors import TinykernelError
from tinykernel.model.machine import KernelMachine
from tinykernel.model.permutation import Permutation
from tinykernel.model.scaler import RAW_DTYPES

__all__ = ["checked_machine"]


def checked_machine(machine: KernelMachine) -> KernelMachine:
    """Return the machine if all its fields fit together.

    Parameters
    ----------
    machine : KernelMachine

    Returns
    -------
    KernelMachine

    Raises
    ------
    TinykernelError
        Names the first field that has the wrong type, shape or values.
    """
    for name in ("input_offset", "diagonal", "weights"):
        expected = 1 if name == "input_offset" else 2
        if not isinstance(getattr(machine, name), np.ndarray) or (
            getattr(machine, name).ndim != expected
        ):
            raise TinykernelError(f"damaged machine: {name} is no array of {expected} dimensions")
    n, outputs = machine.n_features, machine.weights.shape[0]
    if not (1 <= n <= 65536 and machine.n_blocks >= 1):
        raise TinykernelError("damaged machine: it has no features or no blocks")
    blocks = (machine.n_blocks, machine.dimension)
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("input_offset", "input_scale", "input_low", "input_high", "sign"), (n,)),
        **dict.fromkeys(("diagonal", "row_scale", "start", "width"), blocks),
        **dict.fromkeys(("output_scale", "output_offset"), (outputs,)),
        "weights": (outputs, machine.n_blocks * machine.dimension),
    }
    for name, shape in shapes.items():
        _check_array(machine, name, shape)
    _check_values(machine)
    return machine


def _check_array(machine: KernelMachine, name: str, shape: tuple[int, ...]) -> None:
    array = getattr(machine, name)
    dtype = "int8" if name in ("sign", "weights") else "float64"
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
        raise TinykernelError(f"damaged machine: {name} is no {dtype} array of shape {shape}")
    if not np.all(np.isfinite(array)):
        raise TinykernelError(f"damaged machine: {name} holds NaN or infinity")


def _check_values(machine: KernelMachine) -> None:
    classes = machine.classes
    wrong = {
        "raw_dtype": machine.raw_dtype not in RAW_DTYPES,
        "trained_in_integers": not isinstance(machine.trained_in_integers, bool),
        "input_bits": machine.input_bits not in (8, 16),
        "input_scale": bool(np.any(machine.input_scale < 0)),
        "sign": bool(np.any(np.abs(machine.sign.astype(int)) != 1)),
        "permutation": not isinstance(machine.permutation, Permutation),
        "diagonal_kind": machine.diagonal_kind not in ("gaussian", "int8", "int4", "sign"),
        "weights": bool(np.any(np.abs(machine.weights.astype(int)) > 1)),
        "classes": not isinstance(classes, tuple)
        or len(classes) < 2
        or machine.weights.shape[0] != (1 if len(classes) == 2 else len(classes)),
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise TinykernelError(f"damaged machine: {name} holds what it must not")
    machine.permutation.indices(machine.dimension)
