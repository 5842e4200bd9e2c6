"""Make a model say how sure it is, and when it does not know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import (
    MODEL_SUFFIXES,
    DataArgument,
    JsonOption,
    ModelArgument,
    QuietOption,
    check_output_file,
    share_option,
)
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.evaluation import (
    near_in_words,
    print_cautions,
    print_notes,
    seen_in_words,
)
from tinykernel.cli.common.memory import Remembered, remembered
from tinykernel.cli.common.normality import calibrate_normal, check_normal
from tinykernel.cli.common.output import percent, print_json, print_pairs
from tinykernel.cli.common.rows import known_rows, rows_to_judge
from tinykernel.text import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.dataset import Rows
    from tinykernel.decisions import Calibration
    from tinykernel.model import IntegerModel


def calibrate_command(
    model: ModelArgument,
    data: DataArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="model to write: .tkm or .pkl")
    ],
    max_error: Annotated[
        float | None,
        typer.Option(
            "--max-error",
            parser=share_option,
            metavar="SHARE",
            help="the largest error among the answers that is promised, e.g. 1%",
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage", parser=share_option, metavar="SHARE", help="answer this share, e.g. 95%"
        ),
    ] = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(
            "--false-alarms",
            parser=share_option,
            metavar="SHARE",
            help="also find rows that look like no class, with at most this share of rows like "
            "these among them, e.g. 1%",
        ),
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(
            "--known",
            metavar="DATA",
            help="with --false-alarms: rows of the training, or others of known classes; rows that "
            "are far from all of them are novel, too; takes the training part of a file",
        ),
    ] = None,
    per_class: Annotated[
        bool,
        typer.Option(
            "--per-class",
            metavar="",
            help="give each class a least margin and the promise",
        ),
    ] = False,
    confidence: Annotated[
        Any,
        typer.Option(
            "--confidence",
            parser=share_option,
            metavar="SHARE",
            help="how sure the promise is",
            show_default="95%",
        ),
    ] = 0.95,
    same_groups: Annotated[
        bool,
        typer.Option(
            "--same-groups",
            metavar="",
            help="promise for new rows of the same groups only, not for new groups",
        ),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = None,
) -> None:
    """Fit confidence, and a margin below which the model does not answer, to rows of DATA.

    The rows must not be those of the training. Prints the promise for new rows. If the rows do not
    support it, writes no model and ends with status 1. Takes the test part of DATA, or the rows
    kept aside if the model was trained on DATA, or all rows.
    """
    from tinykernel.decisions import calibrate
    from tinykernel.errors import TinykernelError
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load, save

    check_output_file(output, MODEL_SUFFIXES, inputs=[model])
    integer, memory = as_integer_model(load(model)), remembered(model)
    if integer.is_regressor:
        raise TinykernelError(f"{model}: predicts values; thresholds are for classifiers")
    with showing_progress(quiet):
        judged = rows_to_judge(model, integer, data, needs_labels=not integer.is_one_class)
    rows, near = judged.rows, near_in_words(memory.share_near(judged.rows.X))
    # What training kept aside has its near copies from the data, and not from its user.
    forged = near if judged.train is None else ""
    if integer.is_one_class:
        check_normal(
            {"max-error": max_error, "coverage": coverage, "per-class": per_class, "known": known}
        )
        _refuse_seen(memory, rows, forged)
        calibrate_normal(
            integer,
            rows,
            output,
            false_alarms,
            confidence,
            memory.everything,
            same_groups=same_groups,
            as_json=as_json,
            quiet=quiet,
        )
        return
    if known is not None and false_alarms is None:
        raise typer.BadParameter("goes with --false-alarms", param_hint="--known")
    _refuse_seen(memory, rows, forged)
    assert rows.y is not None
    found = calibrate(
        integer,
        rows.X,
        rows.y,
        max_error=max_error,
        coverage=coverage,
        per_class=per_class,
        confidence=confidence,
        groups=None if same_groups else rows.group,
        false_alarms=false_alarms,
        known=None if known is None else _known_rows(model, integer, known, rows),
    )
    save(found.model, output, memory.everything | about_calibration(rows, found))
    remarks = [*found.remarks, *([near] if near else []), *_over_budget(memory, found.model)]
    if as_json:
        print_json(
            {"model": output, "data": rows.source, "part": rows.part}
            | found.to_dict()
            | {"remarks": remarks, "notes": list(rows.notes)}
        )
    elif not quiet:
        print_pairs(
            [
                ("data", f"{rows.part} of {rows.source}"),
                *calibration_in_words(found),
                ("file", str(output)),
            ]
        )
        print_notes(rows)
        print_cautions(remarks)


def _refuse_seen(memory: Remembered, rows: Rows, forged: str) -> None:
    """Refuse rows that were trained on, of which a model is surer than of others."""
    from tinykernel.errors import TinykernelError

    words = seen_in_words(memory.share_seen(rows.X)) or forged
    if words:
        raise TinykernelError(
            f"{rows.source}: {words}; what they promise would not hold for new ones. Give others"
        )


def _over_budget(memory: Remembered, model: IntegerModel) -> list[str]:
    """Say in at most one line by how much the model with its decision exceeds its budget."""
    from tinykernel.codegen.targets import find_target
    from tinykernel.errors import TinykernelError
    from tinykernel.measure.capacity import decisive_report
    from tinykernel.measure.limits import parse_limits

    budget = None if memory.target is None else memory.budget_for(memory.target)
    if memory.target is None or budget is None or find_target(memory.target).family == "host":
        return []
    try:
        sizes, limits = decisive_report(model, memory.target), parse_limits(budget)
    except TinykernelError as error:  # the calibration is done, and counts
        return [f"whether it keeps to its budget of {budget} is not known: {error}"]
    problems = replace(sizes, budget=limits.flash, limits=limits).problems
    how = "estimate" if sizes.source == "estimate" else "linked program"
    words = f"with its decision ({how}, {memory.target}) "
    return [words + "; ".join(problems)] if problems else []


def _known_rows(
    model: Path, integer: IntegerModel, data: str, others: Rows
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Load what training learned from DATA, without rows of the calibration: they are nearer."""
    from tinykernel.data.trained_rows import record_of, seen_before
    from tinykernel.errors import TinykernelError

    found = known_rows(model, integer, data)
    share = seen_before(
        found.X_train.reshape(len(found.X_train), -1),
        record_of(others.X.reshape(len(others.X), -1)),
    )
    if share:
        raise TinykernelError(
            f"{data}: {100 * share:.3g} % of its rows are among those to calibrate with; give the "
            "rows of the training"
        )
    return found.X_train, found.y_train


def about_calibration(rows: Rows, found: Calibration) -> dict[str, Any]:
    """Return what the model file is to remember of its calibration."""
    from tinykernel.data.trained_rows import record_of
    from tinykernel.decisions import expected_counts

    return {
        "calibration": {"data": rows.source, **found.to_dict()},
        "held_out": expected_counts(found.model, rows.X).to_dict(),
        "calibration_rows": {"rows": found.rows, **record_of(rows.X)},
    }


def calibration_in_words(found: Calibration) -> list[tuple[str, str]]:
    """Return the figures as names and values for `print_pairs`."""
    assert found.model.decision is not None
    thresholds = found.model.decision.thresholds.tolist()
    shown = listed(thresholds, 12)
    of = f"{found.rows} rows"
    if found.groups is not None:
        of += f" of {found.groups} groups, which count as {found.independent:.0f} independent rows"
    novelty = (
        []
        if found.alarms is None
        else [("novel", f"above {found.alarms.threshold}: {found.alarms.alarms} of these rows")]
    )
    return [
        ("rows", of),
        ("promise", found.statement),
        (
            "answered",
            f"{percent(found.coverage)}, of which {found.wrong} are wrong "
            f"({percent(found.wrong / max(1, found.answered))})",
        ),
        ("least margin", shown if any(thresholds) else "none: every row is answered"),
        *novelty,
        ("calibration", _probabilities_in_words(found)),
    ]


def _probabilities_in_words(found: Calibration) -> str:
    """Say whether the probabilities were changed, and what either does to their error."""
    before, after = f"{found.error_before:.4f}", f"{found.error_after:.4f}"
    error = f"expected error of the probabilities {before}"
    assert found.model.decision is not None
    temperature = found.model.decision.temperature
    if temperature != 1:
        return f"{error}, with a temperature of {temperature:.3g} {after}"
    return f"{error}; they are kept as they are, as a temperature makes it {after}"
