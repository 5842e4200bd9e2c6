"""What the documentation says is so: links, code blocks, the order of the parts."""

import doctest
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from tests.firmware.compiling import WARNINGS
from tests.firmware.local_models import with_events
from tests.frames import frame_model
from tests.random_fronts import local_model, random_signal_stage
from tests.random_models import random_model
from tests.sessions import ROOT, blocks, commands
from tinykernel import export, save
from tinykernel.face import app

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_PYTHON_SETUP = """\
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
"""


def pages() -> list[Path]:
    """List the Markdown files that people read on the web."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that headings of a page get."""
    headings = re.findall(r"^#+ +(.+?) *$", page.read_text(encoding="utf-8"), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return frozenset(heading.replace(" ", "-") for heading in kept)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links(page) -> None:
    """A reader can follow every link inside the repository, headings included."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        place = (page.parent / path).resolve() if path else page
        inside = place.is_relative_to(ROOT) and place.exists()
        if not inside or (anchor and anchor not in anchors(place)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_plain_text(page) -> None:
    """Pages are text without trailing blanks, and every fenced block says its language."""
    text = page.read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert [str(block) for block in blocks(page) if not block.language] == []


def doc_blocks(language: str) -> list[Any]:
    """List the blocks of one language as test parameters; Python only of docs/."""
    shown = [page for page in pages() if language == "c" or page.parent != ROOT]
    found = [block for page in shown for block in blocks(page, language)]
    return [pytest.param(block, id=str(block)) for block in found]


@pytest.mark.slow
@pytest.mark.parametrize("block", doc_blocks("python"))
def test_python_blocks(block, tmp_path, monkeypatch) -> None:
    """Examples in the documentation run; X and y may be taken as given."""
    monkeypatch.chdir(tmp_path)
    exec(compile(_PYTHON_SETUP + block.text, str(block), "exec"), {"__name__": "__main__"})


def test_errors_are_those_of_the_page(tmp_path, monkeypatch) -> None:
    """Each error that the page about errors shows is what its command prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("serial.tools.list_ports.comports", list)
    fruit = [f"red,{40 + i},{11.6 + i / 7},{'plum' if i % 2 else 'apple'}\n" for i in range(60)]
    header = "colour,grams,sugar,kind\n"
    Path("fruit.csv").write_text(header + "".join(fruit), encoding="utf-8")
    Path("apples.csv").write_text(header + "".join(fruit[:6:2]), encoding="utf-8")
    Path("new.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    Path("motion").mkdir()
    Path("motion/rest.csv").write_text("x,y,z\n" + 300 * "1,2,3\n", encoding="utf-8")
    save(random_model(1, n_features=4, raw_dtype="float32"), "gesture.tkm")
    shown = blocks(ROOT / "docs" / "troubleshooting.md", "console")
    assert len(shown) == 10
    for block in shown:
        (command,) = commands(block)
        words = shlex.split(command.command.removesuffix(" | tail -1"))
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code != 0
        assert done.stderr.splitlines()[-1] == command.output[0]


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """Return a folder with the exported models that the C examples include."""
    folder = tmp_path_factory.mktemp("project")
    models = {
        "gesture": random_model(1, n_features=4, raw_dtype="float32"),
        "motion": random_model(1, n_features=4, raw_dtype="int16"),
        "shapes": frame_model(1, 12, 16),
        "lamp": with_events(local_model(random_signal_stage(13, channels=1, hop=4), 13)),
        "act": local_model(random_signal_stage(1, height=128, channels=6, hop=64), 1, n_classes=6),
    }
    for name, model in models.items():
        export(model, "host", folder / name, name=name)
    return folder


@pytest.mark.parametrize("compiler", ["host", "arm-none-eabi-gcc"])
@pytest.mark.parametrize("block", doc_blocks("c"))
def test_c_blocks(block, compiler, project, tmp_path, require_compiler) -> None:
    """The C of the documentation compiles against exported projects, every warning an error."""
    (name,) = set(re.findall(r'#include "(\w+?)(?:_field)?\.h"', block.text))
    source = tmp_path / "block.c"
    source.write_text(block.text, encoding="utf-8")
    headers = [f"-I{path}" for path in (project / name).glob("lib/*/src")]
    command = [*require_compiler(compiler), "-std=c99", *WARNINGS, *headers, "-c", source]
    done = subprocess.run([*command, "-o", f"{source}.o"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_sessions_of_the_page_for_users_of_scikit_learn(tmp_path, monkeypatch) -> None:
    """docs/sklearn.md shows what Python prints."""
    monkeypatch.chdir(tmp_path)
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    page = ROOT / "docs" / "sklearn.md"
    text = "\n".join(block.text for block in blocks(page, "pycon"))
    test = parser.get_doctest(text, {}, page.name, str(page), 0)
    assert len(test.examples) > 12
    assert runner.run(test).failed == 0


def test_answers_of_the_page_about_products_name_files_that_are_there() -> None:
    """docs/product.md: a claim without its test or file would be a promise."""
    rows = re.findall(
        r"^\|[^|]+\?[^|]*\|[^|]+\|([^|]+)\|$", (ROOT / "docs/product.md").read_text(), re.M
    )
    assert len(rows) > 15
    for shown in rows:
        assert re.search(r"`|\]\(", shown)
        files = re.findall(r"`((?:tests|benchmarks|firmware)/[^`]+)`", shown)
        assert [file for file in files if not (ROOT / file).is_file()] == []
