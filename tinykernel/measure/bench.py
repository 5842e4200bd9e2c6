"""How many instructions an inference takes, counted one by one in an emulator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from tinykernel.build.harness import write_rows
from tinykernel.build.program import MODEL, Program, build_closest, find_platforms
from tinykernel.codegen.projects import generated_inputs
from tinykernel.codegen.targets import Target, find_target
from tinykernel.errors import TinykernelError
from tinykernel.files import temporary_folder
from tinykernel.measure.stages import STAGES, function_ranges, stage_map
from tinykernel.model import as_integer_model

__all__ = ["BenchResult", "bench", "parse_clock"]

_HARNESS = ("tk_measured", "run_row", "stack_used", "fill_scratch", "main")
_UNITS = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}


def parse_clock(text: str | float) -> float:
    """Read a clock frequency, a number of hertz or text with its unit; return hertz.

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
        Components of the model, for figures a component.
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
            "instructions_per_component": (
                round(self.instructions / self.components, 2) if self.components else None
            ),
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

    They are counted one by one in an emulator: the figure does not depend on how busy this computer
    is, and a second run gives the same.

    Parameters
    ----------
    model : IntegerModel, KernelMachine or fitted classifier
    target : str or Target, default="cortex-m4"
        A microcontroller.
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
        If the target is the host, a compiler or an emulator is missing, or a program fails.
    """
    row = find_target(target)
    hertz = None if clock is None else parse_clock(clock)
    if row.family == "host":
        raise TinykernelError(
            "target host: instructions are counted for microcontrollers; choose one, e.g. cortex-m4"
        )
    integer_model = as_integer_model(model)
    rows = generated_inputs(integer_model, 5)[2:] if X is None else integer_model.as_raw(X)
    with temporary_folder() as folder:
        platforms = find_platforms(row, back_end)
        program = build_closest(integer_model, platforms, Path(folder), flags)
        counts = []
        for index in range(min(3, len(rows))):
            write_rows(program, integer_model, {"raw": rows[index : index + 1]})
            counts.append(_count(program))
    worst = max(counts, key=lambda count: sum(count.values()))
    platform = program.platform
    return BenchResult(
        target=row.name,
        instructions=sum(worst.values()),
        stages=worst,
        components=integer_model.n_components,
        compiler=platform.chain.title,
        emulator=platform.emulator,
        core=platform.core,
        exact=platform.back_end == "qemu" or row.family != "arm",
        cycles_per_instruction=row.cycles,
        clock=hertz,
        note=platform.note,
    )


def _count(program: Program) -> dict[str, int]:
    """Run a program and count the instructions of its first inference, by stage."""
    functions = function_ranges(program.path)
    stages = stage_map(program.path)
    begin = functions[f"{MODEL}_predict"].start
    outside = [functions[name] for name in _HARNESS if name in functions]
    counts: Counter[str] = Counter()
    stage = "other"
    inside = False
    for address in program.trace():
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
    return {stage: counts[stage] for stage in STAGES if counts[stage] or stage != "local"}
