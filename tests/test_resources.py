"""Folders beside the package, its version, and what scripts of others import."""

import importlib.util

import pytest

import tinykernel
from tinykernel import resources


@pytest.mark.parametrize("name", ["templates", "firmware"])
def test_checkout_folders_are_found(checkout, name) -> None:
    """In a checkout the folders beside the package are used, not stale copies."""
    assert resources.folder(name) == checkout / name


def test_installed_package_uses_its_own_folders(tmp_path, monkeypatch) -> None:
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


def test_version_is_that_of_pyproject(checkout) -> None:
    """The version is written in one place, and a checkout reports that place."""
    lines = (checkout / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    assert f'version = "{tinykernel.__version__}"' in lines


def test_public_names_exist() -> None:
    """Every public name can be imported, is listed by dir(), and is nothing but public."""
    for name in tinykernel.__all__:
        assert getattr(tinykernel, name) is not None
    assert set(tinykernel.__all__) <= set(dir(tinykernel))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tinykernel.nothing


def test_no_public_name_is_a_module() -> None:
    """Importing a module of the name of a public function would hide the function."""
    for name in tinykernel.__all__:
        assert importlib.util.find_spec(f"tinykernel.{name}") is None
