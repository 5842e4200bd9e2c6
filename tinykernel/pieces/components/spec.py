"""Components: bits of random projections, each a window of a phase."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.hadamard import padded_dimension, run_on_rows, useful_threads
from tinykernel.base.text import count
from tinykernel.pieces import reference
from tinykernel.pieces.fastfood import LARGEST, SHIFTS, Permutation
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage, prove
from tinykernel.pieces.proof import (
    INT16_LIMIT,
    Range,
    bound_first,
    bound_second,
    range_of,
    stage_ranges,
)
from tinykernel.pieces.record import Matrix, limits

# Of all blocks together: the proof needs about 1 KB per row.
_MOST_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Components(Stage):
    """The stage *components*: p bits z of a structured random projection.

    It takes a table of n quantized values q, int8 or int16. d is `dimension` (n padded to a power
    of two, at least 32), m is `n_blocks`. Integers are two's complement; ``>>`` of a signed value
    is arithmetic, that is division by a power of two rounded **down** (floor).

    **1. First transform.** int16 vector u of d values::

        u_i = sign_i * max(q_i, -32767)      i < n     (the maximum matters for int16 q only)
        u_i = 0                              n <= i < d

    ``sign_i`` is 0 exactly for the constant values: their q is ignored. Then the fast
    Walsh-Hadamard transform in place: for stage ``k = 0, 1, ..., log2(d) - 1``, for every j whose
    bit k is 0, with ``a = u_j`` and ``b = u_(j + 2**k)`` read before either is written::

        u_j, u_(j + 2**k) = a + b, a - b                      if not halve_first[k]
        u_j, u_(j + 2**k) = (a + b) >> 1, (a - b) >> 1        if halve_first[k]

    The sums under the shift need 17 bits; the results are proved to fit int16 (`ranges`).

    **2. Blocks.** For each block b = 0..m-1, an int16 vector v of d values, where P is
    `permutation` and ``P(j) = permutation.indices(d)[j]``::

        v_j = (diagonal_bj * u_P(j)) >> 7        diagonal_kind 'int8', an int32 product
        v_j = (diagonal_bj * u_P(j)) >> 3        diagonal_kind 'int4', an int32 product
        v_j = diagonal_bj * u_P(j)               diagonal_kind 'sign', diagonal +1 or -1

    and the same transform with the schedule `halve_second`, the same for every block.

    **3. Components.** The kept rows (b, j), those with ``row_kept[b, j]``, in row-major order (all
    of block 0, then block 1, ...) are the components r = 0..p-1. With one turn = 2**32, in uint32
    with wrap-around, which is the modulo::

        phase_r = ((uint32)(scale_r * v_j) << phase_shift) + (start_r << 24)
        z_r     = +1 if phase_r < (width_r << 24) else -1

    ``scale_r * v_j`` is an int32 product (below 2**23 in magnitude); bits that leave the top of
    the shift are lost on purpose. It gives a table of p bits, set where z is +1.

    The components are RM-BCSIK of Lei & Lan, AAAI 2021, formulas (3)-(5): ``sign(cos(V x + b) +
    t)`` is +1 exactly where the phase lies in a window, so that no cosine is computed.

    >>> kept = np.zeros((1, 32), dtype=bool)
    >>> kept[0, 0] = True  # the sum of the inputs: its sign
    >>> components = Components(
    ...     sign=[1, 1], permutation=Permutation(), diagonal=np.ones((1, 32), int),
    ...     diagonal_kind="sign", halve_first=(False,) * 5, halve_second=(False,) * 5,
    ...     row_kept=kept, scale=[1], start=[0], width=[128], phase_shift=16)
    >>> components.run(np.array([[3, 0], [-3, 0]], np.int8), Grid.table("int8", 2)).tolist()
    [[True], [False]]
    """

    KIND = "components"
    TAKES = ("inputs",)
    GIVES = "components"
    NAMES = True

    # diagonal of B: +-1, and 0 exactly for the constant values; (n,)
    sign: NDArray[np.int8] = field(metadata=limits(-1, 1))
    permutation: Permutation  # P, shared by all blocks
    # G in [-127, 127] ('int8'), [-7, 7] ('int4') or +-1 ('sign'); at most 2**20 numbers
    diagonal: Matrix[np.int8] = field(metadata=limits(None, None, "blocks", "d"))
    diagonal_kind: str
    halve_first: tuple[bool, ...]  # shift schedules of the two transforms, length log2(d)
    halve_second: tuple[bool, ...]
    # rows that are components; at least one
    row_kept: Matrix[np.bool_] = field(metadata=limits(None, None, "blocks", "d"))
    # phase windows in component order; start and width in 1/256 turn
    scale: NDArray[np.uint8] = field(metadata=limits(1, 255, "p"))
    start: NDArray[np.uint8] = field(metadata=limits(0, 255, "p"))
    width: NDArray[np.uint8] = field(metadata=limits(1, 255, "p"))
    phase_shift: int = field(metadata=limits(0, 31))
    # little code in the firmware rather than few instructions; the bits are the same
    small_code: bool = False

    def check(self) -> None:
        self._check_blocks()
        for name in ("halve_first", "halve_second"):
            stages = len(getattr(self, name))
            if stages != self.log2_dimension:
                raise self.refuse(
                    f"{name} has {stages} stages, "
                    f"a transform of {self.dimension} values has {self.log2_dimension}"
                )
        self.require_shape("scale", (self.n_components,))

    def _check_blocks(self) -> None:
        """Check P, G and the kept rows."""
        self.require_shape("diagonal", (None, self.dimension))
        if self.diagonal.size > _MOST_ROWS:
            raise self.refuse(
                f"{self.diagonal.size} rows in its blocks; at most {_MOST_ROWS} are supported"
            )
        if self.diagonal_kind not in LARGEST:
            raise self.refuse(f"unknown diagonal kind {self.diagonal_kind!r}")
        magnitude = np.abs(self.diagonal.astype(np.int16))
        if self.diagonal_kind == "sign" and np.any(magnitude != 1):
            raise self.refuse("a diagonal of signs holds something else")
        largest = LARGEST[self.diagonal_kind]
        if np.any(magnitude > largest):
            wrong = int(self.diagonal[magnitude > largest][0])
            raise self.refuse(f"diagonal holds {wrong}; -{largest}..{largest} are allowed")
        if not self.row_kept.any():
            raise self.refuse("no row is kept; at least one is needed")

    @property
    def n_features(self) -> int:
        """Number of values that it takes, n."""
        return int(self.sign.size)

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

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"components": self.n_components, "blocks": self.n_blocks}
        orbit = self.permutation
        if orbit.kind != "orbit":
            return facts
        terms = f"j -> {orbit.multiplier} j + {orbit.increment} modulo {self.dimension}"
        return facts | {"permutation": f"{terms} (P)"}

    def in_words(self, view: str, inputs: str) -> str:
        code = " in small code" if self.small_code else ""
        return f"{count(self.n_components, 'component')} of {inputs}{code}"

    @property
    def negative(self) -> NDArray[np.bool_]:
        return np.asarray(self.sign < 0)

    def stored(self) -> Components:
        used = self.row_kept.any(axis=1)  # blocks with a component
        return replace(self, diagonal=self.diagonal[used], row_kept=self.row_kept[used])

    def gives(self, grid: Grid) -> Grid:
        self.require_shape("sign", (grid.size,))
        if grid.dtype not in ("int8", "int16"):
            raise self.refuse(f"components take int8 or int16, not {grid.dtype}")
        if frozenset(np.flatnonzero(self.sign == 0).tolist()) != grid.constant:
            raise self.refuse("sign must be 0 for constant features and +-1 for all others")
        return Grid(1, 1, self.n_components, "bool", 0, 1)

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[np.bool_]:
        d, n = self.dimension, len(values)
        blocks, rows = np.nonzero(self.row_kept)
        ends = np.searchsorted(blocks, np.arange(self.n_blocks + 1)).astype(np.int64)
        halve = [np.array(steps, np.int16) for steps in (self.halve_first, self.halve_second)]
        bits = np.empty((n, rows.size), dtype=np.bool_)
        butterflies = (1 + self.n_blocks) * (d // 2) * self.log2_dimension
        run_on_rows(
            reference.run_components,
            n,
            useful_threads((butterflies + 2 * rows.size) * n),
            # Arrays of one type, as it is compiled for each combination of types.
            np.ascontiguousarray(values, np.int16),
            (self.sign, self.permutation.indices(d).astype(np.int64), halve[0]),
            (self.diagonal, np.int32(SHIFTS[self.diagonal_kind]), halve[1]),
            (
                np.ascontiguousarray(rows),
                ends,
                self.scale,
                self.start,
                self.width,
                np.uint32(self.phase_shift),
            ),
            bits,
        )
        return bits

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        g, kind = self.diagonal, self.diagonal_kind
        first = bound_first(self.sign, 8 * np.dtype(grid.dtype).itemsize, self.halve_first)
        second = bound_second(first, self.permutation, g, kind, self.halve_second)
        inputs, product = first.inputs, second.inputs
        name = "input of the first transform"
        ranges = [range_of(name, inputs.low, inputs.high, INT16_LIMIT)]
        ranges += stage_ranges("first transform", first.stages, first.halve)
        if kind != "sign":
            largest = np.abs(g.astype(np.int64)) * max(-ranges[-1].low, ranges[-1].high)
            ranges.append(range_of("product before its shift", -largest, largest))
        ranges.append(range_of("product", product.low, product.high, INT16_LIMIT))
        ranges += stage_ranges("second transform", second.stages, second.halve)
        rows, factor, stored = second.stages[-1], self.scale.astype(np.int64), self.row_kept
        ends = factor * rows.low[stored], factor * rows.high[stored]
        ranges.append(range_of("scale times row", *ends))
        return prove(ranges, self.OWNER, "halve in an earlier stage")
