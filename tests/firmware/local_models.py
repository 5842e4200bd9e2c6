"""Models with a local stage or a linear part: between them every table and special case."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.convolutions import convolution_model, dense_model
from tests.frames import frame_model
from tests.random_fronts import local_model, model_of, offset_model, random_signal_stage
from tests.random_models import random_model, with_linear
from tests.separable import separable_model
from tests.spectra import plane_model, spectral_model
from tinykernel.model.answers import Events
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.beside.sample import random_beside
from tinykernel.pieces.catalogue import samples_of


def with_events(model: IntegerModel, shift: int = 1, pause: int = 1) -> IntegerModel:
    """Let a model tell events of all classes but the first one, which is background."""
    low, high = model.ranges()[-1].low, model.ranges()[-1].high
    thresholds = np.full(model.n_classes, (high - low) // 64 + 1, np.uint32)
    thresholds[0] = 0
    return replace(model, events=Events(thresholds, shift, pause))


LINEAR: dict[str, Callable[[], IntegerModel]] = {
    "1 bit": lambda: with_linear(random_model(1, n_features=45, raw_dtype="int16"), 1, 1, False),
    "2 bits, 2 classes": lambda: with_linear(
        random_model(2, n_features=16, n_classes=2, raw_dtype="int8"), 2, 2, False
    ),
    "4 bits, few inputs": lambda: with_linear(random_model(3, n_features=3), 3, 4, False),
    "8 bits of 16, float": lambda: with_linear(
        random_model(4, n_features=40, bits=16, raw_dtype="float32"), 4, 8, False
    ),
    "2 bits, components": lambda: with_linear(random_model(5, n_features=70), 5, 2),
    "4 bits of 16, components, 2 classes": lambda: with_linear(
        random_model(6, n_features=45, bits=16, n_classes=2, permutation="orbit"), 6, 4
    ),
}
SIGNALS: dict[str, Callable[[], IntegerModel]] = {
    "averaged": lambda: local_model(random_signal_stage(1), 1),
    "events": lambda: with_events(local_model(random_signal_stage(13, hop=4), 13)),
    "cells, odd hop": lambda: local_model(random_signal_stage(2, cells=(3, 1), hop=22), 2),
    "components": lambda: local_model(
        random_signal_stage(3, cells=(2, 1), hop=64), 3, components=True
    ),
    "components only, many windows": lambda: local_model(
        random_signal_stage(4, hop=10), 4, weight_bits=0
    ),
    "16-bit counts, float": lambda: local_model(
        random_signal_stage(5, height=600, hop=150, average=1, raw_dtype="float32", cells=(2, 1)), 5
    ),
    "no stream": lambda: local_model(random_signal_stage(6, height=65, hop=0), 6),
    "12-bit levels, 16-bit inputs": lambda: local_model(
        random_signal_stage(7, level_bits=12, dilations=(1, 2, 3), terms=1), 7, bits=16
    ),
    "numbers beside": lambda: local_model(
        random_signal_stage(9), 9, beside=random_beside(9, 3, "int16", 300)
    ),
    "numbers beside, components, 16-bit counts, float": lambda: local_model(
        random_signal_stage(10, height=600, hop=150, raw_dtype="float32", average=1),
        10,
        beside=random_beside(10, 1, "float32", 580),
        components=True,
    ),
    "numbers beside, wide, cells, no stream": lambda: local_model(
        random_signal_stage(11, cells=(3, 1), hop=0, raw_dtype="int32"),
        11,
        beside=random_beside(11, 2, "int32"),
    ),
    "one channel": lambda: local_model(
        random_signal_stage(8, channels=1, terms=0, hop=2, height=34, raw_dtype="int32"), 8
    ),
}
SPECTRA: dict[str, Callable[[], IntegerModel]] = {
    "int16": lambda: spectral_model(1),
    "2 channels of int8": lambda: spectral_model(2, channels=2, dtype="int8", cells=(1, 1)),
    "4 channels, steps at once": lambda: spectral_model(5, channels=4, dtype="int8", cells=(1, 1)),
    "kernels in turns": lambda: spectral_model(6, n_kernels=200, dilations=(1, 2)),
    "uint8, no stream": lambda: spectral_model(3, length=128, dtype="uint8", hop=0),
    "numbers beside": lambda: spectral_model(5, n_numbers=2),
    "int32": lambda: spectral_model(4, length=128, dtype="int32", frames=13, dilations=(1,)),
    "planes": lambda: plane_model(1, (3, 9, 4), (2, 1, 2)),
    "planes of one block, no stream": lambda: plane_model(2, (6,), (2,), hop=0, dtype="uint8"),
    "planes apart": lambda: plane_model(
        3, output={"n_classes": 2}, frames=16, dilations=(1,), hop=17
    ),
    "planes of a stream": lambda: plane_model(
        1, (3, 9, 4), (2, 1, 2), frames=23, hop=2, row_strides=(2, 1, 1)
    ),
    "planes of a stream, steps at once": lambda: plane_model(
        2, (6, 5), (2, 1), channels=4, dtype="int8", cells=(1, 1), hop=20, row_strides=(2, 2)
    ),
    "planes of a stream of one block": lambda: plane_model(
        3, (6,), (1,), hop=1, dtype="uint8", row_strides=(1,)
    ),
}
OFFSETS: dict[str, Callable[[], IntegerModel]] = {
    "int16": lambda: offset_model(1),
    "1 channel of uint8, odd length": lambda: offset_model(
        2, "uint8", channels=1, terms=0, average=1, height=61, hop=7
    ),
    "numbers beside": lambda: offset_model(5, n_numbers=2),
    "int8, no stream": lambda: offset_model(3, "int8", height=48, hop=0, cells=(3, 1)),
    "uint16, components": lambda: offset_model(4, "uint16", hop=64, weight_bits=0),
}
SEPARABLE: dict[str, Callable[[], IntegerModel]] = {
    "one block": lambda: separable_model(1, (8, 9), (6,), (2,)),
    "colours, odd sides, strides": lambda: separable_model(
        2, (11, 7), (3, 9, 17, 4), (1, 2, 1, 2), channels=3
    ),
    "averaged floats": lambda: separable_model(
        3, (6, 6), (12, 10), (1, 1), average=2, raw_dtype="float32"
    ),
    "mixed twice, patches, flat, hidden layer": lambda: separable_model(
        4,
        (15, 12),  # of the last rows no patch is made
        (5, 6),
        (1, 1),
        channels=3,
        layers_of={"forms": [[1, 1, 2, 2, 0], [1, 0, 2, 1, 1]], "flat": True, "border": 9},
        units=7,
    ),
    "of all forms": lambda: separable_model(
        5,
        (15, 16),
        (3, 9, 4),
        (1, 2, 1),
        layers_of={"forms": [[1, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 1, 3, 2, 1]]},
    ),
}
CONVOLUTIONS: dict[str, Callable[[], IntegerModel]] = {
    "4-bit taps": lambda: convolution_model(1, (28, 28), (1, 0, 1), channels=4, bits=4),
    "8-bit taps, averaged, hidden layer": lambda: convolution_model(
        2, (14, 14), (0, 1, 1), padding=1, average=2, units=9, unit_bits=2
    ),
    "float, odd sides, 4-bit levels": lambda: convolution_model(
        3, (11, 9), (1,), raw_dtype="float32", level_bits=4, units=5, unit_bits=8
    ),
    "components, signs of a hidden layer": lambda: convolution_model(
        4, (7, 9), (0, 0, 0), units=40, unit_bits=1, components=True
    ),
}
DENSE: dict[str, Callable[[], IntegerModel]] = {
    "table of floats": lambda: dense_model(1, (12, 40, 5), n=70, raw_dtype="float32"),
    "table of int32": lambda: dense_model(2, (7,), 4, n=3, raw_dtype="int32"),
    "image, averaged": lambda: dense_model(3, (33, 3), 2, average=2),
}
FRAMES: dict[str, Callable[[], IntegerModel]] = {
    "grey": lambda: frame_model(1, 12, 16),
    "colours": lambda: frame_model(2, 9, 8, 3),
    "colours, low byte first": lambda: frame_model(7, 9, 8, 3),
    "grey bytes": lambda: frame_model(24, 9, 8),
    "convolutions": lambda: frame_model(3, 14, 15, layers=1),
}
FILTERS: dict[str, Callable[[], IntegerModel]] = {
    name: lambda n=number: model_of(samples_of("filters", 1)[n], 2)
    for number, name in enumerate(("groups, sums and curves", "signal", "table"))
}
SQUARES: dict[str, Callable[[], IntegerModel]] = {
    name: lambda n=number: model_of(samples_of("squares", 1)[n], 2)
    for number, name in enumerate(("8 bits, triangles", "diagonals", "triangles"))
}
ALL = (
    {f"linear, {name}": make for name, make in LINEAR.items()}
    | {f"signal, {name}": make for name, make in SIGNALS.items()}
    | {f"spectrum, {name}": make for name, make in SPECTRA.items()}
    | {f"offset, {name}": make for name, make in OFFSETS.items()}
    | {f"frame, {name}": make for name, make in FRAMES.items()}
    | {f"convolutions, {name}": make for name, make in CONVOLUTIONS.items()}
    | {f"dense, {name}": make for name, make in DENSE.items()}
    | {f"separable, {name}": make for name, make in SEPARABLE.items()}
    | {f"filters, {name}": make for name, make in FILTERS.items()}
    | {f"squares, {name}": make for name, make in SQUARES.items()}
)
