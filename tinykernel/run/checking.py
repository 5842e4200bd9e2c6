"""C against Python on a board: rows that are sent, and live decisions; time and stack."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import BoardError, ModelError, TinykernelError
from tinykernel.base.progress import report as say
from tinykernel.compile.targets import TARGETS
from tinykernel.model.answers import NO_EVENT, EventState
from tinykernel.model.integer import IntegerModel
from tinykernel.run import parity
from tinykernel.run.link import ConnectedBoard, Link, results_of
from tinykernel.run.parity import sections
from tinykernel.run.report import report

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
        raise ModelError(
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
            raise BoardError(
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
    row = TARGETS.get(board.target)
    is_bounded = stack is not None and row is not None and row.family != "host"
    promised = report(model, board.target).stack if is_bounded else None
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
    timing = Timing(board.name, board.target, median(laps), round(median(cycles)) or None)
    return _scores(board, model, scores), timing, stack or None


def _scores(
    board: ConnectedBoard, model: IntegerModel, results: list[list[int]]
) -> NDArray[np.int64]:
    """Return the scores of decisions: the board prints them less the least one, plus 1."""
    for row in results:
        if len(row) != model.n_scores:
            raise BoardError(
                f"{board.link.port}: {len(row)} results arrived where the model has "
                f"{model.n_scores} scores; check the cable"
            )
    shift = 0 if model.is_regressor else model.least_score - 1
    return np.array(results, dtype=np.int64).reshape(-1, model.n_scores) + shift


def _run_streams(board: ConnectedBoard, model: IntegerModel, streams: Any) -> NDArray[np.int64]:
    """Push recordings, each into a fresh stream, and return the scores of all decisions."""
    scores = [np.zeros((0, model.n_scores), np.int64)]
    for _, samples in sections(model, {"stream": streams}):
        board.ask("stream")
        scores.append(push(board, model, samples))
        if len(samples) >= model.input.rows + model.delay and not len(scores[-1]):
            raise BoardError(f"{board.link.port}: an answer without results")
    return np.concatenate(scores)


def push(board: ConnectedBoard, model: IntegerModel, samples: NDArray[Any]) -> NDArray[np.int64]:
    """Push samples into the stream of a board, and return the scores of its decisions."""
    lines = board.send(samples.astype(samples.dtype.newbyteorder("<")).tobytes())
    return _scores(board, model, [row for row in map(results_of, lines) if row is not None])


_SILENCE = 30.0  # seconds without a decision
_MOST_DAMAGED = 3  # lines in a row
_SHOWN = 60  # characters of a line in an error


@dataclass(frozen=True)
class LiveDecision:
    """A decision of a board."""

    seconds: float  # since the start
    scores: list[int]
    label: object  # the class, None for "I do not know"; of a regressor the first value
    confidence: int | None  # of a calibrated model, 0 to 255
    event: object = None  # the class of an event, of a model that has any


def decide(
    model: IntegerModel, scores: list[int], seconds: float, state: EventState | None = None
) -> LiveDecision:
    """Make the decision that follows from the scores of a board, as many as the model has."""
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
    event = NO_EVENT if model.events is None else int(model.events.follow(row, state)[0])
    return LiveDecision(
        seconds, scores, label, confidence, None if event < 0 else model.classes[event]
    )


class Decisions:
    """The decisions that a board prints, until it falls silent; `damaged` counts other lines."""

    def __init__(self, link: Link, model: IntegerModel) -> None:
        self.link, self.model = link, model
        self.damaged = 0
        self._state = None if model.is_regressor else EventState(model.n_classes)
        self._in_a_row: list[str] = []

    def __iter__(self) -> Iterator[LiveDecision]:
        """Yield each decision; three damaged lines in a row are an error."""
        self.link.write("%")  # a program that answers commands says so
        begun = last = time.monotonic()
        is_first = True
        while True:
            line = self.link.line(1.0)
            results = None if line is None else results_of(line)
            if line is not None and results is not None:
                last = time.monotonic()
                if self._is_whole(results):
                    self._in_a_row = []
                    yield decide(self.model, results, last - begun, self._state)
                elif not is_first:  # the port was opened within the first line
                    self._count_damaged(line)
            elif line == "m-ready":
                raise self._error(
                    "the program there answers commands, and decides nothing by itself; compare it "
                    "by 'tinykernel verify MODEL DATA --port PORT', or run the sketch Stream of "
                    "'tinykernel export MODEL --format library'"
                )
            elif time.monotonic() - last > _SILENCE:
                raise self._error(
                    f"no decision in {_SILENCE:.0f} seconds; run a sketch that prints its decisions"
                )
            is_first = is_first and line is None

    def _is_whole(self, results: list[int]) -> bool:
        is_int32 = all(-(2**31) <= result < 2**31 for result in results)
        return is_int32 and len(results) == self.model.n_scores

    def _count_damaged(self, line: str) -> None:
        self.damaged += 1
        self._in_a_row.append(line)
        if len(self._in_a_row) < _MOST_DAMAGED:
            return
        sizes = {len(results_of(each) or ()) for each in self._in_a_row}
        if len(sizes) == 1 and sizes.isdisjoint({0, self.model.n_scores}):
            raise self._error(
                f"the board sends {sizes.pop()} scores, but the model has {self.model.n_scores}; "
                "give the model that runs on the board"
            )
        raise self._error(
            f"{_MOST_DAMAGED} lines in a row are damaged, such as {line[:_SHOWN]!r}; check the "
            "cable, and --baud"
        )

    def _error(self, problem: str) -> TinykernelError:
        return BoardError(f"{self.link.port}: {problem}")
