"""Data files that once ended in a traceback, or were read as something else than they say."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.data.test_load import npz, refused, small
from tinykernel.data.load import load_data


def cut_header() -> bytes:
    """Return an .npy file whose header lacks its closing bracket."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,".ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def test_header_of_an_array_that_does_not_end(tmp_path: Path) -> None:
    """NumPy's parser raises a TokenError for it, which is no ValueError."""
    (tmp_path / "X.npy").write_bytes(cut_header())
    np.save(tmp_path / "y.npy", small()[1])
    assert "cannot be read" in refused(tmp_path / "X.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", cut_header())
    assert "X cannot be read" in refused(tmp_path / "a.npz")


def test_encrypted_archive(tmp_path: Path) -> None:
    """A member marked as encrypted is a RuntimeError of zipfile."""
    file = npz(tmp_path / "a.npz", X=small()[0], y=small()[1])
    data = bytearray(file.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(signature) + offset] |= 1
    file.write_bytes(data)
    assert "cannot be read" in refused(file)


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"X": np.zeros((5, 3, 0)), "y": np.arange(5)}, "is empty (5 rows, 0 features)"),
        ({"X": np.zeros((0, 3, 2)), "y": np.zeros(0)}, "is empty (0 rows, 6 features)"),
        ({"X": np.zeros((4, 2)), "y": np.arange(4) % 2, "group": np.array(3)}, "there are 1 group"),
        ({"X": np.zeros((2, 2)), "y": np.array([b"\xff\xfe", b"a"])}, "no text in UTF-8"),
        ({"X": np.zeros((2, 2)), "y": np.array([0.0, 1e300])}, "row 1 has 1e+300"),
    ],
)
def test_arrays_that_ended_in_a_traceback(
    tmp_path: Path, arrays: dict[str, np.ndarray], expected: str
) -> None:
    """Empty images, one group for all rows, bytes as labels, and labels beyond any integer."""
    assert expected in refused(npz(tmp_path / "a.npz", **arrays))


def test_underscore_in_a_number_column(tmp_path: Path) -> None:
    """Python reads 1_000 as a number, but in a table it is text."""
    file = tmp_path / "a.csv"
    for cell in ("1_000", "1_0.5"):
        file.write_text(f"ax,label_\n1,a\n{cell},b\n")
        assert f"'{cell}' is not a number" in refused(file, label="label_")
    file.write_text("ax,label\n1,a_1\n2,b_1\n")
    assert load_data(file, test_size=0).y_train.tolist() == ["a_1", "b_1"]


def test_large_test_part_takes_no_class_away(tmp_path: Path) -> None:
    """A test size above one half left rare classes without training rows, unsaid."""
    X, y = small(60)
    y[:] = 0
    y[:2], y[2:4] = 1, 2
    message = refused(npz(tmp_path / "a.npz", X=X, y=y), test_size=0.85)
    assert "leaves no training row of the class" in message
    assert "smaller --test-size" in message
