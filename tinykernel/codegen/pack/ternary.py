"""Storage of ternary weights: a sign and a mask word for each output and 32 components.

There is no mask where no weight of a stored component is zero; see ``tk_scores.h``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.definitions import Definition, Parts, Table, per_block
from tinykernel.codegen.pack.components import Layout, spread_places, weight_words
from tinykernel.codegen.pack.front import Code, Facts, Work
from tinykernel.model.grid import Grid
from tinykernel.model.readouts.ternary import Ternary


def pack_ternary(part: Ternary, offset: NDArray[np.int32], layout: Layout) -> Parts:
    """Store the weights, and what an agreeing component and none are worth."""
    n_planes = layout.n_planes
    positive = spread_places(layout, part.weights > 0, 0)
    present = spread_places(layout, part.weights != 0, 0)
    if n_planes == 1:
        # A place without a component is always outside, bit 1: a sign bit 1 never agrees with it.
        positive[:, ~present[0]] = True
    planes = [weight_words(positive)] + ([weight_words(present)] if n_planes == 2 else [])
    interleaved = np.stack(planes, axis=-1)  # output, word, plane
    ends = np.cumsum(layout.n_words)[np.array(layout.counted_together()) - 1]
    groups = np.split(interleaved, ends[:-1], axis=1)
    words = np.concatenate([group.ravel() for group in groups])
    # sum of w z = 2 * agreeing - (number of weights), see tk_scores.h; wraps like the firmware.
    totals = np.count_nonzero(part.weights, axis=1)
    gains = 2 * part.multiplier.astype(np.int64)
    biases = offset.astype(np.int64) - part.multiplier.astype(np.int64) * totals
    what = "sign and mask" if n_planes == 2 else "sign"
    parts: Parts = []
    if layout.tails is not None:
        parts += per_block(
            "TK_TAIL",
            "tk_tails",
            layout.tails,
            "weights",
            "bits of the last word of a block that are no components",
        )
    return parts + [
        Definition("TK_PLANES", str(n_planes), f"{what} bits of the weights"),
        Table(
            "tk_weights",
            "uint32_t",
            words,
            "weights",
            f"Weights of blocks that are counted together, of each output: {what} bits.",
        ),
        Table("tk_gains", "int32_t", _wrapped(gains), "weights", "Score per agreeing component."),
        Table(
            "tk_biases",
            "int32_t",
            _wrapped(biases),
            "weights",
            "Score when no component agrees with its weight.",
        ),
    ]


def _wrapped(values: NDArray[np.int64]) -> NDArray[np.int32]:
    return values.astype(np.uint32).view(np.int32)


def _work(part: Ternary, given: Grid, facts: Facts) -> Work:
    return {}  # counted with the components


CODE = Code({}, _work)
