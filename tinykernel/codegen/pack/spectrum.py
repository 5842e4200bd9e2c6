"""Storage of the spectrum: a quarter of a cosine, edges of bands, the rest as a structure."""

from __future__ import annotations

import numpy as np

from tinykernel.codegen.definitions import Struct, Table
from tinykernel.codegen.pack import Code, Packed, Place
from tinykernel.model.stages.spectrum import Spectrum


def pack_spectrum(stage: Spectrum, place: Place) -> Packed:
    """Store how samples become levels; ``tk_spectrum.h`` has the formats."""
    name, grid = f"tk_spectrum_{place.number}", place.grid
    shift, turn = stage.shift(grid), "A quarter of a cosine, 1 as 32768."
    # Where channels take turns, the samples of the later ones wait.
    ring = stage.length * min(grid.channels, 2) * grid.channels
    kept_words = 4 + -(-ring * np.dtype(grid.dtype).itemsize // 4) if place.streams else 0
    edges = "First bins of the bands, and the end."
    return Packed(
        "tk_spectrum.h",
        [
            Table(f"{name}_cosines", "uint16_t", stage.cosines(), "transform", turn),
            Table(f"{name}_edges", "uint16_t", stage.edges, "transform", edges),
            Struct.of(
                name,
                "tk_spectrum",
                length=stage.length,
                hop=stage.hop,
                channels=grid.channels,
                bands=stage.n_bands,
                left=max(shift, 0),
                right=max(-shift, 0),
                amplitude_bits=stage.amplitude_bits,
                log_bits=stage.log_bits,
                floor=stage.floor,
                cosines=f"{name}_cosines",
                edges=f"{name}_edges",
            ),
        ],
        # Memory for a frame, a row of levels; of a stream also four numbers and the ring.
        state_words=stage.length + 2 + -(-stage.n_bands * grid.channels // 4) + kept_words,
        kept_words=kept_words,
        persists=True,
    )


CODE = Code({"tk_spectrum.h": "spectrum"}, pack=pack_spectrum)
