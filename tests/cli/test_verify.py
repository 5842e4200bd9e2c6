"""The C against Python."""

import json

import numpy as np

from tests.cli.tools import QUICK, bare, blobs, json_of, run, succeeded, table_with_groups
from tinykernel.base.errors import LinkError
from tinykernel.run import parity


def test_verify(work, tmp_path):
    """verify compares every score of the test part, or of rows without labels, and says where."""
    result = succeeded("verify", work / "gesture.tkm", work / "data.npz", "--json")
    found = json.loads(result.stdout)
    assert found["target"] == "host"
    assert (found["rows"], found["scores"], found["differences"]) == (30, 90, 0)
    assert 0.5 < found["accuracy"] <= 1
    assert found["compiler"]
    succeeded("verify", work / "gesture.tkm", work / "data.npz")
    unlabelled = json_of("verify", work / "gesture.tkm", bare(tmp_path))
    assert (unlabelled["accuracy"], unlabelled["differences"]) == (None, 0)


def test_a_test_part_has_one_accuracy(tmp_path):
    """Rows that equal training rows count, as in published figures, in every command."""
    X, y = blobs(120, 0)
    X_test, y_test = blobs(60, 1)
    X_test[:20], y_test[:20] = X[:20], y[:20]
    for name, arrays in (
        ("parts.npz", {"X_train": X, "y_train": y, "X_test": X_test, "y_test": y_test}),
        ("whole.npz", {"X": np.vstack([X, X[:40]]), "y": np.r_[y, y[:40]]}),
    ):
        np.savez(tmp_path / name, **arrays)
        data, model = tmp_path / name, tmp_path / "m.tkm"
        trained = run("train", data, "-o", model, *QUICK[:-1])
        verified = json_of("verify", model, data)
        judged = json_of("evaluate", model, data)
        accuracy = verified["accuracy"]
        assert trained.stdout.split("test      ")[1].startswith(f"{100 * accuracy:.2f} %")
        assert judged["accuracy"] == accuracy
        assert judged["notes"] == verified["notes"] == []


def test_a_model_trained_with_groups_takes_its_own_table(tmp_path):
    """The column of groups is no input for verify, predict and export either."""
    table, model = table_with_groups(tmp_path), tmp_path / "m.tkm"
    groups = ("--groups", "who")
    trained = json_of("train", table, "-o", model, *groups, *QUICK)
    found = json_of("verify", model, table)
    assert found["rows"] == trained["test_rows"]
    assert found["accuracy"] == trained["test_accuracy"]
    assert found["part"] == "test rows (20 % held out, whole groups, seed 0)"
    succeeded("export", model, "-t", "host", "-o", tmp_path / "out", "--data", table, "-q")
    assert len(json_of("predict", model, table)["labels"]) == 60


def test_one_difference_fails(work, monkeypatch):
    """One differing score gives status 1 and is shown."""
    from tinykernel.model.integer import IntegerModel

    right = IntegerModel.quantized_scores

    def wrong(self, Q):
        scores = right(self, Q).copy()
        scores[3, 1] += 1
        return scores

    monkeypatch.setattr(IntegerModel, "quantized_scores", wrong)
    result = run("verify", work / "gesture.tkm", work / "data.npz", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["differences"] > 0
    assert "row 3" in result.stderr.splitlines()[-1]


def test_a_target_that_is_too_small_stops_no_other(work, monkeypatch):
    """A chip that cannot hold the model ended the comparison on all others, with no result."""
    real = parity.verify

    def verify(*given, target, **options):
        if target == "atmega328p":
            raise LinkError("does not link")
        return real(*given, target=target, **options)

    monkeypatch.setattr(parity, "verify", verify)
    command = ("verify", work / "gesture.tkm", work / "data.npz", "--target", "atmega328p,host")
    result = run(*command)
    assert result.exit_code == 1
    assert "atmega328p: skipped, the model is too large for the chip" in result.output
    assert [each["target"] for each in json.loads(run(*command, "--json").stdout)] == ["host"]
