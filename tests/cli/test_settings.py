"""Settings: options of a command, --set, tinykernel.toml, and their list."""

import dataclasses
import json

from tests.cli.tools import QUICK, failed, json_of, run, sets, succeeded
from tinykernel.face.arguments import read_file
from tinykernel.face.settings import SETTINGS
from tinykernel.learn.options import RegressorOptions


def test_options_lists_every_option_of_the_trainer() -> None:
    """A new option of the trainer needs no second declaration: it is listed and can be set."""
    listed = {row["name"]: row for row in json_of("options")}
    # 53, four of the papers, the backend of tune, teachers, and three of recordings
    assert len(listed) <= 62
    renamed = {"random_state", "validation_fraction", "hop"}
    for field in dataclasses.fields(RegressorOptions):
        expected = field.name not in renamed
        assert not expected or listed[field.name]["text"]
    assert listed["epochs"]["range"] == "1 or more"
    assert run("options", "epochs").stdout.startswith("epochs ")


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
    assert SETTINGS["label"].parse(read_file(saved)["label"][0]) == label[1]
    (tmp_path / "other.toml").write_text("[project]\nname = 'x'\n")
    refused = (*train, tmp_path / "d.tkm", "--save-config", tmp_path / "other.toml")
    failed(*refused)
    failed(*train, tmp_path / "d.tkm", "--config", tmp_path / "no")


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
    values = {name: SETTINGS[name].parse(text) for name, (text, _) in read_file(file).items()}
    assert values == {"image_shape": (8, 8), "augment": {"shift": 2}}
