"""What a model is."""

from tests.cli.tools import json_of, run


def test_inspect(work):
    """inspect shows sizes and the proved range of every stage, which lie inside the limits."""
    found = json_of("inspect", work / "gesture.tkm")
    assert (found["features"], found["classes"]) == (5, [0, 1, 2])
    assert found["components"] <= 64
    assert all(s["limit_low"] <= s["low"] <= s["high"] <= s["limit_high"] for s in found["ranges"])
    text = run("inspect", work / "gesture.pkl").stdout
    assert "(P)" in text
    assert sum(table["bytes"] for table in found["tables"]) > 50
    assert f"{found['tables'][0]['bytes']:,}    {found['tables'][0]['what']}" in text
    assert found["fingerprint"][:16] in text
