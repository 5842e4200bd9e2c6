"""What every field of a `LocalStage` must be, and how the fields fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import TinykernelError
from tinykernel.model.arrays import checked_array
from tinykernel.model.scaler import InputScaler

if TYPE_CHECKING:
    from tinykernel.model.local.stage import LocalStage

_MOST_COUNTS = 65536


def _integer(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TinykernelError(f"local stage: {name} is not an integer")
    if not low <= value <= high:
        raise TinykernelError(f"local stage: {name} is {value}, allowed are {low}..{high}")
    return int(value)


def _check_shape(stage: LocalStage) -> dict[str, Any]:
    """Check the numbers that are no arrays."""
    fields: dict[str, Any] = {
        "height": _integer("height", stage.height, 1, 65535),
        "width": _integer("width", stage.width, 1, 4096),
        "channels": _integer("channels", stage.channels, 1, 64),
        "average": _integer("average", stage.average, 1, 2),
        "padding": _integer("padding", stage.padding, 0, 255),
        "hop": _integer("hop", stage.hop, 0, 65535),
    }
    if not isinstance(stage.cells, (tuple, list)) or len(stage.cells) != 2:
        raise TinykernelError("local stage: cells is not a pair of numbers")
    most = 1 if fields["width"] == 1 else 4
    cells = (_integer("cells", stage.cells[0], 1, 255), _integer("cells", stage.cells[1], 1, most))
    if cells[1] == 3:
        raise TinykernelError("local stage: cells is 3 across, allowed are 1, 2 and 4")
    if fields["width"] == 1 and fields["padding"]:
        raise TinykernelError("local stage: a signal has no padding")
    _check_hop(fields)
    if fields["height"] * fields["width"] * fields["channels"] > 65536:
        raise TinykernelError("local stage: an input has more than 65536 values")
    if min(fields["height"], max(fields["width"], 2)) < fields["average"]:
        raise TinykernelError("local stage: the input is too small to average")
    return fields | {"cells": cells}


def _check_hop(fields: dict[str, Any]) -> None:
    """Check that windows of a stream begin where averaged samples do."""
    hop, height, average = fields["hop"], fields["height"], fields["average"]
    if hop and (fields["width"] != 1 or hop > height):
        raise TinykernelError("local stage: hop is for signals, and at most a window")
    if hop and (hop % average or height % average):
        raise TinykernelError("local stage: hop and window are no multiples of the averaging")


def _check_scaler(stage: LocalStage) -> dict[str, Any]:
    """Check the scaler and the mixed channels."""
    scaler = stage.scaler
    if not isinstance(scaler, InputScaler):
        raise TinykernelError("local stage: scaler is not an InputScaler")
    if any(array.shape[0] not in (1, stage.channels) for array in scaler.arrays.values()):
        raise TinykernelError(f"local stage: scaler does not fit {stage.channels} channels")
    if np.any(scaler.multiplier == 0):
        raise TinykernelError("local stage: a channel is constant; leave it out")
    shift = _integer("level_shift", stage.level_shift, 0, scaler.bits - 1)
    mix = checked_array("local mix", stage.mix, "int8", (None, stage.channels))
    terms = np.count_nonzero(mix, axis=1)
    if np.abs(mix.astype(int)).max() > 1 or terms.min() < 1 or terms.max() > 2:
        raise TinykernelError("local stage: mix has one or two entries of +-1 in each row")
    return {"level_shift": shift, "mix": mix}


def _check_kernels(stage: LocalStage) -> dict[str, Any]:
    """Check the kernels, and that they fit into the input."""
    taps = checked_array("local taps", stage.taps, "int8", (None, None, None))
    _check_taps(taps, stage.width == 1)
    n = (taps.shape[0],)
    fields = {
        "taps": taps,
        "dilation": checked_array("local dilation", stage.dilation, "uint8", n),
        "channel": checked_array("local channel", stage.channel, "uint8", n),
        "threshold": checked_array("local threshold", stage.threshold, "int32", n),
    }
    if fields["dilation"].min() < 1 or fields["channel"].max() >= stage.mix.shape[0]:
        raise TinykernelError("local stage: a dilation is 0 or a channel does not exist")
    if n[0] * stage.cells[0] * stage.cells[1] > _MOST_COUNTS:
        raise TinykernelError(f"local stage: more than {_MOST_COUNTS} counts")
    span = (taps.shape[1] - 1) * int(fields["dilation"].max())
    if stage.rows + 2 * stage.padding - span < stage.cells[0]:
        raise TinykernelError(
            f"local stage: kernels of {span + 1} rows leave fewer positions than cells in "
            f"{stage.rows} rows"
        )
    return fields


def _check_taps(taps: NDArray[np.int8], is_signal: bool) -> None:
    """Check that every kernel is of a kind that the firmware computes."""
    flat = taps.reshape(taps.shape[0], -1)
    if is_signal:
        newest = np.zeros(9, dtype=np.int8)
        newest[-1] = 1
        known = taps.shape[1:] == (9, 1) and np.all(
            (np.sort(flat, axis=1) == [-1] * 6 + [2] * 3).all(axis=1)
            | (flat == 1).all(axis=1)
            | (flat == newest).all(axis=1)
        )
    else:
        sizes = taps.shape[1] % 2 == 1 and taps.shape[2] % 2 == 1 and max(taps.shape[1:]) <= 7
        known = sizes and np.abs(flat.astype(int)).max() <= 1 and flat.any(axis=1).all()
    if not known:
        raise TinykernelError("local stage: taps holds a kernel that is of no known kind")


#: Each checks some fields and returns them as they are kept; a check may rely on those before it.
CHECKS: tuple[Callable[[LocalStage], dict[str, Any]], ...] = (
    _check_shape,
    _check_scaler,
    _check_kernels,
)
