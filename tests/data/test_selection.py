"""Tables as they come: columns that are no inputs, missing values, commas, types."""

import json

import numpy as np
import pytest

from tests.cli.tools import blobs, failed, run, succeeded
from tests.loading import load_data
from tests.refusals import refused
from tinykernel import load
from tinykernel.base.errors import DataError
from tinykernel.data.tables import Selection

TINY = ("--set", "n_components=8", "--set", "epochs=1", "--effort", "quick", "--quiet")


def table(path, header, rows, mark=","):
    path.write_text("\n".join([mark.join(header), *(mark.join(map(str, row)) for row in rows)]))
    return path


def gesture(path, gaps=0):
    """Write 60 rows with an id, a time that is text, and some cells empty or NA."""
    X, y = blobs(60, 0)
    cells = [[f"{v:.3f}" for v in row] for row in X]
    for i in range(gaps):
        cells[7 * i][i % 5] = ("", "NA", "nan")[i % 3]
    rows = [
        [i, f"10:{i:02d}", *row, label] for i, (row, label) in enumerate(zip(cells, y, strict=True))
    ]
    return table(path, ["id", "time", *"abcde", "label"], rows)


@pytest.mark.parametrize("options", [(), ("--set", "drop=id,time"), ("--set", "inputs=a, b,c,d,e")])
def test_columns_that_are_no_inputs(tmp_path, options):
    """What is left out, drop and inputs choose columns; the model takes the same ones later."""
    data, model = gesture(tmp_path / "g.csv"), tmp_path / "m.tkm"
    succeeded("train", data, "-o", model, *TINY, *options)
    assert load(model).feature_names == tuple("abcde")
    succeeded("predict", model, data)
    narrow = table(tmp_path / "n.csv", "edcba", blobs(9, 1)[0][:, ::-1].tolist())
    found = json.loads(run("predict", model, narrow, "--json").stdout)
    assert found["scores"] == load(model).scores(blobs(9, 1)[0]).tolist()


def test_missing_values(tmp_path):
    """Missing values are refused if asked; else counted, and rows left out ever after."""
    data, model = gesture(tmp_path / "g.csv", gaps=6), tmp_path / "m.tkm"
    options = ("--set", "drop=id,time")
    failed("train", data, "-o", model, *TINY, *options, "--missing", "error")
    options = (*options, "--missing", "drop")
    result = succeeded("train", data, "-o", model, *TINY[:-1], *options)
    said = " ".join(result.stdout.split())
    split = load_data(data, selection=Selection(drop=("id", "time"), missing="drop"))
    assert np.isfinite(split.X_train).all()
    assert len(split.X_train) + len(split.X_test) == 54
    found = json.loads(run("predict", model, data, "--json").stdout)
    assert len(found["labels"]) == 54
    assert found["notes"][0] in said


def test_columns_are_remembered_for_other_files(tmp_path):
    """Rows of a test file, for judging and for baselines are of the columns of the training."""
    data, other, model = (
        gesture(tmp_path / "g.csv"),
        gesture(tmp_path / "v.csv"),
        tmp_path / "m.tkm",
    )
    options = ("--set", "inputs=c,a", "--test", other)
    succeeded("train", data, "-o", model, *TINY, *options)
    assert json.loads(run("evaluate", model, other, "--train", data, "--json").stdout)["baselines"]


def test_missing_values_of_arrays_and_parquet(tmp_path, require_tool):
    """NaN in arrays and nulls in Parquet are missing values, too."""
    pa = require_tool("pyarrow")
    import pyarrow.parquet as pq

    X, y = blobs(30, 0)
    X[3, 1] = np.nan
    np.savez(tmp_path / "a.npz", X=X, y=y)
    columns = {name: pa.array(X[:, i].tolist(), from_pandas=True) for i, name in enumerate("abcde")}
    columns["count"] = pa.array([None, *(i % 7 for i in range(29))])
    pq.write_table(pa.table({**columns, "label": y}), tmp_path / "a.parquet")
    drop, keep = Selection(missing="drop"), Selection(missing="keep")
    for name, lacking in (("a.npz", 1), ("a.parquet", 2)):
        kept = load_data(tmp_path / name, selection=drop)
        assert len(kept.y_train) + len(kept.y_test) == 30 - lacking
        assert np.isfinite(load_data(tmp_path / name, selection=keep).X_train).all()
        refused(DataError, load_data, tmp_path / name, selection=Selection(missing="error"))


@pytest.mark.parametrize("below", [[], [["9.5", "1.2", "3.1", ""]]])
def test_decimal_commas_are_numbers_beside_points_elsewhere(tmp_path, below):
    """A point in a dropped column, of groups or of a row without a label decides nothing."""
    rows = [["0,5", "1.2", "3.1", "1,5"], ["2", "7.4", "4.2", "2,5"]] * 5
    file = table(tmp_path / "a.csv", ["x", "b", "who", "label"], rows + below, ";")
    found = load_data(file, Selection(drop=("b",), groups="who"), test_size=0)
    assert found.X_train.ravel().tolist() == [0.5, 2] * 5
    assert found.y_train[:2].tolist() == ["1.5", "2.5"]


def test_whole_numbers(tmp_path):
    """A table of 3.0 holds integers, and a smaller type that would do is taken."""
    rows = [[f"{i % 17}.0", i % 5, "ab"[i % 2]] for i in range(40)]
    data, model = table(tmp_path / "w.csv", ["x", "z", "label"], rows), tmp_path / "m.tkm"
    assert load_data(data).X_train.dtype == np.int64
    succeeded("train", data, "-o", model, *TINY)
    assert load(model).raw_dtype == "int32"
    succeeded("train", data, "-o", model, *TINY, "--set", "input_type=uint8")
    assert load(model).raw_dtype == "uint8"
    rows[0][0] = "300.0"
    table(data, ["x", "z", "label"], rows)
    failed("train", data, "-o", model, *TINY, "--set", "input_type=uint8")
    rows[0][0] = "0.5"
    table(data, ["x", "z", "label"], rows)
    assert load_data(data).X_train.dtype == np.float64
    assert not load_data(data).notes
