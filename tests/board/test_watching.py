"""Live decisions that a board prints."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from tests.board.kinds import KINDS, rows_of
from tests.board.test_recording import printing
from tests.cli.tools import run
from tinykernel import save


@pytest.fixture(autouse=True)
def _needs_pyserial(require_tool) -> None:
    require_tool("serial")


def test_decisions_of_a_sketch_are_heard(tmp_path) -> None:
    """Lines of scores among others become labels, which are shown, counted and written."""
    model, path, log = KINDS["table"](), tmp_path / "m.tkm", tmp_path / "live.csv"
    save(model, path)
    scores = model.scores(rows_of(model, 3)).tolist()
    lines = "".join(f"boot\r\nm-results-[{','.join(map(str, row))}]\r\n" for row in scores)
    with printing(lines.encode()) as port:
        result = run("monitor", path, "--port", port, "--decisions", 3, "--log", log)
    assert result.exit_code == 0, result.output
    labels = [str(model.classes[int(np.argmax(row))]) for row in scores]
    *shown, _, counts = result.stdout.splitlines()
    assert [line.split()[-1] for line in shown] == labels
    assert f"{labels[0]}: {labels.count(labels[0])}" in counts
    rows = [line.split(",") for line in log.read_text().splitlines()]
    assert [row[1] for row in rows] == ["label", *labels]


def watched(tmp_path: Path, text: str, *options: object) -> Result:
    """Watch a board that prints a text again and again, with a model of four scores."""
    save(KINDS["table"](), tmp_path / "m.tkm")
    with printing(text.encode() * 50) as port:
        return run("monitor", tmp_path / "m.tkm", "--port", port, *options)


GOOD = "m-results-[1,2,3,4]\r\n"


@pytest.mark.parametrize(
    "line", ["m-results-[1,23,4]", "m-results-[1,2,3,44444444444]", "m-results-[1,2,3,-3000000000]"]
)
def test_a_damaged_line_is_left_out_and_counted(line, tmp_path) -> None:
    """A lost comma and a digit too many cost one decision, not the watch."""
    result = watched(tmp_path, GOOD * 3 + f"{line}\r\n", "--decisions", 20)
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[-1] == "warning: 6 damaged lines left out"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("m-results-[1,2]", "sends 2 scores, but the model has 4; give the model that runs"),
        ("m-results-[1,2,3,x]", "3 lines in a row are damaged, such as 'm-results-[1,2,3,x]'"),
        ("m-results-[" + "9" * 5000 + "]", "check the cable, and --baud"),
        ("m-ready", "answers commands, and decides nothing by itself"),
    ],
)
def test_what_will_not_become_better_ends_the_watch(line, message, tmp_path) -> None:
    """Another model, noise, and a program that waits for commands: at once, with what to do."""
    result = watched(tmp_path, f"{line}\r\n")
    assert result.exit_code == 1
    assert message in result.stderr.splitlines()[-1]
    assert len(result.stderr.splitlines()[-1]) < 300
