"""Count how much README.md and docs/ ask of a reader: ``python benchmarks/prose.py [--long]``.

Prints pages, words, words per sentence and sentences of over 35 words. Left out are docs/results/,
which programs write, and everything that is not a sentence: code blocks, tables, headings, and
items that are only a link. ``--long`` shows the long sentences, the longest first.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LONGEST = 35  # words in a sentence that can be read aloud in one breath
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


def main() -> None:
    """Print the counts, a page a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--long", action="store_true", help="show the sentences that are too long")
    given = parser.parse_args()
    read = {page: prose(page.read_text(encoding="utf-8")) for page in pages()}
    print(f"{'page':34} {'words':>6} {'a sentence':>10} {f'over {LONGEST}':>8}")
    rows = [(page.relative_to(ROOT).as_posix(), found) for page, found in read.items()]
    everything = [sentence for found in read.values() for sentence in found.sentences]
    rows.append((f"{len(read)} pages", Prose(sum(p.words for p in read.values()), everything)))
    for name, (words, sentences) in rows:
        long = sorted((s for s in sentences if length(s) > LONGEST), key=length, reverse=True)
        mean = sum(map(length, sentences)) / max(len(sentences), 1)
        print(f"{name:34} {words:6} {mean:10.1f} {len(long):8}")
        if given.long and not name.endswith("pages"):
            for sentence in long:
                print(f"  {length(sentence)}: {sentence}")


if __name__ == "__main__":
    main()
