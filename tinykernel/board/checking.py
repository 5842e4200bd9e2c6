"""C against Python on a board: rows that are sent, and live decisions; time and stack."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.board.link import ConnectedBoard, Link, scores_of
from tinykernel.build import parity
from tinykernel.build.harness import sections
from tinykernel.codegen.targets import TARGETS
from tinykernel.errors import TinykernelError
from tinykernel.measure.report import report
from tinykernel.model import IntegerModel
from tinykernel.progress import report as say

_ROWS_WITH_STACK = 8  # each costs another inference


@dataclass(frozen=True)
class Timing:
    """Time of inferences on a board."""

    name: str  # of the board
    target: str  # of the export on it
    microseconds: float  # of one inference, the median; 0 where the board has no clock
    cycles: int | None  # of one inference, the median; None where the board counts none

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        timing = asdict(self)
        return {"board": timing.pop("name"), **timing}


@dataclass(frozen=True)
class BoardResult:
    """The comparison and measurements of `verify_on_board`."""

    verification: parity.VerifyResult
    timing: Timing
    stack: int | None  # the most stack of an inference, in bytes; None where unknown
    stack_promised: int | None  # that of `report`; None where unknown

    @property
    def stack_holds(self) -> bool:
        """Whether the stack is within its bound; True if either is unknown."""
        known = self.stack is not None and self.stack_promised is not None
        return not known or self.stack <= self.stack_promised  # type: ignore[operator]

    @property
    def ok(self) -> bool:
        """Whether every score was equal, and the stack within its bound."""
        return self.verification.ok and self.stack_holds


def check_model(board: ConnectedBoard, model: IntegerModel) -> None:
    """Refuse a board with another model."""
    expected = model.fingerprint()[:8]
    if board.model != expected:
        raise TinykernelError(
            f"{board.link.port}: the board runs model {board.model}, not {expected}; "
            "export this model and flash it"
        )


def verify_on_board(
    board: ConnectedBoard,
    model: IntegerModel,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    recordings: Sequence[ArrayLike] | None = None,
) -> BoardResult:
    """Run rows on a board and compare every score with Python's, and those of streams."""
    # X, y and recordings are those of `verify`; the board must run the model.
    check_model(board, model)
    raw = model.as_raw(X)
    entries = parity.entry_rows(model, raw, recordings)
    entries = {name: rows for name, rows in entries.items() if name in ("raw", "stream")}
    expected = {
        name: values[:, : model.n_scores]
        for name, values in parity.expected_values(model, entries).items()
    }
    scores, timing, stack = _run_rows(board, model, raw)
    outputs = {"raw": scores}
    if "stream" in entries:
        outputs["stream"] = _run_streams(board, model, entries["stream"])
    for entry, wanted in expected.items():
        got = outputs[entry]
        if got.shape != wanted.shape:
            raise TinykernelError(
                f"{board.link.port}: {len(got)} instead of {len(wanted)} decisions of a stream "
                "arrived; check the cable, as bytes may be lost"
            )
    verification = parity.compare(
        model,
        expected,
        outputs,
        y,
        outputs["raw"].argmax(axis=1),
        target=board.target,
        compiler=board.program,
        emulator=f"{board.name} at {board.link.port}",
    )
    is_known = stack is not None and board.target in TARGETS
    promised = report(model, board.target).stack if is_known else None
    return BoardResult(verification, timing, stack, promised)


def _run_rows(
    board: ConnectedBoard, model: IntegerModel, raw: NDArray[Any]
) -> tuple[NDArray[np.int64], Timing, int | None]:
    """Return scores of rows, their time, and the most stack."""
    rows, scores, laps, cycles = raw.astype(raw.dtype.newbyteorder("<")), [], [], []
    begun, stack = time.monotonic(), 0
    for at, row in enumerate(rows):
        speed = at / max(1e-9, time.monotonic() - begun)
        say(f"running on {board.name}", at, len(rows), f"{speed:.1f} rows a second")
        board.load(row.tobytes())
        if at < _ROWS_WITH_STACK:
            stack = board.number("stack")
        answered, microseconds = board.infer()
        scores.append(answered)
        laps.append(microseconds)
        cycles.append(board.number("cycles"))
    if any(len(row) != model.n_scores for row in scores):
        raise TinykernelError(
            f"{board.link.port}: the number of scores differs from the model's; check the cable"
        )
    timing = Timing(board.name, board.target, median(laps), round(median(cycles)) or None)
    return np.array(scores, dtype=np.int64), timing, stack or None


def _run_streams(board: ConnectedBoard, model: IntegerModel, streams: Any) -> NDArray[np.int64]:
    """Push recordings, each into a fresh stream, and return the scores of all decisions."""
    scores: list[list[int]] = []
    for _, samples in sections(model, {"stream": streams}):
        board.ask("stream")
        lines = board.send(samples.astype(samples.dtype.newbyteorder("<")).tobytes())
        scores += board.scores(lines) if len(samples) >= model.input.rows + model.delay else []
    return np.array(scores, dtype=np.int64).reshape(len(scores), -1)


_SILENCE = 30.0  # seconds without a decision


@dataclass(frozen=True)
class LiveDecision:
    """A decision of a board."""

    seconds: float  # since the start
    scores: list[int]
    label: object  # the class, None for "I do not know"; of a regressor the first value
    confidence: int | None  # of a calibrated model, 0 to 255


def decide(model: IntegerModel, scores: list[int], seconds: float) -> LiveDecision:
    """Make the decision that follows from the scores of a board."""
    if len(scores) != model.n_scores:
        raise TinykernelError(
            f"the board sends {len(scores)} scores, but the model has {model.n_scores}; give the "
            "model that runs on the board"
        )
    row = np.array([scores], dtype=np.int32)
    confidence = None
    if model.is_regressor:
        label: object = float(scores[0] * model.answers.unit)  # type: ignore[union-attr]
    elif model.decision is None:
        label = model.classes[int(row[0].argmax())]
    else:
        chosen = int(model.decision.decide(row)[0])
        label = None if chosen < 0 else model.classes[chosen]
        confidence = int(model.decision.confidence(row)[0])
    return LiveDecision(seconds, scores, label, confidence)


def listen(link: Link, model: IntegerModel) -> Iterator[LiveDecision]:
    """Yield the decisions that a board prints, until it falls silent."""
    begun = time.monotonic()
    last = begun
    while True:
        line = link.line(1.0)
        scores = None if line is None else scores_of(line)
        if scores is not None:
            last = time.monotonic()
            yield decide(model, scores, last - begun)
        elif time.monotonic() - last > _SILENCE:
            raise TinykernelError(
                f"{link.port}: no decision in {_SILENCE:.0f} seconds; run a sketch that prints its "
                "decisions"
            )
