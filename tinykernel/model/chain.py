"""Chain: the stages of a model, and what passes from one to the next."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.hadamard import useful_threads
from tinykernel.pieces.grid import LARGEST, Grid
from tinykernel.pieces.piece import Part, Stage
from tinykernel.pieces.record import Record
from tinykernel.pieces.scale.spec import Scale

# Of windows of a stream, where they have nothing more in common.
_VALUES_AT_ONCE = 1 << 22
_Piece = TypeVar("_Piece", bound=Stage | Part)


@dataclass(frozen=True, eq=False, repr=False)
class Chain(Record):
    """An input and the stages that process it, one of which is ``Scale``; see `IntegerModel`."""

    input: Grid
    stages: tuple[Stage, ...]

    def check_chain(self) -> None:
        """Check that each stage accepts the output of the one before it, and that inputs match."""
        if sum(stage.GIVES == "inputs" for stage in self.stages) != 1:
            raise self.refuse("a chain has one stage scale")
        port = "samples"
        for stage in self.stages:
            if port not in stage.TAKES:
                raise self.refuse(f"{stage.KIND} takes {' or '.join(stage.TAKES)}, not {port}")
            port = stage.GIVES
        if sum(stage.numbers is not None for stage in self.stages) > 1:
            raise self.refuse("two stages read the numbers")
        for name, grid in self.inputs.items():
            if grid.dtype != self.raw_dtype:
                raise self.refuse(f"the {name} are not of the type {self.raw_dtype}")

    @property
    def pieces(self) -> tuple[Any, ...]:
        """All stages, in their order."""
        return self.stages

    def find(self, kind: type[_Piece]) -> _Piece | None:
        """Return the first stage, or part of the read-out, of a class; None where there is none."""
        return next((piece for piece in self.pieces if piece.KIND == kind.KIND), None)

    @cached_property
    def _grids(self) -> tuple[Grid, ...]:
        grids = [self.input]
        for stage in self.stages:
            grids.append(stage.gives(grids[-1]))
        return tuple(grids)

    def grids(self) -> tuple[Grid, ...]:
        """Return the grid before each stage and after the last."""
        return self._grids

    @property
    def delay(self) -> int:
        """Samples of a stream from the last one of a window to its decision."""
        return self.stages[0].delay(self.input)

    @property
    def _entry(self) -> int:
        """Place of the grid of quantized inputs."""
        return 1 + next(i for i, stage in enumerate(self.stages) if stage.GIVES == "inputs")

    @property
    def takes_quantized(self) -> bool:
        """Whether the firmware also takes quantized inputs: no stage is before the scale."""
        return self._entry == 1

    @property
    def quantized_grid(self) -> Grid:
        """What the stage scale gives: the quantized inputs."""
        return self.grids()[self._entry]

    @property
    def n_inputs(self) -> int:
        """Number of raw values that the firmware takes."""
        return sum(grid.size for grid in self.inputs.values())

    @property
    def inputs(self) -> dict[str, Grid]:
        """The arguments of the firmware's functions, in their order: name and grid."""
        beside = {} if self.beside is None else {"numbers": self.beside.numbers}
        return {"input": self.input, **beside}

    @property
    def beside(self) -> Any:
        """The stage of numbers beside a window; None where there is none."""
        return next((stage for stage in self.stages if stage.numbers is not None), None)

    @property
    def camera(self) -> Any:
        """The stage that makes an image of a camera's frame; None where there is none."""
        first = self.stages[0]
        return first if first.GIVES == "image" else None

    @property
    def n_numbers(self) -> int:
        """Number of raw values that follow those of a window, and pass no kernel."""
        return self.n_inputs - self.input.size

    @property
    def raw_dtype(self) -> str:
        """Type of the raw values that the firmware takes, e.g. ``"float32"``."""
        return self.input.dtype

    @property
    def n_features(self) -> int:
        """Number of quantized inputs."""
        return self.quantized_grid.size

    @property
    def input_dtype(self) -> np.dtype[Any]:
        """Type of the quantized inputs: int8 or int16."""
        return np.dtype(self.quantized_grid.dtype)

    @property
    def scaler(self) -> Scale:
        """The stage scale, which every chain has."""
        scale: Scale = self.pieces[self._entry - 1]
        return scale

    @cached_property
    def raw_scaler(self) -> Scale:
        """The scaler of the raw values; before other stages one for all of their type."""
        scaler: Scale | None = self.stages[0].raw_scaler
        if scaler is not None:
            return scaler
        low, span = self.input.low, self.input.high - self.input.low
        shift = max(span.bit_length() - 16, 0)
        return Scale(self.input.dtype, 8, *np.array([[low], [1], [span], [shift]]))

    def scaled(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Run the chain on rows of raw values, up to the stage scale."""
        return self._run_from(0, self._with_names(rows))

    def stream_inputs(self, samples: NDArray[Any], hop: int) -> Iterator[NDArray[Any]]:
        """Yield the quantized inputs of all windows of a stream, a few thousand at a time."""
        # `samples`, of `raw_dtype`, have the shape (n, channels and numbers beside). A window
        # begins every `hop` samples. Rows that windows have in common are computed once.
        rows = self.input.rows
        n = (len(samples) - rows) // hop + 1
        within = max(0, LARGEST // samples.shape[1] - rows) // hop + 1
        at_once = max(1, min(within, _VALUES_AT_ONCE // self.grids()[self._n_in_common].size))
        ends = [min(first + at_once, n) - 1 for first in range(0, n, at_once)]
        parts = [samples[at * at_once * hop : end * hop + rows] for at, end in enumerate(ends)]
        with ThreadPoolExecutor(min(len(parts), useful_threads(n * self.input.size)) or 1) as pool:
            yield from pool.map(lambda part: self._scaled_windows(part, hop), parts)

    @property
    def _n_in_common(self) -> int:
        """Number of stages, from the first one, whose rows the windows of a stream share."""
        return next(i for i, stage in enumerate(self.stages) if not stage.SHARES)

    def _scaled_windows(self, samples: NDArray[Any], hop: int) -> NDArray[Any]:
        """Do as `scaled` for the windows of a stretch, from its first sample to its last."""
        rows, numbers = np.split(samples, [self.input.channels], axis=1)
        numbers, shared = numbers[self.input.rows - 1 :: hop], self._n_in_common
        for stage, grid in zip(self.stages[:shared], self.grids(), strict=False):
            long = stage.run(rows.reshape(1, -1), replace(grid, rows=len(rows)))
            hop //= stage.step
            rows = long.reshape((len(rows) - grid.rows) // stage.step + stage.gives(grid).rows, -1)
        values = self.stages[shared].run_windows(rows, self.grids()[shared], hop)
        return self._run_from(shared + 1, {"input": values, "numbers": numbers})

    def _run_from(self, first: int, named: dict[str, NDArray[Any]]) -> NDArray[Any]:
        """Run the stages from one to the stage scale."""
        values = named["input"]
        stages, grids = self.stages[first : self._entry], self.grids()[first:]
        for stage, grid in zip(stages, grids, strict=False):
            if stage.numbers is not None:
                values = np.hstack([values, named["numbers"]])
            values = stage.run(values, grid)
        return values

    def _with_names(self, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Cut rows of raw values into the inputs."""
        ends = np.cumsum([grid.size for grid in self.inputs.values()])
        return dict(zip(self.inputs, np.split(rows, ends[:-1], axis=1), strict=True))

    def run(self, inputs: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Run the rest of the chain on checked quantized inputs; return values by kind of stage."""
        made, first = {Scale.KIND: inputs}, self._entry
        for stage, grid in zip(self.stages[first:], self.grids()[first:], strict=False):
            inputs = made[stage.KIND] = stage.run(inputs, grid)
        return made
