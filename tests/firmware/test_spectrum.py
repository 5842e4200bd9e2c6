"""The stage *spectrum* in C against Python, on the host."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.spectra import hard_frames, random_spectrum
from tinykernel import resources
from tinykernel.model.grid import Grid
from tinykernel.model.stages.spectrum import Spectrum

# Frames come in rotated, as a ring buffer holds them, with a second channel beside.
_PROGRAM = """
#include <stdio.h>
#include <stdint.h>
typedef {sample} tk_sample_t;
#include "tk_spectrum.h"
static const uint16_t cosines[] = {{{cosines}}};
static const uint16_t edges[] = {{{edges}}};
static const struct tk_spectrum spectrum = {{{length}u, 1u, 1u, {bands}u, {left}u, {right}u,
                                            {amplitude}u, {log_bits}u, {floor}, cosines, edges}};
int main(void)
{{
    static tk_sample_t ring[2 * {length}];
    static int32_t words[TK_SPECTRUM_WORDS({length})];
    static uint8_t levels[{bands}];
    uint32_t start, step;
    while (fread(&start, 4, 1, stdin) == 1) {{
        (void)!fread(ring, sizeof ring, 1, stdin);
        for (step = 0; step < TK_SPECTRUM_STEPS({length}); step++) {{
            tk_spectrum_step(&spectrum, ring + 1, start, 2u, words, levels, step);
        }}
        fwrite(levels, 1, sizeof levels, stdout);
    }}
    return 0;
}}
"""


def program(stage: Spectrum, given: Grid) -> str:
    """Write the program of a stage."""
    shift = stage.shift(given)
    return _PROGRAM.format(
        sample=f"{given.dtype}_t",
        cosines=", ".join(map(str, stage.cosines())),
        edges=", ".join(map(str, stage.edges)),
        length=stage.length,
        bands=stage.n_bands,
        left=max(shift, 0),
        right=max(-shift, 0),
        amplitude=stage.amplitude_bits,
        log_bits=stage.log_bits,
        floor=stage.floor,
    )


@pytest.mark.parametrize("products", ["", "-DTK_LONG_PRODUCT=0"])
@pytest.mark.parametrize(
    ("seed", "dtype"), [(1, "int16"), (2, "int8"), (3, "uint8"), (4, "int32"), (5, "int16")]
)
def test_levels_equal_those_of_python(
    seed: int, dtype: str, products: str, require_tool: Callable[[str], str], tmp_path: Path
) -> None:
    """Silence, full scale, impulses and noise, from a ring at any place; nothing is undefined."""
    stage = random_spectrum(seed)
    samples = hard_frames(stage, dtype, seed)[:, -stage.length :]
    given = Grid.raw(dtype, stage.length, 1)
    (tmp_path / "a.c").write_text(program(stage, given))
    include = resources.folder("firmware") / "tinykernel" / "src"
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow"]
    flags += ["-Werror", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
    flags += [products] if products else []
    command = [require_tool("gcc"), *flags, f"-I{include}", "a.c", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    sent, rng = b"", np.random.default_rng(seed)
    for frame in samples:
        start = int(rng.integers(stage.length))
        ring = np.stack([rng.permutation(frame), np.roll(frame, start)], axis=1)
        sent += np.uint32(start).tobytes() + ring.tobytes()
    got = subprocess.run(["./a"], cwd=tmp_path, check=True, input=sent, capture_output=True).stdout
    levels = np.frombuffer(got, np.uint8).reshape(len(samples), -1)
    np.testing.assert_array_equal(levels, stage.run(samples, given))
