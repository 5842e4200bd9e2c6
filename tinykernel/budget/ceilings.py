"""Limits beside flash: how many components or kernels keep to RAM, stack and time."""

from __future__ import annotations

from collections.abc import Callable

from tinykernel.codegen.targets import find_target
from tinykernel.measure.capacity import decisive_report
from tinykernel.measure.instructions import estimate_instructions, instruction_margin
from tinykernel.measure.limits import Limits
from tinykernel.measure.report import Report
from tinykernel.model import IntegerModel

_MOST_TRIES = 24


def share_used(
    model: IntegerModel, limits: Limits, target: str, sizes: Report | None = None
) -> tuple[float, str]:
    """Return the used share of the tightest limit, and a text that describes it.

    Instructions are estimated, and a margin added; `sizes` are those that decide unless given.
    """
    if not limits.beside_flash:
        return 0.0, ""
    sizes, row = sizes or decisive_report(model, target), find_target(target)
    used: list[tuple[float, str]] = []
    memory = (("RAM", sizes.ram, limits.ram), ("stack", sizes.stack, limits.stack))
    for name, needed, limit in memory:
        if limit is not None:
            used.append((needed / limit, f"{needed} bytes of {name} of {limit}"))
    most = limits.most_instructions(row.cycles[1])
    if most is not None:
        needed = round(estimate_instructions(model, row) * (1 + instruction_margin(row)))
        used.append((needed / most, f"about {needed} instructions of {most}, margin included"))
    return max(used)


def within(
    make: Callable[[int], IntegerModel], most: int, step: int, limits: Limits, target: str
) -> tuple[int | None, str]:
    """Return the largest number, in steps, whose untrained model keeps to the limits, if any does.

    And what the last model that was tried takes.
    """
    n, needed = most, ""
    for _ in range(_MOST_TRIES):
        share, needed = share_used(make(n), limits, target)
        if share <= 1:
            return n, needed
        # A part of the work does not depend on n, so this is never too little.
        n = min(int(n / share) // step * step, n - step) if n > step else 0
        if n <= 0:
            break
    return None, needed
