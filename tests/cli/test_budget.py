"""Budgets of the command line: the same model whatever compiler is installed, and it fits."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from tests.cli.tools import run
from tinykernel.build import toolchains

QUICK = ("--set", "epochs=2", "--effort", "quick", "--quiet")


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
            done = run(
                "train",
                work / "data.npz",
                "-o",
                file,
                "--budget",
                "5KB",
                "-t",
                target,
                "--json",
                *QUICK,
            )
        assert done.exit_code == 0, done.output
        files[makes] = file.read_bytes()
        found = json.loads(done.stdout)
        assert found["flash_source"] == ("estimate" if len(makes) == 2 else "linked")
        assert 0.6 * 5120 < found["flash"] <= 5120
    assert len(set(files.values())) == 1
    for compiler in ("gcc", "zig", "none"):
        assert run("report", file, "--compiler", compiler, "-q").exit_code == 0


def test_training_keeps_to_every_limit(work, tmp_path):
    """Fewer components where time is short; the file remembers it, and report says what is over."""
    file, sizes = tmp_path / "m.tkm", []
    for budget in ("flash=5KB", "flash=5KB,time=250us@80MHz,ram=2KB", "flash=5KB,instructions=6k"):
        done = run("train", work / "data.npz", "-o", file, "--budget", budget, "--json", *QUICK)
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert found["report"]["fits"], found["report"]["problems"]
        sizes.append(found["components"])
    assert sizes[0] > sizes[1] > 0
    assert sizes[2] < sizes[1]
    again = run("report", file, "--json")
    assert json.loads(again.stdout)["limits"] == "flash=5120B,instructions=6000"
    over = run("report", file, "--budget", "flash=5KB,time=10us@80MHz")
    assert over.exit_code == 1
    assert "time is" in over.stderr
    assert "of the budget" in over.stderr
    none = run("train", work / "data.npz", "-o", file, "--budget", "flash=5KB,ram=64B", *QUICK)
    assert none.exit_code != 0
    assert "bytes of RAM of 64" in none.stderr
    wrong = run("train", work / "data.npz", "-o", file, "--budget", "time=2ms")
    assert "write the clock" in wrong.output
