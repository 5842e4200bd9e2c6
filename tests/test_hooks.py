"""The hook of `make hooks` checks what is committed."""

import os
import subprocess
import sys
from pathlib import Path

from tests.sessions import ROOT


def test_the_hook_checks_what_is_staged(tmp_path, require_tool) -> None:
    """A mistake that is staged stops a commit, also where the folder holds the mended file."""
    git = require_tool("git")
    require_tool("clang-format")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for name in ("pyproject.toml", ".clang-format"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([git, "init", "--quiet", tmp_path], check=True)

    def status(name: str, staged: str, left: str) -> int:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(staged)
        subprocess.run([git, "add", name], cwd=tmp_path, check=True)
        file.write_text(left)
        done = subprocess.run([ROOT / ".ci" / "pre-commit"], cwd=tmp_path, env={"PATH": path})
        subprocess.run([git, "rm", "--quiet", "--cached", "-f", name], cwd=tmp_path, check=True)
        return done.returncode

    doc = '"""A module."""\n\n'
    assert status("unused.py", f"{doc}import os\n", "") == 1
    assert status("spaces.py", f"{doc}x=1\n", f"{doc}x = 1\n") == 1
    assert status("good.py", f"{doc}x = 1\n", "x=1\n") == 0
    assert status("firmware/a.c", "int  a;\n", "int a;\n") == 1
    assert status("firmware/b.c", "int a;\n", "int  a;\n") == 0
