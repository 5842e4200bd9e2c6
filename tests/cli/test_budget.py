"""Budgets of the command line: the same model whatever compiler is installed, and it fits."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from tests.cli.tools import run
from tinykernel.build import toolchains

QUICK = ("--epochs", 2, "--effort", "quick", "--quiet")


@pytest.fixture
def hide(monkeypatch, tmp_path):
    """Return a function that hides compilers from now on."""

    @contextmanager
    def hidden(*makes):
        with monkeypatch.context() as patched:
            if "gcc" in makes:
                patched.setenv("PATH", str(tmp_path))
                patched.setenv("PLATFORMIO_CORE_DIR", str(tmp_path))
            if "zig" in makes:
                patched.setattr(toolchains, "_zig_command", lambda: None)
            toolchains._find_all.cache_clear()
            yield
        toolchains._find_all.cache_clear()

    return hidden


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4"])
def test_the_model_does_not_depend_on_the_compiler(work, tmp_path, hide, require_tool, target):
    """The same bytes with GCC and zig, one of them or none; each compiler keeps to the budget."""
    require_tool("arm-none-eabi-gcc")
    require_tool("ziglang")
    files = {}
    for makes in ((), ("gcc",), ("zig",), ("gcc", "zig")):
        file = tmp_path / f"m{''.join(makes)}.tkm"
        with hide(*makes):
            done = run("train", work / "data.npz", "-o", file, "--budget", "5KB", "-t", target,
                       "--json", *QUICK)  # fmt: skip
        assert done.exit_code == 0, done.output
        files[makes] = file.read_bytes()
        found = json.loads(done.stdout)
        assert found["flash_source"] == ("estimate" if len(makes) == 2 else "linked")
        assert 0.6 * 5120 < found["flash"] <= 5120
    assert len(set(files.values())) == 1
    for compiler in ("gcc", "zig", "none"):
        assert run("report", file, "--compiler", compiler, "-q").exit_code == 0
