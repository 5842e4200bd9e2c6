"""Everything that the README shows is run.

``python tests/test_readme.py [PAGE ...]`` writes the present outputs into the console blocks of the
README, or of pages of ``docs/``.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.processes import captured
from tests.sessions import (
    ROOT,
    Block,
    blocks,
    commands,
    difference,
    environment,
    page_differences,
    run_command,
    wording,
)
from tinykernel.compile.targets import TARGETS
from tinykernel.run.program import find_toolchain

README = ROOT / "README.md"


@pytest.mark.slow
def test_console_blocks(tmp_path, require_platforms) -> None:
    """A user who types what the README shows, one after the other, sees what the README shows."""
    for target in ("host", "cortex-m4"):
        require_platforms(target)
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    wrong = page_differences(README, tmp_path)
    assert not wrong, "\n".join(wrong)
    assert (tmp_path / "digits.tkm").is_file()
    run_command("tinykernel export act.tkm --format library", tmp_path)
    source, chain = tmp_path / "sensor.c", find_toolchain("host")
    source.write_text(blocks(README, "c")[0].text, encoding="utf-8")
    chain.compile(source, tmp_path / "s.o", include=[tmp_path / "act/src"], flags=["-Werror"])


@pytest.mark.slow
def test_python_blocks(tmp_path) -> None:
    """The Python of the README runs, block after block, in an empty folder."""
    text = "\n".join(block.text for block in blocks(README, "python"))
    assert text
    done = captured([sys.executable, "-c", text], cwd=tmp_path, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "digits.npz", X=X.astype("uint8"), y=y)
    sentence = "`tinykernel export model.pkl --target cortex-m4`"
    assert sentence in README.read_text(encoding="utf-8")
    pickled = (
        sentence[1:-1],
        "tinykernel report model.pkl",
        "tinykernel verify model.pkl digits.npz",
    )
    output = [line for command in pickled for line in run_command(command, tmp_path)]
    assert any(line.startswith("fits the budget of 30.0 KB") for line in output)
    assert any(line.startswith("C and Python agree on every score") for line in output)
    assert (tmp_path / "model-cortex-m4" / "platformio.ini").is_file()


def test_table_of_targets() -> None:
    """The table names every target with its default board and frameworks, and no other."""
    rows = {}
    for line in (ROOT / "docs" / "boards.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 4:
            rows[cells[0].strip("`")] = cells[1:]
    assert list(rows) == list(TARGETS)
    for name, (_, board, frameworks) in rows.items():
        target = TARGETS[name]
        if target.board.name:
            assert board == f"{target.board.title} (`{target.board.name}`)"
        if target.family != "host":
            assert frameworks == ", ".join(target.board.frameworks)


def test_make_goals() -> None:
    """Every `make` command that README and CONTRIBUTING show is in the Makefile."""
    goals = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        shown = re.findall(r"(?:^ *|`)make ([a-z]+)", (ROOT / name).read_text(), re.MULTILINE)
        assert shown
        assert set(shown) <= goals


def test_difference_sees_what_matters() -> None:
    """The comparison notices a changed word, line, difference and accuracy, not a changed time."""
    line = ["test  97.22 % in integers, 0 differences, gcc (Debian 12.2.0-14) 12.2.0, 4.7 s"]
    same = ["test 96.9 % in integers, 0 differences, gcc (GCC) 13.1.1, 99.0 s"]
    assert difference(line, same) == ""
    for old, new in (("0 diff", "1 diff"), ("in integers", "in floats"), ("97.22", "95.1")):
        assert difference(line, [line[0].replace(old, new)])
    assert difference(line, [])
    assert difference(line, [*line, "more"])
    assert wording("a   1.5 KB") == "a # KB"


def rewrite(page: Path) -> None:
    """Run the console blocks of a page, after its first Python, and put their outputs into it."""
    lines = page.read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
        if page != README:
            made = blocks(page, "python")[0].text
            subprocess.run([sys.executable, "-c", made], cwd=folder, check=True)
        new: list[tuple[Block, list[str]]] = []
        for block in blocks(page, "console"):
            text = []
            for shown in commands(block):
                output = run_command(shown.command, folder)
                # What differs by chance, such as a time, stays as it is.
                same = not difference(list(shown.output), output)
                text += [*shown.lines, *(shown.output if same else output)]
            new.append((block, text))
    for block, text in reversed(new):
        lines[block.line : block.line + len(block.text.splitlines())] = text
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or [README]:
        rewrite(Path(name).resolve())
