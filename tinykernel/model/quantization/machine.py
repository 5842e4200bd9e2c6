"""The float result of `PaperClassifier`: what the quantizer reads."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.hadamard import fwht, padded_dimension
from tinykernel.model.arrays import chosen_labels
from tinykernel.model.permutation import Permutation
from tinykernel.model.quantization.scaling import InputScaling
from tinykernel.model.record import Matrix, Record, limits
from tinykernel.model.stages.scale import RAW_DTYPES

_TURN = 2.0 * np.pi
_ROWS_AT_ONCE = 512
_EACH_INPUT, _EACH_ROW = limits(None, None, "inputs"), limits(None, None, "blocks", "d")
_EACH_OUTPUT = limits(None, None, "outputs")


@dataclass(frozen=True, eq=False)
class KernelMachine(Record):
    """A trained kernel machine with binary components and ternary weights, in floats.

    With ``x' = clip((x - input_offset) * input_scale, input_low, input_high)`` padded by zeros to
    d values (Lei & Lan 2021, (3)-(5), written with phase windows instead of a cosine)::

        theta = row_scale * (H G P H B x')          H: unnormalised Walsh-Hadamard matrix
        z     = +1 if (theta + start) mod 2 pi < width else -1
        f     = output_scale * (weights @ z) + output_offset

    ``sign(cos(theta + b) + t)`` is the same component: with ``h = arccos(-t)`` it is +1 exactly
    where the phase ``theta + b + h`` lies in ``[0, 2 h)``, so ``start = b + h`` and ``width = 2
    h``. There are c classes, ascending, and ``n_outputs`` is 1 for two, else c.
    """

    OWNER = "machine"

    classes: tuple[object, ...]
    raw_dtype: str  # of the sensor values that the firmware takes
    input_offset: NDArray[np.float64] = field(metadata=_EACH_INPUT)
    input_scale: NDArray[np.float64] = field(metadata=_EACH_INPUT)  # 0 for a constant input
    input_low: NDArray[np.float64] = field(metadata=_EACH_INPUT)
    input_high: NDArray[np.float64] = field(metadata=_EACH_INPUT)
    sign: NDArray[np.int8] = field(metadata=limits(-1, 1, "inputs"))  # diagonal of B, +-1
    permutation: Permutation  # P, shared by all blocks
    diagonal: Matrix[np.float64] = field(metadata=_EACH_ROW)  # of G
    diagonal_kind: str  # "gaussian": any real numbers; "sign": only +-1
    # radians per unit, ``S / (sigma sqrt(d))`` of (3), S with ``1 / ||G||``
    row_scale: Matrix[np.float64] = field(metadata=_EACH_ROW)
    # radians, like width; <= 0 is never on, >= 2 pi always
    start: Matrix[np.float64] = field(metadata=_EACH_ROW)
    width: Matrix[np.float64] = field(metadata=_EACH_ROW)
    weights: Matrix[np.int8] = field(metadata=limits(-1, 1, "outputs", None))
    output_scale: NDArray[np.float64] = field(metadata=_EACH_OUTPUT)  # alpha of (6)
    output_offset: NDArray[np.float64] = field(metadata=_EACH_OUTPUT)
    input_bits: int = 8  # of the quantized inputs, 8 or 16

    def check(self) -> None:
        """Refuse fields that do not fit together."""
        n_outputs = 1 if len(self.classes) == 2 else len(self.classes)
        self.require_shape("diagonal", (self.n_blocks, self.dimension))
        self.require_shape("weights", (n_outputs, self.diagonal.size))
        wrong = {
            "raw_dtype": self.raw_dtype not in RAW_DTYPES,
            "input_bits": self.input_bits not in (8, 16),
            "input_scale": bool(np.any(self.input_scale < 0)),
            "sign": bool(np.any(self.sign == 0)),
            "diagonal_kind": self.diagonal_kind not in ("gaussian", "sign"),
            "classes": len(self.classes) < 2,
        }
        for name in filter(wrong.get, wrong):
            raise self.refuse(f"{name} holds what it must not")

    @property
    def n_features(self) -> int:
        """Number of raw inputs."""
        return int(self.input_offset.shape[0])

    @property
    def dimension(self) -> int:
        """Length d of the transforms: `n_features` padded to a power of two."""
        return padded_dimension(self.n_features)

    @property
    def n_blocks(self) -> int:
        """Number of Fastfood blocks."""
        return int(self.diagonal.shape[0])

    @property
    def scaling(self) -> InputScaling:
        """The scaler."""
        return InputScaling(self.input_offset, self.input_scale, self.input_low, self.input_high)

    def scale_inputs(self, X: ArrayLike) -> NDArray[np.float32]:
        """Scale and clip raw inputs (n_rows, n_features), as float32."""
        return self.scaling.apply(np.asarray(X))

    def features(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Compute the binary components (n_rows, n_blocks * d) of raw inputs; True is +1."""
        scaled = self.scale_inputs(X)
        mixed = np.zeros((scaled.shape[0], self.dimension), dtype=np.float32)
        mixed[:, : self.n_features] = scaled * self.sign
        fwht(mixed)
        mixed = mixed[:, self.permutation.indices(self.dimension)]  # P H B x', for all blocks
        bits = np.empty((mixed.shape[0], self.n_blocks, self.dimension), dtype=bool)
        for block in range(self.n_blocks):
            projected = mixed * self.diagonal[block].astype(np.float32)
            fwht(projected)
            phase = projected * (self.row_scale[block] / _TURN) + self.start[block] / _TURN
            bits[:, block] = phase - np.floor(phase) < self.width[block] / _TURN
        return bits.reshape(mixed.shape[0], -1)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the decision values (n_rows, n_outputs), some rows at a time."""
        X = np.asarray(X)
        weights = self.weights.astype(np.float32).T
        decisions = np.empty((X.shape[0], self.weights.shape[0]))
        for first in range(0, X.shape[0], _ROWS_AT_ONCE):
            bits = self.features(X[first : first + _ROWS_AT_ONCE])
            sums = (2.0 * bits.astype(np.float32) - 1.0) @ weights
            decisions[first : first + _ROWS_AT_ONCE] = sums
        return np.asarray(decisions * self.output_scale + self.output_offset)

    def label_indices(self, X: ArrayLike) -> NDArray[np.int64]:
        """Compute the positions of the predicted labels in `classes`, see `chosen_labels`."""
        return chosen_labels(self.decision_function(X))
