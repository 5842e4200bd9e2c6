"""The part of the model that is computed once per data set: scaler and ``P H B x``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.hadamard import fwht, fwht_halving, padded_dimension
from tinykernel.model.permutation import Permutation
from tinykernel.model.scaling import InputScaling, choose_scope
from tinykernel.training.problem import FirmwareArithmetic

__all__ = [
    "SharedTransform",
    "draw_permutation",
    "draw_transform",
    "fit_joint_scaling",
    "label_codes",
    "neighbour_distance",
]

_ROWS_AT_ONCE = 4096
_NEIGHBOUR_ROWS = 500
_NEIGHBOUR = 50


@dataclass(frozen=True, eq=False)
class SharedTransform:
    """Scaler, B and P: everything before the blocks.

    Parameters
    ----------
    scaling : InputScaling
    sign : ndarray of int8, shape (n_features,)
        Diagonal of B.
    permutation : Permutation
    input_bits : {8, 16}
        The inputs are rounded to this number of levels, as in the firmware.
    halve : tuple of bool, optional
        Schedule of the first transform in the firmware. Without it the transform is exact.
    levels : callable, optional
        Quantises raw rows as the firmware does; goes with `halve`.
    """

    scaling: InputScaling
    sign: NDArray[np.int8]
    permutation: Permutation
    input_bits: int
    halve: tuple[bool, ...] | None = None
    levels: Callable[[NDArray[Any]], NDArray[Any]] | None = None

    @property
    def dimension(self) -> int:
        """Length d of the transforms."""
        return padded_dimension(self.sign.shape[0])

    @property
    def unit(self) -> float:
        """What one step of the integers of the firmware is worth in `mixed`."""
        step = 2.0 ** (1 - self.input_bits)
        return float(step * 2.0 ** sum(self.halve or ()) / np.sqrt(self.dimension))

    @property
    def live_sign(self) -> NDArray[np.int8]:
        """Diagonal of B with 0 for constant features, which the firmware leaves out."""
        return np.where(self.scaling.scale > 0, self.sign, 0).astype(np.int8)

    def rounded(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Scale raw rows and round them to levels as fine as those of the quantised inputs.

        Parameters
        ----------
        X : ndarray, shape (n, n_features)

        Returns
        -------
        ndarray of float32, shape (n, n_features)
        """
        scaling = self.scaling
        x = scaling.apply(X)
        step = np.full_like(scaling.low, 2.0 ** (1 - self.input_bits))
        low = scaling.low.astype(np.float32)
        x -= low
        x /= step.astype(np.float32)
        np.rint(x, out=x)
        x *= step.astype(np.float32)
        x += low
        x *= scaling.scale > 0
        return x

    def mixed(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Compute ``P H B x / sqrt(d)``, a few thousand rows at a time.

        With a schedule these are whole multiples of `unit`, exactly as in the firmware.

        Parameters
        ----------
        X : ndarray, shape (n, n_features)

        Returns
        -------
        ndarray of float32, shape (n, d)
        """
        gather = self.permutation.indices(self.dimension)
        out = np.empty((X.shape[0], self.dimension), dtype=np.float32)
        for first in range(0, X.shape[0], _ROWS_AT_ONCE):
            rows = X[first : first + _ROWS_AT_ONCE]
            out[first : first + _ROWS_AT_ONCE] = self._transformed(rows)[:, gather]
        return out

    def _transformed(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Compute ``H B x / sqrt(d)``."""
        d, n = self.dimension, self.sign.shape[0]
        if self.halve is None or self.levels is None:
            floats = np.zeros((X.shape[0], d), dtype=np.float32)
            np.multiply(self.rounded(X), self.sign * np.float32(d**-0.5), out=floats[:, :n])
            return fwht(floats)
        integers = np.zeros((X.shape[0], d), dtype=np.int16)
        integers[:, :n] = self.levels(X)
        # The negative of -32768 would not fit into 16 bits.
        np.maximum(integers, -32767, out=integers)
        integers[:, :n] *= self.live_sign
        return fwht_halving(integers, self.halve) * np.float32(self.unit)


def fit_joint_scaling(X: NDArray[Any], input_bits: int, scope: str = "auto") -> InputScaling:
    """Scale the range of the training rows to [-1, 1).

    The upper end is at most ``1 - 2 / 2**bits``, so that the quantised input q stands for
    ``q / 2**(bits - 1)`` with no offset, and starts need no correction.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
    input_bits : {8, 16}
    scope : {"feature", "global", "auto"}
        A scale for each feature, or one for all of them, which costs no table; "auto" as in
        `tinykernel.training.problem.choose_scope`.

    Returns
    -------
    InputScaling
    """
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    varies = high > low
    spread = high - low
    scope = choose_scope(X, scope)
    levels = 2**input_bits
    if scope == "global" and varies.any():
        # One scale for all is one for constant features too: then they cost no table.
        low = np.full_like(low, low[varies].min())
        spread = np.full_like(low, high[varies].max() - low[0])
        varies = np.ones_like(varies)
    scale = np.where(varies, 2.0 * (levels - 1) / levels / np.where(varies, spread, 1.0), 0.0)
    if scope == "global" and X.dtype.kind in "iu" and 0 < spread[0] < levels:
        # Whole levels a unit: every raw value is then exactly one of the levels.
        scale[:] = 2.0 * ((levels - 1) // spread[0]) / levels
    offset = low + 1.0 / np.where(varies, scale, 1.0)
    return InputScaling(
        offset, scale, np.full(low.size, -1.0), np.where(varies, scale * spread, 2.0) - 1.0
    )


def draw_transform(
    scaling: InputScaling, input_bits: int, rng: np.random.Generator,
    raw_dtype: str = "float32", firmware: FirmwareArithmetic | None = None,
) -> SharedTransform:  # fmt: skip
    """Draw the signs B and the permutation P, an orbit.

    Parameters
    ----------
    scaling : InputScaling
    input_bits : {8, 16}
    rng : numpy.random.Generator
    raw_dtype : str
        Of the rows.
    firmware : FirmwareArithmetic, optional
        Whose inputs and first transform to use.

    Returns
    -------
    SharedTransform
    """
    n = scaling.offset.shape[0]
    d = padded_dimension(n)
    sign = rng.choice(np.array([-1, 1], dtype=np.int8), n)
    transform = SharedTransform(scaling, sign, draw_permutation(d, rng), input_bits)
    if firmware is None:
        return transform
    # The first transform comes before G, so that any G will do here.
    anything = np.ones((1, d), dtype=np.int8)
    halve, _ = firmware.schedules(
        transform.live_sign, input_bits, transform.permutation, anything, "int8"
    )
    levels = firmware.input_levels(scaling, raw_dtype, input_bits)
    return replace(transform, halve=halve, levels=levels)


def draw_permutation(d: int, rng: np.random.Generator) -> Permutation:
    """Draw the permutation P, an orbit of all d positions, which takes two numbers to store."""
    multiplier = 4 * int(rng.integers(1, d // 4)) + 1
    increment = 2 * int(rng.integers(0, d // 2)) + 1
    return Permutation("orbit", multiplier=multiplier, increment=increment)


def label_codes(targets: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the most probable class of targets (n, n_outputs), as for `JointLearner`."""
    if targets.shape[1] == 1:
        return (targets[:, 0] > 0.5).astype(np.int64)
    return np.asarray(targets.argmax(axis=1), dtype=np.int64)


def neighbour_distance(mixed: NDArray[np.float32], rng: np.random.Generator) -> float:
    """Estimate the typical distance of near rows, from which sigma follows.

    Parameters
    ----------
    mixed : ndarray of float32, shape (n, d)
        ``P H B x / sqrt(d)``: the same distances as between the scaled inputs.
    rng : numpy.random.Generator

    Returns
    -------
    float
        Mean distance to the tenth part of the nearest of 500 rows, the 50th; positive.
    """
    n = mixed.shape[0]
    chosen = np.sort(rng.choice(n, min(n, _NEIGHBOUR_ROWS), replace=False))
    rows = mixed[chosen]
    rank = max(1, min(_NEIGHBOUR, rows.shape[0] * _NEIGHBOUR // _NEIGHBOUR_ROWS))
    total = 0.0
    for row in rows:
        # No matrix product: its rounding may depend on the number of threads.
        squares = np.square(rows - row).sum(axis=1)
        total += float(np.sqrt(np.sort(squares)[min(rank, squares.size - 1)]))
    return total / rows.shape[0] or 1.0
