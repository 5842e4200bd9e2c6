"""The site: every page once in its navigation, one heading, links that lead on, on a phone too."""

import re
import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tinykernel
from tests.reporting.browser import browser

_LOADED = "document.readyState === 'complete' && document.querySelector('h1')"
_FENCED = re.compile(r"^ *(`{3,}).*?^ *\1$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def pages(checkout: Path, tmp_path: Path) -> Path:
    """Return a folder with the pages of the site."""
    site = runpy.run_path(str(checkout / ".ci" / "site.py"))
    named = sorted(name for names in site["TASKS"].values() for name in names)
    assert named == [name for name in tinykernel.__all__ if name != "__version__"]
    site["gather"](tmp_path / "pages")
    return tmp_path / "pages"


def test_every_page_has_one_heading_and_is_found(pages: Path, checkout: Path) -> None:
    """The navigation names each page once; a link leads to a page, or to another place."""
    listed = re.findall(r"([\w./-]+\.md)$", (checkout / "mkdocs.yml").read_text(), re.MULTILINE)
    written = {path.relative_to(pages).as_posix(): path for path in pages.rglob("*.md")}
    assert sorted(listed) == sorted(written)
    for name, path in written.items():
        text = _FENCED.sub("", path.read_text(encoding="utf-8"))
        assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1, name
        for link in re.findall(r"\]\(([^)\s#]+)", text):
            assert re.match(r"https?:", link) or (path.parent / link).is_file(), (name, link)


@pytest.mark.slow
def test_pages_fit_a_phone(
    pages: Path, checkout: Path, tmp_path: Path, require_tool: Callable[[str], Any]
) -> None:
    """Nothing is wider than the screen, the menu is there, and no other computer is asked."""
    mkdocs, chromium = require_tool("mkdocs"), require_tool("chromium")
    settings = (checkout / "mkdocs.yml").read_text(encoding="utf-8")
    for folder, place in (("build/pages", pages), ("build/site", tmp_path / "site")):
        settings = settings.replace(folder, str(place))
    (tmp_path / "mkdocs.yml").write_text(settings.replace("[.]", f"[{checkout}]"), encoding="utf-8")
    command = [mkdocs, "build", "--quiet", "--strict", "--config-file", tmp_path / "mkdocs.yml"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with browser(chromium, tmp_path / "profile", "--allow-file-access-from-files") as phone:
        for page in ("index.html", "api/index.html", "docs/results/accuracy/index.html"):
            place = tmp_path / "site" / page
            phone.open(place, width=390, height=844, ready=_LOADED)
            widths = phone.run("[document.documentElement.scrollWidth, innerWidth]")
            assert widths == [390, 390], page
            assert phone.run("document.querySelectorAll('h1').length") == 1
            assert phone.run("document.querySelectorAll('nav [data-toggle]').length") > 0
            phone.picture(tmp_path / f"{page.replace('/', '-')}.png")
            assert not [
                asked for asked in phone.requests if not asked.startswith(("file:", "data:"))
            ]
