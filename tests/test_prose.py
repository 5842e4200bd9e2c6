"""README and docs stay short and readable: the limits are what was reached, and only go down."""

from __future__ import annotations

from benchmarks.prose import LONGEST, length, pages, prose

PAGES = 27
WORDS = 27_200
MEAN = 14.4  # words in a sentence
LONG = 7  # sentences of more than LONGEST words


def test_prose_within_limits() -> None:
    """A reader meets no more pages, words or long sentences than after the last rewriting."""
    read = [prose(page.read_text(encoding="utf-8")) for page in pages()]
    lengths = [length(sentence) for page in read for sentence in page.sentences]
    assert len(read) <= PAGES
    assert sum(page.words for page in read) <= WORDS
    assert sum(lengths) / len(lengths) <= MEAN
    assert sum(words > LONGEST for words in lengths) <= LONG
