"""The stages of a model, what passes from one to the next, and what its scores say of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.coding import Coding
from tinykernel.base.errors import DataError, ModelError, ShapeError
from tinykernel.base.frames import coded_rows, collect, is_frame
from tinykernel.base.hadamard import useful_threads
from tinykernel.base.text import column_names, join
from tinykernel.model.answers import Decision, Events, Labels, Values, margins, nearer, novelties
from tinykernel.pieces.grid import LARGEST, Grid
from tinykernel.pieces.piece import Part, Readout, Stage
from tinykernel.pieces.prototypes.spec import distances
from tinykernel.pieces.record import Record, raw_values
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


# Rows that are computed at a time, so that predictions of large sets need little memory.
_ROWS_AT_ONCE = 8192


def columns_problem(columns: Sequence[str], expected: Sequence[str]) -> str:
    """Say in words how the columns of a frame differ from those of a model, empty if they do not.

    >>> columns_problem(["a"], ["b", "a"])
    "lack 'b'; the model takes 2"
    """
    if list(columns) == list(expected):
        return ""
    lacking = [name for name in expected if name not in columns]
    if lacking:
        problem = f"lack {lacking[0]!r}"
    elif len(columns) == len(expected):
        problem = "are in another order"
    else:
        problem = f"are {len(columns)}"
    return f"{problem}; the model takes {len(expected)}"


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Chain):
    """The fields of `IntegerModel`, its scores, and the methods that read them."""

    readout: Readout
    answers: Labels | Values
    decision: Decision | None = None
    events: Events | None = None
    hop: int = 0
    decision_scale: float = 1.0
    feature_names: tuple[str, ...] | None = field(default=None, compare=False)
    # Beside the fields of a file, which has it among the entries about the training.
    coding: Coding | None = field(default=None, compare=False, metadata={"stored": False})

    def as_raw(self, X: ArrayLike) -> NDArray[Any]:
        """Convert inputs to rows of the raw type that the firmware takes.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_inputs)
            Numbers, or a frame with text where the model has a `coding`. Of signals and images also
            (n_rows, samples, channels), (n_rows, height, width) or (n_rows, height, width,
            channels). Numbers beside a window follow its values.

        Returns
        -------
        ndarray of `raw_dtype`, shape (n_rows, n_inputs)

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit the raw type.
        """
        X = collect(X)
        self.check_columns(X)
        if self.coding is not None:
            if self.feature_names is None and is_frame(X):
                X = np.asarray(X)  # training had an array
            X = coded_rows(X, self.coding, self.feature_names, may_lack=self.takes_gaps)[0]
        return self.input.as_raw(X, self.n_numbers)

    @property
    def takes_gaps(self) -> bool:
        """Whether missing values (NaN) have a way of their own: of trees that say where they go."""
        return any(getattr(part, "missing", None) is not None for part in self.readout.parts)

    def check_columns(self, X: object) -> None:
        """Refuse a DataFrame whose columns are not the inputs, in their order."""
        columns = getattr(X, "columns", None)
        if columns is None:
            return
        names = column_names(columns)
        if self.feature_names is None:
            numbers = [int(name) for name in names if name.isdecimal()]
            if len(numbers) == len(names) and numbers != sorted(numbers):
                raise ShapeError(
                    f"inputs: the numbers of the columns, {join(numbers)}, are not in order; "
                    "sort them as in training"
                )
            return
        if problem := columns_problem(names, self.feature_names):
            raise ShapeError(f"inputs: the columns {problem}; give X[list(model.feature_names)]")

    def quantize_inputs(self, X: ArrayLike) -> NDArray[Any]:
        """Quantize raw inputs, as for `as_raw`: int8 or int16, shape (n_rows, n_features)."""
        raw = self.as_raw(X)
        out = np.empty((len(raw), self.n_features), dtype=self.input_dtype)
        for first in range(0, len(raw), _ROWS_AT_ONCE):
            out[first : first + _ROWS_AT_ONCE] = self.scaled(raw[first : first + _ROWS_AT_ONCE])
        return out

    def quantized(self, Q: ArrayLike) -> NDArray[Any]:
        """Return quantized inputs (n_rows, n_features) in `input_dtype`, constant ones as 0.

        A TinykernelError says that the shape is wrong or that a value does not fit.
        """
        values = np.asarray(Q)
        if values.dtype.kind not in "biu":
            raise ShapeError(f"quantized inputs: {values.dtype} instead of {self.input_dtype}")
        if values.ndim != 2 or values.shape[1] != self.n_features:
            raise ShapeError(
                f"inputs: shape {values.shape}, but the model takes rows of "
                f"{self.n_features} inputs"
            )
        quantized = values.astype(self.input_dtype)
        if not np.array_equal(quantized, values):
            raise ShapeError(f"quantized inputs: a value does not fit {self.input_dtype}")
        quantized[:, sorted(self.quantized_grid.constant)] = 0
        return quantized

    def quantized_scores(self, Q: ArrayLike) -> NDArray[np.int32]:
        """Compute the scores, int32 (n_rows, n_scores), from inputs as of `quantize_inputs`."""
        inputs = self.quantized(Q)
        out = np.empty((len(inputs), self.answers.n_scores), dtype=np.int32)
        for first in range(0, len(inputs), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            out[part] = self.answers.scores(self.readout.totals(self.run(inputs[part])))
        return out

    def scores(self, X: ArrayLike) -> NDArray[np.int32]:
        """Compute the scores from raw inputs, like ``<name>_scores`` of the C code.

        Parameters
        ----------
        X : array-like
            As for `as_raw`.

        Returns
        -------
        ndarray of int32, shape (n_rows, n_scores)

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit the raw type.
        """
        return self.quantized_scores(self.quantize_inputs(X))

    def stream_scores(self, samples: ArrayLike) -> NDArray[np.int32]:
        """Compute the scores of all decisions of a stream, from its first sample.

        Parameters
        ----------
        samples : array-like, shape (n_samples, n_channels), or with numbers beside more columns

        Returns
        -------
        ndarray of int32, shape (n_decisions, n_scores)
            Equal to `scores` of the windows, one every `hop` samples; what windows have in common
            is computed once.

        Raises
        ------
        TinykernelError
            If a value does not fit the raw type.
        """
        windows = list(self.stream_inputs(raw_values(samples, self.raw_dtype), self.hop))
        inputs = np.concatenate([np.zeros((0, self.n_features), self.input_dtype), *windows])
        return self.quantized_scores(inputs)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the outputs in the units of the training.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)

        Returns
        -------
        ndarray of float64, shape (n_rows, n_outputs), or (n_rows,) of one output
        """
        totals = self.scores(X)[:, -self.answers.n_outputs :]
        outputs = totals.astype(np.float64) * self.decision_scale
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict class labels, or values, from raw inputs.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)

        Returns
        -------
        ndarray, shape (n_rows,)
            Entries of `classes`. Of a regressor float64, and (n_rows, n_scores) of several values.
        """
        return self.answers.predict(self.scores(X))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the accuracy, 0 to 1, or R2 of values; `tinykernel.evaluate` shows more.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_features)
        y : array-like, shape (n_rows,)
            True labels.

        Returns
        -------
        float

        Raises
        ------
        TinykernelError
            If the numbers of rows and labels differ, or there are none.
        """
        labels, true = self.predict(X), np.asarray(y)
        if true.shape != labels.shape or not true.size:
            advice = f"give {labels.shape}, as predict does, and a row or more"
            raise ShapeError(f"score: y has the shape {true.shape}; {advice}")
        if isinstance(self.answers, Values):
            from sklearn.metrics import r2_score

            try:
                return float(r2_score(true, labels))
            except ValueError:
                raise DataError("score: y must hold finite numbers; give those") from None
        return float(np.mean(labels == true))

    def decide(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return labels, or -1 where the model does not know: ``<name>_decide`` of the C code.

        X is as for `as_raw`, the labels are positions in `classes`, int64 (n_rows,). Without a
        calibration it is a TinykernelError.
        """
        return self._decides().decide(self.scores(X))

    def confidence(self, X: ArrayLike) -> NDArray[np.uint8]:
        """Return how sure the model is of its labels: ``<name>_confidence`` of the C code.

        X is as for `as_raw`. A confidence c, uint8 (n_rows,), means that about c to c + 1 of 256
        labels are right. Without a calibration it is a TinykernelError.
        """
        return self._decides().confidence(self.scores(X))

    def novelty(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return how little rows look like any class: ``<name>_novelty`` of the C code.

        X is as for `as_raw`. The novelty, int32 (n_rows,), is -1 less the largest score; with
        prototypes see `Decision`. Of a regressor it is a TinykernelError.
        """
        if isinstance(self.answers, Values):
            raise ModelError("novelty: the model predicts values, not classes")
        if self.decision is None:
            return novelties(self.scores(X))
        return self.quantized_novelty(self.quantize_inputs(X))

    def quantized_novelty(
        self, Q: ArrayLike, scores: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Compute novelty from quantized inputs, and from their scores where they are known."""
        decision, inputs = self._decides(), self.quantized(Q)
        known = self.quantized_scores(inputs) if scores is None else scores
        if decision.prototypes is None or decision.margin_line is None:
            return novelties(known)
        distance = distances(inputs, decision.prototypes)
        return nearer(distance, margins(known)[1], decision.margin_line)

    def is_novel(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return which rows look like no class, bool (n_rows,).

        X is as for `as_raw`. Without a calibrated rate of false alarms it is a TinykernelError.
        """
        return self._decides().is_novel(self.novelty(X))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return calibrated probabilities of the classes, float64 (n_rows, n_classes).

        X is as for `as_raw`. Without a calibration it is a TinykernelError.
        """
        decision = self._decides()
        return decision.probabilities(self.scores(X).astype(np.float64) * self.decision_scale)

    def _decides(self) -> Decision:
        """Return what decides; a TinykernelError says that the model was not calibrated."""
        if self.decision is None:
            raise ModelError("the model was not calibrated; run tinykernel calibrate")
        return self.decision
