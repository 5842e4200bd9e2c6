"""What a newcomer meets: options of commands, parameters of estimators, sentences of pages.

Words and sentences are those of README.md and docs/. Left out are docs/results/, which programs
write, and everything that is not a sentence: code blocks, tables, headings, and items that are only
a link. The limits stand in tests/test_prose.py.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
LONGEST = 30  # words in a sentence that can be read aloud in one breath
CODE = re.compile(r"^ *(`{3,}).*?^ *\1$|<!--.*?-->|^ {4}.*?$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"(?:[-*+]|\d+\.) +")
# A dot ends a sentence before a capital, a quotation or a name in `code`, but not in "e.g.".
_END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!et al)[.!?][\"')*]*\s+(?=[\"'(*`\[]*[A-Z0-9`])")


class Prose(NamedTuple):
    """What a page holds: the words outside code blocks and its sentences."""

    words: int
    sentences: list[str]


def pages(root: Path = ROOT) -> list[Path]:
    """List README.md and the pages of docs/ that people write."""
    written = sorted((root / "docs").rglob("*.md"))
    return [root / "README.md", *(p for p in written if "results" not in p.parts)]


def prose(text: str) -> Prose:
    """Split the Markdown of a page into sentences; a paragraph or an item ends one, too."""
    text = CODE.sub("\n", text)
    words = len(re.sub(r"[|#-]{2,}|\|", " ", text).split())
    paragraphs: list[str] = [""]
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith(("|", "#", "<")) or _ITEM.match(line):
            paragraphs.append("")
        if not line.startswith(("|", "#", "<")):
            paragraphs[-1] += (
                " " + _ITEM.sub("", line, count=1) if _ITEM.match(line) else " " + line
            )
    sentences: list[str] = []
    for paragraph in paragraphs:
        if paragraph.strip() and _LINK.sub("", paragraph).strip(" .:-*"):
            sentences += _END.split(_LINK.sub(r"\1", paragraph).strip())
    return Prose(words, sentences)


def length(sentence: str) -> int:
    """Return the number of words; signs alone (``=``, ``+``) are none."""
    return sum(any(c.isalnum() for c in word) for word in sentence.split())


def options_by_command() -> dict[str, int]:
    """Count the options that ``--help`` of each command shows."""
    from typer.main import get_command

    from tinykernel.face import app

    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: sum(p.param_type_name == "option" and not p.hidden for p in command.params)
        for name, command in commands.items()
    }


def parameters() -> dict[str, int]:
    """Count the parameters of the estimators."""
    import tinykernel

    kinds = (
        tinykernel.Classifier,
        tinykernel.Regressor,
        tinykernel.TernaryKernelClassifier,
        tinykernel.TernaryKernelRegressor,
        tinykernel.NoveltyDetector,
    )
    return {kind.__name__: len(kind().get_params()) for kind in kinds}
