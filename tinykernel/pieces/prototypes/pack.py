"""Storage of prototypes: levels of 4 bits."""

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.packing import Code, Facts, Packed, Place, Work
from tinykernel.pieces.prototypes.spec import Prototypes
from tinykernel.pieces.tables import Definition, Parts, Table


def pack_prototypes(prototypes: NDArray[np.int8], part: str) -> Parts:
    """Store levels of 4 bits, eight a word; a prototype begins with a word."""
    number, n = prototypes.shape
    padded = np.zeros((number, -(-n // 8) * 8), dtype=np.int64)
    padded[:, :n] = prototypes.astype(np.int64) & 15
    packed = (padded.reshape(-1, 8) << (28 - 4 * np.arange(8))).sum(axis=1).astype(np.uint32)
    comment = "Known rows: 4 bits per input, the first one at the top."
    return [
        Definition("TK_PROTOTYPES", f"{number}u"),
        Table("tk_prototypes", "uint32_t", packed, part, comment),
    ]


def pack(part: Prototypes, place: Place) -> Packed:
    """Store the prototypes of a model that has nothing else."""
    return Packed([Definition("TK_ONE_CLASS", "1"), *pack_prototypes(part.levels, "weights")])


def _work(part: Prototypes, grid: Grid, facts: Facts) -> Work:
    size = float(part.levels.size)
    work = {"scores": {"prototypes": float(len(part.levels)), "levels of prototypes": size}}
    if grid.constant:
        # Each distance leaves constant inputs out by a function of the scaler.
        work["scale"] = {"levels of prototypes, constant inputs": size}
    return work


CODE = Code({"tk_prototypes.h": "scores"}, pack, _work)
