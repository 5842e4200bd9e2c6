"""Data files that once ended in a traceback, or were read as something else than they say."""

import contextlib
import zipfile
from unittest.mock import Mock

import numpy as np
import pytest

from tests.cli.tools import failed
from tests.data.test_load import npz, refused, small
from tests.loading import load_data
from tinykernel.base.errors import DataError, TinykernelError
from tinykernel.data.tables import Selection

pytestmark = pytest.mark.usefixtures("page")


def header(said: str) -> bytes:
    """Return an .npy file of sixteen bytes whose header says this of its type and shape."""
    text = f"{{'descr': {said}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)


@pytest.mark.parametrize(
    "said",
    [
        "'<f8', 'fortran_order': False, 'shape': (100000000000000000000,), }",
        "'<f8', 'fortran_order': False, 'shape': (0, 100000000000000000000), }",
        "'<f8', 'fortran_order': False, 'shape': (12500000000,), }",
        "'<f8', 'fortran_order': False, 'shape': (3,), }",
        "'<f8', 'fortran_order': False, 'shape': (3,",
        "'<f8', 'fortran_order': False, 'shape': (True,), }",
        "'(1,,2)i4', 'fortran_order': False, 'shape': (2,), }",
    ],
)
def test_headers_of_arrays_are_not_believed(tmp_path, said) -> None:
    """A header asked for 93 GiB; others end in a TokenError, TypeError or SyntaxError of NumPy."""
    (tmp_path / "X.npy").write_bytes(header(said))
    np.save(tmp_path / "y.npy", small()[1])
    refused(tmp_path / "X.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", header(said))
    refused(tmp_path / "a.npz")


def test_a_fault_of_our_own_is_not_called_a_damaged_file(tmp_path, monkeypatch):
    """Only what NumPy and zipfile raise says that a file is damaged."""
    monkeypatch.setattr(
        "tinykernel.data.binary._checked_header",
        Mock(side_effect=AttributeError("our own")),
    )
    X, y = small()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    for file in (tmp_path / "X.npy", npz(tmp_path / "a.npz", X=X, y=y)):
        with pytest.raises(AttributeError):
            load_data(file)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_compressed_member(tmp_path, method) -> None:
    """Each way of compressing has exceptions of its own, LZMA two."""
    np.save(tmp_path / "X.npy", small(200)[0])
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.write(tmp_path / "X.npy", "X.npy")
    whole = (tmp_path / "a.npz").read_bytes()
    for first in range(35, 120, 5):
        broken = whole[:first] + b"\xff" * 8 + whole[first + 8 :]
        (tmp_path / "a.npz").write_bytes(broken)
        refused(tmp_path / "a.npz")


def test_parquet_labels_of_every_type(tmp_path, require_tool) -> None:
    """Binary labels are text where they are UTF-8; lists and structures are refused by name."""
    pa = require_tool("pyarrow")
    from pyarrow import parquet

    file = tmp_path / "a.parquet"
    for labels, expected in [
        ([b"\xc3\xa9", b"b"] * 2, None),
        ([b"a", b"\xff"] * 2, "holds bytes but not UTF-8"),
        ([[1], [2, 3]] * 2, "holds values of type list"),
        ([{"x": 1}, {"x": 2}] * 2, "holds values of type struct"),
    ]:
        parquet.write_table(pa.table({"a": [1.0, 2.0, 3.0, 4.0], "label": labels}), file)
        if expected is None:
            assert load_data(file, test_size=0).y_train.tolist() == ["é", "b"] * 2
        else:
            with pytest.raises(DataError, match=expected):
                load_data(file)


def test_damaged_parquet(tmp_path, require_tool) -> None:
    """A parquet file with any byte changed is one line, or still a table."""
    pa = require_tool("pyarrow")
    from pyarrow import parquet

    file = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"a": [1.0, 2.0] * 4, "label": ["x", "y"] * 4}), file)
    whole = file.read_bytes()
    for first in range(0, len(whole), 11):
        file.write_bytes(whole[:first] + bytes([whole[first] ^ 0x41]) + whole[first + 1 :])
        with contextlib.suppress(TinykernelError):
            load_data(file)


def test_names_of_classes_are_shortened(tmp_path) -> None:
    """A label of any length and content fits into one line."""
    y = np.array(["x" * 3000, "a", "a", "b\n\x1b[31m"])
    for labels in (y, y[::-1]):
        assert len(refused(npz(tmp_path / "a.npz", X=np.zeros((4, 2)), y=labels))) < 400


def test_columns_of_one_name(tmp_path, require_tool) -> None:
    """Which of two columns of one name is meant, nobody can say."""
    file = tmp_path / "a.csv"
    file.write_text("ax,ax ,label\n1,2,up\n2,3,down\n")
    refused(file)
    pa = require_tool("pyarrow")
    from pyarrow import parquet

    columns = [pa.array([1.0, 2.0]), pa.array([1.0, 2.0]), pa.array(["u", "d"])]
    table = pa.Table.from_arrays(columns, names=["ax", "ax", "label"])
    parquet.write_table(table, tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet")


def test_labels_of_two_kinds(tmp_path) -> None:
    """Text labels in the test part against numbers in training gave 0.00 % without a word."""
    X, y = small()
    text = np.where(y, "up", "down")
    for train, test in ((y, text), (text, y)):
        file = npz(tmp_path / "a.npz", X_train=X, y_train=train, X_test=X, y_test=test)
        refused(file)


def test_encrypted_archive(tmp_path) -> None:
    """A member marked as encrypted is a RuntimeError of zipfile."""
    file = npz(tmp_path / "a.npz", X=small()[0], y=small()[1])
    data = bytearray(file.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(signature) + offset] |= 1
    file.write_bytes(data)
    refused(file)


def test_underscore_in_a_number_column(tmp_path) -> None:
    """Python reads 1_000 as a number, but in a table it is text."""
    file = tmp_path / "a.csv"
    for cell in ("1_000", "1_0.5"):
        file.write_text(f"ax,label_\n1,a\n{cell},b\n")
        assert load_data(file, Selection(label="label_"), test_size=0).coding.texts["ax"] == (
            "1",
            cell,
        )
    file.write_text("ax,label\n1,a_1\n2,b_1\n")
    assert load_data(file, test_size=0).y_train.tolist() == ["a_1", "b_1"]


def test_large_test_part_takes_no_class_away(tmp_path) -> None:
    """A test size above one half left rare classes without training rows, unsaid."""
    X, y = small(60)
    y[:] = 0
    y[:2], y[2:4] = 1, 2
    refused(npz(tmp_path / "a.npz", X=X, y=y), test_size=0.85)
    refused(tmp_path / "a.npz", test_size=1.0)


@pytest.mark.parametrize("at_least", [1, 2])
def test_whole_numbers_to_predict_are_refused_as_labels(tmp_path, at_least) -> None:
    """Numbers that hardly repeat are refused as labels with a word on regression."""
    X, _ = small(120)
    refusal = {"test_size": 0.2 if at_least == 1 else 0.6}
    file = npz(tmp_path / "a.npz", X=X, y=np.arange(120) // at_least)
    refused(file, **refusal)


def test_a_sparse_table_is_refused(tmp_path) -> None:
    """3 GB of zeros are no long line: a line has a limit."""
    for name in ("a.csv", "a.tsv"):
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(3 << 30)
        refused(tmp_path / name)


def test_rows_of_many_samples_are_told_to_be_windows(tmp_path) -> None:
    """One line asks for the shape of windows of 4096 x 3, which would take nine minutes."""
    X = np.zeros((8, 4096, 3), np.int16)
    file = npz(tmp_path / "motors.npz", X=X, y=np.arange(8) % 2)
    failed("train", file, "-o", tmp_path / "m.tkm", "--test", 0)
