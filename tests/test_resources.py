"""Folders beside the package, its version, and what scripts of others import."""

import subprocess
import sys

import pytest

import tinykernel
from tests.random_models import random_model
from tinykernel.base import files as resources
from tinykernel.model.file import save

# Modules and functions that Windows lacks; what others have loaded before is theirs.
_BLOCKED = """
import importlib, os, pkgutil, signal, socket, sys
import numba, sklearn.linear_model
for name in ("pty", "tty", "termios", "fcntl", "resource"):
    sys.modules[name] = None
for module, name in ((os, "fork"), (os, "killpg"), (signal, "SIGHUP"), (signal, "SIGKILL")):
    delattr(module, name)
import tinykernel
for module in pkgutil.walk_packages(tinykernel.__path__, "tinykernel."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from tinykernel.run.emulator import _at_port
echo = [sys.executable, "-uc", "while True: print(input()[::-1])"]
with _at_port(echo) as port:
    for _ in range(2):
        with socket.create_connection(port.removeprefix("socket://").split(":"), 20) as client:
            client.sendall(b"draob\\n")
            assert client.makefile().readline() == "board\\n"
from tinykernel.face import app
for command in sys.argv[1:]:
    assert app(command.split(), standalone_mode=False) == 0, command
"""


def test_commands_need_nothing_that_windows_lacks(tmp_path) -> None:
    """All modules can be imported, and commands run; a board is at a socket."""
    save(random_model(1, n_features=4, raw_dtype="int16"), tmp_path / "m.tkm")
    (tmp_path / "d.csv").write_text("a,b,c,d\n1,2,3,4\n", encoding="utf-8")
    commands = ["targets --json", "options", "inspect m.tkm", "predict m.tkm d.csv"]
    commands += ["export m.tkm --target cortex-m4 -o out", "report m.tkm --compiler none"]
    subprocess.run([sys.executable, "-c", _BLOCKED, *commands], cwd=tmp_path, check=True)


@pytest.mark.parametrize("name", ["templates", "firmware"])
def test_checkout_folders_are_found(checkout, name) -> None:
    """In a checkout the folders beside the package are used, not stale copies."""
    assert resources.source_folder(name) == checkout / name


def test_installed_package_uses_its_own_folders(tmp_path, monkeypatch) -> None:
    """An installed package never takes a folder of the same name from another distribution."""
    package = tmp_path / "tinykernel"
    (tmp_path / "templates").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n', encoding="utf-8")
    package.mkdir()
    monkeypatch.setattr(resources, "_PACKAGE", package)
    with pytest.raises(FileNotFoundError):
        resources.source_folder("templates")
    (package / "templates").mkdir()
    assert resources.source_folder("templates") == package / "templates"
    assert resources.checkout() is None


def test_version_is_that_of_pyproject(checkout) -> None:
    """The version is written in one place, and a checkout reports that place."""
    lines = (checkout / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    assert f'version = "{tinykernel.__version__}"' in lines


def test_public_names_exist() -> None:
    """Every public name can be imported, is listed by dir(), and is nothing but public."""
    for name in tinykernel.__all__:
        assert getattr(tinykernel, name) is not None
    assert set(tinykernel.__all__) <= set(dir(tinykernel))
    with pytest.raises(AttributeError):
        _ = tinykernel.nothing
