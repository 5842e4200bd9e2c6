"""Budgets of the command line: the same model whatever compiler is installed, and it fits."""

import pytest

from tests.cli.tools import failed, json_of, succeeded
from tinykernel.run import program

QUICK = ("--set", "epochs=2", "--set", "model=components", "--effort", "quick", "--quiet")


def test_the_model_does_not_depend_on_the_compiler(work, tmp_path, monkeypatch, require_tool):
    """The same bytes with GCC, zig or none; each compiler keeps to the budget."""
    require_tool("arm-none-eabi-gcc")
    require_tool("ziglang")
    models = set()
    for hidden in ("", "gcc", "gcc and zig"):
        file = tmp_path / f"m {hidden}.tkm"
        with monkeypatch.context() as patched:
            if hidden:
                patched.setenv("PATH", str(tmp_path))
                patched.setenv("PLATFORMIO_CORE_DIR", str(tmp_path))
            if "zig" in hidden:
                patched.setattr(program, "zig_command", lambda: None)
            program._find_all.cache_clear()
            found = json_of("train", work / "data.npz", "-o", file, "--budget", "5KB", *QUICK)
        program._find_all.cache_clear()
        models.add(file.read_bytes())
        assert found["flash_source"] == ("estimate" if "zig" in hidden else "linked")
        assert 0.6 * 5120 < found["flash"] <= 5120
    assert len(models) == 1
    for compiler in ("gcc", "zig", "none"):
        succeeded("report", file, "--compiler", compiler, "-q")


def test_a_tiny_budget_is_refused_before_the_reading(work, tmp_path, monkeypatch):
    """No data are read, no size of pictures is chosen, for a budget below the code of any model."""
    monkeypatch.setattr("tinykernel.face.dataset.training_data", None)
    train = ("train", work / "data.npz", "-o", tmp_path / "m.tkm", "--budget", "100B")
    failed(*train)


@pytest.mark.slow
def test_training_keeps_to_every_limit(work, tmp_path):
    """Fewer components where time is short; the file remembers it, and report says what is over."""
    file, train = tmp_path / "m.tkm", ("train", work / "data.npz")
    sizes = []
    for budget in ("flash=5KB", "flash=5KB,instructions=6k", "flash=5KB,time=250us@80MHz,ram=2KB"):
        found = json_of(*train, "-o", file, "--budget", budget, *QUICK)
        assert found["report"]["fits"], found["report"]["problems"]
        sizes.append(found["components"])
    assert sizes[0] > sizes[2] > sizes[1] > 0
    limits = json_of("report", file)["limits"]
    assert limits.startswith("flash=5120B,")
    assert "time=" in limits
    failed("report", file, "--budget", "flash=5KB,time=10us@80MHz", "-q")
    failed(*train, "-o", file, "--budget", "flash=5KB,ram=64B", *QUICK)
    failed(*train, "-o", file, "--budget", "time=2ms", status=2)
