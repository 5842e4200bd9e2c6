"""Live decisions: those that a board prints, and those of a recording that is played into it."""

import os
import pty
import tty

import numpy as np
import pytest

from tests.board.kinds import KINDS, rows_of
from tests.board.test_checking import altered
from tinykernel.board.checking import LiveDecision, count, decide, listen, play
from tinykernel.board.emulator import emulated_board
from tinykernel.board.link import ConnectedBoard, Link
from tinykernel.decisions import Counters
from tinykernel.model import IntegerModel


@pytest.fixture(autouse=True)
def _needs_pyserial(require_tool) -> None:
    require_tool("serial")


def played(model: IntegerModel) -> list[LiveDecision]:
    """Play two recordings into an emulated board."""
    recordings = list(rows_of(model, 4).reshape(2, -1, model.input.channels))
    with emulated_board(model) as place, Link(place.port) as link:
        return list(play(ConnectedBoard(link), model, recordings, None))


def test_a_recording_is_played_and_compared(monkeypatch) -> None:
    """Every decision of a stream is there and Python's; one that is not is told."""
    model = KINDS["signal"]()
    decisions = played(model)
    hops = (2 * model.input.rows - model.input.rows) // model.hop + 1
    assert len(decisions) == 2 * hops
    assert all(decision.right for decision in decisions)
    push = b"        print_decision();"
    altered(monkeypatch, push, b"        { static int n; now.results[0] += ++n == 2; }\n" + push)
    assert [decision.right for decision in played(model)].count(False) == 1


def test_decisions_of_a_sketch_are_heard() -> None:
    """Lines of scores among others become labels, which are counted as in the field."""
    model = KINDS["table"]()
    scores = model.scores(rows_of(model, 3)).tolist()
    here, there = pty.openpty()
    tty.setraw(there)
    with Link(os.ttyname(there)) as link:
        for row in scores:
            os.write(here, f"boot\r\nm-results-[{','.join(map(str, row))}]\r\n".encode())
        source, counters = listen(link, model), Counters(model)
        for row, decision in zip(scores, source, strict=False):
            assert decision.label == model.classes[int(np.argmax(row))]
            assert decision.right is None
            count(model, counters, decision)
    os.close(here)
    os.close(there)
    assert counters.decisions == 3


def test_scores_of_another_model_are_refused() -> None:
    """Another number of scores is no decision of this model."""
    with pytest.raises(Exception, match="sends 2 scores, but the model has 4"):
        decide(KINDS["table"](), [1, 2], 0.0)
