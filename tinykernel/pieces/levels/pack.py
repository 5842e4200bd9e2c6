"""Storage of levels: the scaler, and which channels are mixed."""

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.levels.spec import Levels
from tinykernel.pieces.packing import Code, Facts, Packed, Place, Work
from tinykernel.pieces.scale.pack import pack_scaler

_NEGATIVE = 64  # in a byte of the mix


def pack(stage: Levels, place: Place) -> Packed:
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


def _work(stage: Levels, grid: Grid, facts: Facts) -> Work:
    kind = "signal" if grid.is_signal else "image"
    raw = "float" if stage.scaler.is_float else "integer"
    made = stage.gives(grid)
    return {
        "local": {
            f"{kind}, raw values, {raw}": float(grid.size),
            f"{kind}, positions and channels": float(made.rows * made.columns * len(stage.mix)),
        }
    }


CODE = Code({"tk_levels.h": "local"}, pack, _work)
