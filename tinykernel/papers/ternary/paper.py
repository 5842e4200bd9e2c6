"""The method of Lei & Lan 2021: random binary features, ternary weights by coordinate descent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tinykernel.model import snap_windows
from tinykernel.model.quantization.machine import KernelMachine
from tinykernel.papers.features import RMBCSIK
from tinykernel.papers.ternary.bits import pack_features
from tinykernel.papers.ternary.coordinate import fit_outputs
from tinykernel.papers.ternary.options import PaperOptions, PaperRows
from tinykernel.papers.ternary.selection import Choice, choose, draw_features

_ROWS_TO_COMPARE = 2000
_SHARE_THAT_MAY_CHANGE = 0.01


def train_paper(problem: PaperRows, options: PaperOptions) -> tuple[KernelMachine, Choice, int]:
    """Train by Algorithm 1; return the machine, its hyper-parameters, and the number of sweeps."""
    choice = choose(problem, options)
    features = draw_features(problem.X.shape[1], choice.sigma, options, options.seed)
    # Weights learned on windows that the firmware can hold lose little by quantization.
    machine = snap_windows(_machine_without_weights(problem, options, features))
    features.start_, features.width_ = machine.start, machine.width
    packed = pack_features(
        lambda rows: features.transform(problem.scaling.apply(rows)),
        problem.X,
        options.n_components,
    )
    outputs = fit_outputs(
        packed,
        problem.codes,
        problem.sample_weight,
        problem.n_classes,
        replace(options, regularization=choice.regularization),
        seed=options.seed,
        n_threads=options.n_threads,
        stage="learning the weights",
    )
    weights = np.zeros((outputs.weights.shape[0], machine.diagonal.size), dtype=np.int8)
    weights[:, : options.n_components] = outputs.weights
    machine = replace(
        machine, weights=weights, output_scale=outputs.alpha, output_offset=outputs.beta
    )
    bits = options.input_bits
    if bits == "auto":
        bits = _input_bits(machine, problem.X)
    machine = replace(machine, input_bits=int(bits))
    return machine, choice, int(outputs.n_sweeps.max())


def _machine_without_weights(
    problem: PaperRows, options: PaperOptions, features: RMBCSIK
) -> KernelMachine:
    """Return the machine of the drawn features, with zero weights."""
    n_outputs = 1 if problem.n_classes == 2 else problem.n_classes
    return KernelMachine(
        classes=problem.classes,
        raw_dtype=problem.raw_dtype,
        input_offset=problem.scaling.offset,
        input_scale=problem.scaling.scale,
        input_low=problem.scaling.low,
        input_high=problem.scaling.high,
        sign=features.sign_,
        permutation=features.permutation_,
        diagonal=features.diagonal_,
        diagonal_kind=options.diagonal,
        row_scale=features.row_scale_,
        start=features.start_,
        width=features.width_,
        weights=np.zeros((n_outputs, features.diagonal_.size), dtype=np.int8),
        output_scale=np.ones(n_outputs),
        output_offset=np.zeros(n_outputs),
        input_bits=8 if options.input_bits == "auto" else int(options.input_bits),
    )


def _input_bits(machine: KernelMachine, X: NDArray[np.generic]) -> int:
    """Return 16 where inputs rounded to 8 bits change more than 1 % of the labels, else 8."""
    scaled = machine.scale_inputs(X[:_ROWS_TO_COMPARE]).astype(np.float64)
    level = (machine.input_high - machine.input_low) / 256
    steps = np.minimum(np.floor((scaled - machine.input_low) / level), 255)
    rounded = machine.input_low + (steps + 0.5) * level
    rounded[:, machine.input_scale == 0] = 0.0
    ones = np.ones_like(machine.input_scale)
    scaled_machine = replace(machine, input_offset=0 * ones, input_scale=ones)
    changed = scaled_machine.label_indices(rounded) != scaled_machine.label_indices(scaled)
    return 16 if changed.mean() > _SHARE_THAT_MAY_CHANGE else 8
