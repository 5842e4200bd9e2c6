"""IntegerModel: a classifier or regressor in integers only, exactly what the firmware computes."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import TinykernelError
from tinykernel.hadamard import padded_dimension
from tinykernel.model import reference
from tinykernel.model.decision import Decision
from tinykernel.model.integer import identity
from tinykernel.model.integer.answers import Answers
from tinykernel.model.integer.checking import CHECKS
from tinykernel.model.local import LocalStage
from tinykernel.model.permutation import Permutation
from tinykernel.model.proof import Range, prove
from tinykernel.model.prototypes import distances
from tinykernel.model.scaler import InputScaler
from tinykernel.model.values import FixedPoint

# Rows that are computed at a time, so that predictions of large sets need little memory.
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False, repr=False)
class IntegerModel(Answers):
    """A kernel machine of binary components in integer arithmetic: the firmware, as data.

    This docstring is the complete specification. Python and the generated C both follow it, so
    all their scores are equal. Integers are two's complement; ``>>`` of a signed value is
    arithmetic, that is division by a power of two rounded **down** (floor), the one rounding rule
    of the model. n is `n_features`, d is `dimension` (n padded to a power of two, at least 32), m
    is `n_blocks`, p is `n_components`.

    **0. Local stage.** Where there is one, raw values are a signal or an image, and `local` turns
    them into counts; these are what is called raw values from here on. See `LocalStage`.

    **1. Input.** `scaler` turns raw values into quantized ones, ``q_i`` int8 or int16, see
    `InputScaler`. The second entry takes ``q_i`` directly; any value of the type is allowed.

    **2. First transform.** int16 vector u of d values::

        u_i = sign_i * max(q_i, -32767)      i < n     (the maximum matters for int16 q only)
        u_i = 0                              n <= i < d

    ``sign_i`` is 0 exactly for the constant inputs (scaler multiplier 0): their q is ignored,
    through the quantized entry too. Then the fast Walsh-Hadamard transform in place: for stage
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

    **4. Components.** The kept rows (b, j), those with ``row_kept[b, j]``, in row-major order (all
    of block 0, then block 1, ...) are the components r = 0..p-1. With one turn = 2**32, in uint32
    with wrap-around, which is the modulo::

        phase_r = ((uint32)(scale_r * v_j) << phase_shift) + (start_r << 24)
        z_r     = +1 if phase_r < (width_r << 24) else -1

    ``scale_r * v_j`` is an int32 product (below 2**23 in magnitude); bits that leave the top of
    the shift are lost on purpose. ``scale_r`` and ``width_r`` are 1..255, ``start_r`` is 0..255.

    **5. Scores.** For each output o, in int32, proved not to overflow::

        sum_o   = sum over r of weights_or * z_r
        total_o = multiplier_o * sum_o + offset_o

    With a linear part, which sees the quantized values of step 1::

        dot_o   = sum over i of linear_oi * q_i
        total_o = multiplier_o * sum_o + linear_multiplier_o * dot_o + offset_o

    A model with a linear part may have no components: then p and m are 0 and steps 2 to 4 are void.
    With more than two classes there is one output a class and ``scores = total``. With two classes
    there is one output and ``scores = (-total_0, total_0)``. The label is the **first** index of
    the largest score.

    A model of one class has prototypes, and neither components nor a linear part. Its two classes
    are what is known and what is not, and the distance is that of `Decision`::

        total_0 = distance + offset_0

    **6. Values.** Of a regressor `values` says what the scores mean, and there are no classes:
    there is one output a value, ``scores = total`` however many there are, and a value is
    ``score / 2**values.shift``.

    How the firmware stores these numbers (bit planes, one scale a block where all are equal, ...)
    is chosen by the code generator and never changes a value.

    Parameters
    ----------
    n_features : int
        n, 1..65536.
    scaler : InputScaler
    sign : ndarray of int8, shape (n_features,)
        Diagonal of B: +-1, and 0 exactly for the constant inputs.
    permutation : Permutation
        P, shared by all blocks.
    diagonal : ndarray of int8, shape (n_blocks, d), at most 2**20 numbers
        G in [-127, 127] ('int8'), [-7, 7] ('int4') or +-1 ('sign').
    diagonal_kind : {"int8", "int4", "sign"}
    halve_first, halve_second : tuple of bool, length log2(d)
        Shift schedules of the two transforms.
    row_kept : ndarray of bool, shape (n_blocks, d)
        Rows that are components; at least one, unless n_blocks is 0.
    scale, start, width : ndarray of uint8, shape (p,)
        Phase windows in component order; start and width in 1/256 turn.
    phase_shift : int
        0..31, shared by all components.
    weights : ndarray of int8, shape (n_outputs, p)
        W: -1, 0, +1.
    multiplier, offset : ndarray of int32, shape (n_outputs,)
    classes : tuple of str, int, float or bool
        At least two different labels; ``classes[label]`` is the prediction. None for a regressor.
    decision_scale : float
        ``total * decision_scale`` approximates the decision of the float machine. Information
        only: it takes no part in scores and labels.
    linear : ndarray of int8, shape (n_outputs, n_features), optional
        Weights of the linear part, -127..127; 0 for constant inputs.
    linear_multiplier : ndarray of int32, shape (n_outputs,), optional
        Is there where `linear` is.
    local : LocalStage, optional
        What turns signals or images into the counts that are the inputs of the machine.
    values : FixedPoint, optional
        What the scores of a regressor mean.
    decision : Decision, optional
        When the label is an answer, and how sure it is; see `Decision`. Scores and labels stay.
    small_code : bool
        Whether the firmware is to have little code rather than few instructions. Scores are the
        same. For models with components only.
    prototypes : ndarray of int8, shape (k, n_features), optional
        Of a model of one class: rows that are known, -8..7.
    feature_names : tuple of str, optional
        What the inputs are, in their order, without spaces around them. Information only: models
        that differ in nothing else are equal.

    Raises
    ------
    TinykernelError
        If a field has the wrong type, shape or range, or a stage could overflow.

    Notes
    -----
    The components are RM-BCSIK of Lei & Lan, AAAI 2021, formulas (3)-(5): ``sign(cos(V x + b) +
    t)`` is +1 exactly where the phase lies in a window, so that no cosine is computed. Two models
    are equal when their contents are.
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
    linear: NDArray[np.int8] | None = None
    linear_multiplier: NDArray[np.int32] | None = None
    local: LocalStage | None = None
    values: FixedPoint | None = None
    decision: Decision | None = None
    small_code: bool = False
    prototypes: NDArray[np.int8] | None = None
    _ranges: tuple[Range, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        """Check every field, make the arrays read-only, and prove that nothing overflows."""
        for check in CHECKS:
            for name, value in check(self).items():
                object.__setattr__(self, name, value)
        ranges = prove(
            bits=self.scaler.bits,
            sign=self.sign,
            permutation=self.permutation,
            diagonal=self.diagonal,
            diagonal_kind=self.diagonal_kind,
            halve_first=self.halve_first,
            halve_second=self.halve_second,
            row_kept=self.row_kept,
            scale=self.scale,
            weights=self.weights,
            multiplier=self.multiplier,
            offset=self.offset,
            linear=self.linear,
            linear_multiplier=self.linear_multiplier,
            prototypes=self.prototypes,
        )
        if self.local is not None:
            ranges = self.local.ranges() + ranges
        object.__setattr__(self, "_ranges", ranges)

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
        """Number of classes, 0 of a regressor."""
        return len(self.classes)

    @property
    def n_scores(self) -> int:
        """Number of scores: one a class, or one a value."""
        return self.n_classes if self.values is None else len(self.values.names)

    @property
    def n_outputs(self) -> int:
        """Number of outputs: 1 for two classes, else one a class or value."""
        return 1 if self.n_classes == 2 else self.n_scores

    @property
    def n_inputs(self) -> int:
        """Number of raw values that the firmware takes: n, or those of the local stage."""
        return self.n_features if self.local is None else self.local.n_inputs

    @property
    def raw_dtype(self) -> str:
        """Type of the raw values that the firmware takes, e.g. ``"float32"``."""
        return self.scaler.raw_dtype if self.local is None else self.local.scaler.raw_dtype

    @property
    def input_dtype(self) -> np.dtype[Any]:
        """Type of the quantized inputs: int8 or int16."""
        return self.scaler.input_dtype

    # -- identity -----------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """Return everything that is not an array and counts in a comparison, as JSON types."""
        return identity.header(self)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return every array by name, the scaler's with the prefix ``scaler_``."""
        return identity.arrays(self)

    @cached_property
    def _fingerprint(self) -> str:
        return identity.digest(self)

    def ranges(self) -> tuple[Range, ...]:
        """Return the proved bound of every stage, in the order of the computation.

        Returns
        -------
        tuple of Range
            See `tinykernel.model.proof.prove`. Every range is inside its limits: a model for
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

    def as_raw(self, X: ArrayLike) -> NDArray[Any]:
        """Convert inputs to rows of the raw type that the firmware takes.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_inputs)
            Numbers; with a local stage also (n_rows, samples, channels), (n_rows, height, width) or
            (n_rows, height, width, channels).

        Returns
        -------
        ndarray of `raw_dtype`, shape (n_rows, n_inputs)

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit the raw type.
        """
        self._check_columns(X)
        if self.local is not None:
            return self.local.as_raw(X)
        raw = self.scaler.as_raw(X)
        self._check_rows(raw)
        return raw

    def quantize_inputs(self, X: ArrayLike) -> NDArray[Any]:
        """Quantize raw inputs (steps 0 and 1).

        Parameters
        ----------
        X : array-like
            As for `as_raw`.

        Returns
        -------
        ndarray of int8 or int16, shape (n_rows, n_features)

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit the raw type.
        """
        self._check_columns(X)
        if self.local is not None:
            return self.scaler.quantize(self.local.counts(X))
        return self.scaler.quantize(self.as_raw(X))

    def _check_columns(self, X: object) -> None:
        """Refuse a DataFrame whose columns are not the inputs, in their order."""
        columns = getattr(X, "columns", None)
        if self.feature_names is None or columns is None:
            return
        names = [str(name).strip() for name in columns]
        if names == list(self.feature_names):
            return
        if sorted(names) == sorted(self.feature_names):
            problem = "are in another order"
        else:
            lacking = [name for name in self.feature_names if name not in names]
            problem = f"lack {lacking[0]!r}" if lacking else f"are {len(names)}"
        raise TinykernelError(
            f"inputs: the columns {problem}; the model takes {len(self.feature_names)}, "
            "X[list(model.feature_names)]"
        )

    def _check_rows(self, rows: NDArray[Any]) -> None:
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise TinykernelError(
                f"inputs: shape {rows.shape}, but the model takes rows of {self.n_features} inputs"
            )

    def _quantized(self, Q: ArrayLike) -> NDArray[Any]:
        """Return quantized inputs in `input_dtype`, refusing what it cannot hold."""
        given = np.asarray(Q)
        if given.dtype.kind not in "bi" and given.dtype.kind != "u":
            raise TinykernelError(f"quantized inputs: {given.dtype} instead of {self.input_dtype}")
        self._check_rows(given)
        quantized = given.astype(self.input_dtype)
        if not np.array_equal(quantized, given):
            raise TinykernelError(f"quantized inputs: a value does not fit {self.input_dtype}")
        return quantized

    def _run(self, inputs: NDArray[Any], bits: NDArray[np.bool_], sums: NDArray[np.int32]) -> None:
        """Fill the components and the sums of all rows, each where it has rows."""
        reference.run(
            inputs,
            bits,
            sums,
            sign=self.sign,
            permutation=self.permutation,
            diagonal=self.diagonal,
            diagonal_kind=self.diagonal_kind,
            halve_first=self.halve_first,
            halve_second=self.halve_second,
            row_kept=self.row_kept,
            scale=self.scale,
            start=self.start,
            width=self.width,
            phase_shift=self.phase_shift,
            weights=self.weights,
        )

    def features_quantized(self, Q: ArrayLike) -> NDArray[np.bool_]:
        """Compute the components from quantized inputs (steps 2 to 4).

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
        inputs = self._quantized(Q)
        bits = np.empty((inputs.shape[0], self.n_components), dtype=np.bool_)
        self._run(inputs, bits, np.empty((0, 0), dtype=np.int32))
        return bits

    def scores_quantized(self, Q: ArrayLike) -> NDArray[np.int32]:
        """Compute the scores from quantized inputs (steps 2 to 5).

        Parameters
        ----------
        Q : array-like of integers, shape (n_rows, n_features)
            Values of `input_dtype`.

        Returns
        -------
        ndarray of int32, shape (n_rows, n_scores)

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit `input_dtype`.
        """
        inputs = self._quantized(Q)
        sums = np.empty((inputs.shape[0], self.n_outputs), dtype=np.int32)
        self._run(inputs, np.empty((0, 0), dtype=np.bool_), sums)
        totals = sums * self.multiplier + self.offset
        if self.linear is not None and self.linear_multiplier is not None:
            totals += reference.dots(inputs, self.linear) * self.linear_multiplier
        if self.prototypes is not None:
            totals += distances(inputs, self.sign, self.prototypes)[:, np.newaxis]
        return np.hstack([-totals, totals]) if self.n_classes == 2 else totals

    def scores(self, X: ArrayLike) -> NDArray[np.int32]:
        """Compute the scores from raw inputs: what ``<name>_scores`` of the C code gives.

        Parameters
        ----------
        X : array-like
            As for `as_raw`.

        Returns
        -------
        ndarray of int32, shape (n_rows, n_scores)

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit the raw type.
        """
        self._check_columns(X)
        rows = np.asarray(X)
        parts = [
            self.scores_quantized(self.quantize_inputs(rows[first : first + _ROWS_AT_ONCE]))
            for first in range(0, max(1, rows.shape[0] if rows.ndim else 1), _ROWS_AT_ONCE)
        ]
        return np.concatenate(parts)

    # -- display ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Say in one line what it is; its fields are hundreds of numbers."""
        facts = ", ".join(f"{key}: {text}" for key, text in identity.facts(self).items())
        return f"IntegerModel({facts})"

    def _repr_html_(self) -> str:
        """Return a small table for notebooks."""
        rows = "".join(
            f"<tr><th>{key}</th><td>{html.escape(text)}</td></tr>"
            for key, text in identity.facts(self).items()
        )
        return f"<table><caption>IntegerModel</caption>{rows}</table>"
