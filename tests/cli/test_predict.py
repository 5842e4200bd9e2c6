"""Labels and scores of a model."""

import pytest

from tests.cli.tools import arrays, failed, json_of, succeeded
from tinykernel import load


@pytest.mark.parametrize("suffix", ["tkm", "pkl"])
def test_predict(work, suffix):
    """predict gives the labels and int32 scores of the integer model for the test part."""
    found = json_of("predict", work / f"gesture.{suffix}", work / "data.npz")
    integer = load(work / "gesture.tkm")
    X = arrays(work / "data.npz")["X_test"]
    assert found["scores"] == integer.scores(X).tolist()
    assert found["labels"] == integer.predict(X).tolist()


def test_predictions_overwrote_the_rows_of_a_shared_folder(work, tmp_path, monkeypatch):
    """-o may not be the file that was found in TINYKERNEL_DATA."""
    rows = tmp_path / "rows.csv"
    names = ",".join(f"x{i}" for i in range(arrays(work / "data.npz")["X_test"].shape[1]))
    first = ",".join(map(str, arrays(work / "data.npz")["X_test"][0].tolist()))
    rows.write_text(f"{names}\n{first}\n")
    monkeypatch.setenv("TINYKERNEL_DATA", str(tmp_path))
    failed("predict", work / "gesture.tkm", "rows.csv", "-o", rows)
    assert rows.read_text().startswith("x0,")


def test_predict_table_and_csv(work, tmp_path):
    """The table shows the first rows; -o writes all rows."""
    succeeded("predict", work / "gesture.tkm", work / "data.npz", "-o", tmp_path / "p.csv")
    first, *rows = (tmp_path / "p.csv").read_text().splitlines()
    assert (first, len(rows)) == ("row,label,score_0,score_1,score_2", 30)
    failed("predict", work / "gesture.tkm", work / "data.npz", "-o", tmp_path / "p.txt")
    failed("predict", work / "gesture.tkm", "--stream", "-", "--label", "y", status=2)
