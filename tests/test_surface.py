"""What scripts of others import."""

from __future__ import annotations

import importlib.util

import pytest

import tinykernel


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
