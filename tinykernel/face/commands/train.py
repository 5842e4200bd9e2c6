"""Train a model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.errors import OptionError
from tinykernel.base.progress import report as say
from tinykernel.base.text import count, listed
from tinykernel.compile.targets import find_target
from tinykernel.data.paths import kind_of
from tinykernel.face import arguments as args
from tinykernel.face import gathering
from tinykernel.face.commands.novelty import train_novelty
from tinykernel.face.evaluation import judged, print_training, print_verdict, summary
from tinykernel.face.output import print_json, showing_progress
from tinykernel.face.rows import about_evaluation, about_training
from tinykernel.face.settings import OPTIONS_OF_TRAIN, PAPER, SETTINGS

if TYPE_CHECKING:
    from tinykernel.data.partition import Dataset
    from tinykernel.judge.figures import Evaluation
    from tinykernel.kinds.train.fitting import TrainResult
    from tinykernel.model.integer import IntegerModel


@gathering.has_settings(*OPTIONS_OF_TRAIN)
def train_command(
    ctx: typer.Context,
    data: str = args.DATA,
    output: Path = args.option("--output -o MODEL", "model to write: .tkm or .pkl", ...),
    settings: None = None,
    assignments: list[str] = gathering.SET,
    config: Path | None = gathering.CONFIG,
    save_config: Path | None = gathering.SAVE_CONFIG,
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
    values, typed = gathering.gather(ctx.params, ("data", "train"), data)
    options = values | {"data": data, "output": output, "as_json": as_json, "quiet": quiet}
    _check(options, typed)
    if options["task"] == "novelty":
        train_novelty(options)
        return
    begun = options["begun"] = time.monotonic()
    with showing_progress(quiet):
        training, result = _trained(options)
    result["seconds"] = round(time.monotonic() - begun, 3)
    dataset, evaluation = training.dataset, training.evaluation
    if not as_json and not quiet:
        print_training(result, dataset, evaluation)
    if evaluation is not None:
        evaluation = _with_baselines(training, evaluation, options)
        result |= training.save()
    if as_json:
        print_json(result | {"evaluation": None if evaluation is None else evaluation.to_dict()})
    elif not quiet and evaluation is not None:
        print_verdict(evaluation)
    if result["effort"] != (options["effort"] or "normal") and not quiet:
        shape = "x".join(map(str, options["image_shape"] or ()))
        how = f"--max-time none --effort {result['effort']}{shape and ' --image-shape '}{shape}"
        typer.echo(f"note: time was short; {how} trains the same bytes without a clock", err=True)
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


def _trained(options: dict[str, Any]) -> tuple[_Training, dict[str, Any]]:
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
    # Saved at once, so that a later error does not lose the model.
    effort = getattr(trained.classifier, "effort", options["effort"])
    about = about_training(trained, dataset, options) | {"effort": effort}
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
        result |= judged(trained, dataset, training.evaluation)
        names = [f"{part}_{of}" for part in ("train", "test") for of in ("accuracy", "r2")]
        about["accuracy"] = {name: result[name] for name in names if result.get(name) is not None}
        return training, result | training.save()
    except BaseException:
        typer.echo(f"{output} holds the trained model; it was not evaluated", err=True)
        raise


def _with_baselines(
    training: _Training, evaluation: Evaluation, options: Mapping[str, Any]
) -> Evaluation:
    """Compare with simple models, until Ctrl-C: all else is printed and saved."""
    from tinykernel.judge.models import with_baselines

    dataset = training.dataset
    assert dataset.X_test is not None
    assert dataset.y_test is not None
    try:
        with showing_progress(options["quiet"]):
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
        from tinykernel.run.capacity import refuse_less_than_code

        refuse_less_than_code(options["budget"].flash, options["target"])
    task, data = options["task"], options["data"]
    if options["method"] == PAPER and (task != "classes" or kind_of(data) == "pictures"):
        raise args.misuse("--set method", "only for rows and --task classes; leave it out")


def _check_background(names: list[str] | None, dataset: Dataset) -> None:
    """Refuse a background that is not a label of the data."""
    labels = sorted(set(map(str, dataset.y_train.tolist())))
    for name in names or ():
        if name not in labels:
            raise OptionError(
                f"background: {name!r} is not a label; give one of {listed(labels, 8)}"
            )


def balanced_or_none(options: Mapping[str, Any]) -> str | None:
    """Return the class weights that also apply to judging."""
    return "balanced" if options["class_weight"] == "balanced" else None


def _train(
    dataset: Dataset, parameters: Mapping[str, Any], options: Mapping[str, Any]
) -> TrainResult:
    from tinykernel.face.dataset import is_by_group, time_limit
    from tinykernel.kinds.train.fitting import train

    of_pictures = dataset.origin.pictures is not None
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
            max_time=time_limit(options, of_pictures=of_pictures),
            **parameters,
        )


def judge_test_rows(model: IntegerModel, dataset: Dataset, **options: Any) -> Evaluation | None:
    """Judge a model on the test rows, with options of `evaluate`; None without test rows."""
    from tinykernel.judge.models import evaluate

    if dataset.X_test is None or dataset.y_test is None:
        return None
    return evaluate(model, dataset.X_test, dataset.y_test, groups=dataset.group_test, **options)
