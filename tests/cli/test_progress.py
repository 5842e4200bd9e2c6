"""What a long command shows where there is no terminal."""

from __future__ import annotations

from tinykernel.cli.common.progress import PlainLines
from tinykernel.progress import Progress


def test_plain_progress_is_sparse():
    """Without a terminal a line comes every few seconds and when a stage ends, none is lost."""
    now = [0.0]
    written: list[str] = []
    lines = PlainLines(written.append, clock=lambda: now[0])
    for step in range(1, 11):
        now[0] += 1
        lines(Progress("sweeps", step, 100, "objective 3"))
    lines(Progress("saving", 0, None))
    lines(Progress("saving", 1, 1))
    lines.finish()
    lines.finish()
    assert written == [
        "sweeps: 5/100 objective 3",
        "sweeps: 10/100 objective 3",
        "saving: 1/1",
    ]


def test_a_sign_of_life_comes_at_once():
    """The first message is written when it comes, not seconds later."""
    written: list[str] = []
    lines = PlainLines(written.append, clock=lambda: 0.0)
    lines(Progress("finding what fits", 0, None))
    assert written == ["finding what fits"]
    lines(Progress("training", 0, 3, "soon"))
    assert len(written) == 1
