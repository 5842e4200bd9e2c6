"""Find the smallest model that is good enough."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.options import (
    DataArgument,
    JsonOption,
    QuietOption,
    TargetOption,
    check_output_file,
)
from tinykernel.cli.common.output import percent, print_json, print_pairs, print_table, size
from tinykernel.cli.common.progress import showing_progress
from tinykernel.cli.common.remembered import about_training
from tinykernel.cli.common.shared import with_options_of
from tinykernel.cli.common.trained import model_words
from tinykernel.cli.common.training_data import dataset_for
from tinykernel.cli.train import check_method, options_of_the_classifier, train_command
from tinykernel.errors import TinykernelError

if TYPE_CHECKING:
    from tinykernel.data.load import Dataset
    from tinykernel.evaluation import Evaluation
    from tinykernel.tuning import Point, TuneResult

# Of train: what a size stands for, and what ends one training early.
_NOT_TAKEN = (
    "n_components",
    "n_kernels",
    "n_jobs",
    "validation",
    "patience",
    "task",
    "loss",
    "quantiles",
)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def _seconds(text: str | float) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(text))
    if match is None or match[2] not in _UNITS or float(match[1]) <= 0:
        raise typer.BadParameter(f"{text!r}: write a time, as in 90s, 10m or 2h")
    return float(match[1]) * _UNITS[match[2]]


def _bytes(text: str | int) -> int:
    from tinykernel.measure.limits import parse_size

    try:
        return parse_size(text)
    except TinykernelError as error:
        raise typer.BadParameter(str(error)) from None


def _sizes(text: str | None) -> list[int] | None:
    return None if text is None else [_bytes(part) for part in text.split(",")]


@with_options_of(train_command, _NOT_TAKEN)
def tune_command(
    ctx: typer.Context,
    data: DataArgument,
    target: TargetOption = "cortex-m4",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="MODEL", help="write the recommended model: .tkm"),
    ] = None,
    max_time: Annotated[
        Any,
        typer.Option(
            "--max-time", parser=_seconds, metavar="TIME", help="begin nothing that would end later"
        ),
    ] = None,
    pick: Annotated[
        Any,
        typer.Option(
            "--pick",
            parser=_bytes,
            metavar="SIZE",
            help="with -o: write the model of this size; where there is a journal, train nothing",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes", metavar="SIZES", help="instead of 2KB,3KB,4KB,6KB,8KB,... up to the budget"
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option("--folds", min=2, help="parts of the training rows, each held out once")
    ] = 4,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="also write the curve as a table")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="also draw it: .svg or .png")
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            "--journal",
            metavar="DIR",
            help="where finished trainings are kept; by default DATA.tune beside the output",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="trainings at a time; by default one a processor"),
    ] = None,
    backend: Annotated[
        str, typer.Option("--backend", metavar="NAME", help="of joblib: threading, loky or dask")
    ] = "threading",
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="of Dask, with --backend dask"),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    **_: Any,
) -> None:
    """Show accuracy against size, and recommend the smallest model that is good enough.

    Models of 2 to 30 KB (or --budget) are trained on parts of the training rows, whole groups where
    there are groups, and judged on the part held out; the test rows choose nothing. Finished
    trainings are kept: started again, the same command goes on from there. Ctrl-C keeps the best so
    far.
    """
    from tinykernel.tuning import tune

    _check_outputs(ctx.params)
    check_method(ctx, ctx.params["method"])
    parameters = options_of_the_classifier(ctx.params, besides=_OWN)
    dataset, cut, kept = dataset_for(ctx.params, parameters)
    by_group = ctx.params["groups"] is not None or cut is not None
    folder = journal or (output or Path("x")).parent / f"{Path(data).stem}.tune"
    with showing_progress(quiet):
        found = tune(
            dataset.X_train,
            dataset.y_train,
            target=target,
            budget=ctx.params["budget"],
            sizes=_sizes(sizes),
            groups=dataset.group_train if by_group else None,
            n_folds=folds,
            max_time=max_time,
            journal=folder,
            n_jobs=jobs,
            backend=backend,
            scheduler=scheduler,
            only_journal=pick is not None and folder.is_dir(),
            **parameters,
        )
    chosen = found.best if pick is None else found.pick(pick)
    judged = _judged(found, chosen, dataset, ctx.params["class_weight"])
    if output is not None:
        _write(found, chosen, output, dataset, ctx.params, kept)
    if csv is not None:
        from tinykernel.files import write_bytes_atomically

        write_bytes_atomically(csv, found.to_csv().encode())
    if plot is not None:
        found.plot(plot)
    if as_json:
        test = None if judged is None else judged.to_dict()
        print_json(found.to_dict() | {"model": output, "picked": chosen.budget, "test": test})
    elif not quiet:
        _print(found, chosen, dataset, judged, output)
    if found.stopped and pick is None:
        typer.echo(
            f"{found.stopped} after {found.done} of {found.total} trainings; the same "
            f"command goes on from there ({folder})",
            err=True,
        )


_OWN = (
    "output",
    "max_time",
    "pick",
    "sizes",
    "folds",
    "csv",
    "plot",
    "journal",
    "jobs",
    "backend",
    "scheduler",
)


def _check_outputs(options: Mapping[str, Any]) -> None:
    """Refuse what could not be written, before the long work."""
    from tinykernel.tuning.plot import check_picture

    if options["output"] is not None:
        check_output_file(options["output"], (".tkm",))
    elif options["pick"] is not None:
        raise typer.BadParameter("needs -o MODEL", param_hint="--pick")
    if options["csv"] is not None:
        check_output_file(options["csv"], (".csv",))
    if options["plot"] is not None:
        check_picture(options["plot"])
        check_output_file(options["plot"])


def _judged(
    found: TuneResult, chosen: Point, dataset: Dataset, class_weight: str | None
) -> Evaluation | None:
    """Judge the chosen model on the test rows, which chose nothing."""
    from tinykernel.evaluation import Evaluation, evaluate

    if dataset.X_test is None or dataset.y_test is None:
        return None
    judged = evaluate(
        found.models[chosen.budget],
        dataset.X_test,
        dataset.y_test,
        groups=dataset.group_test,
        class_weight=class_weight,
    )
    assert isinstance(judged, Evaluation)  # values are not tuned
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
    given = {
        name: options[name] for name in ("label", "groups", "test_size", "seed", "class_weight")
    }
    about = about_training(trained, dataset, found.target, {**given, **kept})
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
    judged: Evaluation | None,
    output: Path | None,
) -> None:
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
            model_words(found.models[point.budget]),
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
    typer.echo(found.recommendation)
    if judged is not None:
        from tinykernel.evaluation import interval_in_words

        interval = interval_in_words(judged.interval, judged.n_groups)
        text = f"On the test rows the model of {size(chosen.budget)} has "
        typer.echo(f"{text}{percent(judged.accuracy)}, {interval}.")
    if output is not None:
        typer.echo(f"{output} holds the model of {size(chosen.budget)}")
