"""Find the smallest model that is good enough."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import DataArgument, JsonOption, QuietOption, check_output_file
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.dataset import dataset_for, is_by_group
from tinykernel.cli.common.memory import about_evaluation, about_training
from tinykernel.cli.common.output import percent, print_json, print_pairs, print_table, size
from tinykernel.cli.settings import gather, has_settings
from tinykernel.cli.settings.gathering import SetOption
from tinykernel.cli.train import balanced_or_none, parameters_of, remembered_settings

if TYPE_CHECKING:
    from tinykernel.data.partition import Dataset
    from tinykernel.evaluation import LabelEvaluation
    from tinykernel.tuning import Point, TuneResult

# What a size stands for, what ends one training early, and what is not for classes.
_LEFT_OUT = (
    "n_components",
    "n_kernels",
    "n_jobs",
    "validation",
    "task",
    "like",
    "max_error",
    "calibration_size",
    "false_alarms",
    "n_prototypes",
    "loss",
)


@has_settings("label", "groups", "budget", "target", "max_time", "pick")
def tune_command(
    ctx: typer.Context,
    data: DataArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="MODEL", help="write the recommended model: .tkm"),
    ] = None,
    settings: None = None,
    assignments: SetOption = [],  # noqa: B006
    as_json: JsonOption = False,
    quiet: QuietOption = None,
    **_: Any,
) -> None:
    """Show accuracy against size, and recommend the smallest model that is good enough.

    Models of 1 to 30 KB (or --budget) are trained on parts of the training rows, whole groups where
    there are groups, and judged on the part held out; the test rows choose nothing. Finished
    trainings are kept: started again, the same command goes on from there. Ctrl-C keeps the best so
    far. --set takes the settings of train, too.
    """
    from tinykernel.codegen.targets import find_target

    options, _given = gather(ctx.params, ("data", "train", "tune"), data, _LEFT_OUT)
    options |= {"data": data, "output": output, "task": "classes"}
    find_target(options["target"])
    _check_outputs(options)
    from tinykernel.tuning import tune

    parameters = parameters_of(options)
    folder = Path(options["journal"] or (output or Path("x")).parent / f"{Path(data).stem}.tune")
    pick = options["pick"]
    with showing_progress(quiet):
        dataset, cut, kept = dataset_for(options, parameters)
        by_group = is_by_group(options, dataset, cut)
        found = tune(
            dataset.X_train,
            dataset.y_train,
            **{name: options[name] for name in ("target", "budget", "sizes", "max_time")},
            **{name: options[name] for name in ("backend", "scheduler")},
            groups=dataset.group_train if by_group else None,
            n_folds=options["folds"],
            journal=folder,
            n_jobs=0 if pick is not None and folder.is_dir() else options["jobs"],
            **parameters,
        )
        chosen = found.best if pick is None else found.pick(pick)
        judged = _judged(found, chosen, dataset, balanced_or_none(options))
    if output is not None:
        _write(found, chosen, output, dataset, options, kept | about_evaluation(judged))
    if options["csv"] is not None:
        from tinykernel.files import write_bytes_atomically

        write_bytes_atomically(Path(options["csv"]), found.to_csv().encode())
    if options["plot"] is not None:
        found.plot(options["plot"])
    if as_json:
        test = None if judged is None else judged.to_dict()
        print_json(found.to_dict() | {"model": output, "picked": chosen.budget, "test": test})
    elif not quiet:
        _print(found, chosen, dataset, judged, output, options.get("effort"))
    if found.stopped and pick is None:
        typer.echo(
            f"{found.stopped} after {found.done} of {found.total} trainings; the same "
            f"command goes on from there ({folder})",
            err=True,
        )


def _check_outputs(options: Mapping[str, Any]) -> None:
    """Refuse what could not be written, before the long work."""
    from tinykernel.tuning.plot import check_picture

    if options["output"] is not None:
        check_output_file(options["output"], (".tkm",))
    elif options["pick"] is not None:
        raise typer.BadParameter("needs -o MODEL", param_hint="--pick")
    if options["csv"] is not None:
        check_output_file(Path(options["csv"]), (".csv",))
    if options["plot"] is not None:
        picture = Path(options["plot"])
        check_picture(picture)
        check_output_file(picture)


def _judged(
    found: TuneResult, chosen: Point, dataset: Dataset, class_weight: str | None
) -> LabelEvaluation | None:
    """Judge the chosen model on the test rows, which chose nothing."""
    from tinykernel.evaluation import LabelEvaluation, evaluate

    if dataset.X_test is None or dataset.y_test is None:
        return None
    judged = evaluate(
        found.models[chosen.budget],
        dataset.X_test,
        dataset.y_test,
        groups=dataset.group_test,
        class_weight=class_weight,
    )
    assert isinstance(judged, LabelEvaluation)  # values are not tuned
    return judged


def _write(
    found: TuneResult,
    chosen: Point,
    output: Path,
    dataset: Dataset,
    options: Mapping[str, Any],
    kept: Mapping[str, Any],
) -> None:
    from dataclasses import replace

    from tinykernel.budget import TrainResult
    from tinykernel.measure.limits import Limits
    from tinykernel.modelfile import save

    model = found.models[chosen.budget]
    size_of, method = found.reports[chosen.budget], options["method"]
    # What is known of a finished training; the classifier itself is not kept.
    limits = replace(options["budget"] or Limits(), flash=chosen.budget)
    trained = TrainResult(model, None, size_of, size_of, chosen.budget, method, 1, 0.0, limits)
    about = about_training(
        trained, dataset, found.target, remembered_settings(options) | dict(kept)
    )
    search = found.searches.get(chosen.budget)
    about |= {"tune": _in_short(found)} | ({"search": search} if search else {})
    save(model, output, about)


def _in_short(found: TuneResult) -> dict[str, Any]:
    """Return the curve as a model file remembers it."""
    points = [
        [p.budget, p.flash, round(p.accuracy, 5), round(p.standard_error, 5)] for p in found.points
    ]
    return {
        "score": found.score,
        "folds": found.n_folds,
        "recommended": found.best.budget,
        "curve": points,
    }


def _print(
    found: TuneResult,
    chosen: Point,
    dataset: Dataset,
    judged: LabelEvaluation | None,
    output: Path | None,
    effort: str | None,
) -> None:
    from tinykernel.codegen.description import consists_of

    print_pairs([("data", f"{dataset.source}: {dataset.split}"), ("target", found.target)])
    columns = (
        "budget",
        found.score,
        "standard error",
        "folds",
        "flash",
        "RAM",
        "instructions",
        "front",
        "model",
    )
    rows = [
        (
            size(point.budget),
            percent(point.accuracy),
            percent(point.standard_error),
            f"{100 * min(point.folds):.1f} to {100 * max(point.folds):.1f}",
            str(point.flash),
            str(point.ram),
            "-" if point.instructions is None else f"{point.instructions:,}",
            "yes" if point.on_front else "",
            consists_of(found.models[point.budget]),
        )
        for point in found.points
    ]
    print_table(columns, rows, right=columns[:7])
    for n_bytes, why in found.left_out.items():
        typer.echo(f"note: {size(n_bytes)}: {why}")
    for how in dict.fromkeys(point.counted for point in found.points):
        typer.echo(f"instructions: {how}")
    for how in dict.fromkeys(point.measured for point in found.points):
        typer.echo(f"flash and RAM: {how}")
    if effort == "quick":
        typer.echo("note: with --effort normal trees compete, too")
    typer.echo(found.recommendation)
    if judged is not None:
        from tinykernel.evaluation import interval_in_words

        interval = interval_in_words(judged.interval, judged.n_groups)
        text = f"On the test rows the model of {size(chosen.budget)} "
        if found.score != "accuracy":
            text += f"has a balanced accuracy of {percent(judged.balanced_accuracy)}, and "
        text += "answers "
        typer.echo(f"{text}{percent(judged.accuracy)} right, {interval}.")
    if output is not None:
        typer.echo(f"{output} holds the model of {size(chosen.budget)}")
