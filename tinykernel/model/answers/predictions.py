"""The scores of a model, and what follows from them: labels or values, and confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import ModelError, ShapeError
from tinykernel.model.answers.decision import Decision, margins, nearer, novelties
from tinykernel.model.answers.events import Events
from tinykernel.model.answers.labels import Labels
from tinykernel.model.answers.values import Values
from tinykernel.model.arrays import raw_values
from tinykernel.model.chain import Chain
from tinykernel.model.readouts.prototypes import distances
from tinykernel.model.readouts.readout import Readout
from tinykernel.text import column_names, listed

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

    def as_raw(self, X: ArrayLike) -> NDArray[Any]:
        """Convert inputs to rows of the raw type that the firmware takes.

        Parameters
        ----------
        X : array-like, shape (n_rows, n_inputs)
            Numbers; of signals and images also (n_rows, samples, channels), (n_rows, height, width)
            or (n_rows, height, width, channels). Numbers beside a window follow its values.

        Returns
        -------
        ndarray of `raw_dtype`, shape (n_rows, n_inputs)

        Raises
        ------
        TinykernelError
            If the shape is wrong or a value does not fit the raw type.
        """
        self.check_columns(X)
        return self.input.as_raw(X, self.n_numbers)

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
                    f"inputs: the numbers of the columns, {listed(numbers)}, are not in order; "
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

    def scores_quantized(self, Q: ArrayLike) -> NDArray[np.int32]:
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
        return self.scores_quantized(self.quantize_inputs(X))

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
        return self.scores_quantized(inputs)

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
            raise ShapeError(f"score: {len(labels)} rows and labels of shape {true.shape}")
        if isinstance(self.answers, Values):
            from sklearn.metrics import r2_score

            return float(r2_score(true, labels))
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
        return self.novelty_quantized(self.quantize_inputs(X))

    def novelty_quantized(
        self, Q: ArrayLike, scores: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Compute novelty from quantized inputs, and from their scores where they are known."""
        decision, inputs = self._decides(), self.quantized(Q)
        known = self.scores_quantized(inputs) if scores is None else scores
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
