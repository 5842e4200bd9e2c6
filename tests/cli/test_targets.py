"""The list of targets."""

from __future__ import annotations

import json

from tests.cli.tools import run
from tinykernel.codegen.targets import TARGETS


def test_targets():
    """All targets are listed, as a table and as a JSON array."""
    table = run("targets")
    assert table.exit_code == 0
    rows = json.loads(run("targets", "--json").stdout)
    assert [row["target"] for row in rows] == list(TARGETS)
    for name in TARGETS:
        assert name in table.stdout
    tools = json.loads(run("targets", "--tools", "--json").stdout)
    assert all(isinstance(row["compilers"], list) for row in tools)
