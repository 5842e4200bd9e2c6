"""Options that several commands share, and checks before long work."""

from pathlib import Path

import pytest

from tests.cli.tools import failed, json_of, run
from tinykernel.face.arguments import check_output_file

pytestmark = pytest.mark.usefixtures("page")


def test_one_rule_for_what_is_there(work, tmp_path):
    """train replaced any file, export no folder; now what tinykernel wrote goes, only that."""
    for name in ("notes.tkm", "notes.pkl"):
        (tmp_path / name).write_text("mine")
        failed("train", work / "data.npz", "-o", tmp_path / name, "-q")
        assert (tmp_path / name).read_text() == "mine"
    check_output_file(work / "gesture.tkm", (".tkm",))
    check_output_file(work / "gesture.pkl", (".pkl",))
    command = ("export", work / "gesture.tkm", "--format", "single", "-o", tmp_path / "out", "-q")
    assert run(*command).exit_code == run(*command).exit_code == 0
    (tmp_path / "out" / "gesture.c").write_text("mine")
    failed(*command)


def test_several_targets_give_an_array(work):
    """An array is printed where several targets are asked for, also when it is the same twice."""
    command = ("report", work / "gesture.tkm", "--compiler", "none", "-t")
    for text, names in (
        ("cortex-m0,cortex-m4", ["cortex-m0", "cortex-m4"]),
        ("cortex-m0,cortex-m0", ["cortex-m0"]),
    ):
        assert [row["target"] for row in json_of(*command, text)] == names


COMMANDS = [
    *(("predict", "MODEL", "data.npz"), ("inspect", "MODEL"), ("verify", "MODEL", "data.npz")),
    *(("report", "MODEL"), ("export", "MODEL", "-t", "host", "-o", "project")),
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
        failed(*(name if word == "MODEL" else word for word in command))
    assert sorted(tmp_path.iterdir()) == before
