"""Counters of the generated C over a sequence, with firmware/boards/field.c."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tinykernel.build.program import MODEL, Platform, build_with
from tinykernel.decisions.sequence import COLUMNS, KEPT_EVERY
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel


def run_steps(
    model: IntegerModel,
    platform: Platform,
    folder: Path,
    steps: NDArray[np.int32],
    flags: Sequence[str] | None = None,
) -> NDArray[np.int32]:
    """Return what the C makes of `given_steps`, as `expected_steps` does; `folder` is new."""
    header = f"-DFIELD_HEADER={MODEL}_field.h"
    program = build_with("field.c", model, platform, folder, flags, [header])
    (folder / "in.bin").write_bytes(steps.astype("<i4").tobytes())
    program.run()
    return _columns((folder / "out.bin").read_bytes(), len(steps))


def _columns(data: bytes, n: int) -> NDArray[np.int32]:
    """Put the numbers of steps of two lengths under one another."""
    lengths = np.where(np.arange(n) % KEPT_EVERY == 0, len(COLUMNS), len(COLUMNS) - 1)
    if len(data) != 4 * lengths.sum():
        raise TinykernelError(f"the program wrote {len(data)} bytes instead of {4 * lengths.sum()}")
    steps = np.zeros((n, len(COLUMNS)), dtype=np.int32)
    steps[np.arange(len(COLUMNS)) < lengths[:, np.newaxis]] = np.frombuffer(data, dtype="<i4")
    return steps
