"""README, docs and names stay short and plain: limits are what was reached, and only go down."""

import ast
import re

from benchmarks import counts
from benchmarks.counts import CODE, LONGEST, ROOT, length, pages, prose

PAGES = 29  # README and 28 of docs
WORDS = 23_200  # new pages (products, scikit-learn, wake words) and models that convert: 3,250
README_LINES, README_WORDS = 190, 1_100
MEAN = 13.2  # words in a sentence
# Terms for which there is one of the field: held-out rows, the full workflow, ignored columns.
TERMS = re.compile(
    r"rows left out|kept aside|whole way|whom nobody|\bpersons\b|rows held out|switches"
)
# What a newcomer meets on the command line, and in Python.
OPTIONS_OF_TRAIN, OPTIONS_OF_OTHERS, OPTIONS = 26, 13, 145  # --label of predict and verify: 2
PARAMETERS = 28  # 19, and 9 that were entries of a parameter `options`


def test_commands_and_estimators_stay_small() -> None:
    """A newcomer meets no more options of commands, or parameters of estimators, than now."""
    options = counts.options_by_command()
    assert sum(options.values()) <= OPTIONS
    assert options.pop("train") <= OPTIONS_OF_TRAIN
    assert max(options.values()) <= OPTIONS_OF_OTHERS
    assert max(counts.parameters().values()) <= PARAMETERS


def test_prose_within_limits() -> None:
    """A reader meets no more pages, words or long sentences than after the last rewriting."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages()}
    read = [prose(text) for text in texts.values()]
    lengths = {sentence: length(sentence) for page in read for sentence in page.sentences}
    assert len(read) <= PAGES
    assert sum(page.words for page in read) <= WORDS
    assert sum(lengths.values()) / len(lengths) <= MEAN
    assert [text for text, words in lengths.items() if words > LONGEST] == []
    assert len(texts["README.md"].splitlines()) <= README_LINES
    assert read[0].words <= README_WORDS


def test_one_term_for_a_thing() -> None:
    """Pages use the field's term; what commands print stands in code blocks."""
    texts = {page.name: CODE.sub("", page.read_text(encoding="utf-8")) for page in pages()}
    other = {name: match[0] for name, text in texts.items() if (match := TERMS.search(text))}
    assert not other


def test_lines_end_at_a_hundred_columns() -> None:
    """A page can be read beside its source; code, tables and pictures keep their lines."""
    long = [
        f"{page.name}: {line}"
        for page in pages()
        for line in CODE.sub("", page.read_text(encoding="utf-8")).splitlines()
        if len(line) > 100 and not line.startswith(("|", "![", "#"))
    ]
    assert not long


def test_classes_have_names_of_their_own() -> None:
    """A reader who looks for a class finds one."""
    names = [
        node.name
        for file in (ROOT / "tinykernel").rglob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(names) == sorted(set(names))
