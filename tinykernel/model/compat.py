"""The fields that an `IntegerModel` had before it was a chain, until all readers are migrated.

Nothing new may use this; the file goes when its last reader has gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import TinykernelError
from tinykernel.hadamard import padded_dimension
from tinykernel.model.answers.values import Values
from tinykernel.model.grid import Grid
from tinykernel.model.permutation import Permutation
from tinykernel.model.proof import Range
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.readouts.prototypes import Prototypes
from tinykernel.model.readouts.ternary import Ternary
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.kernels import LANE_BITS, WIDEST_CELL, Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.scale import Scale
from tinykernel.model.stages.spectrum import Spectrum

if TYPE_CHECKING:
    from collections.abc import Callable

    from tinykernel.model.answers.labels import Labels
    from tinykernel.model.readouts.readout import Readout
    from tinykernel.model.stage import Stage

__all__ = ["LANE_BITS", "WIDEST_CELL", "FormerFields", "LocalStage"]


@dataclass(frozen=True, eq=False)
class LocalStage:
    """The stages levels and kernels, and the shape of their input, as one."""

    height: int
    width: int
    channels: int
    scaler: Scale
    level_shift: int
    average: int
    mix: NDArray[np.int8]
    taps: NDArray[np.int8]
    dilation: NDArray[np.uint8]
    channel: NDArray[np.uint8]
    threshold: NDArray[np.int32]
    cells: tuple[int, int]
    padding: int = 0
    hop: int = 0

    def __post_init__(self) -> None:
        """Make both stages, which check everything, and keep what they keep."""
        for stage in (self.levels_stage, self.kernels_stage):
            for field in stage.FIELDS:
                if field.name != "output" and field.since < 4:
                    object.__setattr__(self, field.name, getattr(stage, field.name))
        given = self.levels_stage.gives(self.grid)
        if self.is_signal != self.kernels_stage.is_signal:
            raise TinykernelError("kernels: taps holds a kernel that is of no known kind")
        self.kernels_stage.gives(given)
        self.kernels_stage.ranges(given)
        if self.hop and (
            not self.is_signal
            or not 0 < self.hop <= self.height
            or self.hop % self.average
            or self.height % self.average
        ):
            raise TinykernelError("local stage: hop is for signals, and at most a window")

    @cached_property
    def grid(self) -> Grid:
        """What it takes."""
        return Grid.raw(self.scaler.raw_dtype, self.height, self.width, self.channels)

    @cached_property
    def levels_stage(self) -> Levels:
        """The stage levels."""
        return Levels(self.scaler, self.level_shift, self.average, self.mix)

    @cached_property
    def kernels_stage(self) -> Kernels:
        """The stage kernels."""
        return Kernels(
            self.taps, self.dilation, self.channel, self.threshold, self.cells, self.padding
        )

    @property
    def _level_grid(self) -> Grid:
        return self.levels_stage.gives(self.grid)

    @property
    def n_inputs(self) -> int:
        """Number of raw values of an input."""
        return self.grid.size

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an input."""
        return self.grid.shape

    @property
    def is_signal(self) -> bool:
        """Whether the rows are samples in time."""
        return self.width == 1

    @property
    def rows(self) -> int:
        """Number of rows after averaging."""
        return self._level_grid.rows

    @property
    def columns(self) -> int:
        """Number of columns after averaging."""
        return self._level_grid.columns

    @property
    def cell_columns(self) -> int:
        """Columns of a cell."""
        return self.kernels_stage.cell_columns(self._level_grid)

    @property
    def top(self) -> int:
        """Largest level."""
        return self.levels_stage.top

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return self.kernels_stage.n_kernels

    @property
    def n_counts(self) -> int:
        """Number of counts."""
        return self.kernels_stage.n_counts

    def spans(self) -> NDArray[np.int64]:
        """Return how many rows before the newest each kernel reaches back."""
        return self.kernels_stage.spans()

    @property
    def largest_count(self) -> int:
        """No count is larger."""
        return self.kernels_stage.largest_count(self._level_grid)

    @property
    def count_dtype(self) -> str:
        """Type of the counts."""
        return self.kernels_stage.gives(self._level_grid).dtype

    @property
    def lane_bits(self) -> int:
        """Width of the packed integers in C."""
        return self.kernels_stage.lane_bits(self._level_grid)

    @property
    def _tap_table(self) -> Any:
        return self.kernels_stage._tap_table

    def ranges(self) -> tuple[Range, ...]:
        """Return the ranges of the kernels."""
        return self.kernels_stage.ranges(self._level_grid)

    def as_raw(self, X: ArrayLike) -> NDArray[Any]:
        """Convert inputs to rows of the raw type."""
        return self.grid.as_raw(X)

    def levels(self, raw: NDArray[Any]) -> NDArray[np.int32]:
        """Compute the levels, int32, shape (n, rows, columns, n_mixed)."""
        made = self._level_grid
        flat = self.levels_stage.run(raw, self.grid)
        return flat.reshape(-1, made.rows, made.columns, made.channels).astype(np.int32)

    def counts(self, X: ArrayLike) -> NDArray[Any]:
        """Compute the counts of inputs."""
        raw, step = self.as_raw(X), 4096
        parts = [
            self.kernels_stage.run(
                self.levels_stage.run(raw[first : first + step], self.grid), self._level_grid
            )
            for first in range(0, max(1, len(raw)), step)
        ]
        return np.concatenate(parts)


class FormerFields:
    """Properties in place of the fields, void arrays where a part is not there."""

    input: Grid
    stages: tuple[Stage, ...]
    readout: Readout
    answers: Labels | Values
    hop: int

    if TYPE_CHECKING:
        find: Callable[[type], Any]
        scaler: Any

        @property
        def n_features(self) -> int:
            """Number of quantized inputs."""

        @property
        def n_outputs(self) -> int:
            """Number of outputs."""

    @cached_property
    def local(self) -> LocalStage | None:
        """Levels and kernels."""
        levels, kernels = self.find(Levels), self.find(Kernels)
        if kernels is None:
            return None
        own: dict[str, Any] = {
            field.name: getattr(stage, field.name)
            for stage in (levels, kernels)
            for field in stage.FIELDS
            if field.name != "output" and field.since < 4
        }
        spectrum, grid = self.find(Spectrum), self.input
        hop = self.hop
        if spectrum is not None:  # it looks at rows of levels
            grid, hop = spectrum.gives(grid), hop // spectrum.hop
        own |= {"height": grid.rows, "width": grid.columns, "hop": hop}
        return LocalStage(channels=grid.channels, **own)

    @property
    def values(self) -> Values | None:
        """What the scores of a regressor mean."""
        return self.answers if isinstance(self.answers, Values) else None

    @property
    def linear(self) -> NDArray[np.int8] | None:
        """Weights of the linear part."""
        part = self.find(Linear)
        return None if part is None else part.weights

    @property
    def linear_multiplier(self) -> NDArray[np.int32] | None:
        """Multipliers of the linear part."""
        part = self.find(Linear)
        return None if part is None else part.multiplier

    @property
    def prototypes(self) -> NDArray[np.int8] | None:
        """Levels of the prototypes."""
        part = self.find(Prototypes)
        return None if part is None else part.levels

    @property
    def offset(self) -> NDArray[np.int32]:
        """Offset of the read-out."""
        return self.readout.offset

    @property
    def weights(self) -> NDArray[np.int8]:
        """Ternary weights."""
        part = self.find(Ternary)
        return np.zeros((self.n_outputs, 0), np.int8) if part is None else part.weights

    @property
    def multiplier(self) -> NDArray[np.int32]:
        """Multipliers of the ternary weights."""
        part = self.find(Ternary)
        return np.ones(self.n_outputs, np.int32) if part is None else part.multiplier

    @property
    def dimension(self) -> int:
        """Length d of the transforms."""
        return padded_dimension(self.n_features)

    @property
    def log2_dimension(self) -> int:
        """Number of stages of a transform."""
        return self.dimension.bit_length() - 1

    def _component(self, name: str) -> Any:
        found = self.find(Components)
        return None if found is None else getattr(found, name)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(self._component("n_blocks") or 0)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return int(self._component("n_components") or 0)

    @property
    def sign(self) -> NDArray[np.int8]:
        """Diagonal of B."""
        found = self._component("sign")
        if found is None:
            found = np.where(self.scaler.constant(self.n_features), 0, 1).astype(np.int8)
        return np.asarray(found)

    @property
    def permutation(self) -> Permutation:
        """The permutation P."""
        return self._component("permutation") or Permutation()

    @property
    def diagonal(self) -> NDArray[np.int8]:
        """Diagonals G."""
        found = self._component("diagonal")
        return np.zeros((0, self.dimension), np.int8) if found is None else np.asarray(found)

    @property
    def diagonal_kind(self) -> str:
        """Kind of G."""
        return str(self._component("diagonal_kind") or "sign")

    @property
    def halve_first(self) -> tuple[bool, ...]:
        """Schedule of the first transform."""
        return self._component("halve_first") or (False,) * self.log2_dimension

    @property
    def halve_second(self) -> tuple[bool, ...]:
        """Schedule of the second transform."""
        return self._component("halve_second") or (False,) * self.log2_dimension

    @property
    def row_kept(self) -> NDArray[np.bool_]:
        """Rows that are components."""
        found = self._component("row_kept")
        return np.zeros((0, self.dimension), np.bool_) if found is None else np.asarray(found)

    def _window(self, name: str) -> NDArray[np.uint8]:
        found = self._component(name)
        return np.zeros(0, np.uint8) if found is None else np.asarray(found)

    @property
    def scale(self) -> NDArray[np.uint8]:
        """Scales of the windows."""
        return self._window("scale")

    @property
    def start(self) -> NDArray[np.uint8]:
        """Starts of the windows."""
        return self._window("start")

    @property
    def width(self) -> NDArray[np.uint8]:
        """Widths of the windows."""
        return self._window("width")

    @property
    def phase_shift(self) -> int:
        """Shift of the phases."""
        return int(self._component("phase_shift") or 0)

    @property
    def small_code(self) -> bool:
        """Whether the firmware is to have little code."""
        return bool(self._component("small_code"))


#: Names of all former fields but those that are fields still.
FORMER = (
    *("n_features", "scaler", "sign", "permutation", "diagonal", "diagonal_kind"),
    *("halve_first", "halve_second", "row_kept", "scale", "start", "width", "phase_shift"),
    *("weights", "multiplier", "offset", "classes", "decision_scale", "feature_names"),
    *("linear", "linear_multiplier", "local", "values", "decision", "small_code", "prototypes"),
)
