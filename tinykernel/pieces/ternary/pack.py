"""Storage of ternary weights, in the layout of their components.

A sign and a mask word for each output and 32 components, see ``tk_scores.h``. There is no mask
where no weight of a stored component is zero. Or eight words for five words of components: bit k of
each is a bit of the code of five weights (`FIVES`).
"""

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.components.pack import Placement, spread, weight_words
from tinykernel.pieces.packing import Code, Packed, Place, Proof
from tinykernel.pieces.tables import WORD, Definition, Parts, Table, per_block
from tinykernel.pieces.ternary.spec import Ternary


def pack(part: Ternary, place: Place) -> Packed:
    """Store the weights, and the scores of an agreeing component and of none."""
    layout: Placement = place.layout
    positive = spread(layout, part.weights > 0, 0)
    present = spread(layout, part.weights != 0, 0)
    if layout.n_planes == 1:
        # A place without a component is always outside, bit 1: a sign bit 1 never agrees with it.
        positive[:, ~present[0]] = True
    ends = WORD * np.cumsum(layout.n_words)[np.array(layout.groups_of_blocks()) - 1]
    groups = zip(*(np.split(each, ends[:-1], axis=1) for each in (positive, present)), strict=True)
    packed = np.concatenate([_weights_of(p, q, layout.n_planes).ravel() for p, q in groups])
    # sum of w z = 2 * agreeing - (number of weights), see tk_scores.h; wraps like the firmware.
    totals = np.count_nonzero(part.weights, axis=1)
    gains = 2 * part.multiplier.astype(np.int64)
    biases = place.offset.astype(np.int64) - part.multiplier.astype(np.int64) * totals
    n_planes = layout.n_planes
    planes_said = {1: "sign", 2: "sign and mask", 8: "codes of five, then sign and mask"}[n_planes]
    parts: Parts = []
    if layout.tails is not None:
        comment = "bits of the last word of a block that are no components"
        parts += per_block("TK_TAIL", "tk_tails", layout.tails, "weights", comment)
    comment = f"Weights (W) of blocks that are counted together, by output: {planes_said} bits."
    none = "Score when no component agrees with its weight (beta, less the sum of |W|)."
    gain = "Score per agreeing component (2 alpha)."
    parts += [
        Definition("TK_PLANES", str(n_planes), f"{planes_said} bits of the weights"),
        Table("tk_weights", "uint32_t", packed, "weights", comment),
        Table("tk_gains", "int32_t", _wrap(gains), "weights", gain),
        Table("tk_biases", "int32_t", _wrap(biases), "weights", none),
    ]
    return Packed(parts)


def _weights_of(
    positive: NDArray[np.bool_], present: NDArray[np.bool_], n_planes: int
) -> NDArray[np.uint32]:
    """Return the words of weights (outputs, words) of places (outputs, places)."""
    last = positive.shape[1] // WORD // 5 * 5 * WORD if n_planes == 8 else 0
    trits = np.where(present, positive, 2)[:, :last].reshape(len(positive), -1, 5, WORD)
    codes = FIVES[tuple(np.moveaxis(trits.astype(np.int64), 2, 0))]  # output, group, place
    bits = [(codes >> k & 1).astype(bool).reshape(len(codes), -1) for k in range(8)]
    planes = [bits] if last else []
    rest = [positive[:, last:], present[:, last:]][:n_planes]
    packed = [
        np.stack([weight_words(plane) for plane in part], axis=-1).reshape(len(positive), -1)
        for part in (*planes, *([rest] if rest[0].size else []))
    ]  # output, then word and plane
    return np.concatenate(packed, axis=1)


def five_of(code: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the five digits of a byte, (5, ...): a trit block of ASTC (Khronos, 23.12)."""
    t = [code >> k & 1 for k in range(8)]
    three = t[4] & t[3] & t[2]
    c = [t[0], t[1], *(t[k] & ~(three & ~t[k + 3]) for k in (2, 3, 4))]
    both, two = t[6] & t[5], c[1] & c[0]
    zeros = (c[1] & ~(two & ~c[3]), c[3] & ~two, two | c[3] & c[2], three | t[6] & ~t[5])
    signs = (c[0] & ~(two & ~c[2]), np.where(two, c[4], c[2]), c[4], t[5] & ~(both & ~t[7]), t[7])
    return np.where(np.stack([*zeros, three | both]), 2, np.stack(signs))


#: The code of five digits, one a dimension.
FIVES = np.zeros((3,) * 5, dtype=np.int64)
FIVES[tuple(five_of(np.arange(256)))] = np.arange(256)


def _wrap(values: NDArray[np.int64]) -> NDArray[np.int32]:
    return values.astype(np.uint32).view(np.int32)


def _proof(part: Ternary, place: Place) -> Proof:
    """Return the range of sums: places without a component may agree."""
    places = WORD * int(place.layout.n_words.sum())
    return {"sum": {"low": -places, "high": places}}, []


def _reach(part: Ternary, place: Place) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what the part adds with as many more components, in the sense of the gain."""
    missing = WORD * place.layout.n_words.sum() - np.count_nonzero(part.weights, axis=1)
    more, (least, most) = 2 * part.multiplier.astype(np.int64) * missing, part.reach(place.grid)
    return least + np.minimum(more, 0), most + np.maximum(more, 0)


# It is counted with the components.
CODE = Code({"tk_ternary.h": "other"}, pack, lambda *_: {}, _proof, _reach)
