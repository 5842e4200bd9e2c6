"""The session of docs/board.md, from an empty folder to a decision, with emulated boards."""

import pytest

from tests.sessions import ROOT, page_differences


@pytest.mark.slow
def test_the_page_runs_from_first_to_last_line(tmp_path, require_tool, require_platforms) -> None:
    """Whoever types the page sees what it shows."""
    require_tool("serial")
    require_platforms("host")
    wrong = page_differences(ROOT / "docs" / "board.md", tmp_path)
    assert not wrong, "\n".join(wrong)
