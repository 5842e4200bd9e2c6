"""Train a model, and find the smallest one that is good enough."""

from __future__ import annotations

import io
import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.errors import OptionError, ToolError
from tinykernel.base.files import write_bytes_atomically
from tinykernel.base.progress import report as say
from tinykernel.base.text import count, join
from tinykernel.compile.targets import find_target
from tinykernel.data.paths import kind_of
from tinykernel.face import arguments as args
from tinykernel.face import output as out
from tinykernel.face.commands.calibrate import train_novelty
from tinykernel.face.evaluation import accuracies, print_training, print_verdict, summary
from tinykernel.face.rows import about_evaluation, about_training
from tinykernel.face.settings import OPTIONS_OF_TRAIN, PAPER, SETTINGS
from tinykernel.learn.options import SIZE_OPTIONS
from tinykernel.run.limits import Limits

if TYPE_CHECKING:
    from tinykernel.data.partition import Dataset
    from tinykernel.judge.figures import Evaluation
    from tinykernel.kinds.train.fitting import TrainResult
    from tinykernel.kinds.tune.curve import Point, TuneResult
    from tinykernel.model.integer import IntegerModel


@args.has_settings(*OPTIONS_OF_TRAIN)
def train_command(
    ctx: typer.Context,
    data: str = args.DATA,
    output: Path = args.option("--output -o MODEL", "model to write: .tkm or .pkl", ...),
    settings: None = None,
    assignments: list[str] = args.SET,
    config: Path | None = args.CONFIG,
    save_config: Path | None = args.SAVE_CONFIG,
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
    **_: Any,
) -> None:
    """Train a model that fits a budget, and test it.

    Sounds, folders and, with --window, tables are recordings, which are cut into windows. A folder
    of pictures has a folder for each class; they are resized to --image-shape, or to a size that is
    chosen. Ctrl-C ends the search, or the training after its first epoch, and keeps the best model.
    """
    args.check_output_file(output, args.MODEL_SUFFIXES)
    values, typed = args.gather(ctx.params, ("data", "train"), data)
    options = values | {"data": data, "output": output, "as_json": as_json, "quiet": quiet}
    _check(options, typed)
    if options["task"] == "novelty":
        train_novelty(options)
        return
    begun = options["begun"] = time.monotonic()
    with out.showing_progress(quiet):
        training, result = _train_all(options)
    result["seconds"] = round(time.monotonic() - begun, 3)
    dataset, evaluation = training.dataset, training.evaluation
    if not as_json and not quiet:
        print_training(result, dataset, evaluation)
    if evaluation is not None:
        evaluation = _with_baselines(training, evaluation, options)
        result |= training.save()
    if as_json:
        out.print_json(
            result | {"evaluation": None if evaluation is None else evaluation.to_dict()}
        )
    elif not quiet and evaluation is not None:
        print_verdict(evaluation)
    if result["interrupted"]:
        typer.echo(
            f"training was interrupted after {count(result['iterations'], 'epoch')}; {output} has "
            "the best model so far",
            err=True,
        )


@dataclass
class _Training:
    """A trained model, its data, and what the model file says about them."""

    trained: TrainResult
    dataset: Dataset
    output: Path
    about: dict[str, Any]
    evaluation: Evaluation | None = None  # on the test rows

    def save(self) -> dict[str, Any]:
        """Write the model: the integer model as .tkm, else the estimator."""
        from tinykernel.model.file import save

        is_whole = self.output.suffix.lower() == ".tkm"
        content = self.trained.model if is_whole else self.trained.classifier
        save(content, self.output, self.about | about_evaluation(self.evaluation))
        return {"model": self.output, "bytes": self.output.stat().st_size}


def _train_all(options: dict[str, Any]) -> tuple[_Training, dict[str, Any]]:
    """Read, train, save and judge; also return the result of ``--json``."""
    from tinykernel.face import dataset as reading

    output = options["output"]
    parameters = parameters_of(options)
    dataset = reading.training_data(options, parameters, choose_size=True)
    _check_background(options["background"], dataset)
    options["image_shape"] = parameters.get("image_shape")
    hint = reading.shape_hint(dataset, options)
    # Before the training, which may take minutes if the shape is not known.
    for line in (hint, reading.groups_hint(dataset)):
        if line and not options["quiet"]:
            typer.echo(f"hint: {line}", err=True)
    trained = _train(dataset, parameters, options)
    remarks = getattr(trained.classifier, "remarks_", ())
    dataset = replace(dataset, notes=(*dataset.notes, *remarks))
    # Saved at once, so that a later error does not lose the model.
    effort = getattr(trained.classifier, "effort", options["effort"])
    about = about_training(trained, dataset, options) | {"effort": effort}
    about |= {"cut": trained.cut} if trained.cut else {}
    training = _Training(trained, dataset, output, about)
    result = summary(trained, dataset) | training.save() | {"effort": effort}
    result |= {
        "hint": hint or None,
        "notes": list(dataset.notes),
        "recordings": dataset.windows or None,
    }
    try:
        say("judging", 0, None)
        training.evaluation = judge_test_rows(trained.model, dataset)
        result |= accuracies(trained, dataset, training.evaluation)
        names = [f"{part}_{of}" for part in ("train", "test") for of in ("accuracy", "r2")]
        if dataset.words:
            result |= _of_words(training)
        about["accuracy"] = {name: result[name] for name in names if result.get(name) is not None}
        return training, result | training.save()
    except BaseException:
        typer.echo(f"{output} holds the trained model; it was not evaluated", err=True)
        raise


def _of_words(training: _Training) -> dict[str, Any]:
    """Note where words were found in their clips, and judge those held out along time."""
    from tinykernel.judge import events

    model, dataset = training.trained.model, training.dataset
    silent, cut = dataset.origin.background_of(model.classes), dataset.origin.recordings
    assert cut is not None
    assert cut.rate is not None
    places = events.places_in(model, dataset.clips, silent)
    training.about["places"] = {name: round(at / cut.rate, 3) for name, at in places.items()}
    notes = *dataset.notes, *events.in_pauses(model, dataset.clips, places)
    training.dataset = replace(dataset, notes=notes)
    along = events.calibrate_held_out(model, dataset.clips_test, cut.rate, silent, _PROMISED)
    facts: dict[str, Any] = {"notes": list(notes)}
    return (
        facts if along is None else facts | {"along_time": along.to_dict() | {"line": along.line}}
    )


def _with_baselines(
    training: _Training, evaluation: Evaluation, options: Mapping[str, Any]
) -> Evaluation:
    """Compare with simple models, until Ctrl-C: all else is printed and saved."""
    from tinykernel.judge.models import with_baselines

    dataset = training.dataset
    assert dataset.X_test is not None
    assert dataset.y_test is not None
    try:
        with out.showing_progress(options["quiet"]):
            training.evaluation = with_baselines(
                evaluation,
                training.trained.model,
                dataset.X_test,
                dataset.y_test,
                dataset.training,
                groups=dataset.group_test,
                class_weight=balanced_or_none(options),
            )
    except KeyboardInterrupt:
        typer.echo("interrupted: not compared with simple models", err=True)
    return training.evaluation or evaluation


def parameters_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of `tinykernel.train` among all settings."""
    typed = [(SETTINGS[name], value) for name, value in options.items() if name in SETTINGS]
    parameters = {
        setting.parameter: value
        for setting, value in typed
        if value is not None and (setting.of_trainer or setting.methods == (PAPER,))
    }
    if options["method"] == PAPER:
        from tinykernel.papers.classifier import PaperClassifier

        return parameters | {"method": PaperClassifier}
    return parameters | {"method": options["method"]}


def _check(options: Mapping[str, Any], typed: set[str]) -> None:
    """Refuse settings that contradict each other."""
    if find_target(options["target"]).family == "host" and "budget" in typed:
        raise args.misuse(
            "--budget",
            f"{options['target']} has no flash to measure; choose a microcontroller as --target",
        )
    if options["budget"] is not None:
        from tinykernel.run.report import refuse_less_than_code

        refuse_less_than_code(options["budget"].flash, options["target"])
    task, data = options["task"], options["data"]
    if options["method"] == PAPER and (task != "classes" or kind_of(data) == "pictures"):
        raise args.misuse("--set method", "only for rows and --task classes; leave it out")


def _check_background(names: list[str] | None, dataset: Dataset) -> None:
    """Refuse a background that is not a label of the data."""
    known = dataset.origin.background or () if dataset.words else ()
    labels = sorted({*map(str, dataset.y_train.tolist()), *known})
    for name in names or ():
        if name not in labels:
            raise OptionError(f"background: {name!r} is not a label; give one of {join(labels, 8)}")


def balanced_or_none(options: Mapping[str, Any]) -> str | None:
    """Return the class weights that also apply to judging."""
    return "balanced" if options["class_weight"] == "balanced" else None


def _train(
    dataset: Dataset, parameters: Mapping[str, Any], options: Mapping[str, Any]
) -> TrainResult:
    from tinykernel.face.dataset import clips_of, is_by_group, time_limit
    from tinykernel.kinds.train.fitting import train

    clips = clips_of(dataset, options)
    with warnings.catch_warnings():
        # The command prints it with the result.
        warnings.filterwarnings("ignore", message="training was interrupted")
        return train(
            dataset.X_train,
            dataset.y_train,
            budget=options["budget"],
            target=options["target"],
            groups=dataset.group_train if is_by_group(options, dataset) else None,
            feature_names=dataset.columns,
            task=options["task"],
            value_name=dataset.label if options["task"] == "numbers" else None,
            max_time=time_limit(options),
            clips=clips,
            **parameters,
        )


def judge_test_rows(model: IntegerModel, dataset: Dataset, **options: Any) -> Evaluation | None:
    """Judge a model on the test rows, with options of `evaluate`; None without test rows."""
    from tinykernel.judge.models import evaluate

    if dataset.X_test is None or dataset.y_test is None:
        return None
    return evaluate(model, dataset.X_test, dataset.y_test, groups=dataset.group_test, **options)


# False alarms an hour for which words held out are counted.
_PROMISED = 1.0
# Settings that follow from the size, end a training early, or are not for classes.
_LEFT_OUT = (*SIZE_OPTIONS, "validation", "task", "false_alarms", "loss")


@args.has_settings("label", "groups", "budget", "target", "max_time", "pick")
def tune_command(
    ctx: typer.Context,
    data: str = args.DATA,
    output: Path | None = args.option("--output -o MODEL", "file for the recommended model: .tkm"),
    curve: Path | None = args.option("FILE", "accuracy against size: .csv, or .png by matplotlib"),
    settings: None = None,
    assignments: list[str] = args.SET,
    config: Path | None = args.CONFIG,
    save_config: Path | None = args.SAVE_CONFIG,
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
    call = {name: text for name, (text, _) in args.typed_settings(ctx.params).items()}
    before: dict[str, str] = {}
    if "pick" in call:  # its options need not be repeated
        from tinykernel.kinds.tune.tuner import read_call

        before = read_call(folder)
    options, _typed = args.gather(ctx.params, ("data", "train", "tune"), data, _LEFT_OUT, before)
    options |= {"data": data, "output": output, "task": "classes"}
    find_target(options["target"])
    from tinykernel.face.dataset import is_by_group, training_data
    from tinykernel.kinds.tune.curve import scheduler
    from tinykernel.kinds.tune.tuner import tune, write_call

    if output is not None:
        args.check_output_file(output, (".tkm",))
    elif options["pick"] is not None:
        raise args.misuse("--pick", "needs -o MODEL")
    if curve is not None:
        args.check_output_file(curve, (".csv", ".png"))
        if curve.suffix.lower() == ".png" and find_spec("matplotlib") is None:
            raise ToolError(f"{curve}: needs matplotlib; install it, or write a .csv")
    parameters, pick = parameters_of(options), options["pick"]
    with out.showing_progress(quiet), scheduler(options["backend"]):
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
            write_call(folder, call)
        chosen = result.best if pick is None else result.pick(pick)
        model, weight = result.models[chosen.budget], balanced_or_none(options)
        judged = judge_test_rows(model, dataset, class_weight=weight)
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
