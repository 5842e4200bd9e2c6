"""Options that several commands share, and checks before long work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import failed, json_of, run
from tinykernel import TinykernelError
from tinykernel.cli.common.arguments import check_output_file, check_output_folder
from tinykernel.codegen.targets import TARGETS
from tinykernel.files import MANIFEST, manifest, replace_folder_atomically


@pytest.mark.parametrize("text", ["", "KB", "30 bananas", "-1KB", "1,5KB", "0"])
def test_bad_sizes(text, tmp_path):
    """What is not a size is wrong usage: status 2 and one line."""
    assert "is not a size" in failed("report", tmp_path / "m.tkm", f"--budget={text}", status=2)


def test_output_files_are_checked_without_touching_them(tmp_path):
    """A check before long work refuses what could not be written and leaves everything alone."""
    old = tmp_path / "old.tkm"
    old.write_bytes(b"PK, a model")
    check_output_file(old, (".tkm",))
    assert old.read_bytes() == b"PK, a model"
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


def test_output_folders_are_checked_without_touching_them(tmp_path, monkeypatch):
    """A changed export needs --force; other files are never in danger."""
    check_output_folder(tmp_path / "a" / "b", force=False)
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(TinykernelError, match="not even --force"):
        check_output_folder(tmp_path, force=True)
    files = {"a.c": b"int a;"}
    replace_folder_atomically(tmp_path / "export", files | {MANIFEST: manifest(files)})
    assert check_output_folder(tmp_path / "export", force=False)
    (tmp_path / "export" / "a.c").write_text("int b;")
    with pytest.raises(TinykernelError, match="add --force"):
        check_output_folder(tmp_path / "export", force=False)
    check_output_folder(tmp_path / "export", force=True)
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(TinykernelError, match=r"is a file|cannot be read"):
            check_output_folder(path, force=True)
    with pytest.raises(TinykernelError, match="cannot be written"):
        check_output_folder(Path("/proc/a"), force=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TinykernelError, match="more than an export"):
        check_output_folder(Path("."), force=True)


def test_one_rule_for_what_is_there(work, tmp_path):
    """train replaced any file, export no folder; now what tinykernel wrote goes, only that."""
    for name in ("notes.tkm", "notes.pkl"):
        (tmp_path / name).write_text("mine")
        line = failed("train", work / "data.npz", "-o", tmp_path / name, "-q")
        assert "is no model, and is not replaced" in line
        assert (tmp_path / name).read_text() == "mine"
    check_output_file(work / "gesture.tkm", (".tkm",))
    check_output_file(work / "gesture.pkl", (".pkl",))
    command = ("export", work / "gesture.tkm", "--format", "single", "-o", tmp_path / "out", "-q")
    assert run(*command).exit_code == run(*command).exit_code == 0
    (tmp_path / "out" / "gesture.c").write_text("mine")
    assert "add --force" in failed(*command)


def test_several_targets_give_an_array(work):
    """An array is printed where several targets are asked for, also when it is the same twice."""
    command = ("report", work / "gesture.tkm", "--compiler", "none", "-t")
    for text, names in (
        ("cortex-m0,cortex-m4", ["cortex-m0", "cortex-m4"]),
        ("cortex-m0,cortex-m0", ["cortex-m0"]),
    ):
        assert [row["target"] for row in json_of(*command, text)] == names


def test_unknown_target_lists_the_known(work):
    """An unknown target is one line with all known ones."""
    message = failed("report", work / "gesture.tkm", "-t", "z80")
    assert all(name in message for name in TARGETS)


COMMANDS = [
    ("predict", "MODEL", "data.npz"),
    ("inspect", "MODEL"),
    ("verify", "MODEL", "data.npz"),
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
