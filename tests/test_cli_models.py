"""predict, inspect, verify, report and export: results, statuses, and models that are none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli_tools import QUICK, arrays, bare, blobs, failed, run, table_with_groups, trained
from tinykernel.codegen.targets import TARGETS


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with data.npz and the model trained on it, in both formats."""
    return trained(tmp_path_factory.mktemp("cli"))


# ------------------------------------------------------------------------------- using a model


@pytest.mark.parametrize("suffix", ["tkm", "pkl"])
def test_predict(work, suffix):
    """predict gives the labels and int32 scores of the integer model for the test part."""
    from tinykernel import load

    found = json.loads(
        run("predict", work / f"gesture.{suffix}", work / "data.npz", "--json").stdout
    )
    integer = load(work / "gesture.tkm")
    X = arrays(work / "data.npz")["X_test"]
    assert found["scores"] == integer.scores(X).tolist()
    assert found["labels"] == integer.predict(X).tolist()


def test_predict_table_and_csv(work, tmp_path):
    """The table shows the first rows and the accuracy; -o writes all rows."""
    result = run("predict", work / "gesture.tkm", work / "data.npz", "-o", tmp_path / "p.csv")
    assert result.exit_code == 0
    assert "30 rows in all" in result.stdout
    assert "accuracy" in result.stdout
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "row,label,score_0,score_1,score_2"
    assert len(lines) == 31
    assert "must end in .csv" in failed(
        "predict", work / "gesture.tkm", work / "data.npz", "-o", tmp_path / "p.txt"
    )


def test_text_labels_through_the_whole_way(tmp_path):
    """A CSV with text labels trains, verifies and predicts its own names."""
    X, y = blobs(60, 4)
    names = np.array(["circle", "rest", "swipe, left"])[y]
    lines = [",".join(f"{v:.3f}" for v in row) + f',"{name}"' for row, name in zip(X, names)]  # noqa: B905
    (tmp_path / "g.csv").write_text("a,b,c,d,e,label\n" + "\n".join(lines) + "\n")
    model = tmp_path / "g.tkm"
    assert run("train", tmp_path / "g.csv", "-o", model, *QUICK).exit_code == 0
    found = json.loads(run("verify", model, "--data", tmp_path / "g.csv", "--json").stdout)
    assert (found["rows"], found["differences"]) == (60, 0)
    assert found["accuracy"] > 0.8
    labels = json.loads(run("predict", model, tmp_path / "g.csv", "--json").stdout)["labels"]
    assert set(labels) <= set(names)


def test_inspect(work):
    """inspect shows sizes and the proved range of every stage, which lie inside the limits."""
    found = json.loads(run("inspect", work / "gesture.tkm", "--json").stdout)
    assert (found["features"], found["classes"]) == (5, [0, 1, 2])
    assert found["components"] <= 64
    assert all(s["limit_low"] <= s["low"] <= s["high"] <= s["limit_high"] for s in found["ranges"])
    text = run("inspect", work / "gesture.pkl").stdout
    assert "second transform" in text
    assert found["fingerprint"][:16] in text


def test_wrong_number_of_features(work, tmp_path):
    """Data of another width are refused by predict and verify with both numbers."""
    np.savez(tmp_path / "wide.npz", X=np.zeros((4, 7)), y=np.arange(4))
    for command in (("predict", work / "gesture.tkm", tmp_path / "wide.npz"),
                    ("verify", work / "gesture.tkm", "--data", tmp_path / "wide.npz")):  # fmt: skip
        message = failed(*command)
        assert "7 features" in message
        assert "takes 5" in message


COMMANDS = [
    ("predict", "MODEL", "data.npz"),
    ("inspect", "MODEL"),
    ("verify", "MODEL", "--data", "data.npz"),
    ("report", "MODEL"),
    ("export", "MODEL", "-t", "host", "-o", "project"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_bad_models(work, tmp_path, monkeypatch, command):
    """A missing, foreign, malicious, cut or newer model is one line; nothing runs or is left."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.npz").symlink_to(work / "data.npz")

    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "owned",))

    import pickle

    whole = (work / "gesture.tkm").read_bytes()
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps(Evil()))
    (tmp_path / "list.pkl").write_bytes(pickle.dumps([1, 2]))
    (tmp_path / "cut.tkm").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.tkm").write_bytes(b"")
    (tmp_path / "m.h5").write_bytes(b"")
    before = sorted(tmp_path.iterdir())
    for name in ("none.tkm", "evil.pkl", "list.pkl", "cut.tkm", "empty.tkm", "m.h5"):
        assert name in failed(*(name if word == "MODEL" else word for word in command))
    assert sorted(tmp_path.iterdir()) == before


# ------------------------------------------------------------------------------ verify and report


def test_verify(work):
    """verify compares every score of the test part and says where and with what."""
    result = run("verify", work / "gesture.tkm", "--data", work / "data.npz", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["target"] == "host"
    assert (found["rows"], found["scores"], found["differences"]) == (30, 90, 0)
    assert 0.5 < found["accuracy"] <= 1
    assert found["compiler"]
    text = run("verify", work / "gesture.tkm", "--data", work / "data.npz").stdout
    assert "agree on every score (the test part of data.npz)" in text


def test_verify_takes_the_rows_kept_aside(tmp_path):
    """A file without a test part is compared whole, or only what training kept aside."""
    X, y = blobs(50, 6)
    np.savez(tmp_path / "d.npz", X=X, y=y)
    run("train", tmp_path / "d.npz", "-o", tmp_path / "m.tkm", "--seed", 3, *QUICK)
    command = ("verify", tmp_path / "m.tkm", "--data", tmp_path / "d.npz", "--json")
    assert json.loads(run(*command).stdout)["rows"] == 50
    found = json.loads(run(*command, "--test-size", 0.2, "--seed", 3).stdout)
    assert found["rows"] == 10


def test_a_model_trained_with_groups_takes_its_own_table(tmp_path):
    """The column of groups is no feature for verify, predict and export either."""
    table, model = table_with_groups(tmp_path), tmp_path / "m.tkm"
    groups = ("--groups", "who")
    trained = json.loads(run("train", table, "-o", model, *groups, *QUICK, "--json").stdout)
    assert json.loads(run("verify", model, "--data", table, *groups, "--json").stdout)["rows"] == 60
    found = json.loads(
        run("verify", model, "--data", table, *groups, "--test-size", 0.2, "--json").stdout
    )
    assert found["rows"] == trained["test_rows"]
    assert found["accuracy"] == trained["test_accuracy"]
    assert found["part"] == "whole groups, 20 %, seed 0"
    assert len(json.loads(run("predict", model, table, *groups, "--json").stdout)["labels"]) == 60
    result = run(
        "export", model, "-t", "host", "-o", tmp_path / "out", "--data", table, *groups, "-q"
    )
    assert result.exit_code == 0, result.stderr
    assert "'who'" in failed("predict", model, table)


def test_verify_claims_no_part_that_training_did_not_keep_aside(tmp_path):
    """Without --groups verify says what its rows are, not that training left them out."""
    X, y = blobs(50, 6)
    np.savez(tmp_path / "d.npz", X=X, y=y, group=np.arange(50) // 5)
    run("train", tmp_path / "d.npz", "-o", tmp_path / "m.tkm", "--groups", "group", *QUICK)
    command = ("verify", tmp_path / "m.tkm", "--data", tmp_path / "d.npz", "--test-size", 0.2)
    text = run(*command).stdout
    assert "(stratified 20 %, seed 0 of d.npz)" in text
    assert "aside in training" not in text
    assert "(whole groups, 20 %, seed 0 of d.npz)" in run(*command, "--groups", "group").stdout


def test_verify_without_labels(work, tmp_path):
    """Without labels the scores are compared all the same and the accuracy is null."""
    found = json.loads(
        run("verify", work / "gesture.tkm", "--data", bare(tmp_path), "--json").stdout
    )
    assert found["accuracy"] is None
    assert found["differences"] == 0


def test_one_difference_fails(work, monkeypatch):
    """One differing score gives status 1 and is shown."""
    from tinykernel.model import IntegerModel

    right = IntegerModel.scores_quantized

    def wrong(self, Q):
        scores = right(self, Q).copy()
        scores[3, 1] += 1
        return scores

    monkeypatch.setattr(IntegerModel, "scores_quantized", wrong)
    result = run("verify", work / "gesture.tkm", "--data", work / "data.npz", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["differences"] > 0
    assert "row 3" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_several_targets_give_an_array(work):
    """An array is printed where several targets are asked for, also when it is the same twice."""
    result = run("report", work / "gesture.tkm", "-t", "cortex-m0,cortex-m4", "--json")
    assert [row["target"] for row in json.loads(result.stdout)] == ["cortex-m0", "cortex-m4"]
    result = run("report", work / "gesture.tkm", "-t", "cortex-m0", "-t", "cortex-m0", "--json")
    assert [row["target"] for row in json.loads(result.stdout)] == ["cortex-m0"]


@pytest.mark.parametrize("command", ["report", "verify", "export"])
def test_unknown_target_lists_the_known(work, tmp_path, command):
    """An unknown target is one line with all known ones."""
    options = {"verify": ("--data", work / "data.npz"), "export": ("-o", tmp_path / "p")}
    message = failed(command, work / "gesture.tkm", "-t", "z80", *options.get(command, ()))
    assert all(name in message for name in TARGETS)
    assert not list(tmp_path.iterdir())


def test_report(work, tmp_path):
    """report has the keys others read, whose parts add up, and keeps to a budget by its status."""
    page = tmp_path / "r.html"
    command = ("report", work / "gesture.tkm", "-t", "cortex-m4", "--json")
    result = run(*command, "--budget", "30KB", "--html", page)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert {"target", "flash", "ram", "stack", "parts", "source", "budget", "fits"} <= set(found)
    assert found["flash"] == sum(found["parts"]["flash"].values())
    assert found["budget"] == 30720
    assert found["fits"] is True
    assert "<html" in page.read_text()
    over = run(*command, "--budget", found["flash"] - 1)
    assert over.exit_code == 1
    assert json.loads(over.stdout)["fits"] is False
    assert "1 bytes" in over.stderr
    assert run(*command, "--budget", found["flash"]).exit_code == 0


def test_report_table(work):
    """For people there is a short table, and one line a target where there are several."""
    one = run("report", work / "gesture.tkm", "--budget", "30KB").stdout
    assert "windows" in one
    assert "fits the budget of 30.0 KB" in one
    several = run("report", work / "gesture.tkm", "-t", "cortex-m0,cortex-m4").stdout
    assert len(several.splitlines()) == 3


# ------------------------------------------------------------------------------------------ export


def test_export(work, tmp_path):
    """export writes a project named after the model and says where."""
    folder = tmp_path / "out" / "project"
    result = run("export", work / "gesture.tkm", "-t", "esp32", "-o", folder, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert sorted(found["files"]) == sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    assert (folder / "include" / "gesture.h").is_file()
    assert "esp32dev" in (folder / "platformio.ini").read_text()
    text = run("export", work / "gesture.tkm", "-t", "esp32", "-o", folder, "--force").stdout
    assert '#include "gesture.h"' in text
    assert f"tinykernel flash {folder}" in text


def test_export_where_it_belongs_by_default(work, tmp_path, monkeypatch):
    """Without -o the project stands in the current folder as NAME-TARGET."""
    monkeypatch.chdir(tmp_path)
    assert run("export", work / "gesture.tkm", "-t", "host", "-q").output == ""
    assert [path.name for path in tmp_path.iterdir()] == ["gesture-host"]
    assert run("export", work / "gesture.tkm", "-t", "host", "--name", "tap").exit_code == 0
    assert (tmp_path / "tap-host" / "include" / "tap.h").is_file()


def test_export_takes_its_vectors_from_data(work, tmp_path):
    """--data puts real rows into the self-test of the board."""
    for name, options in (("a", ()), ("b", ("--data", work / "data.npz"))):
        folder = tmp_path / name
        run("export", work / "gesture.tkm", "-t", "host", "-o", folder, *options)
    files = [path for path in (tmp_path / "a").rglob("*vectors*") if path.is_file()]
    assert files
    for file in files:
        assert file.read_bytes() != (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()


def test_no_command_overwrites_its_input(work, tmp_path):
    """predict -o onto its rows, and export --force onto the folder of its model, lost them."""
    rows, model = tmp_path / "rows.csv", tmp_path / "m.tkm"
    rows.write_text("a,b\n1,2\n")
    model.write_bytes((work / "gesture.tkm").read_bytes())
    assert "would be lost" in failed("predict", model, rows, "-o", rows)
    assert "would be lost" in failed("export", model, "-t", "host", "-o", tmp_path, "--force")
    assert rows.read_text() == "a,b\n1,2\n"
    assert model.read_bytes() == (work / "gesture.tkm").read_bytes()


def test_export_never_overwrites_by_itself(work, tmp_path):
    """A folder that is not empty is left alone without --force."""
    (tmp_path / "mine.txt").write_text("mine")
    message = failed("export", work / "gesture.tkm", "-t", "host", "-o", tmp_path)
    assert "--force" in message
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1
    for options in (("--board", "nonsense!"), ("--framework", "x"), ("--format", "make9")):
        failed("export", work / "gesture.tkm", "-t", "cortex-m4", "-o", tmp_path / "p", *options)
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("file", "name"),
    [("Gesture 2.tkm", "gesture_2"), ("tk_a.tkm", "model"), ("2.pkl", "model"),
     ("a-b.c.tkm", "a_b_c"), ("é.tkm", "model"), ("main.tkm", "model")],
)  # fmt: skip
def test_names_of_models(file, name):
    """Any file name gives a prefix that C takes."""
    from tinykernel.cli.export import name_of

    assert name_of(Path(file)) == name
