"""Tables as people have them: in the style of UCI, Kaggle, spreadsheets and loggers."""

import random
import re
import shlex

import numpy as np
import pytest

from tests.cli.tools import failed, succeeded
from tests.data.test_selection import TINY
from tests.loading import load_data, load_rows
from tests.refusals import refused
from tinykernel import load
from tinykernel.base.errors import DataError
from tinykernel.data.tables import Selection

_HEADER = ("x", "z", "label")


def rows(n: int = 60) -> list[list[str]]:
    """Return rows of two numbers and one of two labels."""
    rng = random.Random(0)
    return [
        [f"{rng.gauss(2 * (i % 2), 1):.3f}", f"{rng.gauss(0, 3):.2f}", ("no", "yes")[i % 2]]
        for i in range(n)
    ]


def text(header=_HEADER, cells=None, mark=",", end="\n", tail="") -> str:
    """Write a table."""
    lines = ([header] if header else []) + (rows() if cells is None else cells)
    return end.join(mark.join(line) for line in lines) + end + tail


def beside(*columns, cells=None, names=None) -> str:
    """Write the rows with further columns in front; each is a function of the number of a row."""
    cells = rows() if cells is None else cells
    names = names or [f"more{i}" for i in range(len(columns))]
    made = [[str(f(i)) for f in columns] + row for i, row in enumerate(cells)]
    return text((*names, *_HEADER), made)


def labelled(*labels, end=()) -> str:
    """Write the rows with other labels, and more rows at the end."""
    made = [[x, z, labels[i % len(labels)]] for i, (x, z, _) in enumerate(rows())]
    return text(cells=[*made, *end])


def comma(cell: str) -> str:
    """Write a decimal comma."""
    return cell.replace(".", ",")


_GERMAN = [[comma(x), comma(z), y] for x, z, y in rows()]
_QUOTED = [[f'"{x}"', f'"{z}"', f'"{y}"'] for x, z, y in rows()]
_SPACED = [[f" {x} ", f"{z}  ", f" {y} "] for x, z, y in rows()]
_LAST_TYPO = [*rows()[:-1], ["fast", "1", "no"]]
_NO_LABEL_BELOW = "Total,41.3,\n"

# Name, what the file holds (text, or bytes), what is typed beside it, and what is said: a note,
# or "error: ..." and behind "-> " what is typed then.
STYLES = [
    ("plain", text(), "", "", ""),
    ("byte order mark", "\ufeff" + text(), "", "", ""),
    ("UTF-16 of a spreadsheet", text(mark="\t").encode("utf-16"), "", "", ""),
    ("semicolons, a comma in the header", text(("x, in m", "z", "label"), mark=";"), "", "", ""),
    ("decimal commas", text(cells=_GERMAN, mark=";"), "", "", ""),
    ("decimal commas beside dates", text(
        ("day", *_HEADER), [["01.02.2024", *row] for row in _GERMAN], ";"
    ), "", "left out: 1 column, day (the same in all rows)", ""),
    ("quoted decimal commas", text(
        cells=[[f'"{x}"', f'"{z}"', y] for x, z, y in _GERMAN]
    ), "", "", ""),
    ("tabs", text(mark="\t"), "", "", ""),
    ("semicolons behind blank lines", "\n\n" + text(mark=";"), "", "", ""),
    ("bars", text(mark="|"), "", "", ""),
    ("the mark in the first line", "sep=;\n" + text(mark=";"), "", "", ""),
    ("everything quoted", text(('"x"', '"z"', '"label"'), _QUOTED), "", "", ""),
    ("blanks around cells", text((" x", " z ", "label "), _SPACED), "", "", ""),
    ("empty lines at the end", text(tail="\n,,\n\n"), "", "", ""),
    ("a mark at the end of lines", text(end=",\n"), "", "", ""),
    ("an index without a name", beside(lambda i: i, names=[""]), "",
     "left out: 1 column, column1 (is strictly increasing", ""),
    ("an identifier of text", beside(lambda i: f"P{i:04d}"), "",
     "more0 (text, 60 distinct values in 60 rows)", ""),
    ("a shuffled number of the row", beside(lambda i: 7 * i % 60), "",
     "more0 (has a different value in every row", ""),
    ("a time", beside(lambda i: f"2024-05-01 10:{i:02d}:00"), "",
     "more0 (text, 60 distinct values", ""),
    ("dates of few days", beside(lambda i: f"2024-05-{i % 7 + 1:02d}"), "",
     "1 column of text became numbers: more0 0 to 6", ""),
    ("a column that is empty but for one cell", beside(
        lambda i: "Y" if i == 241 else "", cells=rows(300)
    ), "", "more0 (nearly empty: a value in 1 of 300 rows)", ""),
    ("a constant", beside(lambda i: "ok"), "", "more0 (the same in all rows)", ""),
    ("126 and x126", beside(lambda i: "x126" if i == 41 else "126"), "",
     "became numbers: more0 126 0, x126 1", ""),
    ("one mistake in a measurement", text(cells=_LAST_TYPO), "",
     r"x (1 of 60 cells are not numbers, the first 'fast' in row 60 (line 61): correct them", ""),
    ("yes and no in every case", beside(lambda i: ("Yes", "yes", "NO", "no")[i % 4]), "",
     "more0 0 to 3", ""),
    ("percents", beside(lambda i: f"{i % 9}%"), "", "1 column of text became numbers", ""),
    ("gaps of many kinds", beside(lambda i: ("3", "NA", "?", "", "7", "NaN")[i % 6]), "",
     "40 missing values in 40 rows (more0 40): kept", ""),
    ("text of several lines", beside(lambda i: f'"a\nb{i % 3}"'), "", "1 column of text", ""),
    ("a total in the last row", text(tail=_NO_LABEL_BELOW), "",
     "left out: 1 of 61 rows, without a label, the first in line 62", ""),
    ("labels that lack", labelled("no", "yes", "", "?"), "", "left out: 30 of 60 rows, with", ""),
    ("no header", text(None), "", "error: .*say which column holds the labels.*column3",
     "--label column3"),
    ("no label that is called so", text(("x", "z", "Outcome")), "",
     "error: .*--label COLUMN; columns: x, z, Outcome", "--label Outcome"),
    ("a label in another case", text(("x", "z", "Class")), "--label class", "", ""),
    ("values to predict", text(("label", "x", "kind")), "",
     "error: .*numbers that hardly repeat.*--task numbers", "--task numbers"),
    ("signs of the Windows code page", beside(lambda i: "größe").encode("cp1252"), "",
     "error: .*iconv -f cp1252 -t utf-8 a.csv > utf8_a.csv", None),
    ("two columns of one name", text(("x", "x", "label")), "",
     "error: .*two columns are called 'x'; rename one", None),
    ("a footnote below", text(tail="Source: our laboratory\n"), "",
     "error: .*has 1 value, the header has 3; correct or remove it", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "typed", "said", "remedy"), [s[1:] for s in STYLES], ids=[s[0] for s in STYLES]
)
def test_a_table_as_people_have_it_is_read(tmp_path, content, typed, said, remedy):
    """It trains and says what became of its columns; or one line says what to type, which works."""
    file, model = tmp_path / "a.csv", tmp_path / "m.tkm"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    command = ("train", file, "-o", model, *TINY[:-1])
    if said.startswith("error: "):
        message = failed(*command, *shlex.split(typed))
        assert re.search(said.removeprefix("error: "), message), message
        if remedy is None:  # outside of tinykernel
            return
        typed, said = remedy, ""
    result = succeeded(*command, *shlex.split(typed))
    assert said in " ".join(result.stdout.split())
    succeeded("evaluate", model, file)


def test_inputs_overrule_what_is_left_out(tmp_path):
    """A column that is named is an input, whatever it looks like."""
    file, model = tmp_path / "a.csv", tmp_path / "m.tkm"
    file.write_text(beside(lambda i: f"P{i}", lambda i: i))
    names = ("--set", "inputs=more0,more1,x")
    succeeded("train", file, "-o", model, *TINY, *names)
    assert load(model).feature_names == ("more0", "more1", "x")


def test_types_are_decided_by_all_rows(tmp_path):
    """Text below 20,000 rows of numbers makes a column of text, as it does in the first row."""
    file, n = tmp_path / "a.csv", 25_000
    cells = [str(i % 5) for i in range(n)]
    found = []
    for place in (0, n - 1):
        made = [*cells[:place], "none of these", *cells[place + 1 :]]
        file.write_text("\n".join(["age,label", *(f"{c},{i % 2}" for i, c in enumerate(made))]))
        found.append(load_data(file, test_size=0).coding.texts["age"])
    assert set(found[0]) == set(found[1]) == {*"01234", "none of these"}
    assert load_data(file).X_train.dtype == np.uint8  # of text alone the range is known


def test_predictions_are_of_rows_without_a_label_too(tmp_path):
    """To judge a model needs labels; to predict those that lack does not."""
    file = tmp_path / "a.csv"
    file.write_text(labelled("no", "yes", "", "yes"))
    assert len(load_rows(file).X) == 45
    every = load_rows(file, keep_all=True)
    assert len(every.X) == 60
    assert every.y is None


def test_totals_without_a_group_are_left_out(tmp_path):
    """A line of totals has no label, so that it needs no group."""
    cells = [[*row, f"p{i % 6}"] for i, row in enumerate(rows())]
    table = tmp_path / "t.csv"
    table.write_text(text((*_HEADER, "person"), [*cells, ["9", "9", "", ""]]))
    dataset = load_data(table, Selection(label="label", groups="person"))
    assert len(dataset.X_train) + len(dataset.X_test) == 60


def test_a_row_without_a_group_is_counted_apart(tmp_path):
    """The message names the third row of the file, and its line."""
    table = tmp_path / "t.csv"
    table.write_text("x,who,label\n1,a,no\n2,a,\n3,,yes\n4,b,no\n")
    assert "row 3 (line 4)" in refused(DataError, load_data, table, Selection(groups="who"))
