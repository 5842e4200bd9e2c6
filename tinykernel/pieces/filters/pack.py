"""Storage of filters: the shapes of layers in bytes, and where in memory their values lie."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ModelError
from tinykernel.pieces.filters.spec import UNIT, Filters
from tinykernel.pieces.packing import Code, Packed, Place
from tinykernel.pieces.tables import declared_number

_MOST_BYTES = (1 << 16) - 1


@dataclass
class _Map:
    """Where the values of the input or of a layer lie, with room around them."""

    shape: tuple[int, int, int]
    above: int = 0
    before: int = 0
    below: int = 0
    behind: int = 0
    until: int = 0  # the last layer that reads it
    frame: int = 0  # its first byte

    @property
    def pitch(self) -> int:
        """Bytes of a row."""
        return (self.shape[1] + self.before + self.behind) * self.shape[2]

    @property
    def size(self) -> int:
        """Bytes of all."""
        return (self.shape[0] + self.above + self.below) * self.pitch

    @property
    def fill(self) -> int:
        """Bytes that get the border before values are there."""
        return self.size if self.size > prod(self.shape) else 0

    def byte(self, row: int, column: int) -> int:
        """Return where the values of a position begin, which may be around the others."""
        down, across = row + self.above, column + self.before
        return self.frame + down * self.pitch + across * self.shape[2]


def _maps(stage: Filters) -> list[_Map]:
    """Return the places of the input and of all layers: each in the first room that is free."""
    maps = [_Map(shape) for shape in stage.shapes]
    for number, form in enumerate(stage.layers):
        of = maps[form.reads]
        of.above, of.before = max(of.above, form.above), max(of.before, form.before)
        of.below, of.behind = max(of.below, form.below), max(of.behind, form.behind)
        of.until = max(of.until, number)
        if form.adds:
            maps[form.adds - 1].until = number
    for number, one in enumerate(maps[1:-1], 1):
        alive = sorted(
            (other.frame, other.frame + other.size)
            for other in maps[:number]
            if other.until >= number - 1
        )
        ends = [0, *(end for _, end in alive)]
        begins = [*(begin for begin, _ in alive), 1 << 30]
        one.frame = next(
            end for end, begin in zip(ends, begins, strict=True) if begin - end >= one.size
        )
    return maps


def pack(stage: Filters, place: Place) -> Packed:
    """Store the layers; the formats are those of ``tk_filters.h``."""
    maps = _maps(stage)
    forms = np.array([_items(stage, maps, number) for number in range(len(stage.forms))])
    memory = max(each.frame + each.size for each in maps[:-1])
    if max(memory, forms.max()) > _MOST_BYTES:
        raise ModelError(f"filters: no C for values of {memory} bytes; 65535 are the most")
    units = stage.multipliers.astype(np.int64) | (stage.shifts.astype(np.int64) - UNIT) << 16
    tables: dict[str, tuple[str, NDArray[Any], str, str] | None] = {
        "forms": ("uint16_t", forms.ravel(), "kernels", "Shapes of layers in bytes."),
        "weights": ("int8_t", stage.weights, "kernels", "Weights of the layers."),
        "biases": ("int32_t", stage.biases, "kernels", "Biases of channels."),
        "units": ("uint32_t", units, "kernels", "Multipliers and shifts of channels."),
        "gains": None,
        "curves": None,
    }
    if stage.gains is not None:
        tables["gains"] = ("int16_t", stage.gains, "kernels", "Weights of what layers add.")
    if stage.curves is not None:
        tables["curves"] = ("uint8_t", stage.curves.ravel(), "kernels", "Curves of levels.")
    parts = place.structure(
        "filters",
        stage,
        tables,
        values=place.grid.size,
        layers=len(stage.forms),
        first=maps[0].byte(0, 0),
        pitch=maps[0].pitch,
        fill=maps[0].fill,
    )
    return Packed(parts, first_words=-(-memory // 4), more_words=-(-prod(stage.shapes[-1]) // 4))


def _items(stage: Filters, maps: list[_Map], number: int) -> list[int]:
    """Return the numbers of a layer, in the order of ``tk_filters.h``."""
    form, seen, made = stage.layers[number], maps[stage.layers[number].reads], maps[number + 1]
    channels, own = seen.shape[2], seen.shape[2] // form.groups
    runs, run = (1, form.wide * own) if form.groups == 1 else (form.wide, own)
    added = maps[form.adds - 1] if form.adds else None
    items = [
        *(seen.byte(-form.above, -form.before), form.down * seen.pitch, form.across * channels),
        *(seen.pitch, form.high, runs, run, channels, form.channels // form.groups, own),
        *(form.channels, made.shape[0], made.shape[1], form.tall, form.broad, form.averages),
        *(form.curve, form.least, form.most),
        *((added.byte(0, 0), added.pitch) if added else (0, 0)),
        *(made.byte(0, 0), made.pitch, made.frame, made.fill, form.border),
    ]
    assert len(items) == declared_number("tk_filters.h", "TK_FORM_ITEMS")
    return items


def _properties(stage: Filters, value: Mapping[str, str]) -> dict[str, float]:
    """List what changes the code."""
    return {
        "filters that add": stage.gains is not None,
        "filters with curves": stage.curves is not None,
    }


CODE = Code(
    {"tk_filters.h": "local"},
    pack,
    properties=_properties,
    flash=120,
    prices={"filters, products": 6.0, "filters, units": 60.0, "filters, runs": 20.0},
)
