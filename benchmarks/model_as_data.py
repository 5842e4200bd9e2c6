"""Compare the code of a model with literals and tables in it to that which loads models as data.

::

    python benchmarks/model_as_data.py

It needs arm-none-eabi-gcc and QEMU, and prints the table of docs/building.md.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.random_models import random_model
from tinykernel.build.program import write_sources
from tinykernel.build.toolchains import Toolchain, find_toolchain
from tinykernel.codegen.blobs.blob import blob_bytes, render_blob
from tinykernel.codegen.sources import render_sources
from tinykernel.measure.bench import bench
from tinykernel.model import IntegerModel

TARGETS = ("cortex-m0plus", "cortex-m4")
# A program with the model alone, and two that differ by a second model.
MAIN = """\
#include "m.h"
static m_scratch_t scratch;
static m_input_t input[M_FEATURES];
volatile int label;
#ifdef MODELS
#include "second_blob.h"
int main(void)
{
    const m_model_t *model = &m_builtin;
    label = m_predict_with(model, input, scratch);
#if MODELS == 2
    if (m_open(&model, second_blob, SECOND_BLOB_BYTES) == M_OPENED) {
        label = m_predict_with(model, input, scratch);
    }
#else
    (void)m_open(&model, (const void *)scratch, sizeof scratch);
#endif
    return 0;
}
#else
int main(void)
{
    label = m_predict(input, scratch);
    return 0;
}
#endif
"""


def models() -> dict[str, IntegerModel]:
    """Draw a model of each kind."""
    common = {"n_features": 64, "n_blocks": 16, "n_classes": 10, "one_scale": True}
    return {
        "compact": random_model(
            1,
            **common,
            raw_dtype="int16",
            diagonal_kind="int4",
            windows="half turns",
            zero_weights=False,
            permutation="orbit",
        ),
        "windows": random_model(1, **common, raw_dtype="float32", permutation="orbit"),
    }


def program_bytes(chain: Toolchain, model: IntegerModel, *options: str, as_data: bool) -> int:
    """Link a program, and return its code and constants."""
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as folder:
        path = Path(folder)
        files = render_sources(model, "m", as_data=as_data) | render_blob(model, "second")
        headers = write_sources(path, files)
        (path / "main.c").write_text(MAIN)
        command = [*chain.command, *chain.flags, "-Os", "-std=c99", *options, "-Wl,--gc-sections"]
        command += ["-ffunction-sections", "-fdata-sections", "-nostartfiles", "-Wl,-e,main"]
        command += [f"-I{header}" for header in headers]
        command += [str(path / p) for p in ("main.c", "src/m.c", "blob/second_blob.c")]
        subprocess.run([*command, "-o", str(path / "program")], check=True)
        size = chain.command[0].replace("gcc", "size")
        said = subprocess.run([size, str(path / "program")], check=True, capture_output=True)
        return int(said.stdout.splitlines()[1].split()[0])


def main() -> None:
    """Print the table."""
    print("| model | target | instructions | as data | flash | as data | second model |")
    print("|---|---|---|---|---|---|---|")
    for kind, model in models().items():
        for target in TARGETS:
            chain = find_toolchain(target, "gcc")
            if chain is None:
                raise SystemExit(f"no GCC for {target}; install it first")
            counts = [bench(model, target, as_data=flag).instructions for flag in (False, True)]
            sizes = [program_bytes(chain, model, as_data=flag) for flag in (False, True)]
            one, two = (program_bytes(chain, model, f"-DMODELS={n}", as_data=True) for n in (1, 2))
            second = two - one - len(blob_bytes(model))
            cells = (kind, target, *counts, *(f"{size} B" for size in sizes), f"{second} B")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
