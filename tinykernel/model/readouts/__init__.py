"""The parts of a read-out, one file each, and what they add up to."""

from tinykernel.model.readouts.linear import Linear
from tinykernel.model.readouts.prototypes import Prototypes
from tinykernel.model.readouts.readout import Readout
from tinykernel.model.readouts.ternary import Ternary
from tinykernel.model.readouts.trees import Trees
from tinykernel.model.stage import Part

__all__ = ["PARTS", "Linear", "Prototypes", "Readout", "Ternary", "Trees"]

#: All that there are.
PARTS: tuple[type[Part], ...] = (Ternary, Linear, Trees, Prototypes)
