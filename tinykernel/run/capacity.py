"""How many components or kernels fit into a budget of flash, found before the long training.

The size hardly depends on what was learned, so an untrained model is measured: by the estimate,
with a margin, so that models do not depend on the installed compiler.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import BudgetError, TargetError, TinykernelError
from tinykernel.base.text import count
from tinykernel.compile.targets import find_target
from tinykernel.learn.inputs import Layout
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.proof import choose_schedules
from tinykernel.pieces.ternary.spec import Ternary
from tinykernel.run.estimate import check_counted, least_code
from tinykernel.run.limits import DEFAULT_BUDGET, Limits, parse_limits
from tinykernel.run.report import Report, report

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
    code = least_code(target)
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
        check_counted(target)  # before the training
    return limits
