"""The parts of a Fastfood block that are no values: the permutation P, and how G is held."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.record import Record, limits


@dataclass(frozen=True, eq=False)
class Permutation(Record):
    """The permutation P in ``V = S H G P H B`` (Lei & Lan 2021, formula (3)).

    ``(P u)[j] = u[indices[j]]``. "identity" keeps the order. "orbit" visits
    ``s_0 = 0, s_{j+1} = (multiplier * s_j + increment) mod d``, a sequence of full period d when d
    is a power of two, ``multiplier % 4 == 1`` and ``increment`` is odd (Hull & Dobell 1962). So the
    firmware stores two numbers instead of d.

    >>> Permutation("orbit", multiplier=5, increment=3).indices(8)
    array([0, 3, 2, 5, 4, 7, 6, 1], dtype=uint16)
    """

    OWNER = "permutation"

    kind: str = "identity"
    multiplier: int = field(default=1, metadata=limits(0, 65535))
    increment: int = field(default=1, metadata=limits(0, 65535))

    def check(self) -> None:
        """Refuse parameters that do not describe a permutation."""
        if self.kind not in ("identity", "orbit"):
            raise self.refuse(f"unknown kind {self.kind!r}")
        if self.kind == "orbit" and (self.multiplier % 4 != 1 or self.increment % 2 != 1):
            raise self.refuse(
                "an orbit of full period needs multiplier % 4 == 1 and an odd "
                f"increment, got {self.multiplier} and {self.increment}"
            )

    def indices(self, dimension: int) -> NDArray[np.uint16]:
        """Return the source of each output, uint16 (dimension,), a power of two to 65536."""
        if self.kind == "identity":
            return np.arange(dimension).astype(np.uint16)
        orbit = np.zeros(1, dtype=np.int64)
        multiplier, increment = self.multiplier, self.increment
        while orbit.size < dimension:
            # From the first k positions to the next k: k steps at once are again one step.
            orbit = np.append(orbit, (multiplier * orbit + increment) % dimension)
            increment = (multiplier + 1) * increment % dimension
            multiplier = multiplier**2 % dimension
        return orbit[:dimension].astype(np.uint16)


#: Largest magnitude in a diagonal, by kind.
LARGEST = {"int8": 127, "int4": 7, "sign": 1}

#: Bits that one entry takes, by kind.
BITS = {"int8": 8, "int4": 4, "sign": 1}

#: Right shift of the product with a diagonal, by kind: no product is larger than what it came from.
SHIFTS = {"int8": 7, "int4": 3, "sign": 0}
