"""From the float machine to the integer model: `quantize`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.hadamard import fwht
from tinykernel.integer.model import IntegerModel
from tinykernel.integer.quantize_inputs import QuantisedInputs, quantize_scaler
from tinykernel.integer.ranges import choose_schedules
from tinykernel.integer.rounding import mean_rounding_errors
from tinykernel.training.machine import KernelMachine

__all__ = ["as_integer_model", "quantize", "snap_windows"]

_INT32_MAX = 2**31 - 1
_STEPS_PER_TURN = 256  # start and width are 8-bit fractions of a turn
_LARGEST_SCALE = 255
_LARGEST_MULTIPLIER = 4095
_EQUAL_MULTIPLIER = 256


@dataclass(frozen=True)
class _Blocks:
    """The quantised linear part: ``H G P H B x' = unit * v + constant`` up to rounding.

    `index` says which blocks of the machine remain, `unit` has shape (n_blocks, 1).
    """

    index: NDArray[np.int64]
    diagonal: NDArray[np.int8]
    halve_first: tuple[bool, ...]
    halve_second: tuple[bool, ...]
    unit: NDArray[np.float64]
    constant: NDArray[np.float64]


@dataclass(frozen=True)
class _Windows:
    """Phase windows of all rows of the remaining blocks, shape (n_blocks, d).

    `falls` says where the phase falls with v, so that the window is mirrored; `constant` is +1 or -1 where the feature is always or never on, 0 where it varies.
    """

    scale: NDArray[np.int64]
    start: NDArray[np.int64]
    width: NDArray[np.int64]
    falls: NDArray[np.bool_]
    phase_shift: int
    constant: NDArray[np.int64]


def quantize(machine: KernelMachine) -> IntegerModel:
    """Turn a float machine into the integer model that the firmware computes.

    Deterministic: the same machine gives the same model. Rows that no class weighs are dropped, and
    rows whose feature never changes become part of the class offsets.

    Parameters
    ----------
    machine : KernelMachine

    Returns
    -------
    IntegerModel
        Proved not to overflow for any input.

    Raises
    ------
    TinykernelError
        If the machine holds values that are not finite.

    Examples
    --------
    >>> from tinykernel.features.permutation import Permutation
    >>> row = np.ones((1, 32))
    >>> machine = KernelMachine(
    ...     classes=("off", "on"), raw_dtype="uint8", input_offset=np.array([127.5]),
    ...     input_scale=np.array([1 / 127.5]), input_low=np.array([-1.0]),
    ...     input_high=np.array([1.0]), sign=np.ones(1, np.int8), permutation=Permutation(),
    ...     diagonal=row, diagonal_kind="sign", row_scale=row / 32, start=0 * row,
    ...     width=np.pi * row, weights=np.eye(1, 32, dtype=np.int8), output_scale=np.ones(1),
    ...     output_offset=np.zeros(1))
    >>> quantize(machine).predict([[3], [250]]).tolist()
    ['off', 'on']
    """
    _check(machine)
    weighed = np.any(machine.weights != 0, axis=0).reshape(machine.diagonal.shape)
    inputs = _quantize_inputs(machine, weighed)
    blocks = _quantize_blocks(machine, inputs, weighed)
    windows = _quantize_windows(machine, blocks)
    kept = weighed[blocks.index] & (windows.constant == 0)
    if not kept.any():
        # The firmware has at least one component; this one has no weight.
        kept[0, 0] = True
    weights = _weights_by_row(machine)[:, blocks.index]
    multiplier, offset, decision_scale = _quantize_outputs(
        machine, np.where(kept, weights, 0), np.sum(weights * windows.constant, axis=(1, 2))
    )
    remaining = kept.any(axis=1)
    return IntegerModel(
        n_features=machine.n_features,
        scaler=inputs.scaler,
        sign=_signs(machine, inputs),
        permutation=machine.permutation,
        diagonal=blocks.diagonal[remaining],
        diagonal_kind="sign" if machine.diagonal_kind == "sign" else "int8",
        halve_first=blocks.halve_first,
        halve_second=blocks.halve_second,
        row_kept=kept[remaining],
        scale=np.maximum(windows.scale, 1)[kept],
        start=windows.start[kept],
        width=np.clip(windows.width, 1, _STEPS_PER_TURN - 1)[kept],
        phase_shift=windows.phase_shift,
        weights=weights[:, kept].astype(np.int8),
        multiplier=multiplier,
        offset=offset,
        classes=machine.classes,
        decision_scale=decision_scale,
    )


def snap_windows(machine: KernelMachine) -> KernelMachine:
    """Move start and width of every row to the nearest values that the integer model can hold.

    The rounding of the windows to 8 bits is three quarters of all that `quantize` changes. Random
    windows that are snapped **before** the weights are trained, and learned ones that are snapped
    while they are learned, cost nothing, and quantisation then leaves them where they are.

    Parameters
    ----------
    machine : KernelMachine
        Its weights and outputs are not read.

    Returns
    -------
    KernelMachine
        The same but for `start` and `width`.

    Raises
    ------
    TinykernelError
        If the machine holds values that are not finite.
    """
    _check(machine)
    every = np.ones(machine.diagonal.shape, dtype=bool)
    blocks = _quantize_blocks(machine, _quantize_inputs(machine, every), every)
    windows = _quantize_windows(machine, blocks)
    turn = 2 * np.pi
    width = windows.width * (turn / _STEPS_PER_TURN)
    start = windows.start * (turn / _STEPS_PER_TURN)
    start = np.where(windows.falls, width - start, start) - machine.row_scale * blocks.constant
    return replace(machine, start=np.mod(start, turn), width=width)


def as_integer_model(obj: object) -> IntegerModel:
    """Return the integer model of anything that has one.

    Parameters
    ----------
    obj : IntegerModel, KernelMachine or fitted TernaryKernelClassifier

    Returns
    -------
    IntegerModel

    Raises
    ------
    TinykernelError
        If `obj` is something else.
    """
    if isinstance(obj, KernelMachine):
        return quantize(obj)
    # By method, because the estimator lies above this package.
    model = obj.quantize() if hasattr(obj, "quantize") else obj
    if isinstance(model, IntegerModel):
        return model
    raise TinykernelError(
        f"a {type(obj).__name__} is no model; give an IntegerModel, a KernelMachine or a fitted "
        "TernaryKernelClassifier"
    )


def _check(machine: KernelMachine) -> None:
    names = ("input_offset", "input_scale", "input_low", "input_high", "diagonal", "row_scale",
             "start", "width", "output_scale", "output_offset")  # fmt: skip
    for name in names:
        if not np.all(np.isfinite(getattr(machine, name))):
            raise TinykernelError(f"the machine's {name} holds NaN or infinity: training failed")
    if np.any(machine.input_scale < 0):
        raise TinykernelError("the machine's input_scale is negative; turn the sign B instead")


def _weights_by_row(machine: KernelMachine) -> NDArray[np.int64]:
    """Return the weights as (n_outputs, n_blocks, d)."""
    return machine.weights.astype(np.int64).reshape(-1, *machine.diagonal.shape)


def _quantize_inputs(machine: KernelMachine, weighed: NDArray[np.bool_]) -> QuantisedInputs:
    """Quantise the scaler, with the step that suits the slopes of signs as G."""
    inputs = quantize_scaler(machine)
    if machine.diagonal_kind != "sign":
        return inputs
    # The input step is the one free number that can make a slope common to all rows exact.
    stretch = _stretches(np.abs(machine.row_scale) / (2 * np.pi) * inputs.step, weighed)
    if np.ptp(stretch) > 1e-12:
        return inputs
    return quantize_scaler(machine, float(stretch[0]))


def _signs(machine: KernelMachine, inputs: QuantisedInputs) -> NDArray[np.int8]:
    """Return B, 0 for constant features."""
    constant = inputs.scaler.constant(machine.n_features)
    return np.where(constant, 0, machine.sign).astype(np.int8)


def _quantize_blocks(
    machine: KernelMachine, inputs: QuantisedInputs, weighed: NDArray[np.bool_]
) -> _Blocks:
    """Quantise G block by block and choose the shift schedules."""
    index = np.flatnonzero(weighed.any(axis=1))
    if index.size == 0:
        index = np.zeros(1, dtype=np.int64)
    exact = machine.diagonal[index]
    if machine.diagonal_kind == "sign":
        diagonal, kind, unit = exact.astype(np.int8), "sign", np.ones((index.size, 1))
    else:
        largest = np.abs(exact).max(axis=1, keepdims=True)
        resolution = np.where(largest > 0, largest / 127, 1.0)
        slopes = np.abs(machine.row_scale[index]) / (2 * np.pi) * inputs.step * resolution
        resolution = resolution * _stretches(slopes, weighed[index])[:, np.newaxis]
        diagonal, kind = np.rint(exact / resolution).astype(np.int8), "int8"
        unit = 128 * resolution
    sign = _signs(machine, inputs)
    first, second = choose_schedules(sign, machine.input_bits, machine.permutation, diagonal, kind)
    unit = unit * inputs.step * 2.0 ** (sum(first) + sum(second))
    constant = _project(machine, exact, inputs.centre)
    errors = mean_rounding_errors(first, second, machine.permutation, diagonal, kind)
    return _Blocks(index, diagonal, first, second, unit, constant - unit * errors)


def _stretches(slopes: NDArray[np.float64], weighed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return by how much to stretch each block so that one 8-bit scale serves it exactly.

    That can be had where all rows of a block have the same slope; elsewhere the factor is 1. It is
    at most 1 + 1/32, which costs the stretched numbers less than it saves.

    Parameters
    ----------
    slopes : ndarray of float64, shape (n_blocks, d)
        Turns per unit, up to a common power of two.
    weighed : ndarray of bool, shape (n_blocks, d)

    Returns
    -------
    ndarray of float64, shape (n_blocks,)
    """
    largest = np.where(weighed, slopes, 0).max(axis=1)
    smallest = np.where(weighed, slopes, np.inf).min(axis=1)
    if largest.max() == 0:
        return np.ones(largest.size)
    exponent = np.ceil(np.log2(largest.max() / (_LARGEST_SCALE + 0.5)))
    scale = np.maximum(largest / 2.0**exponent, 1e-300)
    whole = np.ceil(scale - 1e-9)
    alike = (largest - smallest <= 1e-9 * largest) & (whole <= _LARGEST_SCALE)
    return np.where(alike & (scale >= 32), whole / scale, 1.0)


def _project(
    machine: KernelMachine, diagonal: NDArray[np.float64], scaled: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute ``H G P H B x'`` of one input in float64; shape (n_blocks, d)."""
    mixed = np.zeros(machine.dimension)
    mixed[: machine.n_features] = machine.sign * scaled
    gather = machine.permutation.indices(machine.dimension)
    return fwht(diagonal * fwht(mixed)[gather])


def _quantize_windows(machine: KernelMachine, blocks: _Blocks) -> _Windows:
    """Round scale, start and width of every row to 8 bits."""
    turns = machine.row_scale[blocks.index] / (2 * np.pi)
    start = machine.start[blocks.index] / (2 * np.pi) + turns * blocks.constant
    width = machine.width[blocks.index] / (2 * np.pi)
    slope = turns * blocks.unit  # turns per unit of v
    if np.abs(slope).max() > 0.5:
        slope -= np.rint(slope)  # v is an integer: whole turns a unit change nothing
    # A falling phase enters the window from the other side.
    falls = slope < 0
    start = np.where(falls, width - start, start)
    scale, phase_shift = _quantize_slopes(np.abs(slope))
    # The two edges are what matters: the phase at which the feature goes on, and off.
    rising = np.rint(-np.mod(start, 1) * _STEPS_PER_TURN).astype(np.int64)
    falling = np.rint((width - np.mod(start, 1)) * _STEPS_PER_TURN).astype(np.int64)
    rounded = np.clip(falling - rising, 0, _STEPS_PER_TURN)
    constant = np.where(rounded == 0, -1, np.where(rounded == _STEPS_PER_TURN, 1, 0))
    still = (scale == 0) & (constant == 0)
    constant[still] = np.where(np.mod(start, 1) < width, 1, -1)[still]
    return _Windows(scale, -rising % _STEPS_PER_TURN, rounded, falls, phase_shift, constant)


def _quantize_slopes(slope: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    """Return 8-bit scales and their common shift: ``scale * 2**(shift - 32)`` turns per unit."""
    largest = float(slope.max())
    phase_shift = 0
    while np.rint(largest * 2.0 ** (32 - phase_shift)) > _LARGEST_SCALE:
        phase_shift += 1
    return np.rint(slope * 2.0 ** (32 - phase_shift)).astype(np.int64), phase_shift


def _quantize_outputs(
    machine: KernelMachine, weights: NDArray[np.int64], constant: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], float]:
    """Return multiplier, offset and decision units per score unit."""
    scale = machine.output_scale
    offset = machine.output_offset + scale * constant
    largest = float(np.abs(scale).max())
    if largest == 0:
        unit = max(float(np.abs(offset).max()), 1.0) / _INT32_MAX
    elif np.all(scale == scale[0]) and scale[0] > 0:
        whole = np.all(np.abs(offset / largest - np.rint(offset / largest)) < 1e-6)
        unit = largest if whole else largest / _EQUAL_MULTIPLIER
    else:
        unit = largest / _LARGEST_MULTIPLIER
    sums = np.count_nonzero(weights, axis=(1, 2))
    while np.any(np.rint(np.abs(scale) / unit) * sums + np.rint(np.abs(offset) / unit)
                 > _INT32_MAX):  # fmt: skip
        unit *= 2
    return np.rint(scale / unit).astype(np.int32), np.rint(offset / unit).astype(np.int32), unit
