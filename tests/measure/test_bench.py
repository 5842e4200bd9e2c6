"""Instruction counts: exact, repeatable, and attributed to the right stage."""

import pytest

from tests.convolutions import dense_model
from tests.firmware.local_models import SIGNALS
from tests.random_fronts import local_model, offset_model, random_signal_stage
from tests.random_models import random_model
from tests.refusals import refused
from tests.spectra import spectral_model
from tinykernel.base.errors import TargetError
from tinykernel.compile.targets import find_target
from tinykernel.run import bench as bench_module
from tinykernel.run.bench import bench, function_ranges
from tinykernel.run.emulated import MACHINES
from tinykernel.run.estimate import estimate_instructions, work_of
from tinykernel.run.limits import parse_clock
from tinykernel.run.program import build, find_platform

LOOPS = {
    "mps2-an385": (
        "cortex-m3",
        "arm-none-eabi-gcc",
        "qemu-system-arm",
        "movw r0, #1000\\n1: subs r0, #1\\n bne 1b\\n bx lr",
    ),
    "virt-rv32": (
        "esp32c3",
        "riscv64-unknown-elf-gcc",
        "qemu-system-riscv32",
        "li a0, 1000\\n1: addi a0, a0, -1\\n bnez a0, 1b\\n ret",
    ),
    "atmega328p": (
        "atmega328p",
        "avr-gcc",
        "simavr",
        "ldi r24, 200\\n1: .rept 8\\n nop\\n .endr\\n dec r24\\n brne 1b\\n ret",
    ),
    "sim-lx106": (
        "esp8266",
        "xtensa-lx106-elf-gcc",
        "qemu-system-xtensa",
        "movi a2, 1000\\n1: addi a2, a2, -1\\n bnez a2, 1b\\n ret",
    ),
}


@pytest.mark.parametrize("machine", list(LOOPS))
def test_a_loop_of_known_length(machine, tmp_path, require_tool) -> None:
    """One instruction, a thousand times two, one return: 2002, not one more or less."""
    target, gcc, qemu, body = LOOPS[machine]
    require_tool(gcc)
    require_tool(qemu)
    source = tmp_path / "loop.c"
    thumb = ".thumb_func\\n" if "an385" in machine else ""
    source.write_text(
        f'__asm__(".text\\n.balign 4\\n.globl counted\\n{thumb}.type counted, %function\\n'
        f'counted: {body}\\n.size counted, . - counted\\n");\n'
        "void counted(void);\nint main(void) { counted(); return 0; }\n".replace(
            "%function", "%function" if "sim" not in machine else "@function"
        )
    )
    platform = find_platform(find_target(target), MACHINES[machine], qemu.partition("-")[0])
    program = build(platform, [source], tmp_path)
    inside = function_ranges(program.path)["counted"]
    assert sum(address in inside for block in program.trace() for address in block) == 2002


@pytest.fixture
def exact(require_tool) -> None:
    """Ask for exact counts: those of Unicorn take four times as long."""
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require_tool(tool)


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "esp32c3", "esp8266"])
def test_every_instruction_has_its_stage(target, require_platforms) -> None:
    """The stages add up to the whole, each has its share, and a clock gives a time."""
    qemu = require_platforms(target)[0].back_end == "qemu"
    model = random_model(1, n_features=64, n_blocks=8, n_classes=10)
    found = bench(model, target, clock="80MHz")
    assert found.instructions == sum(found.stages.values())
    assert all(found.stages[stage] > 0 for stage in ("scale", "transform", "windows", "scores"))
    assert found.stages["other"] < 0.05 * found.instructions
    assert not {"spectrum", "offset"} & set(found.stages)  # columns of other models
    assert found.exact == (qemu or target == "esp32c3")
    low, high = found.seconds
    assert 0 < low < high < 0.01
    assert 5 < found.to_dict()["instructions_per_component"] < 120


def test_work_goes_where_it_belongs(exact) -> None:
    """Twice the classes cost the scores and nothing else."""
    few, many = (
        bench(random_model(1, n_features=64, n_blocks=8, n_classes=n), "cortex-m3") for n in (8, 16)
    )
    assert many.stages["scores"] > 1.7 * few.stages["scores"]
    assert many.stages["transform"] == pytest.approx(few.stages["transform"], rel=0.02)
    assert many.stages["windows"] == pytest.approx(few.stages["windows"], rel=0.05)


def test_each_hidden_layer_is_work() -> None:
    """The products of two layers of a kind are those of both."""
    pieces = work_of(dense_model(1, (12, 8), n=16))["local"]
    assert pieces["convolutions, products of 8 bits"] == 12 * 16 + 8 * 12
    assert pieces["convolutions, units"] == 20


@pytest.mark.slow
def test_unicorn_counts_about_the_same(require_tool) -> None:
    """Without QEMU the count is near, and marked as not exact where it may not be."""
    for tool in ("ziglang", "unicorn", "arm-none-eabi-gcc", "qemu-system-arm"):
        require_tool(tool)
    model = random_model(1, n_features=64, n_blocks=4, n_classes=4)
    near, exact = bench(model, "cortex-m3", back_end="unicorn"), bench(model, "cortex-m3")
    assert not near.exact
    assert near.instructions == pytest.approx(exact.instructions, rel=0.25)


def test_host_is_refused() -> None:
    """What an inference costs this computer says nothing about a chip."""
    refused(TargetError, bench, random_model(1), "host")


@pytest.mark.parametrize(
    ("text", "hertz"), [("80MHz", 8e7), ("1.5 ghz", 1.5e9), ("32768Hz", 32768.0), (8e6, 8e6)]
)
def test_clock(text, hertz) -> None:
    """Frequencies as people write them."""
    assert parse_clock(text) == hertz


@pytest.mark.slow
def test_a_stream_is_counted_call_by_call(exact) -> None:
    """The mean and the worst sample and the decision, which the window call has all together."""
    stage = random_signal_stage(1)
    result = bench(local_model(stage, 1), "cortex-m4")
    found = result.to_dict()["stream"]
    assert found["push_mean"] < found["push_worst"] < 3 * found["push_mean"]
    # A window call skips what reaches back before the window, and a stream does not.
    together = stage.input.rows * found["push_mean"] + found["decision"]
    assert 0.5 * together < result.instructions < together
    more = bench(local_model(random_signal_stage(1, n_kernels=60), 1), "cortex-m4").stream
    assert more.push_worst > found["push_worst"]
    assert more.decision > found["decision"]
    assert bench(local_model(random_signal_stage(1, hop=0), 1), "cortex-m4").stream is None
    # Sums, background and threshold of three classes: at most 100 instructions a class, less here.
    assert more.event == 0 < bench(SIGNALS["events"](), "cortex-m4").stream.event < 3 * 50


def test_the_first_call_of_a_decision_is_measured(require_platforms) -> None:
    """A window less its means is counted by the first call, not by the second."""
    require_platforms("cortex-m4")
    result = bench(offset_model(1), "cortex-m4")
    assert result.stream.decision > 0.8 * result.instructions


def test_a_stream_of_sound_tells_its_share_of_the_processor(exact, monkeypatch) -> None:
    """A spectrum has a stage of its own, no sample takes its work at once, and cycles count all.

    A model of words took 822 s: of a large window one call is run, which takes as many.
    """
    found = bench(spectral_model(1), "cortex-m4", clock="10MHz", rate=8000)
    assert found.stages["spectrum"] > found.stages["scores"] > 0
    estimated = estimate_instructions(spectral_model(1), "cortex-m4")
    assert estimated == pytest.approx(found.instructions, rel=0.3)
    mean, worst = found.stream.mean, found.stream.push_worst
    assert worst > found.stream.push_mean > found.stages["spectrum"] / 500
    assert worst < (found.stages["spectrum"] + found.stages["local"]) / 20 / 2  # of 20 frames
    assert found.load[0] == pytest.approx(8000 * mean * found.cycles_per_instruction[0] / 10e6)
    monkeypatch.setattr(bench_module, "_LARGE", 100)
    once = bench(spectral_model(1), "cortex-m4", clock="10MHz")
    assert (found.rows, once.rows, once.load) == (3, 1, None)
    assert found.fewest <= once.instructions <= found.instructions
    assert once.stream == found.stream
