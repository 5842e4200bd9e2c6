"""Storage of prototypes, of a model of one class and of a decision; see ``tk_prototypes.h``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.definitions import Definition, Parts, Table
from tinykernel.codegen.pack import Code, Facts, Work
from tinykernel.model.grid import Grid
from tinykernel.model.readouts.prototypes import Prototypes


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


def _work(part: Prototypes, grid: Grid, facts: Facts) -> Work:
    size = float(part.levels.size)
    work = {"scores": {"prototypes": float(len(part.levels)), "levels of prototypes": size}}
    if grid.constant:
        # Each distance leaves constant inputs out by a function of the scaler.
        work["scale"] = {"levels of prototypes, constant inputs": size}
    return work


CODE = Code({"tk_prototypes.h": "scores"}, _work)
