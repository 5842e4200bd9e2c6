"""The stages of a chain, one file each: specification, arithmetic and proof."""

from tinykernel.pieces.beside.spec import Beside
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.convolutions.spec import Convolutions
from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.frame.spec import Frame
from tinykernel.pieces.kernels.spec import Kernels
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.offset.spec import Offset
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.plane.spec import Plane
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.separable.spec import Separable
from tinykernel.pieces.spectrum.spec import Spectrum

__all__ = [
    "FIRST",
    "STAGES",
    "Beside",
    "Components",
    "Convolutions",
    "Dense",
    "Frame",
    "Kernels",
    "Levels",
    "Offset",
    "Plane",
    "Scale",
    "Separable",
    "Spectrum",
]

#: Those that can stand before the levels of a signal, one in a chain.
FIRST: tuple[type[Stage], ...] = (Spectrum, Offset)
#: All that there are.
STAGES: tuple[type[Stage], ...] = (
    *FIRST,
    Frame,
    Levels,
    Plane,
    Kernels,
    Convolutions,
    Separable,
    Dense,
    Beside,
    Scale,
    Components,
)
