"""Memory of a model, the page about it, and its instructions."""

import json

import numpy as np
import pytest

from tests.cli.tools import arrays, failed, json_of, run, succeeded


def test_report(work):
    """report has the keys others read, whose parts add up, and keeps to a budget by its status."""
    command = ("report", work / "gesture.tkm", "-t", "cortex-m4", "--json")
    result = succeeded(*command, "--budget", "30KB")
    found = json.loads(result.stdout)
    assert {"target", "flash", "ram", "stack", "parts", "source", "budget", "fits"} <= set(found)
    assert found["flash"] == sum(found["parts"]["flash"].values())
    assert found["budget"] == 30720
    assert found["fits"] is True
    over = run(*command, "--budget", found["flash"] - 1)
    assert over.exit_code == 1
    assert json.loads(over.stdout)["fits"] is False
    succeeded(*command, "--budget", found["flash"])


def test_report_as_markdown(work):
    """--markdown prints a table with a row for each target, and in bold what does not fit."""
    command = ("report", work / "gesture.tkm", "--compiler", "none", "--markdown")
    text = run(*command, "-t", "cortex-m0,cortex-m4", "-t", "esp32").stdout
    table = [line.split(" | ") for line in text.splitlines() if line.startswith("|")]
    assert [row[0] for row in table] == [
        "| target",
        "| ---",
        "| cortex-m0",
        "| cortex-m4",
        "| esp32",
    ]
    assert {len(row) for row in table} == {6}
    over = run(*command, "--budget", "1KB")
    assert over.exit_code == 1
    assert "**cortex-m4:" in over.stdout
    failed(*command, "--json", status=2)


def test_page(work, tmp_path):
    """--html gives the same accuracy as evaluate, on the same rows, and a status."""
    page, data = tmp_path / "r.html", work / "data.npz"
    given = ("-t", "cortex-m0plus,cortex-m4", "--compiler", "none", "--quiet", "--data", data)
    command = ("report", work / "gesture.tkm", *given, "--html", page)
    succeeded(*command)
    judged = json_of("evaluate", work / "gesture.tkm", data)
    accuracy = f"{100 * judged['accuracy']:.2f} %"
    told = run("report", work / "gesture.tkm", "--compiler", "none", "--html", page)
    assert told.stderr.splitlines()[-1] == f"wrote the page to {page}"
    succeeded(*command)
    text = page.read_text()
    assert all(said in text for said in (accuracy, "30 rows", "STM32F401RE", "a linear model"))
    assert "at 32 MHz" in text  # the clock of the board
    rows = arrays(data)
    np.savez(tmp_path / "old.npz", X=rows["X_train"], y=rows["y_train"])
    run("report", work / "gesture.tkm", *given[:-1], tmp_path / "old.npz", "--html", page)
    assert "About 100 % of these rows were used in training" in page.read_text()
    over = run(*command, "--budget", "1KB")
    assert over.exit_code == 1
    assert "It does not fit the STM32L053R8" in page.read_text()


@pytest.mark.sharp
@pytest.mark.slow
def test_bench_prints_instructions_by_stage(work, require_platforms) -> None:
    """One JSON object with the keys that scripts rely on; the stages add up; a run repeats."""
    require_platforms("cortex-m4")
    arguments = ("bench", work / "gesture.tkm", "--target", "cortex-m4", "--clock", "80MHz")
    result = succeeded(*arguments, "--json")
    found = json.loads(result.stdout)
    assert found["target"] == "cortex-m4"
    assert found["instructions"] == sum(found["stages"].values()) > 0
    assert found["seconds"][0] < found["seconds"][1]
    # Levels of floats that are computed in integers take a little longer for some values.
    assert 0.95 * found["instructions"] < found["fewest_instructions"] < found["instructions"]
    assert found["rows"] == 3
    table = succeeded(*arguments)  # counted again
    assert f"{1e3 * found['seconds'][0]:.2f}-" in table.stdout
    assert str(found["instructions"]) in table.stdout
