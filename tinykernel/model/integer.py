"""IntegerModel: the classifier in integers only, exactly what the firmware computes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import TinykernelError
from tinykernel.hadamard import padded_dimension
from tinykernel.model import reference
from tinykernel.model.checks import (
    check_blocks,
    check_components,
    check_inputs,
    check_outputs,
    check_scalars,
)
from tinykernel.model.permutation import Permutation
from tinykernel.model.ranges import Range, prove
from tinykernel.model.scaler import RAW_DTYPES, InputScaler

__all__ = ["RAW_DTYPES", "InputScaler", "IntegerModel"]


@dataclass(frozen=True, eq=False)
class IntegerModel:
    """A binary-feature kernel classifier in integer arithmetic: the firmware, as data.

    This docstring is the complete specification. Python and the generated C both follow it, so
    all their scores are equal. Integers are two's complement; ``>>`` of a signed value is
    arithmetic, that is division by a power of two rounded **down** (floor), the one rounding rule
    of the model. n is `n_features`, d is `dimension` (n padded to a power of two, at least 32), m
    is `n_blocks`, p is `n_components`.

    **1. Input.** `scaler` turns raw values into quantised ones, ``q_i`` int8 or int16, see
    `InputScaler`. The second entry takes ``q_i`` directly; any value of the type is allowed.

    **2. First transform.** int16 vector u of d values::

        u_i = sign_i * max(q_i, -32767)      i < n     (the maximum matters for int16 q only)
        u_i = 0                              n <= i < d

    ``sign_i`` is 0 exactly for the constant features (scaler multiplier 0): their q is ignored,
    through the quantised entry too. Then the fast Walsh-Hadamard transform in place: for stage
    ``k = 0, 1, ..., log2(d) - 1``, for every j whose bit k is 0, with ``a = u_j`` and
    ``b = u_(j + 2**k)`` read before either is written::

        u_j, u_(j + 2**k) = a + b, a - b                      if not halve_first[k]
        u_j, u_(j + 2**k) = (a + b) >> 1, (a - b) >> 1        if halve_first[k]

    The sums under the shift need 17 bits; the results are proved to fit int16 (`ranges`).

    **3. Blocks.** For each block b = 0..m-1, an int16 vector v of d values, where P is
    `permutation` and ``P(j) = permutation.indices(d)[j]``::

        v_j = (diagonal_bj * u_P(j)) >> 7        diagonal_kind 'int8', an int32 product
        v_j = (diagonal_bj * u_P(j)) >> 3        diagonal_kind 'int4', an int32 product
        v_j = diagonal_bj * u_P(j)               diagonal_kind 'sign', diagonal +1 or -1

    and the same transform with the schedule `halve_second`, the same for every block.

    **4. Features.** The kept rows (b, j), those with ``row_kept[b, j]``, in row-major order (all of
    block 0, then block 1, ...) are the components r = 0..p-1. With one turn = 2**32, in uint32
    with wrap-around, which is the modulo::

        phase_r = ((uint32)(scale_r * v_j) << phase_shift) + (start_r << 24)
        z_r     = +1 if phase_r < (width_r << 24) else -1

    ``scale_r * v_j`` is an int32 product (below 2**23 in magnitude); bits that leave the top of
    the shift are lost on purpose. ``scale_r`` and ``width_r`` are 1..255, ``start_r`` is 0..255.

    **5. Scores.** For each output o, in int32, proved not to overflow::

        sum_o   = sum over r of weights_or * z_r
        total_o = multiplier_o * sum_o + offset_o

    With more than two classes there is one output a class and ``scores = total``. With two classes
    there is one output and ``scores = (-total_0, total_0)``. The label is the **first** index of
    the largest score.

    How the firmware stores these numbers (bit planes, one scale a block where all are equal, ...)
    is chosen by the code generator and never changes a value.

    Parameters
    ----------
    n_features : int
        n, 1..65536.
    scaler : InputScaler
    sign : ndarray of int8, shape (n_features,)
        Diagonal of B: +-1, and 0 exactly for the constant features.
    permutation : Permutation
        P, shared by all blocks.
    diagonal : ndarray of int8, shape (n_blocks, d)
        G in [-127, 127] ('int8'), [-7, 7] ('int4') or +-1 ('sign').
    diagonal_kind : {"int8", "int4", "sign"}
    halve_first, halve_second : tuple of bool, length log2(d)
        Shift schedules of the two transforms.
    row_kept : ndarray of bool, shape (n_blocks, d)
        Rows that are components; at least one.
    scale, start, width : ndarray of uint8, shape (p,)
        Phase windows in component order; start and width in 1/256 turn.
    phase_shift : int
        0..31, shared by all components.
    weights : ndarray of int8, shape (n_outputs, p)
        W: -1, 0, +1.
    multiplier, offset : ndarray of int32, shape (n_outputs,)
    classes : tuple of str, int, float or bool
        At least two different labels; ``classes[label]`` is the prediction.
    decision_scale : float
        ``total * decision_scale`` approximates the decision of the float machine. Information
        only: it takes no part in scores and labels.
    feature_names : tuple of str, optional
        What the inputs are, in their order, without spaces around them. Information only: models
        that differ in nothing else are equal.

    Raises
    ------
    TinykernelError
        If a field has the wrong type, shape or range, or a stage could overflow.

    Notes
    -----
    The features are RM-BCSIK of Lei & Lan, AAAI 2021, formulas (3)-(5): ``sign(cos(V x + b) + t)``
    is +1 exactly where the phase lies in a window, so that no cosine is computed. Two models are
    equal when their contents are.
    """

    n_features: int
    scaler: InputScaler
    sign: NDArray[np.int8]
    permutation: Permutation
    diagonal: NDArray[np.int8]
    diagonal_kind: str
    halve_first: tuple[bool, ...]
    halve_second: tuple[bool, ...]
    row_kept: NDArray[np.bool_]
    scale: NDArray[np.uint8]
    start: NDArray[np.uint8]
    width: NDArray[np.uint8]
    phase_shift: int
    weights: NDArray[np.int8]
    multiplier: NDArray[np.int32]
    offset: NDArray[np.int32]
    classes: tuple[Any, ...]
    decision_scale: float = 1.0
    feature_names: tuple[str, ...] | None = None
    _ranges: tuple[Range, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        """Check every field, make the arrays read-only, and prove that nothing overflows."""
        for check in (check_scalars, check_inputs, check_blocks, check_components, check_outputs):
            for name, value in check(self).items():
                object.__setattr__(self, name, value)
        object.__setattr__(self, "_ranges", prove(self))

    # -- sizes --------------------------------------------------------------------------------

    @property
    def dimension(self) -> int:
        """Length d of the transforms."""
        return padded_dimension(self.n_features)

    @property
    def log2_dimension(self) -> int:
        """Number of stages of a transform."""
        return self.dimension.bit_length() - 1

    @property
    def n_blocks(self) -> int:
        """Number of blocks m."""
        return int(self.diagonal.shape[0])

    @property
    def n_components(self) -> int:
        """Number of kept rows p, the length of z."""
        return int(np.count_nonzero(self.row_kept))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_outputs(self) -> int:
        """Number of outputs: 1 for two classes, else one a class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def raw_dtype(self) -> str:
        """Type of the raw inputs, e.g. ``"float32"``."""
        return self.scaler.raw_dtype

    @property
    def input_dtype(self) -> np.dtype[Any]:
        """Type of the quantised inputs: int8 or int16."""
        return self.scaler.input_dtype

    # -- identity -----------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """Return everything that is not an array and counts in a comparison, as JSON types."""
        return {
            "n_features": int(self.n_features),
            "raw_dtype": self.raw_dtype,
            "bits": int(self.scaler.bits),
            "permutation": self.permutation.kind,
            "permutation_multiplier": int(self.permutation.multiplier),
            "permutation_increment": int(self.permutation.increment),
            "diagonal_kind": self.diagonal_kind,
            "halve_first": list(self.halve_first),
            "halve_second": list(self.halve_second),
            "phase_shift": int(self.phase_shift),
            "classes": [[type(label).__name__, label] for label in self.classes],
            "decision_scale": float(self.decision_scale).hex(),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return every array by name, the scaler's with the prefix ``scaler_``."""
        own = ("sign", "diagonal", "row_kept", "scale", "start", "width", "weights", "multiplier",
               "offset")  # fmt: skip
        named = {name: getattr(self, name) for name in own}
        if self.permutation.table is not None:
            named["permutation_table"] = self.permutation.table
        return named | {f"scaler_{name}": array for name, array in self.scaler.arrays.items()}

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256(json.dumps(self.header(), sort_keys=True).encode())
        for name, array in sorted(self.arrays().items()):
            little_endian = array.astype(array.dtype.newbyteorder("<"))
            digest.update(f"{name} {array.dtype.name} {array.shape}".encode())
            digest.update(little_endian.tobytes())
        return digest.hexdigest()

    def ranges(self) -> tuple[Range, ...]:
        """Return the proved bound of every stage, in the order of the computation.

        Returns
        -------
        tuple of Range
            See `tinykernel.model.ranges.prove`. Every range is inside its limits: a model for
            which that cannot be proved is refused when it is made.
        """
        return self._ranges

    def fingerprint(self) -> str:
        """Return the SHA-256 of all but `feature_names`, 64 hexadecimal digits."""
        return self._fingerprint

    def __eq__(self, other: object) -> bool:
        """Compare contents."""
        if not isinstance(other, IntegerModel):
            return NotImplemented
        return self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        """Hash the content."""
        return hash(self.fingerprint())

    # -- execution ----------------------------------------------------------------------------

    def quantize_inputs(self, X: ArrayLike) -> NDArray[Any]:
        """Quantise raw inputs (step 1).

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
            Raw values; see `InputScaler.as_raw` for what is allowed.

        Returns
        -------
        ndarray of int8 or int16, shape (n_rows, n_features)

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit the raw type.
        """
        raw = self.scaler.as_raw(X)
        self._check_rows(raw)
        return self.scaler.quantize(raw)

    def _check_rows(self, rows: NDArray[Any]) -> None:
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise TinykernelError(
                f"inputs: shape {rows.shape}, but the model takes rows of {self.n_features} "
                f"features"
            )

    def _quantised(self, Q: ArrayLike) -> NDArray[Any]:
        """Return quantised inputs in `input_dtype`, refusing what it cannot hold."""
        given = np.asarray(Q)
        if given.dtype.kind not in "bi" and given.dtype.kind != "u":
            raise TinykernelError(f"quantised inputs: {given.dtype} instead of {self.input_dtype}")
        self._check_rows(given)
        quantised = given.astype(self.input_dtype)
        if not np.array_equal(quantised, given):
            raise TinykernelError(f"quantised inputs: a value does not fit {self.input_dtype}")
        return quantised

    def features_quantized(self, Q: ArrayLike) -> NDArray[np.bool_]:
        """Compute the components from quantised inputs (steps 2 to 4).

        Parameters
        ----------
        Q : array-like of integers, shape (n_rows, n_features)
            Values of `input_dtype`.

        Returns
        -------
        ndarray of bool, shape (n_rows, n_components)
            True where z is +1.

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit `input_dtype`.
        """
        return reference.features(self, self._quantised(Q))

    def scores_quantized(self, Q: ArrayLike) -> NDArray[np.int32]:
        """Compute the scores from quantised inputs (steps 2 to 5).

        Parameters
        ----------
        Q : array-like of integers, shape (n_rows, n_features)
            Values of `input_dtype`.

        Returns
        -------
        ndarray of int32, shape (n_rows, n_classes)

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit `input_dtype`.
        """
        totals = reference.totals(self, self._quantised(Q))
        return np.hstack([-totals, totals]) if self.n_outputs == 1 else totals

    def scores(self, X: ArrayLike) -> NDArray[np.int32]:
        """Compute the scores from raw inputs: what ``<name>_scores`` of the C code gives.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)

        Returns
        -------
        ndarray of int32, shape (n_rows, n_classes)

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit the raw type.
        """
        return self.scores_quantized(self.quantize_inputs(X))

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the outputs in the units of the float machine.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)

        Returns
        -------
        ndarray of float64, shape (n_rows, n_outputs)
        """
        outputs = self.scores(X)[:, -self.n_outputs :]
        return outputs.astype(np.float64) * self.decision_scale

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict class labels from raw inputs.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)

        Returns
        -------
        ndarray, shape (n_rows,)
            Entries of `classes`.
        """
        labels: NDArray[Any] = np.array(self.classes)[np.argmax(self.scores(X), axis=1)]
        return labels
