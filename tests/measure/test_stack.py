"""The stack bound: equal to GCC's own figures, and refused where there is none."""

from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.firmware import compiling
from tests.measure.test_report import COMPILER
from tests.refusals import refused
from tinykernel.base.errors import ToolError
from tinykernel.compile.targets import find_target
from tinykernel.run.decoders import VARIABLE_STACK, MachineState, decode
from tinykernel.run.footprint import Function, read_functions, size_script, worst_case_stack
from tinykernel.run.program import find_toolchain

PROGRAM = compiling.program("frames")


def linked(program: str, target: str, folder: Path, kind: str | None = None) -> dict[str, Function]:
    """Compile and link a program and read its functions."""
    chain = find_toolchain(target, kind)
    source = folder / "program.c"
    source.write_text(program)
    flags = ["-Os", "-std=c99"] + (["-fstack-usage"] if chain.kind == "gcc" else [])
    chain.compile(source, folder / "program.o", flags=flags)
    script = size_script(find_target(target))
    chain.link([folder / "program.o"], folder / "program.elf", script=script)
    with (folder / "program.elf").open("rb") as stream:
        return read_functions(ELFFile(stream), find_target(target).family)


def test_a_call_that_the_linker_made_shorter_moves_no_stack() -> None:
    """The linker of the LX106 fills what a shorter call leaves with mov a1, a1."""
    code = (0x201110).to_bytes(3, "little")
    machine = MachineState(lambda at, size: code[at : at + size])
    assert decode("xtensa", machine, 0).problem == ""
    code = (0x201220).to_bytes(3, "little")  # mov a1, a2
    assert decode("xtensa", machine, 0).problem == VARIABLE_STACK


@pytest.mark.parametrize("target", [target for target in COMPILER if target != "cortex-m4f"])
def test_frames_equal_those_of_gcc(target, tmp_path, require_tool) -> None:
    """Every frame read from machine code is the one that -fstack-usage states."""
    require_tool(COMPILER[target])
    functions = linked(PROGRAM, target, tmp_path, "gcc")
    stated = {}
    for line in (tmp_path / "program.su").read_text().splitlines():
        place, size, kind = line.split("\t")
        assert kind == "static"
        stated[place.split(":")[-1]] = int(size)
    assert len(stated) == 6
    assert {name: functions[name].frame for name in stated} == stated
    bound = worst_case_stack(functions, ["root"])
    assert bound.chain[:3] == ("root", "larger", "loop")
    assert bound.bytes >= sum(stated[name] for name in ("root", "larger", "loop", "leaf"))


def test_a_last_routine_without_a_size(tmp_path, require_tool) -> None:
    """GCC's conversion to int states no size, and nothing follows it: it has code all the same."""
    require_tool(COMPILER["esp8266"])
    program = "volatile float f; int main(void) { return (int)f; }\n"
    functions = linked(program, "esp8266", tmp_path, "gcc")
    assert max(functions.values(), key=lambda found: found.start).name == "__fixsfsi"
    assert worst_case_stack(functions, ["main"]).chain == ("main", "__fixsfsi")


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "esp32c3"])
def test_zig_code_is_read_as_well(target, tmp_path, require_tool) -> None:
    """With zig there is no -fstack-usage: the frame must hold the arrays at least."""
    require_tool("ziglang")
    functions = linked(PROGRAM, target, tmp_path, "zig")
    bound = worst_case_stack(functions, ["main"])
    assert 12000 < bound.bytes < 12400
    assert "larger" in bound.chain


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("int f(int n) { return n < 2 ? n : f(n - 1) * sink + f(n - 2); }", "recursive"),
        ("int (*volatile p)(int); int f(int n) { return p(n) + 1; }", "through a pointer"),
        (
            "void g(char *); void g(char *x) { sink = x[0]; }\n"
            "int f(int n) { volatile char b[n]; b[0] = 1; return b[n - 1] + sink; }",
            "variable size",
        ),
    ],
)
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "esp32c3", "esp8266", "atmega328p"])
def test_unbounded_stack_is_refused(target, body, message, tmp_path, require_toolchain) -> None:
    """No figure is better than a wrong one."""
    require_toolchain(target)
    program = f"volatile int sink;\n{body}\nint main(void) {{ return f(sink); }}\n"
    refused(ToolError, worst_case_stack, linked(program, target, tmp_path), ["main"])
