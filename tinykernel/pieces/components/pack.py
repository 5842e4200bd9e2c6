"""Storage of components, as ``tk_transform.h``, ``tk_diagonal.h`` and ``tk_windows.h`` read it.

* **Components** are stored in words of 32, because z and the weights are bits of 32-bit words. Only
  the components of a block up to its last used row are stored. If many rows in between are unused,
  a bitmap marks the used rows, which the firmware moves together first.
* **Windows**: groups of four components, one word each of scales, starts and widths, so that cores
  with packed instructions process four bytes at a time. Equal values are not in the table: scales,
  if those of each block are equal; starts, if they depend only on whether a place is even or odd;
  widths, if all are equal. Starts and widths that are multiples of 16 share a byte.
* **Places without a component** (padding, or a stored unused row) must not count. They have width
  0, so that they are always outside their window, and a sign bit that never agrees with that. If no
  widths are stored they have a mask bit of 0. If only the last words of blocks have such places
  and there is no mask, the firmware sets the bits of these places.
* **Diagonal**: int8, four bits if its kind is 'int4', or one bit a row if it holds signs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.packing import Code, Facts, Packed, Place, Proof, Work
from tinykernel.pieces.proof import Bounds, bound_first, bound_second, exact_stages
from tinykernel.pieces.tables import (
    WORD,
    Definition,
    Parts,
    Table,
    bit_words,
    flag,
    pair_words,
    per_block,
)
from tinykernel.pieces.ternary.spec import Ternary

# Code that moves kept rows together: what the bitmap must save to be worth it.
_COMPACTION_CODE_BYTES = 96
# Words of bits that are counted at a time, a multiple of the seven that tk_scores.h adds up at
# once: more take less time and more RAM. A long block is counted by itself.
_MOST_WAITING = 28
# Code that unpacks five weights: 32 to 84 bytes on Cortex-M4 and M0.
_PACKED_CODE_BYTES = 64
_LONG_BLOCK = 16


@dataclass(frozen=True)
class Placement:
    """The places of the components of a model."""

    place: NDArray[np.int64]  # of each component among all stored places, 32 a word
    n_words: NDArray[np.int64]  # of each block
    blocks: NDArray[np.int64]  # that are stored
    bitmap: NDArray[np.bool_] | None  # of the used rows of these
    # Shared values by block, for even and odd places, and for all; None where a table has them.
    scales: NDArray[np.uint8] | None
    starts: tuple[int, int] | None
    width: int | None
    halves: (
        bool  # whether starts share their bytes with widths or, without a table of those, others
    )
    n_planes: int  # 8: of the codes of five words; two for the words that are left over.
    tails: NDArray[np.uint32] | None  # bits of the last word of each block that the firmware sets

    @property
    def bit_words(self) -> int:
        """Words of waiting bits; 0 where each block is counted by itself."""
        alone = self.n_words.size == 1 or int(self.n_words.max()) >= _LONG_BLOCK
        return 0 if alone else min(int(self.n_words.sum()), _MOST_WAITING)

    def groups_of_blocks(self) -> list[int]:
        """Return the ends of the groups of blocks whose bits are counted together."""
        full = self.bit_words - int(self.n_words.max())
        ends, waiting = [], 0
        for block, count in enumerate(self.n_words.tolist()):
            waiting += count
            if waiting > full or block + 1 == self.n_words.size:
                ends.append(block + 1)
                waiting = 0
        return ends

    def weight_words(self) -> int:
        """Words of weights of each output."""
        if self.n_planes < 8:
            return self.n_planes * int(self.n_words.sum())
        ends = np.cumsum(self.n_words)[np.array(self.groups_of_blocks()) - 1]
        return sum(2 * (n - n // 5) for n in np.diff(ends, prepend=0).tolist())

    def n_bytes(self, n_outputs: int) -> int:
        """Flash by which layouts of one model differ."""
        n_words, shared = int(self.n_words.sum()), (self.scales, self.starts, self.width)
        n_fields = sum(each is None for each in shared)  # bytes in the table of windows
        size = n_words * WORD * n_fields
        if self.halves:
            size -= n_words * WORD // (1 if self.width is None else 2)
        size += 4 * n_outputs * self.weight_words()
        size += _PACKED_CODE_BYTES if self.n_planes == 8 else 0
        if self.bitmap is not None:
            size += self.bitmap.size // 8 + _COMPACTION_CODE_BYTES
        return size + (0 if self.tails is None else 4 * self.tails.size)


def pack(stage: Components, place: Place) -> Packed:
    """Choose the layout that is smallest with the weights, and store components without these."""
    if place.reader is None:
        return Packed([])
    layout = choose_layout(stage, place.reader)
    first, second = (
        f"0x{sum(1 << k for k, on in enumerate(halve) if on):x}u"
        for halve in (stage.halve_first, stage.halve_second)
    )
    size, n_blocks = f"transforms of {stage.dimension} values", layout.blocks.size
    parts = [
        Definition("TK_LOG2_DIMENSION", f"{stage.log2_dimension}u", size),
        Definition("TK_BLOCKS", f"{n_blocks}u", "transforms after the first one"),
        Definition("TK_HALVE_FIRST", first, "stages of the first transform that halve"),
        Definition("TK_HALVE_SECOND", second, "stages of the other transforms that halve"),
        Definition("TK_PHASE_SHIFT", str(stage.phase_shift)),
        *_pack_permutation(stage),
        *_pack_diagonal(stage, layout),
        *_pack_rows(layout),
        *_pack_windows(stage, layout),
    ]
    return Packed(parts, stage.dimension + layout.bit_words, layout=layout)


def _pack_permutation(stage: Components) -> Parts:
    permutation, mask = stage.permutation, stage.dimension - 1
    kind = ("identity", "orbit").index(permutation.kind)
    parts: Parts = [Definition("TK_PERMUTATION", str(kind))]
    if permutation.kind == "orbit":
        parts.append(Definition("TK_ORBIT_MULTIPLIER", f"{permutation.multiplier & mask}u"))
        parts.append(Definition("TK_ORBIT_INCREMENT", f"{permutation.increment & mask}u"))
    return parts


def _pack_diagonal(stage: Components, layout: Placement) -> Parts:
    diagonal = stage.diagonal[layout.blocks]
    if stage.diagonal_kind == "sign":
        bits, packed = 1, pair_words((diagonal < 0).ravel(), even_high=True)
        comment = "Signs of the rows of each block (G), 1 = negative: even rows high, odd rows low."
    elif stage.diagonal_kind == "int4":
        # -7..7: of rows 2 i and 2 i + 1 in each 8, from bit 28 - 4 i and from bit 12 - 4 i.
        levels = (diagonal.astype(np.int64) & 15).reshape(-1, 4, 2)
        shifts = np.array([28, 12]) - 4 * np.arange(4)[:, np.newaxis]
        bits, packed = 4, (levels << shifts).sum(axis=(1, 2))
        comment = "Factors of the rows of each block (G), times 8: 4 bits, even rows high, odd low."
    else:
        packed = np.ascontiguousarray(diagonal).view(np.uint8).reshape(-1, 4).view("<u4").ravel()
        bits, comment = 8, "Factors of the rows of each block (G), times 128: int8, four a word."
    return [
        Definition("TK_DIAGONAL_BITS", str(bits)),
        Table("tk_diagonal", "uint32_t", packed.astype(np.uint32), "transform", comment),
    ]


def choose_layout(stage: Components, weights: Ternary) -> Placement:
    """Return the smallest layout; a shared width may cost more elsewhere than its table."""
    ways = ((False, True), (False, False), (True, True), (True, False))
    layouts = [_layout(stage, weights, *way) for way in ways]
    if weights.packed:
        layouts += [replace(each, n_planes=8) for each in layouts if each.n_planes == 2]
    return min(layouts, key=lambda layout: layout.n_bytes(weights.multiplier.size))


def _layout(stage: Components, weights: Ternary, compacted: bool, share_width: bool) -> Placement:
    """Return one layout: with a bitmap of the kept rows or not, with a table of widths or not."""
    blocks = np.flatnonzero(stage.row_kept.any(axis=1))
    used = stage.row_kept[blocks]
    row = np.cumsum(used, axis=1) - 1 if compacted else np.arange(stage.dimension)[None, :]
    ends = np.where(used, row + 1, 0).max(axis=1)  # places up to the last component
    n_words = (-(-ends // WORD)).astype(np.int64)
    first = (np.cumsum(n_words) - n_words) * WORD
    place = (first[:, None] + row)[used]
    width = int(stage.width[0]) if share_width and np.ptp(stage.width) == 0 else None
    n_planes, tails = (2 if np.any(weights.weights == 0) else 1), None
    if width is not None and n_planes == 1 and int(n_words.sum()) * WORD > place.size:
        if np.array_equal(ends, used.sum(axis=1)):
            unused = np.arange(WORD) >= WORD - (n_words * WORD - ends)[:, np.newaxis]
            tails = np.asarray(weight_words(unused.reshape(1, -1))[0], np.uint32)
        else:
            n_planes = 2
    block_of = np.nonzero(stage.row_kept)[0]
    _, begins, block = np.unique(block_of, return_index=True, return_inverse=True)
    scales, starts = stage.scale[begins], None
    parts = [stage.start[place % 2 == odd] for odd in (0, 1)]
    if not any(part.size and np.ptp(part) for part in parts):
        even, odd = (int(part[0]) if part.size else 0 for part in parts)
        starts = even, odd
    scale_table = not np.array_equal(scales[block], stage.scale)
    both = np.concatenate([stage.start, stage.width[: 0 if width is not None else None]])
    can_share = starts is None and (width is None or not scale_table)
    return Placement(
        place,
        n_words,
        blocks,
        bitmap=used if compacted else None,
        scales=None if scale_table else scales,
        starts=starts,
        width=width,
        halves=can_share and not np.any(both & 15),
        n_planes=n_planes,
        tails=tails,
    )


def _pack_rows(layout: Placement) -> Parts:
    parts: Parts = [flag("TK_KEPT", layout.bitmap is not None)]
    if layout.bitmap is not None:
        packed = bit_words(layout.bitmap.ravel(), first_is_top=False)
        comment = "Rows that are components: one bit each, row 0 the bottom one."
        parts.append(Table("tk_kept", "uint32_t", packed, "windows", comment))
    comment = "words of 32 components in each block"
    full = max(layout.bit_words - int(layout.n_words.max()), 0)
    return [
        *parts,
        *per_block("TK_WORDS", "tk_words", layout.n_words, "windows", comment),
        Definition("TK_BITS_WORDS", f"{layout.bit_words}u", "words of bits of several blocks"),
        Definition("TK_BITS_FULL", f"{full}u", "they are counted when there are more"),
    ]


def spread(layout: Placement, values: NDArray[Any], fill: int) -> NDArray[Any]:
    """Put values of the components (last axis) into all stored places."""
    n_places = int(layout.n_words.sum()) * WORD
    spread = np.full((*values.shape[:-1], n_places), fill, dtype=values.dtype)
    spread[..., layout.place] = values
    return spread


def _by_group(places: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Reorder bytes of places to (word, group, byte) as in ``tk_windows.h``."""
    # Place 2 i + h of a word is half h of word i of v. Byte k of group r belongs to half ``k // 2``
    # of word ``r + 8`` (k even) or r (k odd).
    half_second_first = places.reshape(-1, 2, 8, 2)  # word, i // 8, i % 8 = r, half
    return half_second_first[:, ::-1].transpose(0, 2, 3, 1).reshape(-1, 8, 4)


def _pack_windows(stage: Components, layout: Placement) -> Parts:
    parts: Parts = []
    fields: dict[str, NDArray[np.uint8]] = {}
    if layout.scales is None:
        fields["scales"] = spread(layout, stage.scale, 1)
    else:
        comment = "phase scale of each block (S over sigma)"
        parts += per_block("TK_SCALE", "tk_scales", layout.scales, "windows", comment)
    if layout.starts is None:
        fields["starts"] = spread(layout, stage.start, 0)
    else:
        for parity, start in zip(("even", "odd"), layout.starts, strict=True):
            comment = f"start of {parity} rows in 1/256 turn"
            parts.append(Definition(f"TK_{parity.upper()}_START", f"{start}u", comment))
    if layout.width is None:
        fields["widths"] = spread(layout, stage.width, 0)
    else:
        parts.append(Definition("TK_WIDTH", f"{layout.width}u", "of all windows in 1/256 turn"))
    if not fields:
        return parts
    grouped = {name: _by_group(places) for name, places in fields.items()}
    if layout.halves:
        parts.append(Definition("TK_WINDOW_BITS", "4", "of a start and of a width"))
        starts = grouped.pop("starts")
        others = grouped.pop("widths", starts[:, 1::2])
        starts = starts if layout.width is None else starts[:, ::2]
        name = "starts and widths" if layout.width is None else "starts of two groups"
        grouped[f"{name} in four bits"] = starts | others >> np.uint8(4)
    groups = np.stack(list(grouped.values()), axis=2)
    # word, group, field, byte
    packed = np.ascontiguousarray(groups).reshape(-1, 4).view("<u4").ravel().astype(np.uint32)
    comment = f"Phase windows (b, t) in 1/256 turn: {', '.join(grouped)} of four components."
    per_row = 6 if len(grouped) == 3 else 8
    return [*parts, Table("tk_windows", "uint32_t", packed, "windows", comment, per_row)]


def weight_words(places: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Pack bits of places (outputs, places) to words, in the bit order of the phase windows."""
    grouped = [_by_group(bits.astype(np.uint8)) for bits in places]  # word, group r, byte k
    bits = np.stack(grouped).transpose(0, 1, 3, 2)[..., ::-1]  # output, word, k, 7 - r
    return np.stack([bit_words(output.ravel(), first_is_top=False) for output in bits])


def _work(stage: Components, grid: Grid, facts: Facts) -> Work:
    d, blocks = float(stage.dimension), stage.n_blocks
    first, second = sum(stage.halve_first), sum(stage.halve_second)
    transform = {
        "stages": d * (stage.log2_dimension + blocks * stage.log2_dimension),
        "stages that halve": d * (first + blocks * second),
        f"products, {stage.diagonal_kind}": d * blocks,
        f"permutation, {stage.permutation.kind}": d,
        "blocks": float(blocks),
    }
    if stage.small_code:
        # Passes of the transform, and the products between them, are others.
        transform = {f"small code, {name}": n for name, n in transform.items()}
    macros = facts.macros
    kind = "all" if "TK_WIDTH" not in macros else "two"
    kind = "starts" if kind == "two" and "TK_EVEN_START" not in macros else kind
    kind += ", four bits" if "TK_WINDOW_BITS" in macros else ""
    windows = {f"windows, {kind}": float(stage.n_components), "blocks": float(blocks)}
    if macros["TK_KEPT"] == "1":
        windows["rows with a bitmap"] = blocks * d
    n_words = float(-(-stage.n_components // WORD) * facts.n_outputs)
    scores = {
        f"words, {macros['TK_PLANES']} planes": n_words,
        "blocks and outputs": float(blocks * facts.n_outputs),
        "outputs": float(facts.n_outputs),
    }
    return {"scale": {"values": d}, "transform": transform, "windows": windows, "scores": scores}


def _proof(stage: Components, place: Place) -> Proof:
    """Return the range of rows with any scale, and the inputs of the extremes of each stage."""
    witnesses = list[dict[str, Any]]()
    first = bound_first(stage.sign, 8 * np.dtype(place.grid.dtype).itemsize, stage.halve_first)
    mixing, kind = stage.permutation, stage.diagonal_kind
    second = bound_second(first, mixing, stage.diagonal, kind, stage.halve_second)
    gather = mixing.indices(stage.dimension).astype(np.int64)
    d = stage.dimension

    def row_before(row: int, at: int) -> NDArray[np.int64]:
        """Return the coefficients of value `row` after so many stages."""
        unit = np.zeros(d, dtype=np.int64)
        unit[row] = 1
        return np.asarray(exact_stages(unit)[at], np.int64)  # butterflies are symmetric

    def through_both(index: int, at: int) -> NDArray[np.int64]:
        block, row = divmod(index, d)
        spread = np.zeros(d, dtype=np.int64)
        spread[gather] = row_before(row, at) * stage.diagonal[block]
        return np.asarray(exact_stages(spread)[-1], np.int64)

    def add(name: str, values: Bounds, coefficients: Any) -> None:
        for end, index in (("low", values.low.argmin()), ("high", values.high.argmax())):
            q = stage.sign * coefficients(int(index))[: stage.n_features]
            plus = (q > 0) if end == "high" else (q < 0)
            inputs = "".join("-+"[int(sign)] for sign in plus)
            witnesses.append({"stage": name, "end": end, "row": int(index), "inputs": inputs})

    add("input of the first transform", first.inputs, lambda index: row_before(index, 0))
    for k, values in enumerate(first.stages):
        name = f"first transform, stage {k}{' (halved)' * stage.halve_first[k]}"
        add(name, values, lambda index, k=k: row_before(index, k + 1))
    add("product", second.inputs, lambda index: through_both(index, 0))
    for k, values in enumerate(second.stages):
        name = f"second transform, stage {k}{' (halved)' * stage.halve_second[k]}"
        add(name, values, lambda index, k=k: through_both(index, k + 1))
    last = second.stages[-1]
    row = {"low": 255 * int(last.low.min()), "high": 255 * int(last.high.max())}
    return {"scale times row": row}, witnesses


_HEADERS = {
    "tk_transform.h": "transform",
    "tk_permutation.h": "transform",
    "tk_diagonal.h": "transform",
    "tk_kept.h": "windows",
    "tk_windows.h": "windows",
    "tk_windows_dsp.h": "windows",
    "tk_windows_portable.h": "windows",
}


def _properties(stage: Components, value: Mapping[str, str]) -> dict[str, float]:
    """List what changes the code; loops of fast transforms are unrolled."""
    stages, second = stage.log2_dimension, sum(stage.halve_second)
    counts: dict[str, float] = {
        f"permutation {stage.permutation.kind}": 1,
        "one block": value["TK_BLOCKS"] == "1u",
        "one scale a block": "TK_SCALE(block)" in value,
        "one width": "TK_WIDTH" in value,
        "one plane": value["TK_PLANES"] == "1",
        "packed weights": value["TK_PLANES"] == "8",
        "windows in four bits": "TK_WINDOW_BITS" in value,
        "bitmap of kept rows": value["TK_KEPT"] == "1",
        "blocks counted together": value["TK_BITS_WORDS"] != "0u",
        "few values": stages < 8,
    }
    if stage.small_code:
        return counts | {"small code": 1}
    return counts | {
        f"transform of 2^{min(max(stages, 5), 11)}": 1,
        "further stages": max(0, stages - 11),
        "halving stages": sum(stage.halve_first) + second,
        "all stages halve first": all(stage.halve_first),
    }


CODE = Code(_HEADERS, pack, _work, _proof, properties=_properties)
