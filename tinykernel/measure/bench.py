"""How many instructions an inference takes, counted one by one in an emulator."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from tinykernel.build.boards import trace_program
from tinykernel.build.emulators import ENTRIES, build_model, find_emulation, write_input
from tinykernel.build.machines import machines_for
from tinykernel.build.toolchains import find_toolchain
from tinykernel.codegen.projects import generated_inputs
from tinykernel.codegen.sources import render_sources
from tinykernel.codegen.targets import Target, find_target
from tinykernel.errors import TinykernelError
from tinykernel.measure.footprint import write_files
from tinykernel.measure.stages import STAGES, function_ranges, stage_map
from tinykernel.model import IntegerModel, as_integer_model

__all__ = ["BenchResult", "bench", "parse_clock"]

_NAME = "tested"
_HARNESS = ("tk_measured", "run_row", "stack_used", "fill_scratch", "main")
_UNITS = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}


def parse_clock(text: str | float) -> float:
    """Read a clock frequency such as ``"80MHz"``.

    Parameters
    ----------
    text : str or float
        A number of hertz, or text with a unit: Hz, kHz, MHz or GHz.

    Returns
    -------
    float
        Hertz.

    Raises
    ------
    TinykernelError
        If it is no frequency, or text without a unit.

    Examples
    --------
    >>> parse_clock("80MHz")
    80000000.0
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(text), re.IGNORECASE)
    unit = match.group(2).lower() if match else ""
    if not isinstance(text, str):
        unit = "hz"
    if not match or unit not in _UNITS or float(match.group(1)) <= 0:
        raise TinykernelError(
            f"{text!r} is not a clock frequency; write one with its unit, as in 80MHz"
        )
    return float(match.group(1)) * _UNITS[unit]


@dataclass(frozen=True)
class BenchResult:
    """Cost of one inference from raw inputs.

    Parameters
    ----------
    target : str
    instructions : int
        Executed by one call of the predict function, the most of all rows that were run.
    stages : dict of str to int
        The same by stage: scale, transform, windows, scores, other.
    components : int
        Stored features of the model, for figures a feature.
    compiler, emulator, core : str
        How they were counted.
    exact : bool
        True when every executed instruction was counted. Unicorn leaves some out of conditional
        (IT) blocks.
    cycles_per_instruction : tuple of (float, float)
        What is assumed for times; not measured.
    clock : float or None
        Hertz.
    note : str
        Empty, or how the core that was emulated differs from the target.
    """

    target: str
    instructions: int
    stages: dict[str, int]
    components: int
    compiler: str
    emulator: str
    core: str
    exact: bool
    cycles_per_instruction: tuple[float, float]
    clock: float | None = None
    note: str = ""

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Time of one inference, from and to; None without a clock."""
        if self.clock is None:
            return None
        low, high = self.cycles_per_instruction
        return self.instructions * low / self.clock, self.instructions * high / self.clock

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON types."""
        return {
            "target": self.target,
            "instructions": self.instructions,
            "stages": dict(self.stages),
            "components": self.components,
            "instructions_per_component": round(self.instructions / self.components, 2),
            "compiler": self.compiler,
            "emulator": self.emulator,
            "core": self.core,
            "exact": self.exact,
            "cycles_per_instruction": list(self.cycles_per_instruction),
            "clock": self.clock,
            "seconds": None if self.seconds is None else list(self.seconds),
            "note": self.note,
        }


def bench(
    model: object,
    target: str | Target = "cortex-m4",
    *,
    clock: str | float | None = None,
    X: ArrayLike | None = None,
    back_end: str = "auto",
    flags: Sequence[str] = ("-Os",),
) -> BenchResult:
    """Count the instructions of one inference.

    The count does not depend on how busy this computer is. For the target ``"host"`` it is the
    one of callgrind.

    Parameters
    ----------
    model : IntegerModel, KernelMachine or fitted classifier
    target : str or Target, default="cortex-m4"
    clock : str or float, optional
        Frequency for a time, e.g. ``"80MHz"``.
    X : array-like, shape (n_rows, n_features), optional
        Raw inputs, at most the first three are run; by default three generated rows.
    back_end : {"auto", "qemu", "unicorn"}, default="auto"
    flags : sequence of str, default=("-Os",)
        Optimisation and macros for the compiler.

    Returns
    -------
    BenchResult

    Raises
    ------
    TinykernelError
        If a compiler or an emulator is missing, or a program fails.
    """
    row = find_target(target)
    hertz = None if clock is None else parse_clock(clock)
    integer_model = as_integer_model(model)
    rows = generated_inputs(integer_model, 5)[2:] if X is None else integer_model.scaler.as_raw(X)
    if row.family == "host":
        return _bench_host(integer_model, rows[:3], hertz, flags)
    for machine in machines_for(row):
        found = find_emulation(row, machine, back_end)
        if found is None:
            continue
        with tempfile.TemporaryDirectory(prefix="tinykernel-") as name:
            folder = Path(name)
            try:
                program = build_model(integer_model, found, folder, flags)
            except TinykernelError as error:
                if "overflow" in str(error) and machine is not machines_for(row)[-1]:
                    continue
                raise
            counts = []
            for index in range(min(3, len(rows))):
                write_input(integer_model, rows[index : index + 1], "raw", folder / "in.bin")
                trace = trace_program(machine, program, folder, back_end=found.back_end)
                counts.append(_count(trace, program))
        worst = max(counts, key=lambda count: sum(count.values()))
        return BenchResult(
            target=row.name,
            instructions=sum(worst.values()),
            stages=worst,
            components=integer_model.n_components,
            compiler=found.chain.title,
            emulator=found.emulator,
            core=machine.core,
            exact=found.back_end == "qemu" or row.family != "arm",
            cycles_per_instruction=row.cycles,
            clock=hertz,
            note=row.emulated_as,
        )
    raise TinykernelError(
        f"no compiler and emulator for {row.name} found; install its gcc and qemu"
        + (", or 'pip install ziglang unicorn'" if row.zig else "")
    )


def _count(trace: Sequence[int], program: Path) -> dict[str, int]:
    """Count the instructions of the first inference in a trace, by stage."""
    functions = function_ranges(program)
    stages = stage_map(program)
    begin = functions[f"{_NAME}_predict"].start
    outside = [functions[name] for name in _HARNESS if name in functions]
    counts: Counter[str] = Counter()
    stage = "other"
    inside = False
    for address in trace:
        if not inside:
            inside = address == begin
            if not inside:
                continue
        elif any(address in function for function in outside):
            break
        stage = stages.get(address, stage)
        counts[stage] += 1
    if not counts:
        raise TinykernelError("the emulator's trace shows no inference")
    return {stage: counts[stage] for stage in STAGES}


_HOST_PROGRAM = """\
#include "{name}.h"
#include <stdio.h>
static {name}_input_t input[{macro}_FEATURES];
static uint32_t scratch[{macro}_SCRATCH_WORDS];
int main(void)
{{
    int label = -1;
    FILE *file = fopen("in.bin", "rb");
    uint32_t entry;
    if (file == NULL || fread(&entry, sizeof entry, 1, file) != 1) {{
        return 2;
    }}
    if (fread(input, sizeof input, 1, file) == 1) {{
        label = {name}_predict(input, scratch);
    }}
    fclose(file);
    return label < 0 ? 2 : 0;
}}
"""


def _bench_host(
    model: IntegerModel, rows: Any, clock: float | None, flags: Sequence[str]
) -> BenchResult:
    """Count the instructions of this computer's processor with callgrind."""
    valgrind = shutil.which("valgrind")
    chain = find_toolchain("host")
    if valgrind is None or chain is None:
        raise TinykernelError("target host: install valgrind and gcc to count instructions")
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as name:
        folder = Path(name)
        include = write_files(folder, render_sources(model, _NAME))
        source = folder / "main.c"
        source.write_text(_HOST_PROGRAM.format(name=_NAME, macro=_NAME.upper()), encoding="utf-8")
        objects = []
        for file in (source, folder / "src" / f"{_NAME}.c"):
            objects.append(folder / f"{file.stem}.o")
            chain.compile(file, objects[-1], include=include, flags=[*flags, "-std=c99"])
        chain.link(objects, folder / "program")
        counts = []
        for index in range(len(rows)):
            write_input(model, rows[index : index + 1], ENTRIES[0], folder / "in.bin")
            finished = subprocess.run(
                [valgrind, "--tool=callgrind", f"--toggle-collect={_NAME}_predict",
                 "--callgrind-out-file=/dev/null", "./program"],
                cwd=folder, capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            match = re.search(r"Collected : (\d+)", finished.stderr)
            if finished.returncode != 0 or match is None:
                raise TinykernelError("target host: callgrind failed to count the instructions")
            counts.append(int(match.group(1)))
    version = subprocess.run([valgrind, "--version"], capture_output=True, text=True).stdout
    return BenchResult(
        target="host",
        instructions=max(counts),
        stages={},
        components=model.n_components,
        compiler=chain.title,
        emulator=version.strip().replace("valgrind-", "callgrind of valgrind "),
        core="this computer's",
        exact=True,
        cycles_per_instruction=(0.25, 1.0),
        clock=clock,
    )
