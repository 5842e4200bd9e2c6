"""Data files: what loads, how it is split, and the one line that every bad file gets."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import refusals
from tests.loading import load_data, load_rows
from tinykernel.base.errors import FileError, TinykernelError
from tinykernel.data.partition import Dataset, Rows
from tinykernel.data.paths import find_data
from tinykernel.data.tables import Selection
from tinykernel.face.dataset import is_by_group

pytestmark = pytest.mark.usefixtures("page")


def small(rows: int = 20, features: int = 3, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, features)).astype(np.float32), np.arange(rows) % classes


def npz(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)
    return path


def refused(path: Path | str, *, load=load_data, **options: object) -> str:
    return refusals.refused(TinykernelError, load, path, **options)


def test_npz_keeps_the_split_of_the_file(tmp_path):
    """An official test part is taken as it is; images are flattened, case does not matter."""
    images, y = np.arange(400, dtype=np.uint8).reshape(20, 4, 5), small()[1]
    file = npz(tmp_path / "a.npz", x_train=images, y_train=y, x_test=images[:5], y_test=y[:5])
    data = load_data(file)
    assert isinstance(data, Dataset)
    np.testing.assert_array_equal(data.X_train, images.reshape(20, 20))
    np.testing.assert_array_equal(data.X_test, data.X_train[:5])
    np.testing.assert_array_equal(data.y_test, y[:5])
    assert data.split == "20 training rows, 5 test rows (as the file splits them)"
    assert data.source == "a.npz"


@pytest.mark.parametrize(("first_of_test", "apart"), [(3, True), (2, False)])
def test_a_split_of_the_file_that_is_by_group_says_so(tmp_path, first_of_test, apart):
    """Groups of an official split are those of folds, too, unless one is on both sides."""
    X, y = small()
    groups = {"group_train": np.arange(20) % 3, "group_test": first_of_test + np.arange(5) % 2}
    parts = {"X_train": X, "y_train": y, "X_test": X[:5], "y_test": y[:5]}
    data = load_data(npz(tmp_path / "a.npz", **parts, **groups))
    assert data.split.endswith("(as the file splits them, by group)") == apart
    assert is_by_group({"groups": None, "name": None}, data) == apart


def test_split_is_the_one_of_scikit_learn(tmp_path):
    """Anyone can repeat the split of a file without a test part with scikit-learn."""
    from sklearn.model_selection import train_test_split

    X, y = small(50, 4, 3)
    file = npz(tmp_path / "a.npz", X=X, y=y, group=np.arange(50))
    data = load_data(file, test_size=0.3, seed=7)
    expected = train_test_split(X, y, test_size=0.3, stratify=y, random_state=7)
    found = (data.X_train, data.X_test, data.y_train, data.y_test)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(X[data.group_test], data.X_test)
    np.testing.assert_array_equal(X[data.group_train], data.X_train)
    assert data.split == (
        "35 training rows, 15 test rows (30 % held out, stratified, seed 7; groups mixed)"
    )


@settings(max_examples=40)
@given(
    counts=st.lists(st.integers(2, 9), min_size=2, max_size=12),
    test_size=st.floats(0.01, 0.5),
    seed=st.integers(0, 5),
)
def test_split_loses_no_row_and_no_class(tmp_path_factory, counts, test_size, seed):
    """Every row lands on exactly one side and every class is trained on, however small it is."""
    y = np.repeat(np.arange(len(counts)), counts)
    X = np.arange(len(y), dtype=np.float64)[:, None]
    file = npz(tmp_path_factory.mktemp("split") / "a.npz", X=X, y=y)
    data = load_data(file, test_size=test_size, seed=seed)
    rows = np.concatenate([data.X_train, data.X_test])[:, 0]
    np.testing.assert_array_equal(np.sort(rows), X[:, 0])
    assert set(data.y_train) == set(y)
    assert len(data.X_test) >= len(counts)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u1", "i1", "u2", "i2", "i4", "i8", "?"])
def test_number_types(tmp_path, dtype):
    """Floats, integers and booleans load; the type is kept, as it decides the type in C."""
    X = (np.arange(60).reshape(20, 3) % 2).astype(dtype)
    data = load_data(npz(tmp_path / "a.npz", X=X, y=small()[1]), test_size=0)
    assert data.X_train.dtype == (np.float32 if dtype == "f2" else X.dtype)
    np.testing.assert_array_equal(data.X_train, X)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.array([0.0, 1.0, 2.0, 1.0]), [0, 1, 2, 1]),
        (np.array(["up", "down", "up", "up"]), ["up", "down", "up", "up"]),
        (np.array([b"up", b"down", b"up", b"up"]), ["up", "down", "up", "up"]),
        (np.array([[3], [4], [3], [4]], dtype=np.uint8), [3, 4, 3, 4]),
        (np.array([True, False, True, True]), [True, False, True, True]),
    ],
)
def test_label_types(tmp_path, y, expected):
    """Labels may be integers, integers written as floats, booleans, text, or one column."""
    data = load_data(npz(tmp_path / "a.npz", X=small(4)[0], y=y), test_size=0)
    assert data.y_train.tolist() == expected


def test_npy_pairs(tmp_path):
    """X.npy finds y.npy, NAME_X.npy finds NAME_y.npy."""
    X, y = small()
    for x_name, y_name in [("X", "y"), ("a_X", "a_y")]:
        np.save(tmp_path / f"{x_name}.npy", X)
        np.save(tmp_path / f"{y_name}.npy", y)
    np.save(tmp_path / "other.npy", y)
    for name in ("X", "a_X"):
        assert load_data(tmp_path / f"{name}.npy").X_train.shape == (16, 3)
    for label in (str(tmp_path / "other.npy"), "other.npy"):
        named = load_data(tmp_path / "X.npy", Selection(label=label), test_size=0)
        np.testing.assert_array_equal(named.y_train, y)


def test_csv(tmp_path):
    """A table keeps its number types, column names and text labels, in any column order."""
    file = tmp_path / "a.csv"
    file.write_text("\ufeffax,label,ay\n" + "1,up,2\n3,down,4\n" * 4 + "\n", encoding="utf-8")
    data = load_data(file, test_size=0)
    assert data.X_train[:2].tolist() == [[1, 2], [3, 4]]
    assert data.X_train.dtype.kind == "i"
    assert data.y_train[:2].tolist() == ["up", "down"]
    assert data.columns == ("ax", "ay")
    file.write_text("label;ax\n" + "0;1\n1;2.5\n" * 2)
    data = load_data(file, test_size=0)
    assert data.X_train[:, 0].tolist() == [1, 2.5, 1, 2.5]
    assert data.y_train.tolist() == [0, 1, 0, 1]
    file.write_text("ax,label\n1,0.5\n2,0.7\n3,0.5\n4,0.7\n")
    assert load_data(file).X_train.shape[1] == 1
    file.write_text('kind,ax\n"a, b",1\nc,2\n')
    assert load_data(file, Selection(label="kind"), test_size=0).y_train.tolist() == ["a, b", "c"]


def test_what_may_be_a_mistake_is_noted(tmp_path):
    """Labels that differ in capitals alone, and a number that stands for a missing value."""
    path, rng = tmp_path / "x.csv", np.random.default_rng(0)
    for flow, label, expected in (
        ("-999", "OK", ["labels 'OK', 'ok' are 2 classes", "column 'flow': -999 in 9 of 90 rows"]),
        ("0.5", "bad", []),
        ("2.5", "bad", []),  # a large value
    ):
        rows = [f"{value:.2f},{value:.3f},ok" for value in rng.random(81).tolist()]
        rows += [f"{flow},{i},{label}" for i in range(9)]
        path.write_text("\n".join(["flow,x,state", *rows]))
        found = load_data(path, Selection(label="state"), test_size=0).notes
        assert [note[: len(begin)] for note, begin in zip(found, expected, strict=True)] == expected


def test_parquet(tmp_path, require_tool):
    """A parquet file gives what the same table gives in memory; text labels stay text."""
    pd = require_tool("pandas")
    require_tool("pyarrow")
    X, y = small()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["label"] = np.where(y, "up", "down")
    frame.to_parquet(tmp_path / "a.parquet")
    data = load_data(tmp_path / "a.parquet", test_size=0)
    np.testing.assert_array_equal(data.X_train, X)
    assert data.X_train.dtype == np.float32
    assert set(data.y_train) == {"up", "down"}
    frame.loc[3, "b"] = None
    frame.to_parquet(tmp_path / "a.parquet")
    never = Selection(missing="error")
    refused(tmp_path / "a.parquet", selection=never)
    frame["b"] = [f"text {i}" for i in range(len(frame))]
    frame.to_parquet(tmp_path / "a.parquet")
    assert load_data(tmp_path / "a.parquet").columns == ("a", "c")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    """Where pyarrow is missing the message says what to install."""
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    refused(tmp_path / "a.parquet")


def test_folder_of_shared_data(tmp_path, monkeypatch):
    """A bare file name is found in TINYKERNEL_DATA, but a file that stands here comes first."""
    shared, here = tmp_path / "shared", tmp_path / "here"
    shared.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    X, y = small()
    npz(shared / "a.npz", X=X, y=y)
    with pytest.raises(FileError):
        find_data("a.npz")
    monkeypatch.setenv("TINYKERNEL_DATA", str(shared))
    assert find_data("a.npz") == shared / "a.npz"
    npz(here / "a.npz", X=X, y=y)
    assert find_data("a.npz") == Path("a.npz")
    refused("b.npz")
    refused("sub/a.npz")


def test_rows_of_a_file(tmp_path):
    """verify and predict take the test part where there is one, all rows otherwise."""
    X, y = small()
    both = npz(tmp_path / "both.npz", X_train=X, y_train=y, X_test=X[:5], y_test=y[:5])
    rows = load_rows(both, n_features=3)
    assert isinstance(rows, Rows)
    assert (len(rows.X), rows.part) == (5, "the test part")
    whole = npz(tmp_path / "whole.npz", X=X, y=y)
    assert len(load_rows(whole).X) == 20
    test = npz(tmp_path / "test.npz", X_test=X, y_test=y)
    assert len(load_rows(test).X) == 20
    bare = load_rows(npz(tmp_path / "bare.npz", X=X))
    assert bare.y is None


def test_rows_kept_aside_are_those_of_training(tmp_path):
    """The same test size, seed and groups give exactly the rows that training held out."""
    X, y = small(60)
    file = npz(tmp_path / "a.npz", X=X, y=y, who=np.arange(60) // 6)
    who = Selection(groups="who")
    data, rows = (load(file, who, test_size=0.2, seed=3) for load in (load_data, load_rows))
    np.testing.assert_array_equal(rows.X, data.X_test)
    assert rows.part == "test rows (20 % held out, whole groups, seed 3)"
    other = load_rows(file, test_size=0.2, seed=3)
    assert other.part == "test rows (20 % held out, stratified, seed 3)"
    np.testing.assert_array_equal(other.X, load_data(file, test_size=0.2, seed=3).X_test)
    assert len(load_rows(npz(tmp_path / "b.npz", X=X, y=y), who).X) == 60


def test_a_usual_group_is_held_out(tmp_path):
    """The splitter deals groups of few classes first; the test part has all classes."""
    group = np.arange(150) // 30
    X, y = small(150)[0], np.where(group == 2, 1, np.arange(150) % 3)
    file = npz(tmp_path / "a.npz", X=X, y=y, who=group)
    for seed in range(4):
        held = load_data(file, Selection(groups="who"), test_size=0.2, seed=seed).y_test
        assert np.unique(held).size == 3


def test_labels_take_the_type_of_the_classes(tmp_path):
    """A part whose text labels look like numbers still matches a model with text classes."""
    file = tmp_path / "a.csv"
    file.write_text("a,label\n1,3\n4,5\n")
    assert load_rows(file, classes=("3", "5", "x")).y.tolist() == ["3", "5"]
    file.write_text("a,label\n1,up\n4,down\n")
    refused(file, load=load_rows, classes=(0, 1))


def test_columns_in_another_order_are_refused(tmp_path):
    """A table whose columns are not those of the training is refused, not read by position."""
    file = tmp_path / "a.csv"
    file.write_text("b,a,label\n1,2,0\n4,5,1\n")
    refused(file, load=load_rows, n_features=2, feature_names=("a", "b"))
    refused(file, load=load_rows, n_features=2, feature_names=("b", "c"))
    assert load_rows(file, n_features=2, feature_names=("b", "a")).X.tolist() == [[1, 2], [4, 5]]
    file.write_text(" b,a ,label\n1,2,0\n")
    assert load_rows(file, feature_names=("b", "a")).y.tolist() == [0]
    refused(file, load=load_rows, feature_names=("b", "a", "c", "d"))
    bare = npz(tmp_path / "a.npz", X=small()[0], y=small()[1])
    refused(bare, load=load_rows, n_features=7)
    assert load_rows(bare, n_features=3, feature_names=("a", "b", "c")).X.shape[1] == 3


_FOUR = np.zeros((4, 2))


def test_missing_files(tmp_path):
    """A missing file, a folder and an unknown suffix say what is wrong and what is known."""
    refused(tmp_path / "none.npz")
    refused(tmp_path)
    (tmp_path / "a.xls").write_text("")
    refused(tmp_path / "a.xls")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite(tmp_path, value):
    """NaN and infinity are refused with row and column, in arrays and in tables."""
    X, y = small()
    X[12, 1] = value
    refused(npz(tmp_path / "a.npz", X_train=X, y_train=y))
    file = tmp_path / "a.csv"
    file.write_text(f"ax,ay,label\n1,2,a\n\n3,{value},b\n")
    refused(file, selection=Selection(missing="error"))


def test_numbers_that_the_firmware_cannot_hold(tmp_path):
    """Values beyond a 32-bit float or integer would change silently in C, so they are refused."""
    X, y = small()
    wide = X.astype(np.float64)
    wide[3, 2] = 1e300
    refused(npz(tmp_path / "a.npz", X=wide, y=y))
    integers = np.zeros((20, 3), dtype=np.int64)
    integers[4, 0] = 2**40
    refused(npz(tmp_path / "a.npz", X=integers, y=y))


_TABLES = {
    "value missing": "ax,label\n1,a\n,b\n",
    "labels missing": "ax,label\n1,\n2,\n",
    "more values": "ax,label\n1,a\n2,b,c\n",
    "fewer values": "ax,label\n1,a\n2\n",
    "no label": "ax,ay\n1,2\n",
    "two labels": "y,label\n1,2\n",
    "no header": "1.5,2,3\n1,2,3\n",
    "no input": "ax,label\n1,a\n1,b\n",
    "empty": "",
    "no rows": "ax,label\n",
    "label alone": "label\na\nb\n",
    "one class": "ax,label\n1,a\n2,a\n",
    "class of one row": "ax,label\n1,a\n2,b\n3,b\n",
}


@pytest.mark.parametrize("name", _TABLES)
def test_bad_tables(tmp_path, name):
    """Every way in which a table can be wrong has its own line that names the place."""
    file = tmp_path / "a.csv"
    file.write_text(_TABLES[name])
    refused(file, selection=Selection(missing="error"))


_ARRAYS = [
    {"X": _FOUR},
    {"X_train": _FOUR},
    {"data": _FOUR},
    {},
    {"X": np.zeros(4), "y": np.zeros(4)},
    {"X": np.zeros((0, 2)), "y": np.zeros(0)},
    {"X": np.zeros((4, 0)), "y": np.zeros(4)},
    {"X": _FOUR, "y": np.zeros(3)},
    {"X": _FOUR, "y": np.zeros(4)},
    {"X": _FOUR, "y": np.array([0, 0.5, 1, 1])},
    {"X": _FOUR, "y": np.eye(4)},
    {"X": np.full((4, 2), "a"), "y": np.arange(4)},
    {"X": np.full((4, 2), 1j), "y": np.arange(4)},
    {"X_test": _FOUR, "y_test": np.arange(4)},
    {"X": _FOUR, "y": np.arange(4) % 2, "group": np.zeros(3)},
    {"X": _FOUR, "y": np.arange(4) % 2, "group": np.array(3)},
    {"X_train": _FOUR, "y_train": np.arange(4), "X_test": _FOUR[:, :1], "y_test": _FOUR},
    {"X": np.zeros((5, 3, 0)), "y": np.arange(5)},
    {"X": np.zeros((0, 3, 2)), "y": np.zeros(0)},
    {"X": _FOUR[:2], "y": np.array([b"\xff\xfe", b"a"])},
    {"X": _FOUR[:2], "y": np.array([0.0, 1e300])},
    {"X": _FOUR[:2], "y": np.array(["a", "b\udc80"])},
]


def test_bad_arrays(tmp_path):
    """Every way in which arrays can be wrong has its own line that names the array."""
    for arrays in _ARRAYS:
        refused(npz(tmp_path / "a.npz", **arrays))


def test_objects_are_never_unpickled(tmp_path):
    """Arrays of Python objects are refused without running what they hold."""

    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "owned",))

    X = np.array([[Evil(), 1]], dtype=object)
    np.savez(tmp_path / "a.npz", X=X, y=np.zeros(1))
    refused(tmp_path / "a.npz")
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.zeros(1))
    refused(tmp_path / "X.npy")
    named = np.array([(Evil(),)], dtype=[("größe\u0394", object)])
    with pytest.warns(UserWarning, match="format 3"):
        np.save(tmp_path / "X.npy", named)
    refused(tmp_path / "X.npy")
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Evil()))
    refused(tmp_path / "b.npz")
    assert not (tmp_path / "owned").exists()


def test_damaged_files(tmp_path, require_tool):
    """Truncated and mislabelled files are told apart from bad content."""
    X, y = small(200)
    np.savez_compressed(tmp_path / "a.npz", X=X, y=y)
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    refused(tmp_path / "cut.npz")
    (tmp_path / "empty.npz").write_bytes(b"")
    refused(tmp_path / "empty.npz")
    broken = bytearray(whole)
    broken[400:420] = bytes(20)
    (tmp_path / "broken.npz").write_bytes(broken)
    refused(tmp_path / "broken.npz")
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "X.npy").rename(tmp_path / "c.npz")
    refused(tmp_path / "c.npz")
    (tmp_path / "d.parquet").write_bytes(b"no parquet")
    require_tool("pyarrow")
    refused(tmp_path / "d.parquet")
    with zipfile.ZipFile(tmp_path / "e.npz", "w") as archive:
        archive.writestr("X.txt", "hello")
    refused(tmp_path / "e.npz")
