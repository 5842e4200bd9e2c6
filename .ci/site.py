"""Gather README.md, docs/ and the interface in Python as the pages of a site, for mkdocs.

``python .ci/site.py FOLDER`` writes the pages. Links to files that a site does not hold, such as
sources, become links to the repository that the variable PROJECT_URL names, or plain text.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^ *(`{3,}).*?^ *\1$", re.MULTILINE | re.DOTALL)
# The names of the package, by what people want to do.
TASKS: Mapping[str, tuple[str, ...]] = {
    "Train": ("train", "Classifier", "Regressor", "NoveltyDetector"),
    "Train the kernel machine alone": ("TernaryKernelClassifier", "TernaryKernelRegressor"),
    "Cut recordings": ("windows", "relative"),
    "Take a model of another library": ("convert", "quantize"),
    "Judge": ("evaluate", "tune", "report_page"),
    "Let it refuse, and watch it": ("calibrate", "Counters"),
    "Measure": ("report", "bench"),
    "Put it on a chip": ("export", "verify"),
    "Keep it": ("save", "load", "IntegerModel"),
    "Handle errors": ("TinykernelError",),
}


def resolved(text: str, page: Path, pages: set[Path], url: str) -> str:
    """Return a page whose links lead to pages of the site, to the repository, or nowhere."""

    def follow(match: re.Match[str]) -> str:
        picture, words, link = match.groups()
        if re.match(r"[a-z]+:|#", link):
            return match[0]
        path, _, anchor = link.partition("#")
        place = Path(os.path.normpath(page.parent / path))
        if place in pages:
            there = Path("index.md") if place == Path("README.md") else place
            here = Path("index.md") if page == Path("README.md") else page
            way = os.path.relpath(there, here.parent).replace(os.sep, "/")
            return f"{picture}[{words}]({way}{'#' + anchor if anchor else ''})"
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({url}/{kind}/HEAD/{place.as_posix()})" if url else words

    parts, end = [], 0
    for block in _FENCED.finditer(text):
        parts += [_LINK.sub(follow, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, _LINK.sub(follow, text[end:])])


def interface() -> str:
    """Return the page of the interface in Python, by task."""
    lines = ["# Interface in Python", ""]
    for task, names in TASKS.items():
        lines += [f"## {task}", "", *(f"::: tinykernel.{name}\n" for name in names)]
    return "\n".join(lines)


def gather(folder: Path, url: str = "") -> None:
    """Write all pages and pictures of the site into a folder, which is replaced."""
    shutil.rmtree(folder, ignore_errors=True)
    shown = [Path("README.md"), Path("CHANGELOG.md"), Path("CONTRIBUTING.md")]
    shown += [path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*"))]
    pages = {path for path in shown if (ROOT / path).is_file() and path.suffix != ".json"}
    for page in sorted(pages):
        target = folder / ("index.md" if page == Path("README.md") else page)
        target.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix == ".md":
            text = (ROOT / page).read_text(encoding="utf-8")
            target.write_text(resolved(text, page, pages, url), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / page, target)
    shutil.copyfile(ROOT / ".ci" / "site.css", folder / "site.css")
    (folder / "api.md").write_text(interface(), encoding="utf-8")


if __name__ == "__main__":
    gather(Path(sys.argv[1]), os.environ.get("PROJECT_URL", "").rstrip("/"))
