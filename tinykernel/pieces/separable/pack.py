"""Storage of convolutions of images: weights of 8 and of 4 bits, and a word per unit."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ModelError
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.layers import MIXED, POINT, SINGLE, Layer
from tinykernel.pieces.packing import Code, Packed, Place
from tinykernel.pieces.separable.spec import Separable
from tinykernel.pieces.tables import declared_number

_KEPT_ROWS = 3  # of the input of a block


def pack(stage: Separable, place: Place) -> Packed:
    """Store the layers; the formats are those of ``tk_separable_rows.h``."""
    grid, layers = place.grid, stage.layers
    streams = stage.streams
    if streams and not place.is_signal:
        raise ModelError("separable: no C for images without rows of zeros")
    down, across = np.transpose([block[0].steps for block in stage.blocks])
    shape = np.stack([stage.channels - 1, across + 16 * down], axis=1).astype(np.uint8).ravel()
    # Five bytes a channel of a single layer, words of a point layer.
    single, points = _of_4_bits(layers, SINGLE, 2), _of_4_bits(layers, POINT, 8)
    first = np.concatenate([_of_8_bits(layer) for layer in layers if layer.kind == MIXED])
    rows: dict[str, tuple[str, NDArray[Any], str]] = {
        "shape": ("uint8_t", shape, "Channels less 1 and strides of each block."),
        "first": ("uint32_t", first, "Weights of the mixed layers."),
        "single": ("uint8_t", single.astype(np.uint8), "Weights of the single layers."),
        "points": ("uint32_t", points.astype(np.uint32), "Weights of the point layers."),
        "units": ("uint32_t", _units(layers), "Bias, multiplier and shift of each unit."),
        "forms": ("uint32_t", _forms(stage), "Patches and kind of each block."),
    }
    wide, n_channels = _wide(stage, grid), int(stage.channels[-1])
    halves, made = _halves(stage, grid) + wide, stage.gives(grid).size
    window = stage.sizes(grid)[-1][0] if streams else 0
    memory = 2 + n_channels + -(-window * n_channels // 2) + halves // 4 + _words(stage, grid)
    memory += stage.channels.size * (stage.forms is not None)
    # Of a window of a signal, what is found of it is behind the state that keeps the window.
    before = 0 if place.is_signal or streams else memory
    more = 0 if streams else memory - before
    return Packed(
        place.structure(
            "separable",
            stage,
            {
                key: (kind, values, "kernels", text) if values.size else None
                for key, (kind, values, text) in rows.items()
            },
            rows=grid.rows,
            columns=grid.columns,
            given=grid.channels,
            blocks=stage.channels.size,
            window=window,
            halves=halves,
            wide=wide,
            flat=stage.gives(grid).rows * stage.flat,
            factor=stage.factor(grid),
        ),
        first_words=before,
        more_words=more + -(-made // 4),
        state_words=memory if streams else 0,
    )


def _halves(stage: Separable, grid: Grid) -> int:
    """Return the bytes of the longest row that all outputs of a layer read."""
    columns = [columns for _, columns in stage.sizes(grid)]
    return max(
        -(-width // 4) * 64 * -(-len(layer.biases) // 8)
        if layer.kind == SINGLE
        else 8 * -(-layer.weights[0].size // 4)
        for layer, width in zip(stage.layers, columns, strict=True)
        if layer.kind != POINT
    )


def _wide(stage: Separable, grid: Grid) -> int:
    """Return the bytes of the longest row before its patches; 0 without any."""
    sizes = [(grid.rows, grid.columns), *stage.sizes(grid)]
    wide = (
        4 * -(-layer.summed(*size)[1] * len(layer.biases) // 4)
        for layer, size in zip(stage.layers, sizes, strict=False)
        if layer.pool != (1, 1)
    )
    return max(wide, default=0)


def _words(stage: Separable, grid: Grid) -> int:
    """Return the words of the blocks, and of their stored rows; a flat image is elsewhere."""
    size, row = 0, grid.columns * grid.channels
    # Blocks end with the layers that are not single.
    layers = zip(stage.layers, stage.sizes(grid), strict=True)
    columns = [columns for layer, (_, columns) in layers if layer.kind != SINGLE]
    for width, channels in zip(columns, stage.channels.tolist(), strict=True):
        size += _KEPT_ROWS * row
        row = width * channels
    block_words = declared_number("tk_separable_rows.h", "TK_BLOCK_WORDS")
    return block_words * (stage.channels.size + 1) + -(-(size + row * (not stage.flat)) // 4)


def _forms(stage: Separable) -> NDArray[np.uint32]:
    """Return a word per block; ``tk_separable_rows.h`` has the format."""
    codes = list[int]()
    for mixed, zeros, high, wide, mean in stage.block_forms if stage.forms is not None else ():
        n = high * wide
        factor = -(-(1 << 20) // n) if mean and n > 1 else 0
        codes.append(wide | high << 4 | mixed << 8 | zeros << 9 | factor << 12)
    return np.array(codes, dtype=np.uint32)


def _of_8_bits(layer: Layer) -> NDArray[np.uint32]:
    """Return words of four 8-bit weights: bytes 0, 2, 1 and 3."""
    flat = layer.weights.reshape(len(layer.weights), -1).astype(np.int64) & 255
    flat = np.pad(flat, ((0, 0), (0, -flat.shape[1] % 4))).reshape(-1, 4)
    packed = flat[:, 0] | flat[:, 1] << 16 | flat[:, 2] << 8 | flat[:, 3] << 24
    return packed.astype(np.uint32)


def _of_4_bits(layers: list[Layer], kind: str, n: int) -> NDArray[np.int64]:
    """Return numbers of n weights of layers of a kind, the first one in the lowest 4 bits."""
    parts = [np.zeros(0, np.int64)]
    for layer in layers:
        if layer.kind == kind:
            if layer.weights.min() < -8 or layer.weights.max() > 7:
                raise ModelError(
                    "separable: no C for weights of more than 4 bits of a single or point layer"
                )
            nibbles = layer.weights.reshape(len(layer.weights), -1).astype(np.int64) & 15
            nibbles = np.pad(nibbles, ((0, 0), (0, -nibbles.shape[1] % n))).reshape(-1, n)
            parts.append((nibbles << 4 * np.arange(n)).sum(axis=1))
    return np.concatenate(parts)


def _units(layers: list[Layer]) -> NDArray[np.uint32]:
    """Return a word per unit: bias << 12, multiplier << 5, shift."""
    packed = [
        layer.biases.astype(np.int64) << 12 | layer.multipliers.astype(np.int64) << 5 | layer.shifts
        for layer in layers
    ]
    return (np.concatenate(packed) & 0xFFFFFFFF).astype(np.uint32)


def _properties(stage: Separable, value: Mapping[str, str]) -> dict[str, float]:
    """List what changes the code."""
    return {
        "separable of mixed layers": all(form[0] for form in stage.block_forms),
        "separable with forms": stage.forms is not None,
        "separable with patches": any(layer.pool != (1, 1) for layer in stage.layers),
        "separable, flat": stage.flat,
        "separable with a border": stage.border > 0,
        "separable of one channel": stage.given == 1,
        "separable in a stream": stage.streams,
        "separable with events": "TK_EVENT_SHIFT" in value,
    }


_HEADERS = {
    f"tk_separable{part}.h": "local" for part in ("", "_rows", "_layers", "_pooling", "_products")
}
CODE = Code(_HEADERS, pack, properties=_properties)
