"""Find the smallest model that is good enough."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.errors import ToolError
from tinykernel.base.files import write_bytes_atomically
from tinykernel.compile.targets import find_target
from tinykernel.face import arguments as args
from tinykernel.face import gathering
from tinykernel.face import output as out
from tinykernel.face.commands import train
from tinykernel.face.output import showing_progress
from tinykernel.face.rows import about_evaluation, about_training
from tinykernel.learn.options import SIZE_OPTIONS
from tinykernel.run.limits import Limits

if TYPE_CHECKING:
    from tinykernel.data.partition import Dataset
    from tinykernel.judge.figures import Evaluation
    from tinykernel.kinds.tune.curve import Point, TuneResult

# Settings that follow from the size, end a training early, or are not for classes.
_LEFT_OUT = (*SIZE_OPTIONS, "validation", "task", "false_alarms", "loss")


@gathering.has_settings("label", "groups", "budget", "target", "max_time", "pick")
def tune_command(
    ctx: typer.Context,
    data: str = args.DATA,
    output: Path | None = args.option("--output -o MODEL", "file for the recommended model: .tkm"),
    curve: Path | None = args.option("FILE", "accuracy against size: .csv, or .png by matplotlib"),
    settings: None = None,
    assignments: list[str] = gathering.SET,
    config: Path | None = gathering.CONFIG,
    save_config: Path | None = gathering.SAVE_CONFIG,
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
    **_: Any,
) -> None:
    """Compare sizes; recommend the smallest good model.

    Models of 1 to 30 KB (or --budget) are cross-validated on the training rows, in whole groups if
    there are groups. Test rows do not affect the choice. Finished trainings are stored: after an
    interruption the same command continues. Ctrl-C ends it with the best so far. --set also takes
    the settings of train.
    """
    folder = (output or Path("x")).parent / f"{Path(data).stem}.tune"
    call = {name: text for name, (text, _) in gathering.typed_settings(ctx.params).items()}
    before: dict[str, str] = {}
    if "pick" in call:  # its options need not be repeated
        from tinykernel.kinds.tune.run import read_call

        before = read_call(folder)
    options, _typed = gathering.gather(
        ctx.params, ("data", "train", "tune"), data, _LEFT_OUT, before
    )
    options |= {"data": data, "output": output, "task": "classes"}
    find_target(options["target"])
    from tinykernel.face.dataset import is_by_group, training_data
    from tinykernel.kinds.tune import run as journal
    from tinykernel.kinds.tune.trials import scheduler
    from tinykernel.kinds.tune.tuner import tune

    if output is not None:
        args.check_output_file(output, (".tkm",))
    elif options["pick"] is not None:
        raise args.misuse("--pick", "needs -o MODEL")
    if curve is not None:
        args.check_output_file(curve, (".csv", ".png"))
        if curve.suffix.lower() == ".png" and find_spec("matplotlib") is None:
            raise ToolError(f"{curve}: needs matplotlib; install it, or write a .csv")
    parameters, pick = train.parameters_of(options), options["pick"]
    with showing_progress(quiet), scheduler(options["backend"]):
        dataset = training_data(options, parameters)
        result = tune(
            dataset.X_train,
            dataset.y_train,
            **{name: options[name] for name in ("target", "budget", "sizes")},
            max_time=None if options["max_time"] == math.inf else options["max_time"],
            groups=dataset.group_train if is_by_group(options, dataset) else None,
            n_folds=options["folds"],
            journal=folder,
            **parameters | ({"n_jobs": 0} if pick is not None and folder.is_dir() else {}),
        )
        if pick is None:
            journal.write_call(folder, call)
        chosen = result.best if pick is None else result.pick(pick)
        model, weight = result.models[chosen.budget], train.balanced_or_none(options)
        judged = train.judge_test_rows(model, dataset, class_weight=weight)
    if pick not in (None, chosen.budget):
        kept = "the largest size of the journal that fits"
        typer.echo(f"--pick {out.size(pick)}: takes {out.size(chosen.budget)}, {kept}", err=True)
    if output is not None:
        _write(result, chosen, output, dataset, options, judged)
    if curve is not None:
        _write_curve(result, curve)
    if as_json:
        test = None if judged is None else judged.to_dict()
        out.print_json(result.to_dict() | {"model": output, "picked": chosen.budget, "test": test})
    elif not quiet:
        _print(result, chosen, dataset, judged, output)
    if result.stopped and pick is None:
        typer.echo(
            f"{result.stopped} after {result.done} of {result.total} trainings; run the same "
            f"command again to continue ({folder})",
            err=True,
        )


def _write(
    result: TuneResult,
    chosen: Point,
    output: Path,
    dataset: Dataset,
    options: Mapping[str, Any],
    judged: Evaluation | None,
) -> None:
    from tinykernel.kinds.train.fitting import TrainResult
    from tinykernel.model.file import save

    budget, model = chosen.budget, result.models[chosen.budget]
    sizes, limits = result.reports[budget], replace(options["budget"] or Limits(), flash=budget)
    # The classifier of a finished training is not stored.
    trained = TrainResult(model, None, sizes, sizes, budget, options["method"], 1, 0.0, limits)
    options = {**options, "target": result.target}
    about = about_training(trained, dataset, options) | about_evaluation(judged)
    search = result.searches.get(budget)
    save(model, output, about | ({"search": search} if search else {}))


def _write_curve(result: TuneResult, path: Path) -> None:
    """Write a line for each size, or draw accuracy against flash with standard errors."""
    if path.suffix.lower() == ".csv":
        rows = [vars(point) | {"folds": " ".join(map(str, point.folds))} for point in result.points]
        out.write_csv(path, list(rows[0]), [list(row.values()) for row in rows])
        return
    figure = import_module("matplotlib.figure").Figure()
    axes, file = figure.subplots(), io.BytesIO()
    flash = [point.flash / 1024 for point in result.points]
    accuracy, error = (
        [100 * getattr(point, name) for point in result.points]
        for name in ("accuracy", "standard_error")
    )
    axes.errorbar(flash, accuracy, error, marker="o", capsize=3)
    best = result.points.index(result.best)
    axes.plot(
        flash[best], accuracy[best], "o", markersize=12, fillstyle="none", label="recommended"
    )
    axes.set(xlabel="flash (KB)", ylabel=f"{result.score} on held-out rows (%)")
    axes.legend(loc="lower right")
    figure.savefig(file, format="png", dpi=150)
    write_bytes_atomically(path, file.getvalue())


def _print(
    result: TuneResult,
    chosen: Point,
    dataset: Dataset,
    judged: Evaluation | None,
    output: Path | None,
) -> None:
    from tinykernel.compile.enums import consists_of

    out.print_pairs([("data", f"{dataset.source}: {dataset.split}"), ("target", result.target)])
    numbers = ("budget", result.score, "standard error", "folds", "flash", "RAM", "instructions")
    rows = [
        (
            out.size(point.budget),
            out.percent(point.accuracy),
            out.percent(point.standard_error),
            f"{100 * min(point.folds):.1f} to {100 * max(point.folds):.1f}",
            str(point.flash),
            str(point.ram),
            "-" if point.instructions is None else f"{point.instructions:,}",
            "yes" if point.on_front else "",
            consists_of(result.models[point.budget]),
        )
        for point in result.points
    ]
    out.print_table((*numbers, "front", "model"), rows, right=numbers)
    for n_bytes, why in result.left_out.items():
        typer.echo(f"note: {out.size(n_bytes)}: {why}")
    for how in dict.fromkeys(point.counted for point in result.points):
        typer.echo(f"instructions: {how}")
    for how in dict.fromkeys(point.measured for point in result.points):
        typer.echo(f"flash and RAM: {how}")
    typer.echo(result.recommendation)
    if judged is not None:
        from tinykernel.judge.figures import LabelEvaluation, interval_in_words

        assert isinstance(judged, LabelEvaluation)  # values are not tuned
        how = f"answers {out.percent(judged.accuracy)} right"
        if result.score != "accuracy":
            how = f"has a balanced accuracy of {out.percent(judged.balanced_accuracy)}, and {how}"
        sure = interval_in_words(judged.interval, judged.n_groups)
        typer.echo(f"On the test rows the model of {out.size(chosen.budget)} {how}, {sure}.")
    if output is not None:
        typer.echo(f"{output} holds the model of {out.size(chosen.budget)}")
