"""max_error of ``train``: keep rows aside, and calibrate the trained model on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.cli.calibrate import about_calibration

if TYPE_CHECKING:
    from tinykernel.budget import TrainResult
    from tinykernel.data.partition import Dataset, Rows
    from tinykernel.measure.limits import Limits

# What decisions add to flash on any core, at most, with a margin for all classes.
_DECISION_BYTES = 256


def default_budget() -> Limits:
    """Return the budget of a training that names neither budget nor size."""
    from tinykernel.budget import DEFAULT_BUDGET
    from tinykernel.measure.limits import parse_limits

    return parse_limits(DEFAULT_BUDGET)


def less_decisions(budget: Limits) -> Limits:
    """Return what a budget leaves for the model before it decides."""
    if budget.flash is None:
        return budget
    return replace(budget, flash=max(1, budget.flash - _DECISION_BYTES))


def rows_aside(
    dataset: Dataset, max_error: float, seed: int, *, size: float, by_group: bool
) -> tuple[Dataset, Rows]:
    """Hold rows out, and refuse before the training what they could never promise."""
    from tinykernel.data.splits import keep_for_calibration
    from tinykernel.decisions.shares import rows_needed
    from tinykernel.errors import TinykernelError

    rest, aside = keep_for_calibration(dataset, size, seed, by_group=by_group)
    needed = rows_needed(max_error, 0.05)
    if needed is None or len(aside.X) <= needed:
        raise TinykernelError(
            f"{dataset.source}: {len(aside.X)} held-out rows cannot promise an error of at most "
            f"{100 * max_error:.4g} %: more than {needed} are needed; give more rows, or a larger "
            "error"
        )
    return rest, aside


def decided(
    trained: TrainResult, aside: Rows, options: Mapping[str, Any], output: Path
) -> tuple[TrainResult, dict[str, Any]]:
    """Calibrate a trained model; also what its file is to remember."""
    from tinykernel.decisions import calibrate
    from tinykernel.measure.report import report

    budget: Limits | None = options["budget"]
    assert aside.y is not None
    try:
        result = calibrate(
            trained.model, aside.X, aside.y, max_error=options["max_error"], groups=aside.group
        )
    except BaseException:
        typer.echo(f"{output} holds the trained model, which always answers", err=True)
        raise
    if hasattr(trained.classifier, "calibrate"):
        trained.classifier.decision_ = result.model.decision
    sizes = None if trained.memory is None else report(result.model, options["target"], budget)
    flash = trained.budget if budget is None else budget.flash
    limits = budget or trained.limits
    trained = replace(trained, model=result.model, memory=sizes, budget=flash, limits=limits)
    return trained, about_calibration(aside, result)
