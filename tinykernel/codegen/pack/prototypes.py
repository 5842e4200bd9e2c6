"""Storage of prototypes, of a model of one class and of a decision; see ``tk_prototypes.h``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.definitions import Definition, Parts, Table


def pack_prototypes(prototypes: NDArray[np.int8], part: str) -> Parts:
    """Store levels of 4 bits, eight a word; a prototype begins with a word."""
    number, n = prototypes.shape
    padded = np.zeros((number, -(-n // 8) * 8), dtype=np.int64)
    padded[:, :n] = prototypes.astype(np.int64) & 15
    words = (padded.reshape(-1, 8) << (28 - 4 * np.arange(8))).sum(axis=1).astype(np.uint32)
    return [
        Definition("TK_PROTOTYPES", f"{number}u"),
        Table(
            "tk_prototypes",
            "uint32_t",
            words,
            part,
            "Known rows: 4 bits an input, the first one at the top.",
        ),
    ]
