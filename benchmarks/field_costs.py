"""Bytes of Thumb code and instructions of the functions of NAME_field.h, for six classes.

python -m benchmarks.field_costs, at the top of the repository; needs arm-none-eabi-gcc and
qemu-system-arm. Instructions are those of calls in an emulator, one by one, with -Os.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.random_models import random_model
from tinykernel import resources
from tinykernel.build.program import build, find_platforms, write_sources
from tinykernel.codegen.projects import generated_inputs
from tinykernel.codegen.sources import render_sources
from tinykernel.codegen.targets import find_target
from tinykernel.measure.bench import count_calls
from tinykernel.model import IntegerModel

HEAD = """#include "m_field.h"
extern m_counters_t c; extern uint32_t margin; extern m_quantized_t q[];
int f(int l);
"""
COUNT = "if (l == 77) m_counters_reset(&c);"
CALLS = {
    "nothing": "",
    "counters": f"m_counters_update(&c, l, margin, 0u); {COUNT}",
    "counters, saturated values": f"m_counters_update(&c, l, margin, m_saturated(q)); {COUNT}",
}


COUNTED = """#include "semihost.h"
#include "m_field.h"
static m_counters_t c;
static const m_input_t in[M_FEATURES] = {@INPUT@};
static m_quantized_t q[M_FEATURES];
static uint32_t margin;
static volatile int sink; /* or calls without effects vanish */
#define APART __attribute__((noinline))
APART int update(int l) { m_counters_update(&c, l, margin, 0u); return 0; }
APART int saturated(void) { return (int)m_saturated(q); }
int main(void)
{
    int l;
    m_counters_reset(&c);
    m_quantize(in, q);
    sink = saturated();
    for (l = 0; l < M_CLASSES; l++) {
        update(l);
    }
    update(-1);
    return 0;
}
"""
COUNTED_CALLS = ("update", "saturated")


def main() -> None:
    """Print the tables."""
    model = random_model(6, n_features=20, n_classes=6, n_blocks=1, raw_dtype="int16")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        include = write_sources(folder, render_sources(model, "m"))
        for core in ("cortex-m0plus", "cortex-m4"):
            sizes = {calls: _size(folder, core, text) for calls, text in CALLS.items()}
            for calls, size in sizes.items():
                print(f"| {core} | {calls} | {size - sizes['nothing']} bytes |")
            for words, counts in _instructions(model, folder, include, core).items():
                print(f"| {core} | {words} | {min(counts)} to {max(counts)} instructions |")


def _instructions(
    model: IntegerModel, folder: Path, include: list[Path], core: str
) -> dict[str, list[int]]:
    """Return the instructions of calls of the program above."""
    inputs = generated_inputs(model, 3)[2:]
    source, boards = folder / "counted.c", resources.folder("firmware") / "boards"
    source.write_text(COUNTED.replace("@INPUT@", ", ".join(map(str, inputs[0].tolist()))))
    platform = find_platforms(find_target(core), "qemu")[0]
    sources = [source, folder / "src" / "m.c"]
    program = build(platform, sources, folder, include=[*include, boards])
    calls = dict(
        zip(COUNTED_CALLS, count_calls(program, COUNTED_CALLS, ["main", "m_quantize"]), strict=True)
    )
    counts = {name: [call.total() for call in found] for name, found in calls.items()}
    return {"counters_update": counts["update"], "saturated, of 20 inputs": counts["saturated"]}


def _size(folder: Path, core: str, text: str) -> int:
    source, made = folder / "f.c", folder / "f.o"
    source.write_text(f"{HEAD}int f(int l) {{ {text} return l; }}\n")
    flags = [f"-mcpu={core}", "-mthumb", "-Os", "-std=c99", "-ffreestanding"]
    command = ["arm-none-eabi-gcc", *flags, f"-I{folder / 'include'}", "-c", source, "-o", made]
    subprocess.run(command, check=True)
    done = subprocess.run(["arm-none-eabi-size", made], capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[1].split()[0])


if __name__ == "__main__":
    main()
