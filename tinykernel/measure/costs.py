"""Time of one inference: instructions and a clock."""

from dataclasses import dataclass

from tinykernel.codegen.targets import find_target
from tinykernel.errors import TinykernelError
from tinykernel.measure.bench import StreamCost, bench
from tinykernel.measure.instructions import estimate_instructions
from tinykernel.measure.limits import parse_clock
from tinykernel.model import IntegerModel

_CLOCKS = "16MHz,48MHz,160MHz"  # by default


@dataclass(frozen=True)
class Cost:
    """Instructions of one inference on a target."""

    target: str
    instructions: int | None  # None where they could be neither counted nor estimated.
    stages: dict[str, int]  # empty unless an emulator counted them.
    cycles: tuple[float, float]  # assumed cycles per instruction, from and to.
    source: str  # how they were counted, or why they were not.
    stream: StreamCost | None = None  # of the calls of a stream, where they were counted.

    def seconds(self, clock: float) -> tuple[float, float] | None:
        """Return the time at a clock in hertz, from and to; None where nothing was counted."""
        if self.instructions is None:
            return None
        low, high = (cycles * self.instructions / clock for cycles in self.cycles)
        return low, high


def cost_on(model: IntegerModel, target: str, *, counted: bool = True) -> Cost:
    """Count the instructions of a model on a target, or estimate them, and say which and why."""
    row, why = find_target(target), "no compiler was to be used"
    if counted:
        try:
            result = bench(model, row)
        except TinykernelError as error:
            why = str(error)
        else:
            source = f"counted with {result.emulator}, {result.core}, code of {result.compiler}"
            source += f"; {result.note}" if result.note else ""
            stages = dict(result.stages)
            return Cost(row.name, result.instructions, stages, row.cycles, source, result.stream)
    try:
        instructions = estimate_instructions(model, row)
    except TinykernelError as error:
        return Cost(row.name, None, {}, row.cycles, f"not counted: {why}; not estimated: {error}")
    return Cost(row.name, instructions, {}, row.cycles, f"estimated, not counted: {why}")


def parse_clocks(text: str | float | None) -> tuple[float, ...]:
    """Read clocks separated by commas."""
    if isinstance(text, int | float):
        return (parse_clock(text),)
    return tuple(dict.fromkeys(parse_clock(part) for part in (text or _CLOCKS).split(",")))
