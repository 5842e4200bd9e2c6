"""What a model is."""

from __future__ import annotations

import json

from tests.cli.tools import run


def test_inspect(work):
    """inspect shows sizes and the proved range of every stage, which lie inside the limits."""
    found = json.loads(run("inspect", work / "gesture.tkm", "--json").stdout)
    assert (found["features"], found["classes"]) == (5, [0, 1, 2])
    assert found["components"] <= 64
    assert all(s["limit_low"] <= s["low"] <= s["high"] <= s["limit_high"] for s in found["ranges"])
    text = run("inspect", work / "gesture.pkl").stdout
    assert "second transform" in text
    assert found["fingerprint"][:16] in text
