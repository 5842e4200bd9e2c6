"""Storage of convolutions: taps and biases."""

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.convolutions.spec import Convolutions
from tinykernel.pieces.packing import Code, Packed, Place

_GROUP = 4  # responses that the firmware computes together, or fewer


_ROOM = 32  # what follows reads as many values at once


def pack(stage: Convolutions, place: Place) -> Packed:
    """Store the layers; the formats are those of ``tk_convolutions.h``."""
    grid = place.grid
    made = stage.gives(grid)
    sizes = stage.sizes(grid)
    # The last group of a row may lead beyond it, but not into the next one.
    stride = max(-(-columns // _GROUP) * _GROUP for _, columns in sizes)
    rows, columns = grid.rows + 2 * stage.padding, grid.columns + 2 * stage.padding
    stride = max(stride, columns + columns % 2)
    # Of a pooled layer, the row that waits is behind those that came out.
    maps = sizes[0][0] // 2 + 1 if stage.pools[0] else sizes[0][0]
    taps = 4 if stage.weights.min() >= -8 and stage.weights.max() < 8 else 8
    largest = int(np.maximum(stage.biases, -1 - stage.biases.astype(np.int64)).max())
    biases = largest.bit_length() // 8 + 1  # bytes of each
    comment = "Convolutions: taps and bias of each layer, see tk_convolutions.h."
    codes = _codes(stage, taps, biases)
    room = -(-made.size // _ROOM) * _ROOM
    layers = np.arange(stage.pools.size)
    return Packed(
        place.structure(
            "convolutions",
            stage,
            {"codes": ("uint8_t", codes, "kernels", comment)},
            rows=rows,
            columns=columns,
            stride=stride,
            layers=stage.pools.size,
            pools=int(stage.pools @ (1 << layers)),
            shifts=int(stage.shifts.astype(np.int64) @ (1 << 4 * layers)),
            channels=stage.n_channels,
            tap_bits=taps,
            bias_bytes=biases,
        ),
        # The image, the maps, and what the last group reads behind these.
        stride // 2 * (rows + maps) + _GROUP,
        room // 4,
    )


def _codes(stage: Convolutions, tap_bits: int, bias_bytes: int) -> NDArray[np.uint8]:
    """Return the bytes of each layer of the first channel, then of the others."""
    taps = stage.weights.reshape(*stage.weights.shape[:2], 9).astype(np.int64) & 255
    if tap_bits == 4:
        taps = np.pad(taps, ((0, 0), (0, 0), (0, 1)))
        taps = (taps[..., ::2] & 15) | (taps[..., 1::2] & 15) << 4
    places = 8 * np.arange(bias_bytes)[::-1]
    bias = stage.biases.astype(np.int64)[..., None] >> places & 255
    return np.concatenate([taps, bias], axis=2).transpose(1, 0, 2).ravel().astype(np.uint8)


CODE = Code({"tk_convolutions.h": "local"}, pack)
