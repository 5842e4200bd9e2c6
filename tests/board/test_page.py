"""The session of docs/board.md, from an empty folder to a decision, with emulated boards."""

import contextlib
import shlex
import subprocess

import pytest

from tests.sessions import ROOT, blocks, commands, difference, environment, run_command


@pytest.mark.slow
def test_the_page_runs_from_first_to_last_line(tmp_path, require_tool, require_platforms) -> None:
    """Whoever types the page sees what it shows; a board that is emulated ends before the next."""
    require_tool("serial")
    require_platforms("host")
    wrong, port = [], ""
    shown_port = "/dev/pts/5"
    with contextlib.ExitStack() as boards:
        for block in blocks(ROOT / "docs" / "board.md", "console"):
            for shown in commands(block):
                if shown.command.startswith("tinykernel emulate"):
                    assert shown.output == (shown_port,)
                    boards.close()
                    board = boards.enter_context(
                        subprocess.Popen(
                            shlex.split(shown.command),
                            cwd=tmp_path,
                            env=environment(tmp_path),
                            stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL,
                            text=True,
                        )
                    )
                    boards.callback(board.terminate)
                    port = board.stdout.readline().strip()
                    continue
                got = run_command(shown.command.replace(shown_port, port), tmp_path)
                got = [line.replace(port, shown_port) for line in got]
                found = difference(list(shown.output), got)
                if found:
                    wrong.append(f"{block}: $ {shown.command}\n  {found}")
    assert not wrong, "\n".join(wrong)
