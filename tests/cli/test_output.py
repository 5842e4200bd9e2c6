"""How results are printed."""

from __future__ import annotations

import pytest

from tinykernel.cli.common.output import print_pairs, print_table


def test_a_piped_table_neither_wraps_nor_trails_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts read one line a row, whatever the length, and diffs show no blanks."""
    long = "compiler " * 40 + "end"
    print_table(
        ("target", "rows", "built with"), [("a", "1", long), ("bb", "20", "")], right=("rows",)
    )
    print_pairs([("name", "x"), ("a longer name", long)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert all(line == line.rstrip() for line in lines)
    assert lines[1].endswith(long)
    assert lines[2].split() == ["bb", "20"]
