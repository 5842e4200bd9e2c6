"""Live decisions of a board: read as it prints them, or played from a recording."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.board.checking import check_model
from tinykernel.board.link import Link
from tinykernel.board.protocol import Board, scores_of
from tinykernel.build.harness import sections
from tinykernel.build.parity import expected_values
from tinykernel.decisions import Counters
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import margins
from tinykernel.model.arrays import raw_values

_SILENCE = 30.0  # seconds without a decision


@dataclass(frozen=True)
class LiveDecision:
    """A decision of a board."""

    seconds: float  # since the start
    scores: list[int]
    label: object  # the class, None for "I do not know"; of a regressor the first value
    confidence: int | None  # of a calibrated model, 0 to 255
    right: bool | None = None  # whether Python computes the same scores; None without known inputs


def decide(
    model: IntegerModel, scores: list[int], seconds: float, expected: list[int] | None = None
) -> LiveDecision:
    """Make the decision that follows from the scores of a board."""
    if len(scores) != model.n_scores:
        raise TinykernelError(
            f"the board answers with {len(scores)} scores, the model has {model.n_scores}; is it "
            "the right model?"
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
    right = None if expected is None else expected == scores
    return LiveDecision(seconds, scores, label, confidence, right)


def count(model: IntegerModel, counters: Counters, decision: LiveDecision) -> None:
    """Count a decision as the counters of the field do; saturated values are not known."""
    row = np.array([decision.scores], dtype=np.int32)
    label = -1 if decision.label is None else list(model.classes).index(decision.label)
    counters.update(label, int(margins(row)[1][0]))


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
                f"{link.port}: no decision in {_SILENCE:.0f} seconds; does the board run a sketch "
                "that classifies? --send RECORDING plays one into it"
            )


def play(
    board: Board, model: IntegerModel, recordings: list[NDArray[Any]], rate: float | None
) -> Iterator[LiveDecision]:
    """Push recordings into the stream of a board, and yield its decisions."""
    # Each sample is sent when it is due at `rate`, in Hz; None sends without pauses.
    check_model(board, model)
    begun = time.monotonic()
    for samples in recordings:
        recording = raw_values(samples, model.raw_dtype)
        expected = expected_values(model, {"stream": [recording]})["stream"][:, : model.n_scores]
        wanted = iter(expected.tolist())
        board.ask("stream")
        start = time.monotonic()
        ((_, samples),) = sections(model, {"stream": [recording]})
        for number, sample in enumerate(samples.astype(samples.dtype.newbyteorder("<"))):
            if rate is not None:
                time.sleep(max(0.0, start + number / rate - time.monotonic()))
            for scores in filter(None, map(scores_of, board.send(sample.tobytes()))):
                yield decide(model, scores, time.monotonic() - begun, next(wanted, []))
        if (missing := len(list(wanted))) > 0:
            raise TinykernelError(f"{board.link.port}: the board left out {missing} decisions")
