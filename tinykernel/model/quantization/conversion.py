"""From the float machine to the integer model: `quantize`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.hadamard import fwht
from tinykernel.model.diagonals import LARGEST, SHIFTS
from tinykernel.model.integer import IntegerModel
from tinykernel.model.permutation import Permutation
from tinykernel.model.proof import choose_schedules
from tinykernel.model.quantization.machine import KernelMachine
from tinykernel.model.quantization.outputs import Sums, kernel_model
from tinykernel.model.quantization.phases import (
    LARGEST_SCALE,
    STEPS_PER_TURN,
    QuantizedWindows,
    quantize_windows,
)
from tinykernel.model.quantization.pipelines import fold, is_pipeline
from tinykernel.model.quantization.rounding import mean_rounding_errors
from tinykernel.model.quantization.scale import QuantizedInputs, quantize_scaler
from tinykernel.model.stages.components import Components


@dataclass(frozen=True)
class _Blocks:
    """The quantized linear part: ``H G P H B x' = unit * (v - error) + centre``."""

    index: NDArray[np.int64]  # remaining blocks of the machine
    diagonal: NDArray[np.int8]
    kind: str
    halve_first: tuple[bool, ...]
    halve_second: tuple[bool, ...]
    unit: NDArray[np.float64]  # (n_blocks, 1)
    centre: NDArray[np.float64]  # value at inputs ``q = 0``
    error: NDArray[np.float64]  # mean of the rounding errors


def quantize(
    machine: KernelMachine | Any, feature_names: tuple[str, ...] | None = None
) -> IntegerModel:
    """Turn a float machine into the integer model that the firmware computes.

    Deterministic: the same machine gives the same model. Rows that no class weighs are dropped, and
    rows whose component never changes become part of the class offsets.

    Parameters
    ----------
    machine : KernelMachine, or fitted classifier or Pipeline
        As `as_integer_model` takes it. Where all rows of a block of a machine have the same
        `row_scale`, the scale of the block takes no table.
    feature_names : tuple of str, optional
        Names of the inputs; the model remembers them. Classifiers know them by themselves.

    Returns
    -------
    IntegerModel
        Proved not to overflow for any input.

    Examples
    --------
    >>> from tinykernel.model.permutation import Permutation
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
    if not isinstance(machine, KernelMachine):
        model = as_integer_model(machine)
        return model if feature_names is None else replace(model, feature_names=feature_names)
    by_row = machine.weights.reshape(-1, *machine.diagonal.shape)
    weighed = np.any(by_row != 0, axis=0)
    inputs = _quantize_inputs(machine, weighed)
    blocks = _quantize_blocks(machine, inputs, weighed)
    windows = quantize_windows(*_windows(machine, blocks))
    signs, halve = _signs(machine, inputs), (blocks.halve_first, blocks.halve_second)
    mixing = machine.permutation
    stored = Stored(signs, mixing, blocks.diagonal, blocks.kind, halve, windows)
    components, weights, constant = stored.components(by_row[:, blocks.index])
    offset = machine.output_offset + machine.output_scale * constant
    sums = Sums(machine.output_scale, offset)
    return kernel_model(inputs.scaler, components, weights, sums, machine.classes, feature_names)


@dataclass(frozen=True, eq=False)
class Stored:
    """Whole numbers of all rows of all blocks, of which a model keeps those that matter."""

    sign: NDArray[np.int8]
    permutation: Permutation
    diagonal: NDArray[np.int8]  # (n_blocks, d)
    kind: str
    halve: tuple[tuple[bool, ...], tuple[bool, ...]]  # of both transforms.
    windows: QuantizedWindows

    def components(
        self, weights: NDArray[np.int8], small_code: bool = False
    ) -> tuple[Components, NDArray[np.int8], NDArray[np.int64]]:
        """Return what some output weighs and what varies, its weights, and the sum of the rest."""
        # `weights` have the shape (n_outputs, n_blocks, d), those returned (n_outputs, p).
        windows = self.windows
        used = np.any(weights != 0, axis=0) & (windows.constant == 0)
        if not used.any():
            # The firmware has at least one component; this one has no weight.
            used[0, 0] = True
        remaining = used.any(axis=1)
        components = Components(
            sign=self.sign,
            permutation=self.permutation,
            diagonal=self.diagonal[remaining],
            diagonal_kind=self.kind,
            halve_first=self.halve[0],
            halve_second=self.halve[1],
            row_kept=used[remaining],
            scale=np.maximum(windows.scale, 1)[used],
            start=windows.start[used],
            width=np.clip(windows.width, 1, STEPS_PER_TURN - 1)[used],
            phase_shift=windows.phase_shift,
            small_code=small_code,
        )
        constant = np.sum(weights.astype(np.int64) * windows.constant, axis=(1, 2))
        return components, weights[:, used], constant


def snap_windows(machine: KernelMachine) -> KernelMachine:
    """Move start and width of every row to the nearest values that the integer model can hold."""
    # The rounding of the windows to 8 bits is three quarters of all that `quantize` changes.
    # Windows that are snapped **before** or while the weights are trained cost nothing, and
    # quantization leaves them unchanged. Weights and outputs of the machine are not read.
    every = np.ones(machine.diagonal.shape, dtype=bool)
    blocks = _quantize_blocks(machine, _quantize_inputs(machine, every), every)
    windows = quantize_windows(*_windows(machine, blocks))
    turn = 2 * np.pi
    width = windows.width.astype(np.float64) * (turn / STEPS_PER_TURN)
    start = windows.start.astype(np.float64) * (turn / STEPS_PER_TURN)
    start = np.where(windows.falls, width - start, start) - turn * _shifts(machine, blocks)
    return replace(machine, start=np.mod(start, turn), width=width)


def as_integer_model(obj: object) -> IntegerModel:
    """Return the integer model of a machine, a fitted classifier or a Pipeline that ends in one.

    Scaling and column selection before the classifier become part of the model, see
    `pipelines.fold`. A TinykernelError names another object, or a step that cannot be folded.
    """
    if isinstance(obj, KernelMachine):
        return quantize(obj)
    if is_pipeline(obj):
        return fold(obj, as_integer_model(obj.steps[-1][1]))  # type: ignore[attr-defined]
    # By method, because the estimator lies above this package.
    model = obj.quantize() if hasattr(obj, "quantize") else obj
    if isinstance(model, IntegerModel):
        return model
    raise TinykernelError(
        f"a {type(obj).__name__} is no model; give an IntegerModel, a KernelMachine or a fitted "
        "TernaryKernelClassifier"
    )


def _quantize_inputs(machine: KernelMachine, weighed: NDArray[np.bool_]) -> QuantizedInputs:
    """Quantize the scaler, with the step that suits the slopes of signs as G."""
    inputs = quantize_scaler(machine.scaling, machine.raw_dtype, machine.input_bits)
    if machine.diagonal_kind != "sign":
        return inputs
    # The input step is the one free number that can make a slope common to all rows exact.
    stretch = _stretches(np.abs(machine.row_scale) / (2 * np.pi) * inputs.step, weighed)
    if np.ptp(stretch) > 1e-12:
        return inputs
    return quantize_scaler(
        machine.scaling, machine.raw_dtype, machine.input_bits, float(stretch[0])
    )


def _signs(machine: KernelMachine, inputs: QuantizedInputs) -> NDArray[np.int8]:
    """Return B, 0 for constant inputs."""
    constant = inputs.scaler.constant(machine.n_features)
    return np.where(constant, 0, machine.sign).astype(np.int8)


def _quantize_blocks(
    machine: KernelMachine, inputs: QuantizedInputs, weighed: NDArray[np.bool_]
) -> _Blocks:
    """Quantize G block by block and choose the shift schedules."""
    index = np.flatnonzero(weighed.any(axis=1))
    if index.size == 0:
        index = np.zeros(1, dtype=np.int64)
    exact = machine.diagonal[index]
    kind = "sign" if machine.diagonal_kind == "sign" else "int8"
    if kind == "sign":
        diagonal, unit = exact.astype(np.int8), np.ones((index.size, 1))
    else:
        largest = np.abs(exact).max(axis=1, keepdims=True)
        unit = np.where(largest > 0, largest / LARGEST[kind], 1.0)
        slopes = np.abs(machine.row_scale[index]) / (2 * np.pi) * inputs.step * unit
        unit = unit * _stretches(slopes, weighed[index])[:, np.newaxis]
        diagonal = np.rint(exact / unit).astype(np.int8)
    sign = _signs(machine, inputs)
    first, second = choose_schedules(sign, machine.input_bits, machine.permutation, diagonal, kind)
    unit = unit * inputs.step * 2.0 ** (SHIFTS[kind] + sum(first) + sum(second))
    centre = _project(machine, exact, inputs.centre)
    error = mean_rounding_errors(first, second, machine.permutation, diagonal, kind)
    return _Blocks(index, diagonal, kind, first, second, unit, centre, error)


def _stretches(slopes: NDArray[np.float64], weighed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return by how much to stretch each block so that one 8-bit scale serves it exactly."""
    # That is possible where all rows of a block have the same slope; elsewhere the factor is 1. It
    # is at most 1 + 1/32, which costs the stretched numbers less than it saves. Slopes (n_blocks,
    # d) are turns per unit, up to a common power of two.
    largest = np.where(weighed, slopes, 0).max(axis=1)
    smallest = np.where(weighed, slopes, np.inf).min(axis=1)
    if largest.max() == 0:
        return np.ones(largest.size)
    exponent = np.ceil(np.log2(largest.max() / (LARGEST_SCALE + 0.5)))
    scale = np.maximum(largest / 2.0**exponent, 1e-300)
    whole = np.ceil(scale - 1e-9)
    alike = (largest - smallest <= 1e-9 * largest) & (whole <= LARGEST_SCALE)
    return np.where(alike & (scale >= 32), whole / scale, 1.0)


def _project(
    machine: KernelMachine, diagonal: NDArray[np.float64], scaled: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute ``H G P H B x'`` of one input in float64; shape (n_blocks, d)."""
    mixed = np.zeros(machine.dimension)
    mixed[: machine.n_features] = machine.sign * scaled
    gather = machine.permutation.indices(machine.dimension)
    return fwht(diagonal * fwht(mixed)[gather])


def _windows(
    machine: KernelMachine, blocks: _Blocks
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return start, width and slope of the remaining blocks, in turns; see `_shifts`."""
    rows = blocks.index
    return (
        machine.start[rows] / (2 * np.pi) + _shifts(machine, blocks),
        machine.width[rows] / (2 * np.pi),
        machine.row_scale[rows] / (2 * np.pi) * blocks.unit,
    )


def _shifts(machine: KernelMachine, blocks: _Blocks) -> NDArray[np.float64]:
    """Return by how many turns starts move to take up inputs 0 and the mean of rounding errors."""
    turns = machine.row_scale[blocks.index] / (2 * np.pi)
    return turns * blocks.centre - turns * blocks.unit * blocks.error
