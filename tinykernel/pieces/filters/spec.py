"""Filters: convolutions with kernels of any size, of images, signals and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.text import count
from tinykernel.pieces.grid import LARGEST, Grid
from tinykernel.pieces.piece import Stage, dot_ends, prove
from tinykernel.pieces.proof import Range
from tinykernel.pieces.record import Matrix, limits

_MOST_LAYERS = 64
_MOST_SIDE = 4096
#: Sums whose product with a multiplier two halves make.
LARGEST_SUM = (1 << 30) - 1
#: Bits of a multiplier, and of the least shift of its product.
UNIT = 15
_VALUES_AT_ONCE = 1 << 22


class Form(NamedTuple):
    """The shape of one layer: a row of `forms`."""

    reads: int  # the values that it sums: 0 are the input, k those of layer k - 1
    adds: int  # 1 plus the values that it adds, of its own positions; 0 adds none
    channels: int
    groups: int  # of channels, each of which reads its part of the channels
    high: int  # rows and columns of a kernel
    wide: int
    down: int  # strides
    across: int
    above: int  # positions around what it reads
    before: int
    below: int
    behind: int
    tall: int  # rows and columns of the patches of which one value is left
    broad: int
    averages: int  # whether that is the mean, not the largest
    curve: int  # 1 plus its place in `curves`; 0 for none
    border: int  # value around what it gives
    least: int  # of what it gives before the curve
    most: int


@dataclass(frozen=True, eq=False)
class Filters(Stage):
    """The stage *filters*: layers of sums of neighbours, each with a multiplier by channel.

    The input is an image of rows, columns and channels, uint8 from 0 up. A row of `forms` is a
    `Form`: what the layer reads and how. Of channel c of group g, at row y and column x, with f
    what it reads and `border` around that, and r what it adds::

        a = biases[c] + sum over i, j, d of w[c, i, j, d] * f[down y + i - above,
                                                              across x + j - before, own g + d]
        a = a + gains[c] * r[y, x, c]
        v = min(max((a * multipliers[c]) >> shifts[c], least), most)

    ``>>`` rounds down. ``curves[v]`` replaces v if the layer has a curve. Then the largest v of a
    patch is left, or its mean: ``min(max(((biases[n + c] + sum of v) * multipliers[n + c]) >>
    shifts[n + c], 0), 255)``, with n channels. Weights, biases, multipliers, shifts and gains hold
    the layers one after the other; those that add nothing have no gains.

    A mean, and each layer, is exact in integers of 32 bits: see Jacob et al. (2018), section 2.2,
    for the multipliers.

    >>> form = Form(0, 0, 1, 1, 1, 2, 1, 1, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 255)
    >>> stage = Filters(1, 4, 1, 0, [form], [1, 3], [1], [1 << 14], [15])
    >>> stage.run(np.array([[5, 6, 1, 0]], dtype=np.uint8), Grid(1, 4, 1, "uint8", 0, 15)).tolist()
    [[12, 1]]
    """

    KIND = "filters"
    TAKES = ("levels",)
    GIVES = "maps"
    INPUTS = ("image", "table")
    NAMES = True

    rows: int = field(metadata=limits(1, LARGEST))
    columns: int = field(metadata=limits(1, LARGEST))
    given: int = field(metadata=limits(1, LARGEST))  # channels of the input
    border: int = field(metadata=limits(0, 255))  # value around the input
    forms: Matrix[np.uint16] = field(metadata=limits(0, _MOST_SIDE, "layers", len(Form._fields)))
    weights: NDArray[np.int8] = field(metadata=limits(None, None))
    biases: NDArray[np.int32] = field(metadata=limits(-LARGEST_SUM, LARGEST_SUM, "units"))
    multipliers: NDArray[np.uint16] = field(metadata=limits(0, (1 << UNIT) - 1, "units"))
    shifts: NDArray[np.uint8] = field(metadata=limits(UNIT, 2 * UNIT, "units"))
    gains: NDArray[np.int16] | None = field(default=None, metadata=limits(None, None))
    curves: Matrix[np.uint8] | None = field(default=None, metadata=limits(0, 255, None, 256))

    def check(self) -> None:
        if len(self.forms) > _MOST_LAYERS:
            raise self.refuse(f"{len(self.forms)} layers, allowed are 1..{_MOST_LAYERS}")
        curves = max(form.curve for form in self.layers)
        if curves != (0 if self.curves is None else len(self.curves)):
            raise self.refuse(f"the last of its curves is {curves}, which is not their number")
        for number, form in enumerate(self.layers):
            sides = form[form._fields.index("channels") : form._fields.index("above")]
            if min(*sides, form.tall, form.broad) < 1 or form.channels % form.groups:
                raise self.refuse(f"layer {number} has sides or strides of 0, or parts of groups")
            levels = max(form.border, form.least, form.most)
            wrong = form.least > form.most or form.averages > 1
            if wrong or levels > 255 or max(form.reads, form.adds - 1) > number:
                raise self.refuse(f"layer {number} reads, bends or averages nothing that there is")
        self._check_sizes()

    def _check_sizes(self) -> None:
        shapes = self.shapes
        weights = units = gains = 0
        for number, form in enumerate(self.layers):
            before = shapes[form.reads]
            if before[2] % form.groups or min(shapes[number + 1]) < 1:
                raise self.refuse(f"layer {number} takes values of another shape")
            if form.adds and shapes[form.adds - 1] != self.summed(form):
                raise self.refuse(f"layer {number} adds values of another shape")
            if max(map(prod, (self.summed(form), self._framed(form)))) > LARGEST:
                raise self.refuse(f"layer {number} has more than {LARGEST} values")
            weights += prod(self.kernel(form))
            units += form.channels * (1 + form.averages)
            gains += form.channels * (form.adds > 0)
        self.require_shape("weights", (weights,))
        self.require_shape("biases", (units,))
        if gains != (0 if self.gains is None else self.gains.size):
            raise self.refuse(f"gains are not the {gains} of its layers")

    @property
    def layers(self) -> list[Form]:
        """The shape of each layer."""
        return [Form(*row) for row in self.forms.tolist()]

    def kernel(self, form: Form) -> tuple[int, int, int, int]:
        """Return the shape of the weights of a layer."""
        own = self.shapes[form.reads][2] // form.groups
        return form.channels, form.high, form.wide, own

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        """Rows, columns and channels of the input and behind each layer."""
        shapes = [(self.rows, self.columns, self.given)]
        for form in self.layers:
            rows, columns, channels = _summed(form, shapes[form.reads])
            shapes.append((rows // form.tall, columns // form.broad, channels))
        return shapes

    def summed(self, form: Form) -> tuple[int, int, int]:
        """Return the rows, columns and channels of a layer before its patches."""
        return _summed(form, self.shapes[form.reads])

    def _framed(self, form: Form) -> tuple[int, int, int]:
        rows, columns, channels = self.shapes[form.reads]
        return (rows + form.above + form.below, columns + form.before + form.behind, channels)

    def border_of(self, number: int) -> int:
        """Return the value around the input, number 0, or around what a layer gives."""
        return self.layers[number - 1].border if number else self.border

    @property
    def title(self) -> str:
        return f"{count(len(self.forms), 'layer')} of filters, {self.shapes[-1][2]} channels"

    def gives(self, grid: Grid) -> Grid:
        if grid.dtype != "uint8" or grid.low != 0 or grid.size != prod(self.shapes[0]):
            raise self.refuse(
                f"takes {prod(self.shapes[0])} values of uint8, not {grid.size} of {grid.dtype}"
            )
        return Grid(*self.shapes[-1], "uint8", 0, max(1, self._ends(grid)[-1][-1][1]))

    def run(self, values: NDArray[Any], grid: Grid) -> NDArray[Any]:
        out = np.empty((len(values), prod(self.shapes[-1])), dtype=np.uint8)
        largest = max(prod(self.summed(form)) for form in self.layers)
        at_once = max(1, _VALUES_AT_ONCE // max(grid.size, largest))
        for first in range(0, len(values), at_once):
            part = values[first : first + at_once]
            maps = [part.reshape(len(part), *self.shapes[0])]
            for number in range(len(self.forms)):
                maps.append(self.layer(number, maps))
            out[first : first + at_once] = maps[-1].reshape(len(part), -1)
        return out

    def parts(self, number: int) -> tuple[NDArray[np.int8], slice, NDArray[np.int16] | None]:
        """Return the weights of a layer by channel, where its units are, and its gains."""
        weight = unit = gain = 0
        for form in self.layers[:number]:
            weight += prod(self.kernel(form))
            unit += form.channels * (1 + form.averages)
            gain += form.channels * (form.adds > 0)
        form = self.layers[number]
        shape = self.kernel(form)
        weights = self.weights[weight : weight + prod(shape)].reshape(shape)
        units = slice(unit, unit + form.channels * (1 + form.averages))
        if self.gains is None or not form.adds:
            return weights, units, None
        return weights, units, self.gains[gain : gain + form.channels]

    def layer(self, number: int, maps: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """Return what a layer makes of the images before it, (n, rows, columns, channels)."""
        form, (weights, units, gains) = self.layers[number], self.parts(number)
        sums = self._sums(form, weights, maps[form.reads])
        if gains is not None:
            sums += gains.astype(np.int64) * maps[form.adds - 1]
        n = form.channels
        values = self._levels(sums, slice(units.start, units.start + n))
        values = np.clip(values, form.least, form.most)
        if form.curve and self.curves is not None:
            values = self.curves[form.curve - 1][values]
        (rows, columns), tall, broad = values.shape[1:3], form.tall, form.broad
        cut = values[:, : rows // tall * tall, : columns // broad * broad]
        cut = cut.reshape(len(cut), rows // tall, tall, columns // broad, broad, n)
        if form.averages:
            means = self._levels(
                cut.sum(axis=(2, 4), dtype=np.int64), slice(units.start + n, units.stop)
            )
            return np.asarray(np.clip(means, 0, 255), dtype=np.uint8)
        return np.asarray(cut.max(axis=(2, 4)), dtype=np.uint8)

    def _levels(self, sums: NDArray[np.int64], units: slice) -> NDArray[np.int64]:
        products = (sums + self.biases[units]) * self.multipliers[units].astype(np.int64)
        return np.asarray(products >> self.shifts[units])

    def _sums(
        self, form: Form, weights: NDArray[np.int8], maps: NDArray[np.uint8]
    ) -> NDArray[np.int64]:
        rows, columns, n = self.summed(form)
        around = (0, 0), (form.above, form.below), (form.before, form.behind), (0, 0)
        padded = np.pad(maps, around, constant_values=self.border_of(form.reads))
        # Whole numbers below 2**24 or 2**53, whatever the order of additions.
        most = 255 * int(np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3)).max())
        exact: type[np.floating[Any]] = np.float32 if most < 1 << 24 else np.float64
        of_group = weights.reshape(form.groups, n // form.groups, *weights.shape[1:]).astype(exact)
        total = np.zeros((form.groups, len(maps), rows * columns, n // form.groups), exact)
        for i, j in np.ndindex(form.high, form.wide):
            patches = padded[:, i :: form.down, j :: form.across][:, :rows, :columns].astype(exact)
            patches = patches.reshape(len(maps), rows * columns, form.groups, -1).transpose(
                2, 0, 1, 3
            )
            total += patches @ of_group[:, None, :, i, j].transpose(0, 1, 3, 2)
        total = total.transpose(1, 2, 0, 3).reshape(len(maps), rows, columns, n)
        return total.astype(np.int64)

    def _ends(self, grid: Grid) -> list[list[tuple[int, int]]]:
        """Return of each layer the ends of its sums, of sums of patches, and of what it gives."""
        highs, ends = [grid.high], list[list[tuple[int, int]]]()
        for number, form in enumerate(self.layers):
            weights, units, gains = self.parts(number)
            n, found = form.channels, list[tuple[int, int]]()
            high = max(highs[form.reads], self.border_of(form.reads))
            low, most = dot_ends(weights.reshape(n, -1), high)
            if gains is not None:
                more = dot_ends(gains.reshape(n, 1), highs[form.adds - 1])
                low, most = low + more[0], most + more[1]
            of_sums = slice(units.start, units.start + n)
            low, most = (end + self.biases[of_sums] for end in (low, most))
            found.append((int(low.min()), int(most.max())))
            products = most * self.multipliers[of_sums] >> self.shifts[of_sums]
            top = int(np.clip(products, form.least, form.most).max())
            if form.curve and self.curves is not None:
                top = int(self.curves[form.curve - 1][: top + 1].max())
            if form.averages:
                behind = slice(units.start + n, units.stop)
                biases = self.biases[behind].astype(np.int64)
                sums = biases + form.tall * form.broad * top
                found.append((int(biases.min()), int(sums.max())))
                products = sums * self.multipliers[behind] >> self.shifts[behind]
                top = int(np.clip(products, 0, 255).max())
            ends.append([*found, (0, top)])
            highs.append(top)
        return ends

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        ranges = []
        for number, ends in enumerate(self._ends(grid)):
            names = ["sum", "sum of patches"][: len(ends) - 1]
            for name, (low, high) in zip(names, ends, strict=False):
                name = f"{name} of layer {number}"
                ranges.append(Range(name, low, high, -LARGEST_SUM, LARGEST_SUM))
            ranges.append(Range(f"map of layer {number}", *ends[-1], 0, 255))
        return prove(ranges, self.OWNER, "use smaller weights")

    def work(self, grid: Grid) -> dict[str, float]:
        """Return products, sums, and runs of values side by side, of all layers."""
        work = dict.fromkeys(("product", "unit", "run"), 0.0)
        for form in self.layers:
            units = prod(self.summed(form))
            _, high, wide, own = self.kernel(form)
            work["unit"] += units
            work["product"] += units * high * wide * own
            work["run"] += units * high * (wide if form.groups > 1 else 1)
        return work


def _summed(form: Form, before: tuple[int, int, int]) -> tuple[int, int, int]:
    rows = before[0] + form.above + form.below - form.high
    columns = before[1] + form.before + form.behind - form.wide
    if min(rows, columns) < 0:
        return 0, 0, form.channels
    return rows // form.down + 1, columns // form.across + 1, form.channels
