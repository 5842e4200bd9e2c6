"""How the command line starts and ends: help, statuses, Ctrl-C, closed pipes."""

import io
import json
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tests.cli.tools import QUICK, ROOT, blobs, failed, process, run
from tinykernel.base.errors import OptionError
from tinykernel.face import app, main
from tinykernel.face.output import as_typed


def test_version_and_help(tmp_path, monkeypatch):
    """Every help fits two screens of 80 x 24 and ends with two examples, which can be parsed."""
    from tinykernel import __version__

    assert run("--version").stdout == f"tinykernel {__version__}\n"
    monkeypatch.chdir(tmp_path)
    for folder in ("firmware", "motion"):
        Path(folder).mkdir()
    commands = typer.main.get_command(app).commands
    overview = run("--help").stdout
    assert all(name in overview for name in commands)
    assert "..." not in overview.partition("Commands:")[2]
    for name, command in commands.items():
        shown = CliRunner(env={"COLUMNS": "80"}).invoke(app, [name, "--help"]).stdout.splitlines()
        assert len(shown) <= 48, name
        examples = [shlex.split(line) for line in shown[-2:]]
        assert [words[:2] for words in examples] == 2 * [["tinykernel", name]]
        for words in examples:
            for file in (word for word in words if re.search(r"\.(npz|tkm|csv|bin)$", word)):
                Path(file).touch()
            command.make_context(name, words[2:])


_QUICK_ANSWERS = """
import sys
from tinykernel.face import app
heavy = ["numpy", "numba", "sklearn", "scipy"]
for arguments in (
    ["--help"], ["train", "--help"], ["targets"], ["options"],
    ["train", "none.csv", "-o", "m.tkm"],
    ["train", "t.csv", "-o", "m.tkm", "--set", "epoch=3"],
    ["train", "t.csv", "-o", "m.tkm", "--set", "sigma=-1"],
    ["train", "t.csv", "-o", "m.tkm", "--budget", "8KX"],
    ["train", "t.csv", "-o", "none/m.tkm"],
    ["evaluate", "none.tkm", "none.csv"], ["export", "none.tkm"],
    ["train", "t.csv", "-o", "m.tkm", "--label", "stat"],
    ["train", "t.csv", "-o", "m.tkm", "--label", "a", "--groups", "who"],
    ["train", "t.csv", "-o", "m.tkm"],
    ["inspect", sys.argv[1], "--json"],
):
    if "--label" in arguments:
        heavy = ["numba", "sklearn", "scipy"]
    if "inspect" in arguments:
        heavy = ["sklearn", "scipy.stats"]
    try:
        app(arguments)
    except SystemExit:
        pass
    assert not [name for name in heavy if name in sys.modules], arguments
"""


@pytest.mark.slow
def test_answers_do_not_wait_for_the_heavy_modules(work, tmp_path):
    """Help, lists, and errors about files, options and columns import nothing heavy."""
    (tmp_path / "t.csv").write_text("a,b,c\n" + "1,2,x\n2,3,y\n" * 9)
    command = [sys.executable, "-c", _QUICK_ANSWERS, work / "gesture.tkm"]
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=here)
    assert done.returncode == 0, done.stderr[-500:]


def test_faults_of_the_program_keep_their_traceback(work, monkeypatch):
    """What is not the user's mistake is not dressed up as one; sklearn's ValueErrors are."""
    find = "tinykernel.data.sources.find_data"
    monkeypatch.setattr(find, Mock(side_effect=ValueError("internal")))
    result = run("predict", work / "gesture.tkm", work / "data.npz")
    assert isinstance(result.exception, ValueError)
    from sklearn.utils import check_array

    monkeypatch.setattr(find, lambda _: check_array([[np.nan]]))
    failed("predict", work / "gesture.tkm", work / "data.npz")
    monkeypatch.setenv("TINYKERNEL_DEBUG", "1")
    assert run("predict", work / "gesture.tkm", work / "data.npz").exception is not None


def test_messages_name_options_and_leave_files_alone():
    """A parameter of Python becomes the option, with its value; the name of a file stays."""
    options = {"image_shape": "--image-shape", "rate": "--set rate", "name": "--name"}
    typed = partial(as_typed, options)
    mentioned = {"rate": 8, "image_shape": (4, 4), "n": 1}
    error = OptionError("image_shape: no {rate}, {image_shape} or {n}", **mentioned)
    assert str(error) == "image_shape: no rate=8, image_shape=(4, 4) or n=1"
    assert error.said(typed) == "--image-shape: no --set rate=8, --image-shape 4x4 or n=1"
    assert OptionError("image_shape.csv: is empty").said(typed) == "image_shape.csv: is empty"
    assert pickle.loads(pickle.dumps(error)).said(typed) == error.said(typed)


def test_completion(monkeypatch):
    """The completion script of a shell is printed."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    result = run("--show-completion", "bash")
    assert "complete" in result.stdout, result.output


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("bench --target cortex-m0,cortex-m3", {"cortex-m0,cortex-m3", "cortex-m0,cortex-m33"}),
        ("train data.npz -t atm", {"atmega328p"}),
        ("train --set n_co", {"n_components="}),
        ("export --set code=", {"code=auto", "code=small"}),
        ("options epoc", {"epochs"}),
    ],
)
def test_completion_of_targets_and_settings(monkeypatch, typed, expected):
    """Shells propose targets after a comma too, settings, and the words to choose from."""
    monkeypatch.setenv("_TINYKERNEL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"tinykernel {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
    result = CliRunner().invoke(app, [], prog_name="tinykernel")
    assert expected <= set(result.stdout.split()), result.output


def _main(monkeypatch, *arguments, encoding="utf-8"):
    """Run the whole program in this process; return its status and what stdout took."""
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "argv", ["tinykernel", *map(str, arguments)])
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # main sets it
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, out.buffer.getvalue()


def test_exit_codes(work, monkeypatch, capsys):
    """The program ends with the codes, without a traceback, with errors on stderr only."""
    model = work / "gesture.tkm"
    for arguments, status, said in [
        (("targets",), 0, ""),
        (("inspect", "none.tkm"), 1, "no such file"),
        (("flash",), 2, "DIR"),
        (("target",), 2, "targets"),
        (("targets", "--foo"), 2, "--foo"),
        (("report", model, "--budget", "100", "--compiler", "none"), 1, "100"),
    ]:
        found, out = _main(monkeypatch, *arguments)
        err = capsys.readouterr().err
        assert found == status, err
        assert said in err
        assert "Traceback" not in err
        assert len(err.splitlines()) == (0 if status == 0 else 1)
        assert bool(out) == (status == 0 or arguments[0] == "report")


def test_what_a_terminal_cannot_show_is_escaped(tmp_path, monkeypatch):
    """Labels of any text neither end a command nor make bad JSON."""
    X, y = blobs(60, 0)
    names = ["k\u00f6nig", "\u738b", "rest"]
    np.savez(tmp_path / "d.npz", X=X, y=np.array(names)[y])
    model = tmp_path / "m.tkm"
    train = ("train", tmp_path / "d.npz", "-o", model, *QUICK[:-1])
    assert _main(monkeypatch, *train, encoding="ascii")[0] == 0
    for encoding in ("ascii", "cp1252", "utf-8"):
        for command in (("inspect", model), ("predict", model, tmp_path / "d.npz")):
            status, out = _main(monkeypatch, *command, encoding=encoding)
            assert status == 0
            assert ("k\u00f6nig" if encoding != "ascii" else "k\\xf6nig").encode(encoding) in out
            assert ("\u738b" if encoding == "utf-8" else "\\u738b").encode(encoding) in out
            status, out = _main(monkeypatch, *command, "--json", encoding=encoding)
            found = json.loads(out.decode(encoding))
            assert set(found.get("labels", names)) <= set(names)
            assert found.get("classes", sorted(names)) == sorted(names)


def test_reader_that_leaves_early():
    """A closed pipe on stdout ends the program quietly, a full disk with one line."""
    running = process("targets")
    running.stdout.close()
    assert running.stderr.read() == ""
    running.stderr.close()
    assert running.wait(timeout=300) == 1
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tinykernel", "targets"]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert re.fullmatch("error: .*No space left on device.*\n", done.stderr)


def test_ctrl_c_at_the_start_is_one_line(tmp_path):
    """Ctrl-C while the command line is still being imported ends with one line."""
    slow = "import sys, time\nprint('importing', file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    (tmp_path / "typer.py").write_text(slow)
    running = process("targets", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert running.stderr.readline() == "importing\n"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert (running.returncode, out, err) == (130, "", "error: interrupted\n")


def test_ctrl_c_while_options_are_read_is_one_line(monkeypatch, work):
    """Ctrl-C before the command begins is told as Ctrl-C in it, and only once."""
    model = work / "gesture.tkm"
    interrupt = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("tinykernel.run.limits.parse_size", interrupt)
    assert failed("report", model, "--budget", "3KB", status=130) == "error: interrupted"
    monkeypatch.setattr("tinykernel.model.file.load", interrupt)
    assert failed("inspect", model, status=130) == "error: interrupted"
