"""Tests of tinykernel.base.files."""

import os
import shutil
import signal
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.refusals import refused
from tinykernel.base import files
from tinykernel.base.errors import FileError, TinykernelError
from tinykernel.base.files import (
    MANIFEST,
    manifest,
    refuse_inputs,
    replace_folder_atomically,
    write_bytes_atomically,
)
from tinykernel.run import program


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below `folder`, hidden ones too, by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


MARK = {MANIFEST: manifest({})}


def test_permissions(tmp_path) -> None:
    """A new file is readable as the umask says; writing again does not open a private file."""
    old = os.umask(0o027)
    try:
        write_bytes_atomically(tmp_path / "model.tkm", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "model.tkm").stat().st_mode) == 0o640
    (tmp_path / "model.tkm").chmod(0o600)
    write_bytes_atomically(tmp_path / "model.tkm", b"new")
    assert stat.S_IMODE((tmp_path / "model.tkm").stat().st_mode) == 0o600


def test_symbolic_link_stays_a_link(tmp_path) -> None:
    """Writing through a link changes the file that it points to."""
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "model.tkm", tmp_path / "link.tkm"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write_bytes_atomically(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_device_is_written_to_and_not_replaced(tmp_path) -> None:
    """``-o /dev/null`` as root must not turn the device into a file; likewise a pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_bytes_atomically(pipe, b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["missing/model.tkm", "file/model.tkm", "out", "x" * 300])
def test_impossible_path_is_one_clear_line(tmp_path, name) -> None:
    """A missing folder, a folder as the file or too long a name: one line, and nothing written."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "out").mkdir()
    refused(FileError, write_bytes_atomically, tmp_path / name, b"x")
    assert contents(tmp_path) == {"file": b""}
    if len(name) == 300:
        refused(FileError, replace_folder_atomically, tmp_path / name, {"a": b""})


def test_failed_write_leaves_old_file(tmp_path, monkeypatch) -> None:
    """When the disk is full the old content stays and no temporary file is left."""
    (tmp_path / "model.tkm").write_bytes(b"old")
    monkeypatch.setattr(
        files.os, "replace", Mock(side_effect=OSError(28, "No space left on device"))
    )
    refused(FileError, write_bytes_atomically, tmp_path / "model.tkm", b"new")
    assert contents(tmp_path) == {"model.tkm": b"old"}


def test_file_in_place_of_a_folder_is_refused(tmp_path) -> None:
    """A file is never replaced by a folder, not even by force."""
    (tmp_path / "out").write_bytes(b"precious")
    refused(FileError, replace_folder_atomically, tmp_path / "out", {"a": b""}, force=True)
    refused(FileError, replace_folder_atomically, tmp_path / "out" / "below", {"a": b""})
    assert contents(tmp_path) == {"out": b"precious"}


def test_force_spares_what_nobody_means(tmp_path, monkeypatch) -> None:
    """``--force -o .`` deletes neither the working folder, its parents, home nor a repository."""
    for name in ("work/here", "home", "repository/.git"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "precious").write_bytes(b"")
        for folder in (tmp_path / name, (tmp_path / name).parent):
            (folder / MANIFEST).write_bytes(MARK[MANIFEST])
    monkeypatch.chdir(tmp_path / "work" / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before = contents(tmp_path)
    for path in (".", "..", "../..", "../../home", "../../repository"):
        refused(FileError, replace_folder_atomically, path, {"a": b""}, force=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_failed_renaming_puts_old_folder_back(tmp_path, monkeypatch, error) -> None:
    """After an error or Ctrl-C between the two renamings the old folder stands there again."""
    target = tmp_path / "out"
    replace_folder_atomically(target, {"old.c": b"1", **MARK})
    real = os.replace

    def failing(source: os.PathLike[str], destination: os.PathLike[str]) -> None:
        if Path(source).name == "new":
            raise error
        real(source, destination)

    monkeypatch.setattr(files.os, "replace", failing)
    with pytest.raises((TinykernelError, KeyboardInterrupt)):
        replace_folder_atomically(target, {"new.c": b"2"}, force=True)
    assert contents(target) == {"old.c": b"1", **MARK}
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", ""])
def test_names_stay_inside_the_folder(tmp_path, name) -> None:
    """A generated file name cannot lead out of the project."""
    with pytest.raises(ValueError, match="relative"):
        replace_folder_atomically(tmp_path / "out", {name: b""})
    assert contents(tmp_path) == {}


def test_empty_working_folder_is_filled_and_not_replaced(tmp_path, monkeypatch) -> None:
    """``-o .`` in an empty folder: the shell must not be left standing in a deleted one."""
    monkeypatch.chdir(tmp_path)
    before = tmp_path.stat().st_ino
    replace_folder_atomically(".", {"src/main.c": b"1", "a.ini": b"2"})
    assert tmp_path.stat().st_ino == before
    assert contents(Path(".")) == {"src/main.c": b"1", "a.ini": b"2"}


def test_failed_filling_leaves_the_folder_empty(tmp_path, monkeypatch) -> None:
    """When the second of two files cannot be moved in, the first is taken out again."""
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    real = os.replace

    def fail_for_b(source: Path, destination: Path) -> None:
        if Path(source).name == "b":
            raise OSError(5, "Input/output error")
        real(source, destination)

    monkeypatch.setattr(files.os, "replace", fail_for_b)
    refused(FileError, replace_folder_atomically, tmp_path / "out", {"a": b"1", "b": b"2"})
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]


def test_only_exports_are_replaced(tmp_path) -> None:
    """``export data/model.tkm -o data --force`` deleted the data, and the very model."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "rows.csv").write_bytes(b"precious")
    for mark in (None, b"", b"{}", b"[" * 100_000, b'{"format": "other"}'):
        if mark is not None:
            (data / MANIFEST).write_bytes(mark)
        before = contents(tmp_path)
        refused(FileError, replace_folder_atomically, data, {"a": b""}, force=True)
        assert contents(tmp_path) == before


def test_output_that_is_an_input_is_refused(tmp_path) -> None:
    """``predict m.tkm b.csv -o b.csv`` overwrote the labelled rows, by whatever name."""
    (tmp_path / "b.csv").write_bytes(b"precious")
    (tmp_path / "link.csv").symlink_to("b.csv")
    for output in (tmp_path / "b.csv", tmp_path / "link.csv", tmp_path):
        refused(FileError, refuse_inputs, output, [tmp_path / "other.csv", tmp_path / "b.csv"])
    refuse_inputs(tmp_path / "c.csv", [tmp_path / "b.csv"])


@pytest.mark.parametrize("state", ["missing", "empty", "export"])
def test_a_kill_at_any_renaming_loses_nothing(tmp_path, state) -> None:
    """The old files or the new ones stand under their names or in a .tmp; the next run writes."""
    target, model = tmp_path / "out", tmp_path / "model.tkm"
    old = {"old": b"1", **MARK} if state == "export" else {}
    new = {"a": b"1", "b/c": b"2", **MARK}
    for n_renamings in range(5):
        shutil.rmtree(target, ignore_errors=True)
        if state != "missing":
            target.mkdir(mode=0o750)
            replace_folder_atomically(target, old)
        model.write_bytes(b"old")
        process = os.fork()
        if process == 0:
            _die_at_renaming(n_renamings)
            replace_folder_atomically(target, new, force=True)
            write_bytes_atomically(model, b"new")
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        places = [target, *tmp_path.glob(".tinykernel-*.tmp/*")]
        held = [contents(place) for place in places if place.exists()]
        assert not old or old in held or new in held
        assert model.read_bytes() in (b"old", b"new")
        for leftover in tmp_path.glob(".tinykernel-*"):
            assert leftover.suffix == ".tmp"
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    assert status == 0
    assert contents(tmp_path) == {"model.tkm": b"new"} | {f"out/{n}": d for n, d in new.items()}
    assert state == "missing" or stat.S_IMODE(target.stat().st_mode) == 0o750


def _die_at_renaming(n_renamings: int) -> None:
    """End this process by SIGKILL after so many renamings."""
    left, real = [n_renamings], os.replace

    def replace(source: Path, destination: Path) -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        real(source, destination)

    os.replace = replace


def test_a_user_without_a_home_can_export(tmp_path, monkeypatch) -> None:
    """A number without an entry among the users is common in containers; it gave tracebacks."""
    monkeypatch.setattr(
        Path, "home", Mock(side_effect=RuntimeError("Could not determine home directory."))
    )
    monkeypatch.delenv("PLATFORMIO_CORE_DIR", raising=False)
    for _ in range(2):
        replace_folder_atomically(tmp_path / "out", {"a.c": b"", **MARK}, force=True)
    assert program._which("no-such-gcc") is None
