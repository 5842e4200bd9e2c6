"""Whether a model fits a target: flash, RAM and worst-case stack, linked or estimated.

How much fits into a budget is found before the long training. The size hardly depends on what was
learned, so an untrained model is measured: by the estimate, with a margin, so that models do not
depend on the installed compiler.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import BudgetError, OptionError, TargetError, TinykernelError, ToolError
from tinykernel.base.progress import report as say
from tinykernel.base.text import as_json, count, size
from tinykernel.compile.plan import pack
from tinykernel.compile.targets import TARGETS, Target, find_target
from tinykernel.learn.inputs import Layout
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.proof import choose_schedules
from tinykernel.pieces.ternary.spec import Ternary
from tinykernel.run import estimate
from tinykernel.run.footprint import measure_footprint
from tinykernel.run.limits import DEFAULT_BUDGET, Limits, parse_limits
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
    def least_ram(self) -> int:
        """The RAM of whole windows, or of a stream where that is less."""
        return self.ram if self.stream is None else min(self.ram, self.stream["ram"])

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
        """What does not fit, and by how much; a signal may come sample by sample."""
        chip = ("flash", self.flash, self.chip_flash), ("RAM", self.least_ram, self.chip_ram)
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
        ram = self.ram if self.ram <= self.chip_ram else self.least_ram
        text += f"{size(ram)} of {size(self.chip_ram)} RAM" + " as a stream" * (ram < self.ram)
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
        footprint = estimate.estimate_footprint(integer_model, row)
    else:
        say("linking", 0, None, row.name)
        footprint = measure_footprint(integer_model, row, chain)
    asked = limits is not None and limits.most_instructions(1.0) is not None
    instructions = estimate.estimate_instructions(integer_model, row) if asked else None
    stream = None
    if integer_model.hop:  # as the generated header states it
        buffers = pack(integer_model).buffers()
        scratch = buffers.get("stream_scratch", buffers["scratch"])
        stream = {"state": buffers.get("state", 0), "scratch": scratch}
        stream["ram"] = footprint.static + sum(stream.values()) + footprint.stack
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


#: More components than this are not chosen, however large the budget: training time grows in
#: proportion and the accuracy hardly.
MOST_CHOSEN = 32768
#: Most kernels of signals. On sets of the UCR archive 768 are 0.2 points better than
#: 384. A stream has 4 KB of RAM with 512, and pays every kernel with every sample or spectrum.
MOST_KERNELS = {"signal": 1024, "stream": 512, "spectrum": 2048}
MOST_CHANNELS = 192
_ROWS_A_CLASS = 4
# Code differs from compiler to compiler: by up to an eighth of the estimate and some bytes more,
# with GCC and zig on some forty trained models of each of four targets.
_MARGIN_SHARE, _MARGIN_BYTES = 8, 24
# Which stages of the transforms halve depends on what was learned, and so does the code.
_SLACK = 64
#: Of a method that draws its components: signs as G, one scale, ternary weights, five in a byte.
DRAWN = Layout(diagonal_kind="sign", start_bits=8, width_bits=8, ternary=True)


def some_rows(
    X: NDArray[Any], codes: NDArray[np.int64], n_channels: int | None = None
) -> NDArray[np.int64]:
    """Choose rows of every class and the extremes of all inputs, or of channels in turn."""
    # Values have strata in place of classes, some of which may have no rows.
    codes = np.unique(codes, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    first = np.searchsorted(codes[order], np.arange(codes.max() + 1))
    last = np.append(first[1:], codes.size)
    few = [order[a : min(a + _ROWS_A_CLASS, b)] for a, b in zip(first, last, strict=True)]
    n_channels = n_channels or X.shape[1]
    values, each = X.reshape(-1, n_channels), X.shape[1] // n_channels
    extremes = values.argmin(axis=0) // each, values.argmax(axis=0) // each
    return np.unique(np.concatenate([*few, *extremes]))


def decisive_report(model: IntegerModel, target: str) -> Report:
    """Return the sizes that training uses for decisions: those of the table of code sizes."""
    # Where the table does not know the code of a model or a target, the program is linked.
    try:
        return report(model, target, compiler="none")
    except TinykernelError:
        return report(model, target)


def needed_bytes(sizes: Report) -> int:
    """Return the flash that a model may take with any compiler: its size, and the margin."""
    return _with_margin(sizes.flash, sizes.flash_parts["code"])


def _with_margin(flash: int, code: int) -> int:
    return flash + code // _MARGIN_SHARE + _MARGIN_BYTES


def refuse_less_than_code(flash: int | None, target: str) -> None:
    """Refuse a budget that is below the code of every model, before any training."""
    if flash is None:
        return
    code = estimate.least_code(target)
    least = _with_margin(code, code)
    if flash < least:
        raise BudgetError(
            f"no model fits into {count(flash, 'byte')} on {target}: code alone takes {least} or "
            "more; give a larger budget"
        )


def allowed_bytes(budget: int) -> int:
    """Return the bytes that an untrained model may take so that the trained one fits the budget."""
    return budget - min(_SLACK, budget // 32)


def cut(model: IntegerModel, n_components: int) -> IntegerModel:
    """Keep the first components of a model."""
    components, ternary = model.find(Components), model.find(Ternary)
    assert components is not None
    assert ternary is not None
    row_kept = components.row_kept.copy()
    row_kept.reshape(-1)[n_components:] = False
    rows, blocks = row_kept[components.row_kept], row_kept.any(axis=1)
    sign, mixing, kind = components.sign, components.permutation, components.diagonal_kind
    diagonal = components.diagonal[blocks]
    first, second = choose_schedules(sign, model.scaler.bits, mixing, diagonal, kind)
    fewer = replace(
        components,
        diagonal=diagonal,
        row_kept=row_kept[blocks],
        scale=components.scale[rows],
        start=components.start[rows],
        width=components.width[rows],
        halve_first=first,
        halve_second=second,
    )
    stages = tuple(fewer if stage is components else stage for stage in model.stages)
    parts = tuple(
        replace(part, weights=part.weights[:, rows]) if part is ternary else part
        for part in model.readout.parts
    )
    return replace(model, stages=stages, readout=replace(model.readout, parts=parts))


def limits_on(
    budget: str | int | Limits | None, target: str, *, is_sized: bool = False
) -> Limits | None:
    """Read a budget; without one return the default, or none for a given size or the host."""
    on_chip = find_target(target).family != "host"
    if budget is None:
        return None if is_sized or not on_chip else parse_limits(DEFAULT_BUDGET)
    if not on_chip:
        raise TargetError(f"budget: {target} has no flash to measure; choose a microcontroller")
    limits = parse_limits(budget)
    if limits.flash is None and not is_sized:
        limits = replace(limits, flash=parse_limits(DEFAULT_BUDGET).flash)
    refuse_less_than_code(limits.flash, target)
    if limits.most_instructions(1.0) is not None:
        estimate.check_counted(target)  # before the training
    return limits
