"""Text and missing values of tables as numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.loading import load_data, load_rows
from tests.refusals import refused
from tinykernel.base.coding import Coding, coding_of, recode
from tinykernel.base.errors import DataError
from tinykernel.data.tables import Selection

pytestmark = pytest.mark.usefixtures("page")

_COLOURS = ("red", "blue", "none", "?", "green")


def fruit(path, n=80):
    """Write rows with a column of five colours, one of which is a gap, and a number with gaps."""
    lines = ["colour,ripe,weight,label"]
    for i in range(n):
        weight = "" if i % 9 == 0 else f"{2 + i % 7}.5"
        label = "apple" if _COLOURS[i % 5] in ("red", "none") else "plum"
        lines.append(f"{_COLOURS[i % 5]},{'yes' if i % 3 else 'no'},{weight},{label}")
    path.write_text("\n".join(lines))
    return path


def test_text_and_gaps_become_numbers(tmp_path):
    """Two texts are 0 and 1, more in the order of how often they occur, a gap is below all."""
    data = load_data(fruit(tmp_path / "a.csv"), test_size=0)
    assert data.coding.texts == {"colour": ("blue", "green", "none", "red"), "ripe": ("no", "yes")}
    assert data.coding.gaps == {"colour": -1, "weight": -1}
    assert Coding.read({"texts": {"a": ["x", "x"]}, "gaps": {}}) is None
    assert data.X_train[:6, 0].tolist() == [3, 0, 2, -1, 1, 3]
    assert data.X_train[:4, 1].tolist() == [0, 1, 1, 0]
    assert data.X_train[:3, 2].tolist() == [-1, 3.5, 4.5]
    assert [note.split(":")[0] for note in data.notes] == [
        "2 columns of text became numbers",
        "25 missing values in 23 rows (colour 16, weight 9)",
    ]


def test_numbers_of_an_earlier_training_hold(tmp_path):
    """Other rows get the numbers of the training; new text is refused by place."""
    coding = load_data(fruit(tmp_path / "a.csv"), test_size=0).coding
    other, selection = tmp_path / "b.csv", Selection(coding=coding)
    header = "colour,ripe,weight"
    other.write_text(f"{header}\nblue,no,3\ngreen,yes,?\n")
    assert load_rows(other, selection=selection).X.tolist() == [[0, 0, 3], [1, 1, -1]]
    other.write_text(f"{header}\nblue,no,True\ngreen,yes,false\n")  # as to_csv writes bools
    assert load_rows(other, selection=selection).X.tolist() == [[0, 0, 1], [1, 1, 0]]
    other.write_text(f"{header}\nblue,no,3\npink,yes,1\n")
    refused(DataError, load_rows, other, selection=selection)
    other.write_text(f"{header}\nblue,NA,3\n")
    rows = load_rows(other, selection=selection)  # training had no gap in this column
    assert rows.X.tolist() == [[0, coding.usual["ripe"], 3]]
    assert rows.notes
    refused(DataError, load_rows, other, selection=replace(selection, missing="error"))


def test_rows_without_the_columns_of_the_coding_raised_an_exception(tmp_path):
    """An array has the columns of the model; a table with others is refused in one line."""
    data = load_data(fruit(tmp_path / "a.csv"))
    how = {"selection": Selection(coding=data.coding), "feature_names": data.columns}
    np.save(tmp_path / "rows.npy", data.X_train)
    assert np.array_equal(load_rows(tmp_path / "rows.npy", **how).X, data.X_train)
    np.savez(tmp_path / "rows.npz", X=data.X_train, y=data.y_train)
    assert np.array_equal(
        load_data(tmp_path / "rows.npz", test_size=0, selection=how["selection"]).X_train,
        data.X_train,
    )
    (tmp_path / "b.csv").write_text("colour,ripe,mass\nblue,no,3\n")
    refused(DataError, load_rows, tmp_path / "b.csv", **how)


@pytest.mark.parametrize("low", [1.7e9, -1.7e9, 2e7 + 1, -0.5, 7.0])
def test_a_gap_of_large_numbers_is_none_of_them(low):
    """In float32 a time in seconds less 1 is that time; a gap must differ from it."""
    X = np.array([[low], [low + 1000], [low + 5e4], [np.nan]])
    gap = coding_of(X, ["t"], {}, np.array([True])).gaps["t"]
    assert np.float32(gap) < np.float32(low)


@given(st.data())
def test_codes_and_texts_are_one_to_one(data):
    """Whatever the column, a cell of text gets the number that stands for just this text."""
    n = data.draw(st.integers(1, 6))
    texts = tuple(f"t{i}" for i in range(n))
    codes = data.draw(st.lists(st.integers(-1, n - 1), min_size=1, max_size=30))
    X = np.array([[np.nan if code < 0 else code] for code in codes], np.float64)
    lacking = np.isnan(X).any(axis=0)
    coding = coding_of(X, ["c"], {"c": texts}, lacking)
    found = recode(X, ["c"], {"c": texts}, coding, "X")[:, 0]
    names = [None if number < 0 else coding.texts["c"][int(number)] for number in found]
    assert names == [None if code < 0 else texts[code] for code in codes]
    assert Coding.read(json.loads(json.dumps(coding.written()))) == coding
