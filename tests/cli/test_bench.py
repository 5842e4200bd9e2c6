"""Counting instructions from the command line."""

import json

import pytest

from tests.cli.tools import json_of, succeeded


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
    assert json_of(*arguments) == found
    # Levels of floats that are computed in integers take a little longer for some values.
    assert 0.95 * found["instructions"] < found["fewest_instructions"] < found["instructions"]
    assert found["rows"] == 3
    table = succeeded(*arguments)
    assert f"{1e3 * found['seconds'][0]:.2f}-" in table.stdout
    assert str(found["instructions"]) in table.stdout
