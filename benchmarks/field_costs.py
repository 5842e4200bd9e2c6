"""Bytes of Thumb code that the functions of NAME_field.h add to a program, for six classes.

python -m benchmarks.field_costs, at the top of the repository; needs arm-none-eabi-gcc.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.random_models import random_model
from tinykernel.build.program import write_sources
from tinykernel.codegen.sources import render_sources

HEAD = """#include "m_field.h"
extern m_counters_t c; extern m_offsets_t o; extern uint8_t b[]; extern uint32_t s[], margin;
extern m_input_t in[]; extern m_quantized_t q[];
int f(int l);
"""
COUNT = "if (l == 77) m_counters_reset(&c);"
FIT = "if (l) return m_adapted_predict(&o, in, s, &margin); return m_adapt(&o, in, l, s);"
KEEP = "if (l == 8) m_adapt_save(&o, b); if (l == 7) return m_adapt_restore(&o, b);"
CALLS = {
    "nothing": "",
    "counters": f"m_counters_update(&c, l, margin, 0u); {COUNT}",
    "counters, saturated values": f"m_counters_update(&c, l, margin, m_saturated(q)); {COUNT}",
    "adapt and predict": FIT,
    "the same, reset, save and restore": f"if (l == 9) m_adapt_reset(&o); {KEEP} {FIT}",
}


def main() -> None:
    """Print the table."""
    model = random_model(6, n_features=20, n_classes=6, n_blocks=1, raw_dtype="int16")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sources(folder, render_sources(model, "m"))
        for core in ("cortex-m0plus", "cortex-m4"):
            sizes = {calls: _size(folder, core, text) for calls, text in CALLS.items()}
            for calls, size in sizes.items():
                print(f"| {core} | {calls} | {size - sizes['nothing']} |")


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
