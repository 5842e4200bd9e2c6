"""The stages of a chain, one file each: specification, arithmetic and proof."""

from tinykernel.model.stage import Stage
from tinykernel.model.stages.beside import Beside
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.convolutions import Convolutions
from tinykernel.model.stages.dense import Dense
from tinykernel.model.stages.frame import Frame
from tinykernel.model.stages.kernels import Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.offset import Offset
from tinykernel.model.stages.plane import Plane
from tinykernel.model.stages.scale import Scale
from tinykernel.model.stages.separable import Separable
from tinykernel.model.stages.spectrum import Spectrum

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
