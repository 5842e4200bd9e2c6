"""Where the command line runs: odd folders, two runs at once, and a process that imports it."""

import locale
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.cli.tools import QUICK, ROOT, process, succeeded, table_with_groups
from tinykernel.face import main
from tinykernel.model.file import load

_STATE = """
import locale, logging, os, random, signal, sys, warnings
import numpy as np, sklearn
def state():
    return (np.random.get_state()[1].tobytes(), random.getstate(), np.geterr(),
            list(warnings.filters), locale.setlocale(locale.LC_ALL), dict(os.environ),
            list(sys.path), sys.excepthook, sys.getrecursionlimit(), sklearn.get_config(),
            logging.getLogger().handlers[:], signal.getsignal(signal.SIGINT), os.getcwd())
before = state()
import tinykernel
from tinykernel import TernaryKernelClassifier, export, load, report, train, verify
after = state()
assert all(a == b for a, b in zip(before, after)), [
    i for i, (a, b) in enumerate(zip(before, after)) if a != b]
"""


def test_many_classes_brought_a_warning_of_scikit_learn(tmp_path, monkeypatch, recwarn):
    """A class of two rows each is one all the same; scikit-learn doubts it."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # main sets it
    y = np.repeat(np.arange(60), 2)
    np.savez(tmp_path / "d.npz", X=np.random.default_rng(0).normal(size=(120, 4)), y=y)
    train = ("train", tmp_path / "d.npz", "-o", tmp_path / "m.tkm", *QUICK)
    monkeypatch.setattr(sys, "argv", ["tinykernel", *map(str, train)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert not recwarn.list


@pytest.mark.slow
def test_importing_changes_no_global_state():
    """A program that imports the package keeps its random numbers, filters and settings."""
    subprocess.run([sys.executable, "-c", _STATE], check=True, cwd=ROOT)


@pytest.mark.slow
def test_a_locale_with_a_decimal_comma_changes_no_number(tmp_path, tool_missing, monkeypatch):
    """Data, model, C and what is printed are the same where C writes 1,5 for 1.5."""
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"]
    if shutil.which("localedef") is None or subprocess.run(made, capture_output=True).returncode:
        tool_missing("the source of de_DE", "apt-get install locales")
    table_with_groups(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCPATH", str(tmp_path))

    def everything():
        for command in (
            ("train", "t.csv", "-o", "m.tkm", *QUICK),
            ("inspect", "m.tkm"),
            ("export", "m.tkm", "-t", "host", "-o", "c", "--force"),
            ("evaluate", "m.tkm", "t.csv", "--json"),
        ):
            done = succeeded(*command)
            yield done.output
        yield from (path.read_text() for path in sorted(Path("c").rglob("*.[ch]")))

    point = list(everything())
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
        assert locale.localeconv()["decimal_point"] == ","
        assert list(everything()) == point
    finally:
        locale.setlocale(locale.LC_ALL, before)


def test_line_ends_of_other_systems_are_no_part_of_labels(tmp_path, monkeypatch):
    """Tables, settings and names of models from Windows and old Macs read as those of Unix."""
    monkeypatch.chdir(tmp_path)
    settings = "[train]\neffort = 'quick'\nepochs = 2\nn_components = 32\n"
    text = table_with_groups(tmp_path).read_text()
    models = []
    for end in ("\n", "\r\n", "\r"):
        Path("t.csv").write_bytes(text.replace("\n", end).encode())
        Path("tinykernel.toml").write_bytes(settings.replace("\n", end).encode())
        model = r"C:\größe 1.tkm"
        succeeded("train", "t.csv", "-o", model, "-q")
        models.append(load(model))
    assert models[0] == models[1] == models[2]
    succeeded("export", model, "--format", "single", "-o", "c")
    assert len(list(Path("c").glob("c_gr*.[ch]"))) == 3


def test_paths_with_spaces_and_quotes(work, tmp_path, monkeypatch, require_tool):
    """Compilers get the paths as they are, of model, data, project and temporary folder."""
    require_tool("gcc")
    place = tmp_path / "a b's \u00e4"
    temporary = place / "temporary files"
    temporary.mkdir(parents=True)
    for name in ("gesture.tkm", "data.npz"):
        (place / name).write_bytes((work / name).read_bytes())
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    succeeded("verify", place / "gesture.tkm", place / "data.npz")
    assert list(temporary.iterdir()) == []
    succeeded("export", place / "gesture.tkm", "-o", place / "the project")
    assert (place / "the project" / "platformio.ini").is_file()


@pytest.mark.slow
def test_two_runs_in_one_folder(work, tmp_path):
    """Exports that write to one place leave a whole one of the two."""
    exports = [
        process("export", work / "gesture.tkm", "-o", tmp_path / "p", "--name", name, "--force")
        for name in ("one", "two")
    ]
    for running in exports:
        running.communicate(timeout=300)
    # One may find the place taken that was free when it looked, and says so.
    assert 0 in [running.returncode for running in exports]
    names = {path.stem.split("_")[0] for path in (tmp_path / "p" / "include").glob("*.h")}
    assert names - {"tk"} in ({"one"}, {"two"})
    assert os.listdir(tmp_path) == ["p"]
