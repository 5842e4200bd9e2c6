"""Forged models as data, with right CRCs, under sanitizers: refused, or wrong and nothing worse."""

from __future__ import annotations

import subprocess
import tempfile
import zlib
from pathlib import Path

import numpy as np

from tests.codegen.kinds import EVERY
from tests.fuzz.batch import Batch, no_limit
from tests.fuzz.kernels import SANITIZERS
from tests.random_models import random_raw
from tinykernel.build.program import Platform, build, write_sources
from tinykernel.build.toolchains import host_toolchain
from tinykernel.codegen.blobs.blob import blob_bytes
from tinykernel.codegen.blobs.interface import functions
from tinykernel.codegen.blobs.layout import pack_as_data, tables_of
from tinykernel.codegen.literals import table_rows
from tinykernel.codegen.sources import render_sources
from tinykernel.model import IntegerModel

_HEADER = 24
_FORGERIES = 200
_WORDS = (0, 1, 2, 3, 31, 32, 33, 63, 127, 128, 255, 256, 32767, 32768, 65535, 2**31 - 1, 2**31)
_ROWS = 3
_MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "m.h"
static const m_input_t inputs[{rows}][M_FEATURES] = {{
{inputs}
}};
static void use(const m_model_t *model, const m_input_t *input)
{{
    static m_scratch_t scratch;
    static int32_t results[{outputs}];
    uint32_t margin;
    int32_t novelty;
    (void)margin, (void)novelty;
{calls}
}}
int main(int count, char **arguments)
{{
    FILE *file = fopen(arguments[count - 1], "rb");
    unsigned char *bytes = malloc(M_MODEL_BYTES);
    unsigned opened = 0u;
    while (file != NULL && fread(bytes, 1, M_MODEL_BYTES, file) == M_MODEL_BYTES) {{
        const m_model_t *model = NULL;
        int row;
        if (m_open(&model, bytes, M_MODEL_BYTES) != M_OPENED) {{
            continue;
        }}
        opened++;
        for (row = 0; row < {rows}; row++) {{
            use(model, inputs[row]);
        }}
    }}
    printf("%u\\n", opened);
    free(bytes);
    return 0;
}}
"""
_GIVEN = {
    "input": "input",
    "scratch": "scratch",
    "scores": "results",
    "values": "results",
    "margin": "&margin",
    "novelty": "&novelty",
    "state": "&state",
    "output": "quantized",
}


def program(model: IntegerModel, folder: Path, flags: list[str], compiler: str) -> Path:
    """Build a program that opens each model of a file, and calls all functions of those opened."""
    calls, stream = [], model.hop > 0
    if model.input.is_table:
        calls.append("    m_quantized_t quantized[M_FEATURES];")
    if stream:
        calls += ["    m_state_t state;", "    int i;", "    m_init(&state);"]
        calls += ["    for (i = 0; i < M_WINDOW; i++) {"]
        calls += ["        (void)m_push_with(model, &state, input + i * M_CHANNELS);", "    }"]
    if model.input.is_table:
        calls.append("    m_quantize_with(model, input, quantized);")
    for function in functions(model, "m"):
        if not function.reads or function.name in ("push", "quantize"):
            continue
        given = [_GIVEN[name] for name in function.arguments]
        if function.name.endswith("_quantized"):
            given[0] = "quantized"
        calls.append(f"    (void)m_{function.name}_with(model, {', '.join(given)});")
    rows = random_raw(model, 1, _ROWS)
    rows = np.nan_to_num(rows, posinf=3e38, neginf=-3e38) if model.raw_dtype == "float32" else rows
    c_type = "float" if model.raw_dtype == "float32" else f"{model.raw_dtype}_t"
    text = _MAIN.format(
        rows=_ROWS,
        outputs=model.n_scores,
        inputs=",\n".join("{" + "".join(table_rows(row, c_type)) + "}" for row in rows),
        calls="\n".join(calls),
    )
    include = write_sources(folder, render_sources(model, "m", as_data=True))
    (folder / "main.c").write_text(text)
    sources = [folder / "main.c", folder / "src" / "m.c"]
    chain = host_toolchain([compiler])
    options = ["-std=c99", "-O0", "-g", "-DTK_FORCE_RADIX=8", *flags]
    return build(Platform(chain), sources, folder, include=include, flags=options).path


def forged(model: IntegerModel, rng: np.random.Generator) -> bytes:
    """Return the model as data with a few entries of one or two tables changed, and its CRC."""
    data = bytearray(blob_bytes(model))
    tables = tables_of(pack_as_data(model))
    starts = np.cumsum([_HEADER, *(table.n_bytes for table in tables)])
    for _ in range(int(rng.integers(1, 3))):
        number = int(rng.integers(len(tables)))
        table, width = tables[number], len(tables[number].data()) // tables[number].values.size
        for _ in range(int(rng.integers(1, 4))):
            at = int(starts[number]) + width * int(rng.integers(table.values.size))
            value = int(rng.choice(_WORDS)) if rng.random() < 0.7 else int(rng.integers(2**32))
            value = -value if rng.random() < 0.2 else value
            data[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
    crc = zlib.crc32(bytes(data[:20] + data[_HEADER:]))
    data[20:_HEADER] = crc.to_bytes(4, "little")
    return bytes(data)


def run(batch: Batch, size: int) -> None:
    """Forge `size` models, of kinds that take turns."""
    no_limit()
    kinds = list(EVERY)
    for index in range(max(1, size // _FORGERIES)):
        rng = np.random.default_rng((batch.seed, index))
        kind = kinds[(2 * batch.seed + index) % len(kinds)]
        compiler = str(rng.choice(list(SANITIZERS)))
        try_kind(batch, kind, compiler, [forged(EVERY[kind](), rng) for _ in range(_FORGERIES)])


def try_kind(batch: Batch, kind: str, compiler: str, blobs: list[bytes]) -> int:
    """Open models of a kind, and use those that are; return how many these are."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = program(EVERY[kind](), folder, SANITIZERS[compiler], compiler)
        file = folder / "blobs"
        file.write_bytes(b"".join(blobs))
        done = subprocess.run([path, file], capture_output=True, text=True, timeout=600)
        batch.counts["forged models"] += len(blobs)
        if done.returncode != 0:
            note = f"{kind}, {compiler}: {done.stderr[:1500]}"
            batch.find("sanitizer reports", note, b"".join(blobs), ".bin")
            return -1
        return int(done.stdout)
