"""Finding compilers: in the order of preference, and with errors that say what went wrong."""

import shutil

from tests.refusals import refused
from tinykernel.base.errors import ToolError
from tinykernel.compile.targets import TARGETS
from tinykernel.run.program import find_toolchain, find_toolchains


def test_gcc_comes_before_zig(require_tool) -> None:
    """The budget is defined by the compiler that firmware is built with, GCC."""
    require_tool("arm-none-eabi-gcc")
    require_tool("ziglang")
    kinds = [chain.kind for chain in find_toolchains("cortex-m4")]
    assert kinds == ["gcc", "zig"]
    assert find_toolchain("cortex-m4").name == "arm-none-eabi-gcc"


def test_no_compiler_of_a_related_core(require_tool) -> None:
    """A size measured with the compiler of a related core must not pass for the real one."""
    require_tool("xtensa-lx106-elf-gcc")
    assert find_toolchain("esp8266").name == "xtensa-lx106-elf-gcc"
    assert all("esp32" in chain.name for chain in find_toolchains("esp32"))


def test_without_compilers(monkeypatch, tmp_path) -> None:
    """A machine without cross compilers has zig at most, and for Xtensa nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(tmp_path))
    for name, target in TARGETS.items():
        assert {chain.kind for chain in find_toolchains(name)} <= {"zig"}
        assert target.zig or name == "host" or find_toolchain(name) is None


def test_platformio_toolchain_is_found(monkeypatch, tmp_path, require_tool) -> None:
    """Someone who has only PlatformIO has a compiler: in its packages folder."""
    real = require_tool("arm-none-eabi-gcc")
    folder = tmp_path / "packages" / "toolchain-gccarmnoneeabi" / "bin"
    folder.mkdir(parents=True)
    wrapper = folder / "arm-none-eabi-gcc"
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    wrapper.write_text(f'#!{shutil.which("sh", path="/bin:/usr/bin")}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    assert find_toolchain("cortex-m0", "gcc").command == (str(wrapper),)


def test_error_of_the_compiler_is_one_line(tmp_path, require_tool) -> None:
    """The user sees the first complaint of the compiler, not its whole output."""
    require_tool("gcc")
    source = tmp_path / "broken.c"
    source.write_text("int main(void) { return nothing; }\n")
    refused(ToolError, find_toolchain("host", "gcc").compile, source, tmp_path / "broken.o")
