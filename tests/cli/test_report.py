"""Memory of a model."""

from __future__ import annotations

import json

from tests.cli.tools import run


def test_report(work, tmp_path):
    """report has the keys others read, whose parts add up, and keeps to a budget by its status."""
    page = tmp_path / "r.html"
    command = ("report", work / "gesture.tkm", "-t", "cortex-m4", "--json")
    result = run(*command, "--budget", "30KB", "--html", page)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert {"target", "flash", "ram", "stack", "parts", "source", "budget", "fits"} <= set(found)
    assert found["flash"] == sum(found["parts"]["flash"].values())
    assert found["budget"] == 30720
    assert found["fits"] is True
    assert "<html" in page.read_text()
    over = run(*command, "--budget", found["flash"] - 1)
    assert over.exit_code == 1
    assert json.loads(over.stdout)["fits"] is False
    assert "1 bytes" in over.stderr
    assert run(*command, "--budget", found["flash"]).exit_code == 0


def test_report_table(work):
    """For people there is a short table, and one line a target where there are several."""
    one = run("report", work / "gesture.tkm", "--budget", "30KB").stdout
    assert "weights" in one
    assert "fits the budget of 30.0 KB" in one
    several = run("report", work / "gesture.tkm", "-t", "cortex-m0,cortex-m4").stdout
    assert len(several.splitlines()) == 3
