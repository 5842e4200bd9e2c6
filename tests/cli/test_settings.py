"""Settings: options of a command, --set, tinykernel.toml, and their list."""

import dataclasses
import json
import re

import numpy as np
import pytest
import typer

from tests.cli.tools import QUICK, blobs, failed, json_of, run, sets, succeeded
from tests.sessions import ROOT
from tinykernel.face import app
from tinykernel.face.gathering import read_file
from tinykernel.face.settings import SETTINGS
from tinykernel.learn.recipe import RegressorOptions


def _options(command: str) -> list[typer.core.TyperOption]:
    found = typer.main.get_command(app).commands[command].params
    return [each for each in found if each.param_type_name == "option" and not each.hidden]


def _names(command: str) -> set[str]:
    return {name for option in _options(command) for name in option.opts}


def test_options_lists_every_option_of_the_trainer() -> None:
    """A new option of the trainer needs no second declaration: it is listed and can be set."""
    listed = {row["name"]: row for row in json_of("options")}
    assert len(listed) <= 57  # 51, four of the papers, the backend of tune, and teachers
    renamed = {"random_state", "validation_fraction", "hop"}
    for field in dataclasses.fields(RegressorOptions):
        expected = field.name not in renamed
        assert not expected or listed[field.name]["text"]
    assert listed["epochs"]["range"] == "1 or more"
    assert run("options", "epochs").stdout.startswith("epochs   Passes over the training rows.")
    assert "default  6 to 120" in run("options", "epochs").stdout
    assert "epochs" in run("options").stdout


def test_nothing_names_an_option_that_became_a_setting() -> None:
    """A message asked for `--short pad`, which train refused: it is `--set short=pad`."""
    options = {name for each in typer.main.get_command(app).commands for name in _names(each)}
    gone = {f"--{name.replace('_', '-')}" for name in SETTINGS} - options
    gone -= {"--model", "--version"}  # of benchmarks, and of tinykernel itself
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
    for file in [*pages, *(ROOT / "tinykernel").rglob("*.py")]:
        text = file.read_text(encoding="utf-8")
        assert not gone.intersection(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)), file


def test_a_setting_given_as_an_option_is_told_how_to_set(tmp_path) -> None:
    """One line says how to write it, where a command takes it."""
    given = ("train", tmp_path, "--short", "drop", "-o", tmp_path / "m.tkm")
    assert "--short is a setting: --set short=pad|drop" in failed(*given, status=2)
    assert "No such option" in failed("verify", "m.tkm", "--short", "drop", status=2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("n_component=64", "did you mean n_components?"), ("epoch=3", "did you mean epochs?")),
        *(("bits=8", "no such setting; 'tinykernel options' lists all"), ("trials=3", "lists all")),
        *(("zzz=3", "'tinykernel options' lists all"), ("epochs", "write NAME=VALUE")),
        ("epochs=0", "--set epochs: must be a whole number of at least 1"),
        ("sigma=-1", "--set sigma: must be a positive number"),
        *(("n_components=65537", "at most 65536"), ("code=tiny", "--set code: must be one of")),
        *(("task=novel", "choose from classes, numbers, novelty"), ("seed=3", "is given twice")),
        ("folds=3", "is not an option of this command"),
        ("loss=absolute", "only for task numbers"),
    ],
)
def test_wrong_settings_are_refused_before_the_data_are_read(tmp_path, text, expected) -> None:
    """A mistyped name or value is one line of wrong usage, and nothing is read or written."""
    line = failed("train", __file__, "-o", tmp_path / "m.tkm", "--seed", 1, "--set", text, status=2)
    assert expected in line
    assert not list(tmp_path.iterdir())


def test_a_file_of_settings_says_the_same_as_options(work, tmp_path) -> None:
    """A tinykernel.toml beside the data gives the same model; options precede it."""
    data = tmp_path / "data.npz"
    data.symlink_to(work / "data.npz")
    config = tmp_path / "tinykernel.toml"
    given = ("--seed", 3, "--effort", "quick", *sets("n_components=32", "epochs=2"))
    succeeded("train", data, "-o", tmp_path / "a.tkm", *given, "-q")
    config.write_text('[train]\nseed = 3\neffort = "quick"\nn_components = 32\nepochs = 2\n')
    succeeded("train", data, "-o", tmp_path / "b.tkm", "-q")
    assert (tmp_path / "a.tkm").read_bytes() == (tmp_path / "b.tkm").read_bytes()
    succeeded("train", data, "-o", tmp_path / "c.tkm", "--seed", 4, "-q")
    assert (tmp_path / "a.tkm").read_bytes() != (tmp_path / "c.tkm").read_bytes()


def test_saved_settings_repeat_a_call(work, tmp_path) -> None:
    """--save-config writes what was typed, for --config, and replaces no other file."""
    saved, typed = tmp_path / "a.toml", ("--seed", 3, *QUICK)
    label = ("--label", 'y_train "\U0001f600"')
    train = ("train", work / "data.npz", "-q", "-o")
    succeeded(*train, tmp_path / "a.tkm", *typed, "--save-config", saved)
    succeeded(*train, tmp_path / "b.tkm", "--config", saved)
    assert (tmp_path / "a.tkm").read_bytes() == (tmp_path / "b.tkm").read_bytes()
    run(*train, tmp_path / "c.tkm", "--config", saved, *label, "--save-config", saved)
    assert SETTINGS["label"].read(read_file(saved)["label"][0]) == label[1]
    (tmp_path / "other.toml").write_text("[project]\nname = 'x'\n")
    refused = (*train, tmp_path / "d.tkm", "--save-config", tmp_path / "other.toml")
    assert "not a table of settings" in failed(*refused)
    assert "not a settings file" in failed(*train, tmp_path / "d.tkm", "--config", tmp_path / "no")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[train", "not valid TOML"),
        ("[trains]\n", "[trains] is not a table of settings; choose from [data], [train], [tune]"),
        ("[train]\nepoch = 3\n", "[train] epoch: no such setting; did you mean epochs?"),
        ("[train]\nwindow = 3\n", "[train] window: belongs in [data]"),
        ("[train]\nepochs = 0\n", "[train] epochs: must be a whole number of at least 1"),
        ("[train]\nepochs = 10:00:00\n", "[train] epochs: must be a whole number"),
        ("[train]\nn_components = {compact = {a = 64}}\n", "[train] n_components: "),
        (f"[train]\nepochs = {'9' * 5000}\n", "not valid TOML"),
        (f"[train]\nepochs = {'[' * 900}{']' * 900}\n", "nested too deeply"),
    ],
)
def test_wrong_files_of_settings(tmp_path, text, expected) -> None:
    """A file of settings is checked as the command line is, and named in one line."""
    (tmp_path / "tinykernel.toml").write_text(text)
    (tmp_path / "rows.csv").touch()
    line = failed("train", tmp_path / "rows.csv", "-o", tmp_path / "m.tkm")
    assert str(tmp_path / "tinykernel.toml") in line
    assert expected in line


def test_files_of_settings_keep_every_text(tmp_path) -> None:
    """Quotes, backslashes, signs beyond U+FFFF and lists come back as they were given."""
    file = tmp_path / "t.toml"
    label = 'a "b"\\c \U0001f600 \n'
    file.write_text(
        f"[data]\nlabel = {json.dumps(label, ensure_ascii=False)}\nrate = 50.5\n[train]\nseed = 7\n"
    )
    given = {"label": label, "rate": "50.5", "seed": "7"}
    assert {name: text for name, (text, _) in read_file(file).items()} == given
    file.write_text("[data]\nimage_shape = [8, 8]\n[train]\naugment = {shift = 2}")
    values = {name: SETTINGS[name].read(text) for name, (text, _) in read_file(file).items()}
    assert values == {"image_shape": (8, 8), "augment": {"shift": 2}}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--set", "class_weight=10:30:2,11:00:1"), "'10:30' is not a label in y"),
        (("--set", "class_weight=0:1e308"), "of 0 must be from 1e-06 to 1e+06"),
        (("--set", "beside=\u00b2"), "give the number of values at their end"),
        (("--window-shape", "2x2", "--hop", "\u00b2"), "give samples, 1 to 2 (the window)"),
        (("--budget", "9" * 5000), "is not a size"),
        (("--budget", f"ram={'9' * 5000}KB"), "write a size, as in ram=8KB"),
        (("--window", "9" * 5000), "window must be a time like"),
        (("--window-shape", "9" * 5000 + "x1"), "write SAMPLESxCHANNELS"),
        (("--set", f"epochs={'9' * 5000}"), "epochs"),
    ],
)
def test_a_wrong_option_is_one_line(tmp_path, typed, said) -> None:
    """Digits that no number has, signs that are no digits, and colons in labels are one line."""
    X, y = blobs(20, 0, 2)
    np.savez(tmp_path / "d.npz", X=X[:, :4], y=y)
    result = run("train", tmp_path / "d.npz", "-o", tmp_path / "m.tkm", *QUICK, *typed)
    assert result.exit_code in (1, 2), result.output
    (line,) = result.stderr.splitlines()
    assert said in line
    assert not (tmp_path / "m.tkm").exists()
