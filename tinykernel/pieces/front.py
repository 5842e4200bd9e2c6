"""Storage of the stages before the kernels, and of numbers beside a window."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.beside.spec import Beside
from tinykernel.pieces.frame.spec import FORMATS, Frame
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.machine import pack_scaler
from tinykernel.pieces.offset.spec import Offset, mean_shift
from tinykernel.pieces.packing import Code, Facts, Packed, Place, Work
from tinykernel.pieces.plane.spec import Plane
from tinykernel.pieces.separable.spec import Separable
from tinykernel.pieces.spectrum.spec import Spectrum


def pack_frame(stage: Frame, place: Place) -> Packed:
    """Store the sizes; see ``tk_frame.h`` for the state."""
    top, left, high, wide = stage.box
    row = stage.columns * stage.channels
    return Packed(
        place.structure(
            "frame",
            stage,
            {},
            format=list(FORMATS).index(stage.pixel_format),
            top=top,
            left=left,
            high=high,
            wide=wide,
        ),
        # Three numbers, sums of a line and of a row, the image.
        state_words=3 + 2 * row + -(-stage.rows * row // 4),
    )


def pack_offset(stage: Offset, place: Place) -> Packed:
    """Store the shape; see ``tk_offset.h`` for the state."""
    grid = place.grid
    window = -(-grid.size * np.dtype(grid.dtype).itemsize // 4) if place.streams else 0
    return Packed(
        place.structure(
            "offset",
            stage,
            {},
            rows=grid.rows,
            channels=grid.channels,
            hop=place.hop,
            shift=mean_shift(grid),
        ),
        # Two numbers, means and a row, the window.
        state_words=2 + 2 * grid.channels + window,
        kept_words=window,
        persists=True,
    )


def pack_spectrum(stage: Spectrum, place: Place) -> Packed:
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


def pack_plane(stage: Plane, place: Place) -> Packed:
    """Store the shape; see ``tk_plane.h`` for the state."""
    grid, following = place.grid, place.following
    streams = isinstance(following, Separable) and following.row_strides is not None
    return Packed(
        place.structure("plane", stage, {}, rows=grid.rows, bands=grid.channels, hop=place.hop),
        # Two numbers and the rows of a window, or what a stream counts.
        state_words=1 if streams else 2 + -(-grid.size // 4),
    )


_NEGATIVE = 64  # in a byte of the mix


def pack_levels(stage: Levels, place: Place) -> Packed:
    """Store how raw values become levels; ``tk_levels.h`` has the formats."""
    grid, mix = place.grid, _mix_codes(stage)
    comment = "Mixed channels: the channels in each, plus 64 where top - level is meant."
    table = None if mix is None else ("uint8_t", mix, "kernels", comment)
    return Packed(
        [
            *pack_scaler(stage.scaler, np.ones(grid.channels, dtype=bool), "levels_"),
            *place.structure(
                "levels",
                stage,
                {"mix": table},
                width=grid.columns,
                channels=grid.channels,
                bits=stage.scaler.bits,
                shift=stage.level_shift,
                mixed=stage.mix.shape[0],
                terms=0 if mix is None else mix.size // stage.mix.shape[0],
            ),
        ],
        state_words=1 + -(-grid.channels // 2) if grid.is_signal else 0,
    )


def _mix_codes(stage: Levels) -> NDArray[np.int64] | None:
    """Return the channels in each mixed channel, unless these are the channels themselves."""
    if np.array_equal(stage.mix, np.eye(stage.mix.shape[1], dtype=np.int8)):
        return None
    n_terms = int(np.count_nonzero(stage.mix, axis=1).max())
    codes: list[int] = []
    for row in stage.mix:
        used = [int(c) + (_NEGATIVE if row[c] < 0 else 0) for c in np.flatnonzero(row)]
        codes += (used * n_terms)[:n_terms]  # (f + f) >> 1 is f
    return np.array(codes, dtype=np.int64)


def _work_of_levels(stage: Levels, grid: Grid, facts: Facts) -> Work:
    kind = "signal" if grid.is_signal else "image"
    raw = "float" if stage.scaler.is_float else "integer"
    made = stage.gives(grid)
    return {
        "local": {
            f"{kind}, raw values, {raw}": float(grid.size),
            f"{kind}, positions and channels": float(made.rows * made.columns * len(stage.mix)),
        }
    }


# Tables: the array of the scaler that each holds, and its types of integers and of floats.
_ARRAYS = {
    "offsets": ("offset", "int32_t", "float"),
    "multipliers": ("multiplier", "uint32_t", "float"),
    "spans": ("span", "uint32_t", ""),
    "shifts": ("pre_shift", "uint8_t", ""),
}


def pack_beside(stage: Beside, place: Place) -> Packed:
    """Store how numbers become counts; ``tk_beside.h`` has the formats."""
    scaler, made = stage.scaler, stage.gives(place.grid)
    tables: dict[str, tuple[Any, ...] | None] = {}
    for member, (array, *types) in _ARRAYS.items():
        c_type, comment = types[scaler.is_float], f"Numbers beside: {array}."
        tables[member] = (c_type, scaler.arrays[array], "scaler", comment) if c_type else None
    comment = "Numbers beside: which one an entry looks at."
    tables["sources"] = ("uint8_t", stage.source, "scaler", comment)
    return Packed(
        place.structure(
            "beside",
            stage,
            tables,
            counts=place.grid.size,
            entries=stage.n_entries,
            factor=stage.top + 1,
        ),
        more_words=-(-made.size * (2 if made.dtype == "uint16" else 1) // 4),
        state_words=-(-stage.n_entries // 2),
        persists=True,
    )


CODES = {
    "frame": Code({"tk_frame.h": "frame"}, pack=pack_frame),
    "offset": Code({"tk_offset.h": "offset"}, pack=pack_offset),
    "spectrum": Code({"tk_spectrum.h": "spectrum"}, pack=pack_spectrum),
    "plane": Code({"tk_plane.h": "plane"}, pack=pack_plane),
    "levels": Code({"tk_levels.h": "local"}, _work_of_levels, pack_levels),
    "beside": Code(
        {"tk_beside.h": "local"},
        # In the place of those of the kernels: all counts are copied, too.
        lambda stage, grid, _: {"local": {"signal, counts": 2.0 * grid.size + stage.n_entries}},
        pack_beside,
    ),
}
