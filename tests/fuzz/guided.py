"""libFuzzer on the C of random models: other kernels, other entries, saved states of a device.

Needs a Clang that has libFuzzer; without it the batch does nothing.
"""

import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tests.fuzz.batch import Batch, no_limit
from tests.fuzz.field import states
from tests.fuzz.kernels import SANITIZERS, VARIANTS, any_model
from tests.processes import captured
from tests.random_models import random_raw
from tinykernel.compile.sources import render_sources
from tinykernel.model.integer import IntegerModel
from tinykernel.run.program import write_sources

_HARNESS = Path(__file__).with_name("guided.c")
_FLAGS = ["-std=c99", "-O1", "-g", *SANITIZERS["clang"]]
_RUNS = 5000


@functools.cache
def has_libfuzzer() -> bool:
    """Say whether a program for libFuzzer can be built."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "empty.c")
        source.write_text(
            "int LLVMFuzzerTestOneInput(const char *d, unsigned long n);\n"
            "int LLVMFuzzerTestOneInput(const char *d, unsigned long n)\n"
            "{ (void)d; (void)n; return 0; }\n"
        )
        return (
            shutil.which("clang") is not None
            and _clang(["-fsanitize=fuzzer", source, "-o", f"{folder}/empty"]).returncode == 0
        )


def _clang(arguments: list[object]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["clang", *map(str, arguments)], capture_output=True, text=True)


def build(model: IntegerModel, variant: tuple[str, ...], folder: Path) -> Path:
    """Build the model with its own kernels, with those of the variant, and what compares them."""
    include = []
    for name in ("fast", "plain"):
        include += write_sources(folder / name, render_sources(model, name))
    names = ["-DQUANTIZED_ENTRIES=1"] if model.takes_quantized else []
    if model.hop:
        names.append("-DSTREAM_ENTRIES=1")
    flags = [*_FLAGS, *names, *(f"-I{path}" for path in include)]
    plain = ["-c", folder / "plain/src/plain.c", "-o", folder / "plain.o"]
    done = _clang([*flags, *variant, "-fsanitize=fuzzer-no-link", *plain])
    if done.returncode == 0:
        sources = [_HARNESS, folder / "fast/src/fast.c", folder / "plain.o"]
        done = _clang([*flags, "-fsanitize=fuzzer", *sources, "-o", folder / "program"])
    if done.returncode:
        raise RuntimeError(done.stderr)
    return folder / "program"


def run(batch: Batch, size: int) -> None:
    """Give the C of `size` models to libFuzzer."""
    if not has_libfuzzer():
        return
    no_limit()
    for index in range(size):
        rng = np.random.default_rng((batch.seed, index))
        model = any_model(rng)
        while model.n_numbers:  # its functions take more than an input
            model = any_model(rng)
        variant = VARIANTS[rng.integers(1, len(VARIANTS))]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            program = build(model, variant, folder)
            (folder / "corpus").mkdir()
            seeds = [b"\4" + row.tobytes() for row in random_raw(model, index, 5)]
            seeds += [b"\2" + seeds[0], *states(model)]
            for i, data in enumerate(seeds):
                (folder / "corpus" / str(i)).write_bytes(data)
            command = [str(program), f"-runs={_RUNS}", f"-seed={batch.seed + 1}", "-timeout=20"]
            command += [f"-max_len={max(map(len, seeds)) + 64}"]
            command += [f"-artifact_prefix={folder}/crash-", str(folder / "corpus")]
            done = captured(command, cwd=folder, errors="replace")
            found = re.search(r"Done (\d+) runs", done.stderr)
            batch.counts["guided inputs"] += int(found[1]) if found else 0
            if done.returncode:
                crashes = sorted(folder.glob("crash-*"))
                kind = "differences" if "deadly signal" in done.stderr else "sanitizer reports"
                batch.find(
                    kind,
                    f"model {index}, {' '.join(variant)}: {done.stderr[-1500:]}",
                    crashes[0].read_bytes() if crashes else None,
                    ".bin",
                )


__all__ = ["build", "has_libfuzzer", "run"]
