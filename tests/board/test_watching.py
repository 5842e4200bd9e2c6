"""Live decisions that a board prints."""

import numpy as np
import pytest

from tests.board.kinds import KINDS, rows_of
from tests.board.test_recording import printing
from tests.cli.tools import run
from tinykernel import save
from tinykernel.board.checking import decide


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
    *shown, total, counts = result.stdout.splitlines()
    assert [line.split()[-1] for line in shown] == labels
    assert total.startswith("3 decisions")
    assert f"{labels[0]}: {labels.count(labels[0])}" in counts
    rows = [line.split(",") for line in log.read_text().splitlines()]
    assert [row[1] for row in rows] == ["label", *labels]


def test_scores_of_another_model_are_refused() -> None:
    """Another number of scores is no decision of this model."""
    with pytest.raises(Exception, match="sends 2 scores, but the model has 4"):
        decide(KINDS["table"](), [1, 2], 0.0)
