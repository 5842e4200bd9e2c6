"""Packages that the tests of a whole file need."""

import importlib
import os
from typing import Any

import pytest


def import_tool(name: str) -> Any:
    """Return a module; without it tests are skipped, or fail where tools are required."""
    if os.environ.get("TINYKERNEL_REQUIRE_TOOLS") == "1":
        return importlib.import_module(name)
    return pytest.importorskip(name)
