"""Storage of the levels: the scaler of the channels as macros, the rest as a structure."""

from __future__ import annotations

import numpy as np

from tinykernel.codegen.packing_inputs import pack_scaler
from tinykernel.codegen.tables import Parts, Struct, Table
from tinykernel.model.compat import LocalStage

_NEGATIVE = 64  # in a byte of the mix


def pack_levels(stage: LocalStage) -> Parts:
    """Store what makes levels of raw values; the formats are those of ``tk_levels.h``."""
    mix, table = _mix_table(stage), "tk_levels_0_mix"
    return [
        *pack_scaler(stage.scaler, np.ones(stage.channels, dtype=bool), "levels_"),
        *mix,
        Struct.of(
            "tk_levels_0",
            "tk_levels",
            width=stage.width,
            channels=stage.channels,
            bits=stage.scaler.bits,
            shift=stage.level_shift,
            top=stage.top,
            average=stage.average,
            mixed=stage.mix.shape[0],
            terms=mix[0].values.size // stage.mix.shape[0] if mix else 0,
            mix=table if mix else None,
        ),
    ]


def state_words(stage: LocalStage) -> int:
    """Return the words of a stream that levels take."""
    return 1 + -(-stage.channels // 2)


def _mix_table(stage: LocalStage) -> list[Table]:
    """Return the channels in each mixed channel, unless these are the channels themselves."""
    if np.array_equal(stage.mix, np.eye(stage.channels, dtype=np.int8)):
        return []
    n_terms = int(np.count_nonzero(stage.mix, axis=1).max())
    codes = []
    for row in stage.mix:
        used = [int(c) + (_NEGATIVE if row[c] < 0 else 0) for c in np.flatnonzero(row)]
        codes += (used * n_terms)[:n_terms]  # (f + f) >> 1 is f
    comment = "Mixed channels: the channels in each, plus 64 where top - level is meant."
    return [Table("tk_levels_0_mix", "uint8_t", np.array(codes), "transform", comment)]
