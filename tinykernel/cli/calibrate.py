"""Make a model say how sure it is, and when it does not know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tinykernel.cli.common.arguments import (
    MODEL_SUFFIXES,
    DataArgument,
    JsonOption,
    ModelArgument,
    QuietOption,
    check_output_file,
    flag,
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
from tinykernel.cli.common.normality import normal_in_words, said
from tinykernel.cli.common.output import percent, print_json, print_pairs
from tinykernel.cli.common.rows import Judged, known_rows, rows_to_judge
from tinykernel.text import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.partition import Rows
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
        share_option(
            "--max-error", "the largest error among the answers that is promised, e.g. 1%"
        ),
    ] = None,
    coverage: Annotated[
        float | None, share_option("--coverage", "answer this share, e.g. 95%")
    ] = None,
    false_alarms: Annotated[
        float | None,
        share_option(
            "--false-alarms",
            "also find rows that look like no class, with at most this share of rows like these "
            "among them, e.g. 1%",
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
        bool, flag("--per-class", words="give each class a least margin and the promise")
    ] = False,
    confidence: Annotated[
        Any, share_option("--confidence", "how sure the promise is", show_default="95%")
    ] = 0.95,
    same_groups: Annotated[
        bool,
        flag("--same-groups", words="promise for new rows of the same groups only, not new groups"),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = None,
) -> None:
    """Fit confidence, and a margin below which the model does not answer, to rows of DATA.

    The rows must not be those of the training. Prints the promise for new rows. If the rows do not
    support it, writes no model and ends with status 1. Takes the test part of DATA, or the rows
    kept aside if the model was trained on DATA, or all rows.
    """
    from tinykernel.errors import TinykernelError
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load, save

    check_output_file(output, MODEL_SUFFIXES, inputs=[model])
    integer, memory = as_integer_model(load(model)), remembered(model)
    if integer.is_regressor:
        raise TinykernelError(f"{model}: predicts values; thresholds are for classifiers")
    with showing_progress(quiet):
        judged = rows_to_judge(
            model, integer, data, needs_labels=not integer.is_one_class, unseen=True
        )
    rows = judged.rows
    if known is not None and false_alarms is None:
        raise typer.BadParameter("goes with --false-alarms", param_hint="--known")
    wishes: dict[str, Any] = {"max_error": max_error, "coverage": coverage, "per_class": per_class}
    if integer.is_one_class:
        _check_normal(wishes | {"known": known}, false_alarms)
    near = _refuse_seen(memory, judged)
    groups = None if same_groups else rows.group
    if integer.is_one_class:
        done = _of_normal(integer, rows, false_alarms or 0.0, confidence, groups)
    else:
        given = None if known is None else _known_rows(model, integer, known, rows)
        wishes |= {"confidence": confidence, "false_alarms": false_alarms, "known": given}
        done = _of_classes(integer, rows, groups, wishes)
    save(done.model, output, memory.everything | done.about)
    remarks = [*done.remarks, *([near] if near else []), *_over_budget(memory, done.model)]
    if as_json:
        about = {"model": output, "data": rows.source, "part": rows.part}
        print_json(about | done.result | {"remarks": remarks, "notes": list(rows.notes)})
    elif not quiet:
        source, file = ("data", f"{rows.part} of {rows.source}"), ("file", str(output))
        print_pairs([source, *done.told, file])
        print_notes(rows)
        print_cautions(remarks)


class _Done(NamedTuple):
    """What a calibration gives: the model, what its file remembers, and what is shown of it."""

    model: IntegerModel
    about: dict[str, Any]
    result: dict[str, Any]
    told: list[tuple[str, str]]
    remarks: tuple[str, ...] = ()


def _of_classes(
    model: IntegerModel, rows: Rows, groups: NDArray[Any] | None, wishes: dict[str, Any]
) -> _Done:
    """Fit the decision part of a classifier."""
    from tinykernel.decisions import calibrate

    assert rows.y is not None
    found = calibrate(model, rows.X, rows.y, groups=groups, **wishes)
    about, told = about_calibration(rows, found), calibration_in_words(found)
    return _Done(found.model, about, found.to_dict(), told, found.remarks)


def _check_normal(wishes: dict[str, Any], false_alarms: float | None) -> None:
    """Refuse options that need several classes."""
    for name, value in wishes.items():
        if value:
            hint = f"--{name.replace('_', '-')}"
            raise typer.BadParameter("not for a model of one class", param_hint=hint)
    if false_alarms is None:
        raise typer.BadParameter("a model of one class needs it", param_hint="--false-alarms")


def _of_normal(
    model: IntegerModel,
    rows: Rows,
    false_alarms: float,
    confidence: float,
    groups: NDArray[Any] | None,
) -> _Done:
    """Set the threshold of a model of one class anew."""
    from tinykernel.errors import TinykernelError
    from tinykernel.estimator import CLASSES, calibrate_one_class

    if rows.y is not None and (rows.y != CLASSES[0]).any():
        raise TinykernelError(f"{rows.source}: has rows that are not {CLASSES[0]!r}")
    new, found = calibrate_one_class(
        model, rows.X, false_alarms, confidence=confidence, groups=groups
    )
    promise, told = said(found), normal_in_words(found, found.threshold)
    return _Done(new, {"calibration": promise}, promise, told)


def _refuse_seen(memory: Remembered, judged: Judged) -> str:
    """Refuse rows that were trained on, of which a model is surer; say which are near such rows."""
    from tinykernel.errors import TinykernelError

    rows = judged.rows
    near = near_in_words(memory.share_near(rows.X))
    # What training kept aside has its near copies from the data, and not from its user.
    words = seen_in_words(memory.share_seen(rows.X)) or ("" if judged.train is not None else near)
    if words:
        raise TinykernelError(
            f"{rows.source}: {words}; what they promise would not hold for new ones. Give others"
        )
    return near


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
            f"({percent(found.wrong / max(1, found.answered))}){_over_groups(found)}",
        ),
        ("least margin", shown if any(thresholds) else "none: every row is answered"),
        *novelty,
        ("calibration", _probabilities_in_words(found)),
    ]


def _over_groups(found: Calibration) -> str:
    """Say which share of the rows of a group is answered on average, as is promised of new ones."""
    if found.coverage_of_groups is None:
        return ""
    return f"; on average over groups {percent(found.coverage_of_groups)}"


def _probabilities_in_words(found: Calibration) -> str:
    """Say whether the probabilities were changed, and what either does to their error."""
    before, after = f"{found.error_before:.4f}", f"{found.error_after:.4f}"
    error = f"expected error of the probabilities {before}"
    assert found.model.decision is not None
    temperature = found.model.decision.temperature
    if temperature != 1:
        return f"{error}, with a temperature of {temperature:.3g} {after}"
    return f"{error}; they are kept as they are, as a temperature makes it {after}"
