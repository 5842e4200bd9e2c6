"""Storage of a spectrum: cosines and bands."""

import numpy as np

from tinykernel.pieces.packing import Code, Packed, Place
from tinykernel.pieces.spectrum.spec import Spectrum


def pack(stage: Spectrum, place: Place) -> Packed:
    """Store how samples become levels; ``tk_spectrum.h`` has the formats."""
    grid, turn = place.grid, "A quarter of a cosine, 1 as 32768."
    shift = stage.shift(grid)
    # Where channels take turns, the samples of the later ones wait.
    ring = stage.length * min(grid.channels, 2) * grid.channels
    kept_words = 4 + -(-ring * np.dtype(grid.dtype).itemsize // 4) if place.streams else 0
    edges = "First bins of the bands, and the end."
    return Packed(
        place.structure(
            "spectrum",
            stage,
            {
                "cosines": ("uint16_t", stage.cosines(), "transform", turn),
                "edges": ("uint16_t", stage.edges, "transform", edges),
            },
            channels=grid.channels,
            bands=stage.n_bands,
            left=max(shift, 0),
            right=max(-shift, 0),
        ),
        # Memory for a frame, a row of levels; of a stream also four numbers and the ring.
        state_words=stage.length + 2 + -(-stage.n_bands * grid.channels // 4) + kept_words,
        kept_words=kept_words,
        persists=True,
    )


CODE = Code({"tk_spectrum.h": "spectrum"}, pack)
