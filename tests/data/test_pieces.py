"""Rows that are read in pieces, and samples of them: the same as rows in memory."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.tools import run, succeeded
from tests.data.test_selection import TINY
from tests.loading import load_data
from tinykernel.base import files as stored
from tinykernel.base.files import drawn_places

PARTS = ("X_train", "y_train", "X_test", "y_test")


def rows(n=3000, kind=np.int16):
    """Return rows of three classes that overlap, and their labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    centre = 30 * rng.normal(size=(3, 8))
    return (20 * rng.normal(size=(n, 8)) + centre[y]).astype(kind), y


@pytest.fixture
def in_pieces(monkeypatch):
    """Read all files in small pieces."""
    monkeypatch.setattr(stored, "ROWS_AT_ONCE", 700)

    def switch(*, on):
        monkeypatch.setattr(stored, "IN_PIECES", 1000 if on else 1 << 28)

    return switch


@pytest.fixture
def drawn(monkeypatch):
    """Draw 500 rows."""
    monkeypatch.setattr(stored, "MOST_ROWS", 500)


@pytest.fixture
def write(require_tool):
    """Return a function that writes rows in one of the formats, and returns what to load."""

    def written(folder, suffix, X, y):
        if suffix == ".npy":
            np.save(folder / "a_y.npy", y)
            np.save(folder / "a_X.npy", X)
            return folder / "a_X.npy"
        if suffix == ".npz":
            np.savez_compressed(folder / "a.npz", X=X, y=y)
            return folder / "a.npz"
        pyarrow = require_tool("pyarrow")
        from pyarrow import parquet

        columns = {f"a{i}": column for i, column in enumerate(X.T)} | {"label": y}
        parquet.write_table(pyarrow.table(columns), folder / "a.parquet", row_group_size=500)
        return folder / "a.parquet"

    return written


@pytest.mark.parametrize("most", [500_000, 500])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_data_in_pieces_are_those_read_whole(suffix, most, tmp_path, in_pieces, monkeypatch, write):
    """Rows and labels do not depend on whether a file was read in pieces."""
    monkeypatch.setattr(stored, "MOST_ROWS", most)
    file = write(tmp_path, suffix, *rows())
    found = []
    for on in (False, True):
        in_pieces(on=on)
        found.append(load_data(file))
    whole, pieces = found
    assert (whole.split, whole.drawn_of) == (pieces.split, pieces.drawn_of)
    assert all(np.array_equal(getattr(whole, name), getattr(pieces, name)) for name in PARTS)
    assert len(whole.X_train) == min(most, 2400)


@given(st.lists(st.integers(1, 60), min_size=2, max_size=6), st.integers(1, 200), st.integers(0, 9))
def test_a_sample_is_stratified(sizes, most, seed):
    """Each class has its share of the sample within two rows, and at least one; no row twice."""
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    places = drawn_places(y, most, seed)
    n = sum(sizes)
    assert len(set(places.tolist())) == len(places) == max(min(most, n), min(len(sizes), n))
    count = np.bincount(y[places], minlength=len(sizes))
    assert (count >= 1).all()
    if (count > 1).all():
        assert (np.abs(count - np.array(sizes) * len(places) / n) < 2).all()
    assert np.array_equal(drawn_places(y, most, seed), places)


def test_a_model_of_a_sample_says_so_and_knows_its_rows(tmp_path, in_pieces, drawn, write):
    """Training says of how many rows it saw a sample; later commands leave its rows out."""
    file, model = write(tmp_path, ".npy", *rows()), tmp_path / "m.tkm"
    in_pieces(on=True)
    result = succeeded("train", file, "-o", model, *TINY[:-1])
    assert "2,400" in result.output
    assert json.loads(run("evaluate", model, file, "--json").output)["rows"] == 600


def test_a_table_with_gaps_is_read_whole(tmp_path, in_pieces, write):
    """A large table that lacks values has them coded as in a small one, and none is lost."""
    X, y = rows(kind=np.float64)
    X[2900, 3] = np.nan
    file = write(tmp_path, ".parquet", X, y)
    in_pieces(on=True)
    found = load_data(file)
    assert list(found.coding.gaps) == ["a3"]
    assert not np.isnan(found.X_train).any()


def test_many_rows_take_little_memory(tmp_path, in_pieces, drawn, write):
    """To read rows in pieces takes a few bytes a row, not the rows."""
    file = write(
        tmp_path, ".npy", *(np.tile(part, (20,) + (1,) * (part.ndim - 1)) for part in rows())
    )
    in_pieces(on=True)
    load_data(file)  # imports
    tracemalloc.start()
    load_data(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000 * 120
