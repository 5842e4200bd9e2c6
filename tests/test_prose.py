"""README and docs stay short and readable: the limits are what was reached, and only go down."""

from __future__ import annotations

from benchmarks.counts import CODE, LONGEST, length, pages, prose

PAGES = 17  # README and 16 of docs: images and board came
WORDS = 18_000
MEAN = 13.6  # words in a sentence
LONG = 0  # sentences of more than LONGEST words


def test_prose_within_limits() -> None:
    """A reader meets no more pages, words or long sentences than after the last rewriting."""
    read = [prose(page.read_text(encoding="utf-8")) for page in pages()]
    lengths = [length(sentence) for page in read for sentence in page.sentences]
    assert len(read) <= PAGES
    assert sum(page.words for page in read) <= WORDS
    assert sum(lengths) / len(lengths) <= MEAN
    assert sum(words > LONGEST for words in lengths) <= LONG


def test_lines_end_at_a_hundred_columns() -> None:
    """A page can be read beside its source; code, tables and pictures keep their lines."""
    long = [
        f"{page.name}: {line}"
        for page in pages()
        for line in CODE.sub("", page.read_text(encoding="utf-8")).splitlines()
        if len(line) > 100 and not line.startswith(("|", "![", "#"))
    ]
    assert not long
