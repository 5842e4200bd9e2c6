"""A converted model within a budget: coarser leaves or weights, then fewer trees."""

from collections.abc import Callable
from functools import partial

from tinykernel.base import progress
from tinykernel.base.errors import BudgetError
from tinykernel.base.text import count
from tinykernel.model.integer import IntegerModel
from tinykernel.run.limits import Limits, parse_limits
from tinykernel.run.report import Report, report

_STAGE = "making the model smaller"

#: Converts with the bits of leaves or weights, 0 for all, and the first trees, None for all.
Reader = Callable[[int, int | None], IntegerModel]


def within(
    read: Reader,
    n_trees: int,
    budget: str | int | Limits,
    target: str,
    cost: Callable[[IntegerModel], tuple[float, str]],
) -> IntegerModel:
    """Return the model of least `cost` (share that changes, in words) that keeps to the limits.

    All trees with leaves of 16 and 8 bits are tried first, then as many of the first trees as fit,
    with leaves of 8 and 4 bits. Raises TinykernelError if one tree is too large.
    """
    tried, limits = 0, parse_limits(budget)

    def measured(bits: int, trees: int | None) -> tuple[IntegerModel, Report]:
        nonlocal tried
        model, tried = read(bits, trees), tried + 1
        result = report(model, target, limits)
        size = f"{result.flash} B, {cost(model)[1]}" if result.fits else f"{result.flash} B"
        progress.report(_STAGE, tried, None, f"{_in_words(bits, trees, n_trees)}: {size}")
        return model, result

    for bits in (0, 16, 8, *((4, 2) if not n_trees else ())):
        model, result = measured(bits, None)
        if result.fits:
            return model
    fewer = [_most_trees(partial(measured, bits), n_trees) for bits in (8, 4) if n_trees]
    fitting = [model for model in fewer if model is not None]
    if not fitting:
        raise BudgetError(
            f"convert: {'; '.join(result.problems)} at the least; give a larger budget"
        )
    return min(fitting, key=lambda model: cost(model)[0])


def _most_trees(
    measured: Callable[[int | None], tuple[IntegerModel, Report]], n_trees: int
) -> IntegerModel | None:
    """Return the model of the most trees that fit, by bisection; None if one does not."""
    best, low, high = None, 0, n_trees
    while high - low > 1:
        middle = (low + high) // 2
        model, result = measured(middle)
        if result.fits:
            best, low = model, middle
        else:
            high = middle
    return best


def _in_words(bits: int, trees: int | None, n_trees: int) -> str:
    kind = "leaves" if n_trees else "weights"
    text = f"{kind} of {bits} bits" if bits else f"{kind} as they are"
    return text if trees is None else f"{count(trees, 'tree')} of {n_trees} an output, {text}"
