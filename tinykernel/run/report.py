"""Whether a model fits a target: flash, RAM and worst-case stack, linked or estimated."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tinykernel.base.errors import OptionError, TargetError, ToolError
from tinykernel.base.progress import report as say
from tinykernel.base.text import as_json, count, size
from tinykernel.compile.plan import pack
from tinykernel.compile.targets import TARGETS, Target, find_target
from tinykernel.model.pipelines import as_integer_model
from tinykernel.run.estimate import estimate_footprint, estimate_instructions
from tinykernel.run.footprint import measure_footprint
from tinykernel.run.limits import Limits, parse_limits
from tinykernel.run.program import find_toolchain


@dataclass(frozen=True)
class Report:
    """Memory of a model on a target."""

    target: str
    source: str  # {"linked", "estimate"}: whether a program was linked
    flash: int  # bytes that the model adds to an empty program: the sum of the flash parts
    flash_parts: dict[str, int]  # weights, kernels, transform, windows, scaler, code, library
    static: int  # parts of RAM: static data,
    scratch: int  # the scratch buffer,
    stack: int  # and the worst-case stack
    chip_flash: int  # memory of a typical small chip of this kind
    chip_ram: int
    budget: int | None = None  # limit of flash
    compiler: str = ""  # name and version; empty for an estimate
    # Chain of calls with the deepest stack; empty for an estimate.
    chain: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())  # limitations of the figures
    limits: Limits | None = None  # the whole budget
    # Of one inference, estimated; None where the budget has no such limit.
    instructions: int | None = None
    cycles: float = 1.0  # most cycles per instruction, for the time
    # Bytes of RAM of a stream: ``state``, ``scratch`` for a decision, and ``ram``, their sum with
    # static data and stack. None for models without a stream.
    stream: dict[str, int] | None = None

    @property
    def ram(self) -> int:
        """Static data, scratch and stack together."""
        return self.static + self.scratch + self.stack

    @property
    def over_budget(self) -> tuple[str, ...]:
        """Limits of the budget that are exceeded, and by how much."""
        asked, seconds = self.limits or Limits(flash=self.budget), self.seconds
        limits = ("flash", self.flash, asked.flash), ("RAM", self.ram, asked.ram)
        exceeded = _excess((*limits, ("stack", self.stack, asked.stack)), "of the budget")
        count, most, limit = self.instructions, asked.instructions, asked.time
        if count is not None and most is not None and count > most:
            exceeded.append(
                f"instructions are {count} (estimate), {count - most} more than the {most} of the "
                "budget"
            )
        if seconds is not None and limit is not None and seconds > limit:
            exceeded.append(
                f"time is {1e3 * seconds:.3g} ms (estimate), {1e3 * (seconds - limit):.3g} ms more "
                f"than the {1e3 * limit:g} ms of the budget"
            )
        return tuple(exceeded)

    @property
    def problems(self) -> tuple[str, ...]:
        """What does not fit, and by how much."""
        chip = ("flash", self.flash, self.chip_flash), ("RAM", self.ram, self.chip_ram)
        return (*self.over_budget, *_excess(chip, "of the chip"))

    @property
    def seconds(self) -> float | None:
        """Time of one inference at the clock of the budget, at most; None without a clock."""
        if self.limits is None or self.limits.clock is None or self.instructions is None:
            return None
        return self.instructions * self.cycles / self.limits.clock

    @property
    def fits(self) -> bool:
        """Whether the limits of the budget, and flash and RAM of the chip, are met."""
        return not self.problems

    @property
    def parts(self) -> dict[str, dict[str, int]]:
        """All parts of flash and RAM."""
        ram = {"static": self.static, "scratch": self.scratch, "stack": self.stack}
        return {"flash": dict(self.flash_parts), "ram": ram}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        names = (
            *("target", "source", "compiler", "flash", "ram", "stack", "parts", "budget", "limits"),
            *("instructions", "seconds", "fits", "problems", "chip", "deepest_calls", "notes"),
            "stream",
        )
        instead = {
            "compiler": self.compiler or None,
            "limits": None if self.limits is None else str(self.limits),
            "chip": {"flash": self.chip_flash, "ram": self.chip_ram},
            "deepest_calls": self.chain,
        }
        return as_json(self, names, instead)

    @property
    def chip(self) -> str:
        """The device whose memory is the limit."""
        row = TARGETS.get(self.target)
        return self.target if row is None else row.chip or row.description.partition(",")[0]

    @property
    def verdict(self) -> str:
        """Describe in a sentence whether the model fits."""
        where = f"the {self.chip} (target {self.target})"
        if not self.fits:
            return f"It does not fit {where}: {'; '.join(self.problems)}."
        text = f"It fits {where}: {size(self.flash)} of {size(self.chip_flash)} flash, "
        text += f"{size(self.ram)} of {size(self.chip_ram)} RAM"
        if self.limits is not None and self.limits.beside_flash:
            text += f"; it is within {self.limits}"
        elif self.budget is not None:
            left = size(self.budget - self.flash)
            text += f"; {left} of the budget of {size(self.budget)} flash are left"
        return text + "."


def report(
    model: object,
    target: str | Target = "cortex-m4",
    budget: str | int | Limits | None = None,
    *,
    compiler: str = "auto",
) -> Report:
    """Report the memory of a model on a target and whether it fits.

    Parameters
    ----------
    model : IntegerModel or fitted classifier
    target : str or Target, default="cortex-m4"
        A microcontroller.
    budget : str, int or Limits, optional
        Flash that the model may add to the program, e.g. ``"30KB"``, or several limits such as
        ``"flash=30KB,ram=8KB,stack=512B,time=2ms@80MHz"``.
    compiler : {"auto", "none", "gcc", "zig"}, default="auto"
        ``"auto"`` links with the preferred compiler and estimates without any; ``"none"`` always
        estimates; a name uses that compiler.

    Returns
    -------
    Report

    Raises
    ------
    TinykernelError
        If the target or the budget is unknown, the compiler is missing, or the stack has no bound.
    """
    row = find_target(target)
    limits = None if budget is None else parse_limits(budget)
    if compiler not in ("auto", "none", "gcc", "zig"):
        raise OptionError(f"compiler: {compiler!r}; choose from auto, none, gcc, zig")
    if row.family == "host":
        raise TargetError(
            f"target {row.name} has no memory report; choose a microcontroller, e.g. cortex-m4"
        )
    integer_model = as_integer_model(model)
    kind = compiler if compiler in ("gcc", "zig") else None
    chain = None if compiler == "none" else find_toolchain(row, kind)
    if kind is not None and chain is None:
        raise ToolError(f"no {kind} for {row.name} is installed; use --compiler none")
    if chain is None:
        footprint = estimate_footprint(integer_model, row)
    else:
        say("linking", 0, None, row.name)
        footprint = measure_footprint(integer_model, row, chain)
    asked = limits is not None and limits.most_instructions(1.0) is not None
    instructions = estimate_instructions(integer_model, row) if asked else None
    stream = None
    if integer_model.hop:  # as the generated header states it
        packed = pack(integer_model)
        state, scratch = 4 * packed.state_words, 4 * packed.stream_words
        ram = footprint.static + state + scratch + footprint.stack
        stream = {"state": state, "scratch": scratch, "ram": ram}
    same = ("flash", "static", "scratch", "stack", "compiler", "chain", "notes")
    return Report(
        target=row.name,
        source="linked" if footprint.compiler else "estimate",
        flash_parts=footprint.parts,
        chip_flash=row.flash,
        chip_ram=row.ram,
        budget=None if limits is None else limits.flash,
        limits=limits,
        instructions=instructions,
        cycles=row.cycles[1],
        stream=stream,
        **{name: getattr(footprint, name) for name in same},
    )


def _excess(limits: Iterable[tuple[str, int, int | None]], whose: str) -> list[str]:
    """Say which limits are exceeded, and by how much."""
    return [
        f"{name} is {needed} bytes, {count(needed - limit, 'byte')} more than the {limit} {whose}"
        for name, needed, limit in limits
        if limit is not None and needed > limit
    ]
