"""Train a model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.alike import other_model
from tinykernel.cli.common.one_class import (
    FalseAlarmsOption,
    OneClassOption,
    PrototypesOption,
    check_alone,
    train_one_class,
)
from tinykernel.cli.common.options import (
    LARGEST_SEED,
    MODEL_SUFFIXES,
    BudgetOption,
    DataArgument,
    JsonOption,
    LabelOption,
    QuietOption,
    TargetOption,
    check_output_file,
)
from tinykernel.cli.common.output import print_json
from tinykernel.cli.common.parsing import (
    augmentation_in,
    columns_in,
    image_shape_in,
    input_bits_in,
    parse_share,
    quantiles_in,
    share_in,
    width_in,
    window_shape_in,
)
from tinykernel.cli.common.progress import showing_progress
from tinykernel.cli.common.rejecting import (
    check_held,
    decided,
    default_budget,
    less_decisions,
    rows_aside,
)
from tinykernel.cli.common.remembered import about_training
from tinykernel.cli.common.trained import accuracies_of, judged, print_training, summary
from tinykernel.cli.common.training_data import (
    dataset_for,
    groups_hint,
    selection_of,
    shape_hint,
    type_hint,
    validation_rows,
)

if TYPE_CHECKING:
    from tinykernel.budget import TrainResult
    from tinykernel.data.load import Dataset, Rows
    from tinykernel.evaluation import Judged
    from tinykernel.measure.limits import Limits

# An option in the panel of a method is refused with the other one.
_LEARNED = 'Method "learned"'
_PAPER = 'Method "paper"'
_METHODS = {"learned": _LEARNED, "paper": _PAPER}
# What is no parameter of the classifier.
_OTHERS = (
    "data",
    "output",
    "label",
    "groups",
    "test_size",
    "validation",
    "seed",
    "budget",
    "target",
    "as_json",
    "quiet",
    "inputs",
    "drop",
    "window",
    "hop",
    "rate",
    "time",
    "mixed",
    "name",
    "short",
    "missing",
    "input_type",
    "reject_error",
    "calibration_size",
    "one_class",
    "false_alarms",
    "n_prototypes",
    "like",
)
_RECORDINGS = "Recordings"
_DECISIONS = "Decisions"
_VALUES = "Values (--task regression)"


def _option(panel: str | None, names: str, help_text: str, **settings: Any) -> Any:
    return typer.Option(*names.split(), help=help_text, rich_help_panel=panel, **settings)


def train_command(
    ctx: typer.Context,
    data: DataArgument,
    output: Annotated[
        Path, _option(None, "--output -o", "model to write: .tkm or .pkl", metavar="MODEL")
    ],
    label: LabelOption = None,
    groups: Annotated[
        str | None,
        _option(
            None,
            "--groups",
            "column (tables), array (.npz) or file (.npy) that tells the person, record or batch "
            "of a row; whole groups are left out to choose and to test",
            metavar="COLUMN",
        ),
    ] = None,
    test_size: Annotated[
        float,
        _option(None, "--test-size", "kept aside where DATA has no test part", min=0, max=0.99),
    ] = 0.2,
    seed: Annotated[
        int, _option(None, "--seed", "of every random choice", min=0, max=LARGEST_SEED)
    ] = 0,
    budget: BudgetOption = None,
    target: TargetOption = "cortex-m4",
    inputs: Annotated[
        list[str] | None,
        _option(
            None,
            "--inputs",
            "columns that are inputs, of tables and of recordings, parted by commas",
            callback=columns_in,
            metavar="COLUMNS",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        _option(
            None,
            "--drop",
            "columns that are no inputs: an id, a time",
            callback=columns_in,
            metavar="COLUMNS",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        _option(
            None,
            "--missing",
            "rows that lack a value: keep gives it a number of its own (the default for tables), "
            "drop leaves them out, median fills them, as your firmware must then, error refuses "
            "them. Windows of recordings: drop, or error (the default)",
            metavar="keep|drop|median|error",
        ),
    ] = None,
    input_type: Annotated[
        str | None,
        _option(
            None,
            "--input-type",
            "what the firmware takes: uint8, int8, uint16, int16, int32 or float32",
            metavar="TYPE",
        ),
    ] = None,
    method: Annotated[
        str, _option(None, "--method", "learned or paper", metavar="NAME")
    ] = "learned",
    task: Annotated[
        str,
        _option(None, "--task", "classification, or regression to predict values", metavar="NAME"),
    ] = "classification",
    loss: Annotated[
        str | None, _option(_VALUES, "--loss", "squared (the default), absolute or quantile")
    ] = None,
    quantiles: Annotated[
        str | None,
        _option(
            _VALUES,
            "--quantiles",
            "levels of the loss quantile, 0.1,0.5,0.9 by default",
            callback=quantiles_in,
            metavar="LEVELS",
        ),
    ] = None,
    n_components: Annotated[
        int | None,
        _option(
            None,
            "--n-components -p",
            "number of components, instead of what the budget allows",
            min=1,
            metavar="P",
        ),
    ] = None,
    sigma: Annotated[
        float | None, _option(None, "--sigma", "kernel width; searched if not given")
    ] = None,
    n_jobs: Annotated[
        int | None,
        _option(None, "--jobs -j", "threads, all by default; the model is the same", min=1),
    ] = None,
    noise: Annotated[
        float | None,
        _option(_LEARNED, "--noise", "of the phases, in radians; searched if not given"),
    ] = None,
    layout: Annotated[
        str | None,
        _option(_LEARNED, "--layout", "compact, phases, pruned or windows; chosen if not given"),
    ] = None,
    effort: Annotated[
        str | None,
        _option(
            _LEARNED,
            "--effort",
            "to choose layout, sigma, noise and slope: quick takes usual values, normal a race of "
            "short trainings, thorough longer ones",
            metavar="quick|normal|thorough",
            show_default="normal",
        ),
    ] = None,
    epochs: Annotated[
        int | None, _option(_LEARNED, "--epochs", "passes over the rows", min=1)
    ] = None,
    validation: Annotated[
        str | None,
        _option(
            _LEARNED,
            "--validation",
            "choose the best epoch by the rows of this file, or by this share of the training "
            "rows, e.g. 0.1",
            metavar="DATA|SHARE",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        _option(
            _LEARNED,
            "--patience",
            "with --validation: epochs without improvement before the end",
            min=1,
        ),
    ] = None,
    augment: Annotated[
        list[str] | None,
        _option(
            _LEARNED,
            "--augment",
            "vary the rows: affine, shift:1 (images); shift, scale, noise, rotate:0.15 (signals); "
            "may be repeated",
            callback=augmentation_in,
            metavar="KIND[:AMOUNT]",
        ),
    ] = None,
    image_shape: Annotated[
        Any,
        _option(
            _LEARNED,
            "--image-shape",
            "rows are images: height and width, e.g. 28x28, and channels, e.g. 32x32x3",
            parser=image_shape_in,
            metavar="HxW[xC]",
        ),
    ] = None,
    window_shape: Annotated[
        Any,
        _option(
            _LEARNED,
            "--window-shape",
            "rows are windows of a signal: samples and channels, e.g. 128x6",
            parser=window_shape_in,
            metavar="SxC",
        ),
    ] = None,
    local: Annotated[
        str | None,
        _option(
            _LEARNED,
            "--local",
            "off: no kernels in front, though a shape is given (auto)",
            metavar="auto|off",
        ),
    ] = None,
    n_kernels: Annotated[
        int | None,
        _option(
            _LEARNED,
            "--n-kernels",
            "of the local stage, instead of what the budget allows",
            min=1,
            metavar="N",
        ),
    ] = None,
    linear: Annotated[
        Any,
        _option(
            _LEARNED,
            "--linear",
            "bits of a linear part: 2, 4 or 8; off for none; auto compares",
            parser=width_in,
            metavar="BITS",
        ),
    ] = None,
    code: Annotated[
        str | None,
        _option(
            _LEARNED,
            "--code",
            "of components: fast, or small for short flash, which takes up to twice the "
            "instructions; auto",
            metavar="auto|fast|small",
        ),
    ] = None,
    scaler_scope: Annotated[
        str | None, _option(_LEARNED, "--scaler-scope", "auto, feature or global")
    ] = None,
    input_bits: Annotated[
        Any,
        _option(_LEARNED, "--input-bits", "8, 16 or auto", parser=input_bits_in, metavar="BITS"),
    ] = None,
    class_weight: Annotated[
        str | None,
        _option(_LEARNED, "--class-weight", "balanced: all classes count the same"),
    ] = None,
    regularization: Annotated[
        float | None, _option(_PAPER, "--regularization --lambda", "searched if not given")
    ] = None,
    window: Annotated[
        str | None,
        _option(
            _RECORDINGS,
            "--window",
            "length of a window: 2.56s, 2560ms, or a number of samples",
            metavar="TIME",
        ),
    ] = None,
    hop: Annotated[
        str | None,
        _option(
            _RECORDINGS,
            "--hop",
            "from one decision to the next, half a window by default",
            metavar="TIME",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        _option(_RECORDINGS, "--rate", "samples a second, where no file tells it", metavar="HZ"),
    ] = None,
    time: Annotated[
        str | None,
        _option(
            _RECORDINGS, "--time", "column of times, where its name does not say", metavar="COLUMN"
        ),
    ] = None,
    mixed: Annotated[
        str | None,
        _option(
            _RECORDINGS,
            "--mixed",
            "windows of several labels: drop (the default) or majority",
            metavar="drop|majority",
        ),
    ] = None,
    name: Annotated[
        str | None,
        _option(
            _RECORDINGS,
            "--name",
            "where label and group stand in the names of files and folders, e.g. "
            "'{label}_{person}_{n}' or '{person}/{label}/*'",
            metavar="PATTERN",
        ),
    ] = None,
    short: Annotated[
        str | None,
        _option(
            _RECORDINGS,
            "--short",
            "recordings shorter than a window: pad with zeros (the default for sounds) or drop",
            metavar="pad|drop",
        ),
    ] = None,
    like: Annotated[
        Path | None,
        _option(
            None,
            "--like",
            "train a model of the same shape as this one, which its firmware can load as data "
            "(export --as-data)",
            metavar="MODEL",
        ),
    ] = None,
    reject_error: Annotated[
        float | None,
        _option(
            _DECISIONS,
            "--reject-error",
            "answer only as often as an error among the answers of at most this can be promised, "
            "e.g. 1%; calibrates on training rows that are kept aside, whole groups of them",
            parser=parse_share,
            metavar="SHARE",
        ),
    ] = None,
    calibration_size: Annotated[
        float | None,
        _option(
            _DECISIONS,
            "--calibration-size",
            "part of the training rows that is kept aside for --reject-error or --one-class",
            min=0.01,
            max=0.9,
            show_default="0.2",
        ),
    ] = None,
    one_class: OneClassOption = False,
    false_alarms: FalseAlarmsOption = None,
    n_prototypes: PrototypesOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a model that fits and print its accuracy, in floats and as the firmware computes it.

    Without --budget and --n-components the budget is 30KB. Ctrl-C while
    settings are searched ends the search, and the best so far are taken; after the first epoch of
    the training itself it keeps the best model until then.

    With --window, or where DATA is a folder or a .wav, DATA are recordings of a signal: .csv, .tsv,
    .parquet, .npz or .wav. They are cut into windows, and whole recordings are kept aside.
    """
    from tinykernel.codegen.targets import find_target

    check_output_file(output, MODEL_SUFFIXES)
    on_chip = find_target(target).family != "host"
    check_alone(ctx)
    if one_class:
        train_one_class(ctx.params, budget)
        return
    check_method(ctx, method)
    _check_task(ctx.params)
    share = share_in(validation)
    if patience is not None and validation is None:
        raise typer.BadParameter("needs --validation DATA or SHARE", param_hint="--patience")
    if budget is not None and not on_chip:
        raise typer.BadParameter(
            f"{target} has no flash to measure; choose a microcontroller as --target",
            param_hint="--budget",
        )
    parameters = options_of_the_classifier(ctx.params) | {"validation_fraction": share}
    other, options = other_model(like, ctx.params), ctx.params
    if other is not None:
        options = other.options(ctx.params)
        parameters |= other.parameters
    dataset, cut, kept = dataset_for(options, parameters)
    if other is not None:
        other.check_rows(dataset)
    hint = "" if other is not None else shape_hint(dataset, ctx.params)
    asked = on_chip and other is None and not quiet
    narrower = type_hint(dataset, ctx.params, parameters) if asked else ""
    for each in (hint, narrower, groups_hint(cut)):
        if each and not quiet:
            typer.echo(f"hint: {each}", err=True)  # before the long training
    extra = None
    if validation is not None and share is None:
        if cut is not None:
            raise typer.BadParameter("recordings take a share, e.g. 0.1", param_hint="--validation")
        extra = validation_rows(validation, label, groups, dataset, selection_of(ctx.params))
    by_group = groups is not None or cut is not None
    given_sizes = {name for name, value in parameters.items() if value is not None}
    aside: Rows | None = None
    if reject_error is not None:
        check_held(output, method)
        if budget is None and on_chip and not {"n_components", "n_kernels"} & given_sizes:
            budget = default_budget()
        kept["calibration_kept"] = {"size": calibration_size or 0.2, "by_group": by_group}
        dataset, aside = rows_aside(dataset, reject_error, seed, **kept["calibration_kept"])
    elif calibration_size is not None:
        raise typer.BadParameter("goes with --reject-error", param_hint="--calibration-size")
    smaller = None if budget is None or aside is None else less_decisions(budget)
    trained = _train(dataset, parameters, smaller or budget, target, by_group, extra, quiet)
    if other is not None:
        other.check(trained.model)
    # Before anything else, or a fault of what follows would cost the training.
    given = {
        "label": label,
        "groups": groups,
        "test_size": test_size,
        "seed": seed,
        "class_weight": class_weight,
        "task": task if task == "regression" else None,
    }
    about = about_training(trained, dataset, target, given | kept)
    result = summary(trained, dataset) | _save(trained, output, about)
    if aside is not None and reject_error is not None:
        trained, said = decided(trained, aside, reject_error, target, budget, output)
        about |= said
        result = summary(trained, dataset) | _save(trained, output, about) | said
    result |= {"recordings": None if cut is None else str(cut), "hint": hint or None}
    try:
        result |= judged(trained, dataset, extra)
        found = _evaluation(trained, dataset, result, class_weight)
    except BaseException:
        typer.echo(f"{output} holds the trained model; its accuracy is not known", err=True)
        raise
    result |= _save(trained, output, about | {"accuracy": accuracies_of(result)})
    if as_json:
        print_json(result | {"evaluation": None if found is None else found.to_dict()})
    elif not quiet:
        print_training(trained, result, dataset, found)
    if trained.interrupted:
        typer.echo(
            f"training was interrupted after {result['iterations']} epochs; {output} holds the "
            "best model until then",
            err=True,
        )


def options_of_the_classifier(
    options: Mapping[str, Any], besides: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the parameters of the classifier; each is an option of the same name but the seed."""
    left_out = {*_OTHERS, *besides}
    found = {name: value for name, value in options.items() if name not in left_out}
    return found | {"random_state": options["seed"]}


def _evaluation(
    trained: TrainResult, dataset: Dataset, result: Mapping[str, Any], class_weight: str | None
) -> Judged | None:
    """Judge the model on the test rows, beside models that cost next to nothing."""
    from tinykernel.evaluation import evaluate

    if dataset.X_test is None or dataset.y_test is None:
        return None
    return evaluate(
        trained.model,
        dataset.X_test,
        dataset.y_test,
        groups=dataset.group_test,
        train=(dataset.X_train, dataset.y_train),
        class_weight=class_weight,
        float_accuracy=result.get("test_accuracy_float"),
    )


def check_method(ctx: typer.Context, method: str) -> None:
    """Refuse a method that does not exist, and options that only the other method has."""
    if method not in _METHODS:
        raise typer.BadParameter(
            f"{method!r}: choose from {', '.join(_METHODS)}", param_hint="--method"
        )
    for other, panel in _METHODS.items():
        for option in ctx.command.params:
            given = ctx.params.get(str(option.name)) is not None
            if given and other != method and getattr(option, "rich_help_panel", None) == panel:
                raise typer.BadParameter(f"only for --method {other}", param_hint=option.opts[0])


def _check_task(options: Mapping[str, Any]) -> None:
    """Refuse a task that does not exist, and options that only the other one has."""
    task = options["task"]
    if task not in ("classification", "regression"):
        raise typer.BadParameter(
            f"{task!r}: choose from classification, regression", param_hint="--task"
        )
    is_class = task == "classification"
    for name in ("loss", "quantiles") if is_class else ("class_weight", "reject_error"):
        if options[name] is not None:
            other = "regression" if is_class else "classification"
            hint = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"only for --task {other}", param_hint=hint)
    if not is_class and options["method"] != "learned":
        raise typer.BadParameter("only for --task classification", param_hint="--method")


def _train(
    dataset: Dataset,
    parameters: Mapping[str, Any],
    budget: Limits | None,
    target: str,
    by_group: bool,
    extra: Rows | None,
    quiet: bool,
) -> TrainResult:
    from tinykernel.budget import train

    with showing_progress(quiet), warnings.catch_warnings():
        # The command line says it with the result.
        warnings.filterwarnings("ignore", message="training was interrupted")
        return train(
            dataset.X_train,
            dataset.y_train,
            budget=budget,
            target=target,
            groups=dataset.group_train if by_group else None,
            validation=None if extra is None or extra.y is None else (extra.X, extra.y),
            feature_names=dataset.columns,
            value_name=dataset.label if parameters.get("task") == "regression" else None,
            **parameters,
        )


def _save(trained: TrainResult, output: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write the model; .tkm holds what the firmware computes."""
    from tinykernel.modelfile import save

    held = trained.model if output.suffix.lower() == ".tkm" else trained.classifier
    save(held, output, about)
    return {"model": output, "bytes": output.stat().st_size}
