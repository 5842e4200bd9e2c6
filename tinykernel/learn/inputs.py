"""What is computed once for each data set, scaler and ``P H B x``; the layouts of components."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.checks import PRESETS
from tinykernel.base.hadamard import fwht_halving, padded_dimension
from tinykernel.model.scale import InputScaling, QuantizedInputs, choose_scope, quantize_scaler
from tinykernel.pieces.fastfood import BITS, LARGEST, SHIFTS, Permutation
from tinykernel.pieces.proof import bound_first
from tinykernel.pieces.scale.spec import Scale

#: Components of a word of the firmware; there are whole ones.
WORD = 32
_KINDS = {bits: kind for kind, bits in BITS.items()}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How many bits each learned number of a component takes.

    >>> layout_of("compact").table_bytes(n_components=1024, dimension=1024, n_outputs=10)
    1793
    """

    diagonal_kind: str  # {"int8", "int4", "sign"}: how G is held.
    # Of the phase start of each row, 8 or 4; 0: it alternates between two constants along the rows
    # of a block and costs nothing.
    start_bits: int = 0
    width_bits: int = 0  # of the window of each row, 8 or 4; 0: it is half a turn, t = 0.
    scale_per_row: bool = False  # S in 8 bits per row; otherwise one per block.
    ternary: bool = False  # weights in {-1, 0, 1}, five in a byte, or {-1, 1} with one bit.

    @property
    def largest(self) -> int:
        """Largest level of G."""
        return LARGEST[self.diagonal_kind]

    @property
    def product_shift(self) -> int:
        """Right shift of a product with G."""
        return SHIFTS[self.diagonal_kind]

    def _window_bits(self) -> int:
        """Return the bits that phase windows take for each row."""
        scale, start, width = 8 * self.scale_per_row, self.start_bits, self.width_bits
        # Four bits share a byte: start and width of a row, or the starts of two rows.
        if start == 4 and (width == 4 or not (width or scale)):
            return scale + start + width
        return scale + 8 * (start > 0) + 8 * (width > 0)

    def table_bytes(self, n_components: int, dimension: int, n_outputs: int) -> int:
        """Return the bytes of G, the windows and the weights; d and outputs as in the model.

        What the tables of a trained model take is measured on the packed model, which may find
        more in common than the layout promises.
        """
        n_blocks = -(-n_components // dimension)
        n_words = -(-n_components // WORD)
        bits = n_blocks * dimension * BITS[self.diagonal_kind]
        bits += WORD * n_words * self._window_bits()
        bits += 0 if self.scale_per_row else 8 * n_blocks
        # Eight words hold the ternary weights of five words of components.
        weights = 8 * (n_words // 5) + 2 * (n_words % 5) if self.ternary else n_words
        return (bits + n_outputs * WORD * weights) // 8


@cache
def layout_of(name: str) -> Layout:
    """Return the layout of a name, see `tinykernel.base.checks.is_layout`."""
    parts = PRESETS.get(name, name).split("-")
    bits = {part[0]: int(part[1:]) for part in parts if part[1:].isdigit()}
    return Layout(
        diagonal_kind=_KINDS[bits["g"]],
        start_bits=bits.get("b", 0),
        width_bits=bits.get("t", 0),
        scale_per_row="rows" in parts,
        ternary="ternary" in parts,
    )


def components_within(table_bytes: int, layout: Layout, dimension: int, n_outputs: int) -> int:
    """Return how many components, a multiple of 32, fit into tables of a size; 0 if none.

    >>> components_within(6000, layout_of("compact"), 1024, 10)
    3136
    """
    low, high = 0, 1 << 15
    while low < high:
        middle = (low + high + 1) // 2
        if layout.table_bytes(middle * WORD, dimension, n_outputs) <= table_bytes:
            low = middle
        else:
            high = middle - 1
    return low * WORD


_ROWS_AT_ONCE = 4096
_NEIGHBOUR_ROWS = 500
_NEIGHBOUR = 50


@dataclass(frozen=True, eq=False)
class SharedTransform:
    """Scaler, B and P in the integers of the firmware: everything before the blocks."""

    scaling: InputScaling
    inputs: QuantizedInputs  # the same in integers.
    sign: NDArray[np.int8]  # (n_features,): diagonal of B.
    permutation: Permutation
    halve: tuple[bool, ...]  # schedule of the first transform.

    @property
    def scaler(self) -> Scale:
        """The scaler in integers."""
        return self.inputs.scaler

    @property
    def dimension(self) -> int:
        """Length d of the transforms."""
        return padded_dimension(self.sign.shape[0])

    @property
    def unit(self) -> float:
        """What one step of the integers is worth in `mixed`."""
        step = 2.0 ** (1 - self.scaler.bits)
        return float(step * 2.0 ** sum(self.halve) / np.sqrt(self.dimension))

    @property
    def live_sign(self) -> NDArray[np.int8]:
        """Diagonal of B with 0 for constant inputs, which the firmware leaves out."""
        return _live(self.scaling, self.sign)

    def mix(self, X: NDArray[Any], out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Compute ``P H B x / sqrt(d)`` of raw rows: whole multiples of `unit`; shape (n, d)."""
        n, gather = self.sign.shape[0], self.permutation.indices(self.dimension)
        if out is None:
            out = np.empty((X.shape[0], self.dimension), dtype=np.float32)
        for first in range(0, X.shape[0], _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            integers = np.zeros(out[part].shape, dtype=np.int16)
            integers[:, :n] = self.scaler.quantize(X[part])
            # The negative of -32768 would not fit into 16 bits.
            np.maximum(integers, -32767, out=integers)
            integers[:, :n] *= self.live_sign
            transformed = fwht_halving(integers, self.halve) * np.float32(self.unit)
            out[part] = transformed[:, gather]
        return out


def _live(scaling: InputScaling, sign: NDArray[np.int8]) -> NDArray[np.int8]:
    return np.where(scaling.scale > 0, sign, 0).astype(np.int8)


def choose_scaling(
    rows: NDArray[Any], raw_dtype: str, bits: int | str, scope: str
) -> tuple[int, InputScaling]:
    """Choose the width of the quantized inputs where it is "auto", and fit the scaler."""
    if bits == "auto":
        scaling = fit_level_scaling(rows, 8, scope)
        one_scale = np.unique(scaling.scale[scaling.scale > 0]).size <= 1
        bits = 8 if one_scale or raw_dtype in ("uint8", "int8") else 16
    return int(bits), fit_level_scaling(rows, int(bits), scope)


def choose_scaler(rows: NDArray[Any], raw_dtype: str, bits: int | str, scope: str) -> Scale:
    """Return the scaler of `choose_scaling` in the integers of the firmware."""
    width, scaling = choose_scaling(rows, raw_dtype, bits, scope)
    return quantize_scaler(scaling, raw_dtype, width).scaler


def fit_level_scaling(X: NDArray[Any], input_bits: int, scope: str = "auto") -> InputScaling:
    """Scale the range of the training rows to [-1, 1), so that levels are exact.

    The upper end is at most ``1 - 2 / 2**bits``, so that the quantized input q stands for
    ``q / 2**(bits - 1)`` with no offset, and starts need no correction. `scope` is as in
    `tinykernel.model.scale.choose_scope`.
    """
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    varies = high > low
    spread = high - low
    scope = choose_scope(X, scope)
    levels = 2**input_bits
    if scope == "global" and varies.any():
        # One scale for all is one for constant inputs too: then they cost no table.
        low = np.full_like(low, low[varies].min())
        spread = np.full_like(low, high[varies].max() - low[0])
        varies = np.ones_like(varies)
    scale = np.where(varies, 2.0 * (levels - 1) / levels / np.where(varies, spread, 1.0), 0.0)
    if scope == "global" and X.dtype.kind in "iu" and 0 < spread[0] < levels:
        # Whole levels per unit: every raw value is then exactly one of the levels.
        scale[:] = 2.0 * ((levels - 1) // spread[0]) / levels
    offset = low + 1.0 / np.where(varies, scale, 1.0)
    return InputScaling(
        offset, scale, np.full(low.size, -1.0), np.where(varies, scale * spread, 2.0) - 1.0
    )


def draw_transform(
    scaling: InputScaling, bits: int, raw_dtype: str, rng: np.random.Generator
) -> SharedTransform:
    """Draw the signs B and the permutation P, an orbit of all positions: two numbers to store."""
    n = scaling.offset.shape[0]
    sign = rng.choice(np.array([-1, 1], dtype=np.int8), n)
    d = padded_dimension(n)
    multiplier = 4 * int(rng.integers(1, d // 4)) + 1
    increment = 2 * int(rng.integers(0, d // 2)) + 1
    permutation = Permutation("orbit", multiplier=multiplier, increment=increment)
    halve = bound_first(_live(scaling, sign), bits, None).halve
    inputs = quantize_scaler(scaling, raw_dtype, bits)
    return SharedTransform(scaling, inputs, sign, permutation, halve)


def neighbour_distance(mixed: NDArray[np.float32], rng: np.random.Generator) -> float:
    """Estimate the typical distance of near rows, the start of the search for sigma.

    It is the mean distance to the tenth part of the nearest of 500 rows, the 50th; positive. Mixed
    rows, shape (n, d), have the same distances as the scaled inputs.
    """
    n = mixed.shape[0]
    chosen = np.sort(rng.choice(n, min(n, _NEIGHBOUR_ROWS), replace=False))
    rows = mixed[chosen]
    rank = max(1, min(_NEIGHBOUR, rows.shape[0] * _NEIGHBOUR // _NEIGHBOUR_ROWS))
    total = 0.0
    for squares in _square_distances(rows):
        total += float(np.sqrt(np.sort(squares)[min(rank, squares.size - 1)]))
    return total / rows.shape[0] or 1.0


def _square_distances(rows: NDArray[Any]) -> NDArray[Any]:
    """Compute the squared distance of every pair of rows, in the memory of one copy of them."""
    n, scratch = rows.shape[0], np.empty_like(rows)
    squares = np.empty((n, n), dtype=rows.dtype)
    for i, row in enumerate(rows):
        # No matrix product: its rounding may depend on the number of threads.
        away = np.subtract(rows[i:], row, out=scratch[i:])
        squares[i, i:] = squares[i:, i] = np.square(away, out=away).sum(axis=1)
    return squares
