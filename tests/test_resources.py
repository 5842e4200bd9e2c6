"""Folders beside the package, its version, and what an import costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tinykernel
from tinykernel import resources


def run_python(code: str, folder: Path) -> str:
    """Run `code` in a fresh interpreter that finds this checkout, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["templates", "firmware"])
def test_checkout_folders_are_found(checkout: Path, name: str) -> None:
    """In a checkout the folders beside the package are used, not stale copies."""
    assert resources.folder(name) == checkout / name


def test_installed_package_uses_its_own_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package never takes a folder of the same name from another distribution."""
    package = tmp_path / "tinykernel"
    (tmp_path / "templates").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n', encoding="utf-8")
    package.mkdir()
    monkeypatch.setattr(resources, "_PACKAGE", package)
    with pytest.raises(FileNotFoundError, match="install the package again"):
        resources.folder("templates")
    (package / "templates").mkdir()
    assert resources.folder("templates") == package / "templates"
    assert resources.checkout() is None


def test_version_is_that_of_pyproject(checkout: Path) -> None:
    """The version is written in one place, and a checkout reports that place."""
    lines = (checkout / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    assert f'version = "{tinykernel.__version__}"' in lines


def test_import_is_cheap(checkout: Path) -> None:
    """``import tinykernel`` does not load the heavy libraries, so that --help is quick."""
    code = (
        "import sys, tinykernel; tinykernel.__version__; tinykernel.TinykernelError; "
        "print([name for name in ('numpy', 'sklearn', 'numba', 'scipy') if name in sys.modules])"
    )
    assert run_python(code, checkout) == "[]\n"
