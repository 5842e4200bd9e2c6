"""The command line: what it prints, how it ends, and what it never leaves behind."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from tinykernel.cli import app
from tinykernel.cli.options import check_output_file, check_output_folder
from tinykernel.cli.progress import PlainLines
from tinykernel.codegen.targets import TARGETS
from tinykernel.errors import TinykernelError
from tinykernel.training.progress import Progress

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def failed(*arguments: object, status: int = 1) -> str:
    """Return the one line on stderr of a command that must fail and print nothing else."""
    result = run(*arguments)
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


def process(*arguments: object, **options: object) -> subprocess.Popen[str]:
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    command = [sys.executable, "-m", "tinykernel", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,  # type: ignore[call-overload]
    )


# ------------------------------------------------------------------------------- the small pieces


@pytest.mark.parametrize("text", ["", "KB", "30 bananas", "-1KB", "1,5KB", "0"])
def test_bad_sizes(text, tmp_path):
    """What is not a size is wrong usage: status 2 and one line."""
    assert "is not a size" in failed("report", tmp_path / "m.tkm", f"--budget={text}", status=2)


def test_plain_progress_is_sparse():
    """Without a terminal a line comes every few seconds and when a stage ends, none is lost."""
    now = [0.0]
    written: list[str] = []
    lines = PlainLines(written.append, clock=lambda: now[0])
    for step in range(1, 11):
        now[0] += 1
        lines(Progress("sweeps", step, 100, "objective 3"))
    lines(Progress("saving", 0, None))
    lines(Progress("saving", 1, 1))
    lines.finish()
    lines.finish()
    assert written == [
        "sweeps: 5/100 objective 3",
        "sweeps: 10/100 objective 3",
        "saving: 1/1",
    ]


def test_output_files_are_checked_without_touching_them(tmp_path):
    """A check before long work refuses what could not be written and leaves everything alone."""
    old = tmp_path / "old.tkm"
    old.write_bytes(b"old")
    check_output_file(old, (".tkm",))
    assert old.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["old.tkm"]
    for path, expected in [
        (tmp_path / "a.h5", "must end in .tkm"),
        (tmp_path / "none" / "a.tkm", "no folder"),
        (old / "a.tkm", "no folder"),
        (tmp_path, "must end in"),
        (Path("/proc/a.tkm"), "cannot be written"),
    ]:
        with pytest.raises(TinykernelError, match=expected):
            check_output_file(path, (".tkm",))


def test_output_folders_are_checked_without_touching_them(tmp_path):
    """The same for folders: a full one needs --force, a file in the way is refused."""
    check_output_folder(tmp_path / "a" / "b", force=False)
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(TinykernelError, match="--force"):
        check_output_folder(tmp_path, force=False)
    check_output_folder(tmp_path, force=True)
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(TinykernelError, match="is a file|cannot be read"):
            check_output_folder(path, force=True)
    with pytest.raises(TinykernelError, match="cannot be written"):
        check_output_folder(Path("/proc/a"), force=False)


# ----------------------------------------------------------------------------- the root and targets


def test_version_and_help():
    """--version prints the version of pyproject.toml; every command has a help text."""
    from tinykernel import __version__

    assert run("--version").stdout == f"tinykernel {__version__}\n"
    root = run("--help")
    assert root.exit_code == 0
    for command in ("train", "export", "report", "verify", "predict", "inspect", "targets",
                    "flash", "demo"):  # fmt: skip
        assert command in root.stdout
        assert run(command, "--help").exit_code == 0


def test_wrong_usage_is_status_2():
    """Unknown commands and options and missing arguments are told from errors by the status."""
    assert "targets" in failed("target", status=2)
    assert "--foo" in failed("targets", "--foo", status=2)
    assert "DIR" in failed("flash", status=2)
    assert run().exit_code == 2


def test_targets():
    """All targets are listed, as a table and as a JSON array."""
    table = run("targets")
    assert table.exit_code == 0
    rows = json.loads(run("targets", "--json").stdout)
    assert [row["target"] for row in rows] == list(TARGETS)
    for name in TARGETS:
        assert name in table.stdout
    tools = json.loads(run("targets", "--tools", "--json").stdout)
    assert all(isinstance(row["compilers"], list) for row in tools)


def test_completion():
    """The completion script of the shell is printed, and targets complete."""
    finished = process("--show-completion", "bash")
    out, err = finished.communicate()
    assert "complete" in out, err
    from tinykernel.cli.options import _complete_target

    assert [name for name, _ in _complete_target("esp32")] == ["esp32", "esp32s3", "esp32c3"]


def test_help_does_not_wait_for_the_heavy_modules():
    """--help, targets and completion import neither scikit-learn nor numba nor NumPy."""
    program = (
        "import sys; from tinykernel.cli import app\n"
        "try: app(['targets', '--json'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numpy', 'numba', 'sklearn', 'scipy') if m in sys.modules],"
        " file=sys.stderr)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert finished.stderr == "[]\n"


# ------------------------------------------------------------------------------------------ flash


def fake_pio(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program called pio first on the PATH."""
    program = folder / "bin" / "pio"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "platformio.ini").write_text("[env:board]\nplatform = ststm32\n")
    return folder


def test_flash_runs_upload_in_the_project(project, tmp_path, monkeypatch):
    """flash hands folder, environment and port to pio and keeps stdout free."""
    fake_pio(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/called; echo uploading')
    result = run("flash", project, "-e", "board", "--port", "/dev/ttyACM0")
    assert result.exit_code == 0
    assert (tmp_path / "called").read_text().split() == [
        "run", "--target", "upload", "--project-dir", str(project),
        "--environment", "board", "--upload-port", "/dev/ttyACM0",
    ]  # fmt: skip
    assert result.stdout == ""
    assert "uploading" in result.stderr


@pytest.mark.parametrize(
    ("script", "options", "expected"),
    [
        ("echo 'Error: Please specify `upload_port` for environment'; exit 1", [], "no board"),
        ("echo 'Error: libusb_open() failed: No ST-Link detected'; exit 1", [], "no board"),
        ("echo 'HTTPClientError: '; exit 1", [], "internet"),
        ("echo 'main.c: error: nonsense'; exit 3", [], "failed with status 3"),
        ("sleep 30", ["--timeout", "1"], "stopped after 1 seconds"),
    ],
)
def test_flash_that_fails(project, tmp_path, monkeypatch, script, options, expected):
    """A missing board, a missing network, a failed build and a hanging build each say so."""
    fake_pio(tmp_path, monkeypatch, script)
    started = time.monotonic()
    result = run("flash", project, *options)
    assert time.monotonic() - started < 20
    assert result.exit_code == 1
    assert expected in result.stderr.splitlines()[-1]


def test_flash_without_what_it_needs(project, tmp_path, monkeypatch):
    """A missing project, environment or PlatformIO is one line that says what to do."""
    assert "tinykernel export" in failed("flash", tmp_path / "none")
    assert "platformio.ini" in failed("flash", tmp_path)
    assert "it has board" in failed("flash", project, "-e", "other")
    (project / "platformio.ini").write_text("[env:host]\nplatform = native\n")
    assert "pio run -t exec" in failed("flash", project)
    (project / "platformio.ini").write_text("no ini")
    assert "cannot be read" in failed("flash", project)
    (project / "platformio.ini").write_text("[env:board]\nplatform = ststm32\n")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install platformio" in failed("flash", project)


# ------------------------------------------------------------------------------ training a model

QUICK = ("--n-components", 64, "--sigma", 1, "--lambda", 0.1, "--max-iter", 3, "--quiet")


def blobs(rows: int, seed: int, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Make rows of 5 features around one centre a class."""
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    return (rng.normal(size=(rows, 5)) + 2 * np.eye(5)[y]).astype(np.float32), y


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with data.npz and the model trained on it, in both formats."""
    folder = tmp_path_factory.mktemp("cli")
    (X, y), (X_test, y_test) = blobs(120, 0), blobs(30, 1)
    np.savez(folder / "data.npz", X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    for suffix in ("tkm", "pkl"):
        result = run("train", folder / "data.npz", "-o", folder / f"gesture.{suffix}", *QUICK)
        assert result.exit_code == 0, result.output
        assert result.output == ""
    return folder


def test_train_prints_accuracy_with_its_split(work, tmp_path):
    """The accuracy of floats and integers is printed with the split beside it, and the file."""
    result = run("train", work / "data.npz", "-o", tmp_path / "m.tkm", *QUICK[:-1])
    assert result.exit_code == 0
    for text in ("120 training rows, 30 test rows", "in floats", "in integers", "m.tkm", "64"):
        assert text in result.stdout
    assert "learning the weights" in result.stderr


def test_train_json(work, tmp_path):
    """--json prints one object on stdout with measured numbers and nothing else."""
    from tinykernel import load

    file = tmp_path / "m.pkl"
    result = run("train", work / "data.npz", "-o", file, "--json", *QUICK)
    found = json.loads(result.stdout)
    model = load(file)
    data = np.load(work / "data.npz")
    assert found["test_accuracy_float"] == model.score(data["X_test"], data["y_test"])
    integer = model.quantize()
    assert found["train_accuracy"] == np.mean(integer.predict(data["X_train"]) == data["y_train"])
    assert (found["train_rows"], found["test_rows"], found["classes"]) == (120, 30, 3)
    assert found["bytes"] == file.stat().st_size
    assert found["components"] == 64


def test_train_is_reproducible(work, tmp_path):
    """The same data and seed give the same bytes; another seed another model."""
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run("train", work / "data.npz", "-o", tmp_path / f"{name}.tkm", "--seed", seed, *QUICK)
    a, b, c = ((tmp_path / f"{name}.tkm").read_bytes() for name in "abc")
    assert a == b == (work / "gesture.tkm").read_bytes()
    assert a != c


def test_train_options_reach_the_estimator(work, tmp_path):
    """Every option of the method ends up as the parameter of that name."""
    from tinykernel import load

    file = tmp_path / "m.pkl"
    result = run(
        "train", work / "data.npz", "-o", file, "--method", "paper", "--loss", "hinge",
        "--penalty", "l1", "--coefficients", "binary", "--scaler", "standard",
        "--scaler-scope", "global", "--input-bits", 16, "--class-weight", "balanced",
        "--seed", 5, "--jobs", 1, *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    expected = {
        "method": "paper", "loss": "hinge", "penalty": "l1", "coefficients": "binary",
        "scaler": "standard", "scaler_scope": "global", "input_bits": 16,
        "class_weight": "balanced", "random_state": 5, "n_components": 64, "sigma": 1.0,
        "regularization": 0.1, "max_iter": 3,
    }  # fmt: skip
    found = load(file).get_params()
    assert {name: found[name] for name in expected} == expected


def test_validation_file(work, tmp_path):
    """--validation reports the accuracy on one more file."""
    X, y = blobs(20, 2)
    np.savez(tmp_path / "more.npz", X=X, y=y)
    result = run(
        "train", work / "data.npz", "-o", tmp_path / "m.tkm", "--validation",
        tmp_path / "more.npz", "--json", *QUICK,
    )  # fmt: skip
    found = json.loads(result.stdout)["validation"]
    assert found["rows"] == 20
    assert 0.5 < found["accuracy"] <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ax,label\n1,a\nfast,b\n", "row 2 (line 3), column 'ax': 'fast' is not a number"),
        ("ax,label\n1,a\nnan,b\n2,a\n1,b\n", "row 2 (line 3), column 'ax' is NaN"),
        ("ax,label\n1,a\ninf,b\n2,a\n1,b\n", "column 'ax' is infinite"),
        ("ax,label\n1,a\n2,a\n", "one class only"),
        ("ax,ay\n1,2\n", "--label"),
        (None, "no such file"),
    ],
)
def test_bad_data_leave_nothing_behind(tmp_path, text, expected):
    """Bad data end training with one line, status 1 and no output."""
    data = tmp_path / "data.csv"
    if text is not None:
        data.write_text(text)
    before = sorted(tmp_path.iterdir())
    assert expected in failed("train", data, "-o", tmp_path / "m.tkm", *QUICK)
    assert sorted(tmp_path.iterdir()) == before


def test_outputs_are_refused_before_training(work, tmp_path, monkeypatch):
    """An output that cannot be, an unknown target or parameter is refused before the long work."""
    monkeypatch.setattr("tinykernel.training.paper.fit_outputs", None)
    data = work / "data.npz"
    for output, expected in [
        (tmp_path / "m.joblib", ".tkm or .pkl"),
        (tmp_path / "none" / "m.tkm", "no folder"),
        ("/proc/m.tkm", "cannot be written"),
    ]:
        assert expected in failed("train", data, "-o", output, *QUICK)
    message = failed("train", data, "-o", tmp_path / "m.tkm", "-t", "cortex-m99", *QUICK)
    assert all(name in message for name in TARGETS)
    assert "method" in failed("train", data, "-o", tmp_path / "m.tkm", "--method", "x", *QUICK)
    assert "labels" in failed(
        "train", data, "-o", tmp_path / "m.tkm", "--validation", _bare(tmp_path), *QUICK
    )
    assert not list(tmp_path.glob("m.*"))


def _bare(folder: Path) -> Path:
    np.savez(folder / "bare.npz", X=blobs(6, 3)[0])
    return folder / "bare.npz"


def test_ctrl_c_while_training_leaves_no_file(tmp_path):
    """Ctrl-C ends training with one line, status 130, and nothing written."""
    X, y = blobs(6000, 0)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    running = process("train", tmp_path / "data.npz", "-o", tmp_path / "m.tkm", "-p", 8192)
    assert running.stderr is not None
    first = running.stderr.readline()
    assert first.startswith("choosing"), first
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1] == "error: interrupted; nothing was written"
    assert "Traceback" not in err
    assert [file.name for file in tmp_path.iterdir()] == ["data.npz"]


# ------------------------------------------------------------------------------- using a model


@pytest.mark.parametrize("suffix", ["tkm", "pkl"])
def test_predict(work, suffix):
    """predict gives the labels and int32 scores of the integer model for the test part."""
    from tinykernel import load

    found = json.loads(
        run("predict", work / f"gesture.{suffix}", work / "data.npz", "--json").stdout
    )
    integer = load(work / "gesture.tkm").quantize()
    X = np.load(work / "data.npz")["X_test"]
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


def test_verify_without_labels(work, tmp_path):
    """Without labels the scores are compared all the same and the accuracy is null."""
    found = json.loads(
        run("verify", work / "gesture.tkm", "--data", _bare(tmp_path), "--json").stdout
    )
    assert found["accuracy"] is None
    assert found["differences"] == 0


def test_one_difference_fails(work, monkeypatch):
    """One differing score gives status 1 and is shown."""
    from tinykernel.integer import IntegerModel

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
    [("Gesture 2.tkm", "gesture_2"), ("int.tkm", "model"), ("2.pkl", "model"),
     ("a-b.c.tkm", "a_b_c"), ("é.tkm", "model"), ("main.tkm", "model")],
)  # fmt: skip
def test_names_of_models(file, name):
    """Any file name gives a prefix that C takes."""
    from tinykernel.cli.export import name_of

    assert name_of(Path(file)) == name


# ------------------------------------------------------------------------------- the whole process


def test_exit_codes_of_the_process(work):
    """The process itself ends with the codes, without a traceback, with errors on stderr only."""
    for arguments, status in [
        (("targets",), 0),
        (("inspect", "none.tkm"), 1),
        (("inspect",), 2),
        (("report", work / "gesture.tkm", "--budget", "100"), 1),
    ]:
        finished = process(*arguments)
        _, err = finished.communicate(timeout=120)
        assert finished.returncode == status, err
        assert "Traceback" not in err
        assert len(err.splitlines()) == (0 if status == 0 else 1)


def test_reader_that_leaves_early(work):
    """A closed pipe on stdout ends the program without a traceback."""
    for arguments in (("targets",), ("predict", work / "gesture.tkm", work / "data.npz", "--json")):
        running = process(*arguments)
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        err = running.stderr.read()
        running.stderr.close()
        running.wait(timeout=120)
        assert err == ""
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tinykernel", "targets"]
        finished = subprocess.run(
            command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert finished.returncode == 1
    assert finished.stderr == "error: output: No space left on device\n"


def test_faults_of_the_program_keep_their_traceback(work, monkeypatch):
    """What is not the user's mistake is not dressed up as one; sklearn's ValueErrors are."""

    def fault(*_):
        raise ValueError("internal")

    monkeypatch.setattr("tinykernel.data.find_data", fault)
    result = run("predict", work / "gesture.tkm", work / "data.npz")
    assert isinstance(result.exception, ValueError)
    from sklearn.utils import check_array

    monkeypatch.setattr("tinykernel.data.find_data", lambda _: check_array([[np.nan]]))
    assert "NaN" in failed("predict", work / "gesture.tkm", work / "data.npz")
    monkeypatch.setenv("TINYKERNEL_DEBUG", "1")
    assert run("predict", work / "gesture.tkm", work / "data.npz").exception is not None
