"""tinykernel evaluate, and the same judgement in train and verify."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.cli.tools import QUICK, blobs, failed, json_of, run, succeeded, table_with_groups
from tests.sessions import ROOT, blocks, page_differences, tools_of_the_texts
from tinykernel import load
from tinykernel.model.file import about

KEYS = {
    *("accuracy", "interval", "balanced_accuracy", "macro_f1", "confusion", "classes", "recall"),
    *("precision", "counts", "baselines", "cautions"),
}


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """A folder with pump.csv of rare labels and a model of it, and how train judged it."""
    folder, rng = tmp_path_factory.mktemp("rare"), np.random.default_rng(0)
    fault = np.arange(1000) % 33 == 0
    X = rng.normal(size=(1000, 6)) + 1.2 * fault[:, None] * [1, 1, 0, 0, 0, 0]
    names = np.where(fault, "fault", "ok")
    lines = [",".join(f"{v:.3f}" for v in row) + f",{name}" for row, name in zip(X, names)]  # noqa: B905
    (folder / "pump.csv").write_text("a,b,c,d,e,f,state\n" + "\n".join(lines) + "\n")
    given = ("--label", "state", *QUICK, "--seed", 3)
    shown = json_of("train", folder / "pump.csv", "-o", folder / "p.tkm", *given)
    return folder, shown["evaluation"]


def test_the_same_keys_and_figures_everywhere(rare):
    """train, evaluate and verify print the same judgement; evaluate finds the held-out rows, and
    the training rows, by itself."""
    folder, trained = rare
    model, data = folder / "p.tkm", folder / "pump.csv"
    alone = json_of("evaluate", model, data)
    assert {key: alone[key] for key in KEYS} == {key: trained[key] for key in KEYS}
    assert set(alone["baselines"]) == {"majority", "linear", "tree"}
    assert alone["seen_in_training"] == 0
    assert json_of("verify", model, data)["evaluation"]["confusion"] == alone["confusion"]


def test_evaluate_other_rows(work, tmp_path):
    """Rows of another file are judged whole, beside a linear model only where --train gives it
    rows; labels that training never saw are named."""
    X, y = blobs(60, 9)
    np.savez(tmp_path / "new.npz", X=X, y=np.where(y == 2, 7, y))
    found = json_of(*(command := ("evaluate", work / "gesture.tkm", tmp_path / "new.npz")))
    assert (found["rows"], found["classes"], found["counts"][3]) == (60, [0, 1, 2, 7], 20)
    assert not found["baselines"]
    beside = json_of(*command, "--train", work / "data.npz")
    assert beside["baselines"]["linear"]
    assert len(beside["cautions"]) > len(found["cautions"])
    np.savez(tmp_path / "bare.npz", X=X, kind=y)
    bare = ("evaluate", work / "gesture.tkm", tmp_path / "bare.npz")
    failed(*bare)
    failed(*bare, "--label", "no")
    assert json_of("verify", *bare[1:], "--label", "kind")["evaluation"]["rows"] == 60
    assert "true" in succeeded("predict", *bare[1:], "--label", "kind").stdout


def test_a_model_remembers_its_training(tmp_path):
    """Label, groups, target and budget are the defaults of all commands, and inspect shows them."""
    table, model = table_with_groups(tmp_path), tmp_path / "m.pkl"
    text = table.read_text().replace("label", "state")
    table.write_text(text)
    options = ("--label", "state", "--groups", "who", "-t", "esp8266", "--budget", "4KB")
    quick = ("--effort", "quick", "--set", "epochs=2", "-q")
    succeeded("train", table, "-o", model, *options, *quick)
    said = about(model)
    assert (said["label"], said["groups"], said["budget"]) == ("state", "who", 4096)
    for command in ("predict", "verify", "evaluate"):
        json_of(command, model, table)
    found = json_of("report", model, "--compiler", "none")
    assert (found["target"], found["budget"]) == ("esp8266", 4096)
    assert json_of("report", model, "-t", "cortex-m4", "--compiler", "none")["budget"] is None
    succeeded("export", model, "-o", tmp_path / "out", "-q")
    shown = run("inspect", model).stdout
    assert "esp8266" in shown
    assert "digests" not in shown
    assert load(model).quantize().fingerprint()[:16] in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", ["images.md", "judging.md", "signals.md", "trees.md"])
def test_the_session_in_the_documentation(name, tmp_path, require_platforms):
    """Who follows a page sees what it shows: 97 % that find no fault, text and gaps, sounds."""
    targets = {"trees.md": ["cortex-m4"], "signals.md": ["host", "cortex-m4"]}
    for target in targets.get(name, []):
        require_platforms(target)
    page = ROOT / "docs" / name
    made = blocks(page, "python")[0].text
    subprocess.run([sys.executable, "-c", made], cwd=tmp_path, check=True)
    # Unicorn takes minutes for streams of sounds.
    left_out = "$^" if tools_of_the_texts() else "tinykernel (verify|bench)"
    wrong = page_differences(page, tmp_path, left_out)
    assert not wrong, "\n".join(wrong)


def test_the_rows_of_an_official_split_are_a_file(tmp_path):
    """train --test FILE judges its rows, with their groups; evaluate and report find the same."""
    X, y = blobs(600, 5)
    train, test = tmp_path / "train.npz", tmp_path / "test.npz"
    np.savez(train, X=X[:400], y=y[:400])
    np.savez(test, X=X[400:], y=y[400:], group=np.arange(200) // 20)
    model = tmp_path / "m.tkm"
    made = run("train", train, "--test", test, "-o", model, *QUICK, "--json")
    found = json.loads(made.stdout)["evaluation"]
    assert (found["rows"], found["groups"]) == (200, 10)
    alone = json_of("evaluate", model, test, "--train", train)
    assert alone["confusion"] == found["confusion"]
    assert alone["interval"] == found["interval"]
    np.savez(train, X_train=X[:9], y_train=y[:9], X_test=X[9:], y_test=y[9:])
    failed("train", train, "--test", test, "-o", model)
