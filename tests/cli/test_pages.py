"""Golden pages: for each command what it prints, and its status, where it is used wrongly.

``python tests/cli/test_pages.py`` writes what they print now into `tests/cli/pages`:
check the diff.
"""

import os
import shlex
import sys
import tempfile
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.cli.tools import QUICK, blobs, run, table_with_groups
from tinykernel import Classifier

PAGES = sorted(Path(__file__).with_name("pages").glob("*.txt"))


def write_files(folder: Path) -> None:
    """Write what the commands of the pages take."""
    X, y = blobs(60, 0)
    np.savez(folder / "rows.npz", X=X, y=y, group=np.arange(60) // 6)
    np.savez(folder / "bare.npz", X=X)
    np.savez(folder / "other.npz", X=X, y=y + 25)
    table_with_groups(folder)
    values = [f"{i % 7},{i % 5}.5,{i}.25" for i in range(90)]
    (folder / "wear.csv").write_text("\n".join(["rms,temp,hours", *values]) + "\n")
    (folder / "rec").mkdir()
    for label in ("cold", "hot"):
        lines = [f"{20 * i},{i * i % 9},{i * 7 % 50},{label}" for i in range(320)]
        (folder / "rec" / f"{label}.csv").write_text("\n".join(["time_ms,warm,ax,label", *lines]))
    for name, text in (
        ("broken", "[train"),
        ("table", "[trains]"),
        ("name", "[train]\nepoch = 3"),
        ("place", "[train]\nwindow = 3"),
        ("value", "[train]\nepochs = 0"),
        ("deep", f"[train]\nepochs = {'[' * 900}{']' * 900}"),
    ):
        (folder / f"{name}.toml").write_text(text + "\n")
    model = run("train", folder / "rows.npz", "-o", folder / "gesture.tkm", *QUICK)
    assert model.exit_code == 0, model.output


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Return a folder with these files."""
    folder = tmp_path_factory.mktemp("pages")
    write_files(folder)
    return folder


def printed(page: Path, folder: Path) -> str:
    """Run the commands of a page; return it with what they print now, and their statuses.

    Each prints one line, before anything is trained, and leaves no file.
    """
    before, lines, names = Path.cwd(), list[str](), sorted(folder.rglob("*"))
    os.chdir(folder)
    try:
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith("$ tinykernel "):
                words = shlex.split(line.removeprefix("$ tinykernel "))
                with patch.object(Classifier, "fit", Mock(side_effect=AssertionError)):
                    done = run(*words)
                lines += [line, *done.output.splitlines(), f"[{done.exit_code}]"]
                assert len(done.output.splitlines()) == 1, done.output
                assert sorted(folder.rglob("*")) == names, line
    finally:
        os.chdir(before)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_wrong_usage_is_the_line_of_the_page(page, files):
    """Sentences stand on these pages alone; other tests assert codes, statuses and fields."""
    assert printed(page, files) == page.read_text(encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        write_files(Path(place))
        for each in PAGES:
            each.write_text(printed(each, Path(place)), encoding="utf-8")
