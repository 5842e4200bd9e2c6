"""Train a model."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.calibrate import parse_share
from tinykernel.cli.common.judging import print_all
from tinykernel.cli.common.options import (
    LARGEST_SEED,
    MODEL_SUFFIXES,
    BudgetOption,
    DataArgument,
    JsonOption,
    LabelOption,
    QuietOption,
    TargetOption,
    check_missing,
    check_output_file,
)
from tinykernel.cli.common.output import percent, print_json, print_pairs, size
from tinykernel.cli.common.progress import showing_progress
from tinykernel.cli.common.rejecting import (
    check_held,
    decided,
    default_budget,
    less_decisions,
    rows_aside,
)
from tinykernel.cli.common.remembered import about_training
from tinykernel.cli.predict import in_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.budget import TrainResult
    from tinykernel.data.load import Dataset, Rows
    from tinykernel.data.recordings import Windows
    from tinykernel.data.selection import Selection
    from tinykernel.evaluation import Judged
    from tinykernel.measure.limits import Limits
    from tinykernel.model import IntegerModel

__all__ = [
    "accuracies",
    "check_method",
    "dataset_for",
    "model_words",
    "options_of_the_classifier",
    "summary",
    "train_command",
]

# An option in the panel of a method is refused with the other one.
_LEARNED = 'Method "learned"'
_PAPER = 'Method "paper"'
_METHODS = {"learned": _LEARNED, "paper": _PAPER}
# What is no parameter of the classifier.
_OTHERS = (
    "data", "output", "label", "groups", "test_size", "validation", "seed", "budget", "target",
    "as_json", "quiet", "inputs", "drop", "window", "hop", "rate", "time", "mixed", "missing",
    "input_type", "reject_error", "calibration_size",
)  # fmt: skip
_RECORDINGS = "Recordings"
_DECISIONS = "Decisions"
_VALUES = "Values (--task regression)"
_COLUMNS = ("label", "groups", "inputs", "drop")
# What an augmentation without a number means.
_USUAL = {"affine": 1.0, "shift": 1, "rotate": 0.15, "noise": 0.05, "scale": 0.1}


def _option(panel: str | None, names: str, help_text: str, **settings: Any) -> Any:
    return typer.Option(*names.split(), help=help_text, rich_help_panel=panel, **settings)


def _input_bits(text: str) -> int | str:
    return int(text) if text in ("8", "16") else text


def _augmentation(texts: list[str] | None) -> dict[str, float] | None:
    found: dict[str, float] = {}
    for text in texts or ():
        match = re.fullmatch(r"([a-z]+)(?::(\d+(?:\.\d*)?|\.\d+))?", text.strip())
        whole = match is not None and match[1] == "shift" and "." in (match[2] or "")
        if match is None or match[1] not in _USUAL or whole:
            known = ", ".join(f"{kind}:{usual:g}" for kind, usual in _USUAL.items())
            raise typer.BadParameter(f"{text!r}: write KIND or KIND:AMOUNT, of {known}")
        amount = _USUAL[match[1]] if match[2] is None else float(match[2])
        found[match[1]] = int(amount) if match[1] == "shift" else amount
    return found or None


def _shape(text: str, what: str, lengths: tuple[int, ...], example: str) -> tuple[int, ...]:
    sides = re.fullmatch(r"\d+(?:[x,]\d+)*", text.strip().lower())
    numbers = tuple(map(int, re.split("[x,]", text.strip().lower()))) if sides else ()
    if len(numbers) not in lengths:
        raise typer.BadParameter(f"{text!r}: write {what}, as in {example}")
    return numbers


def _quantiles(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r}: write levels, as in 0.1,0.5,0.9") from None


def _image_shape(text: str) -> tuple[int, ...]:
    return _shape(text, "HEIGHTxWIDTH", (2, 3), "28x28")


def _window_shape(text: str) -> tuple[int, ...]:
    return _shape(text, "SAMPLESxCHANNELS", (2,), "128x6")


def _width(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _columns(texts: list[str] | None) -> list[str] | None:
    names = [name.strip() for text in texts or () for name in text.split(",")]
    return [name for name in names if name] or None


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
            callback=_columns,
            metavar="COLUMNS",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        _option(
            None,
            "--drop",
            "columns that are no inputs: an id, a time",
            callback=_columns,
            metavar="COLUMNS",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        _option(
            None,
            "--missing",
            "rows that lack a value: drop leaves them out, median fills them, as your firmware "
            "must then. Windows of recordings: drop, or error (the default)",
            metavar="drop|median|error",
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
            callback=_quantiles,
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
            callback=_augmentation,
            metavar="KIND[:AMOUNT]",
        ),
    ] = None,
    image_shape: Annotated[
        Any,
        _option(
            _LEARNED,
            "--image-shape",
            "rows are images: height and width, e.g. 28x28, and channels, e.g. 32x32x3",
            parser=_image_shape,
            metavar="HxW[xC]",
        ),
    ] = None,
    window_shape: Annotated[
        Any,
        _option(
            _LEARNED,
            "--window-shape",
            "rows are windows of a signal: samples and channels, e.g. 128x6",
            parser=_window_shape,
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
            parser=_width,
            metavar="BITS",
        ),
    ] = None,
    scaler_scope: Annotated[
        str | None, _option(_LEARNED, "--scaler-scope", "auto, feature or global")
    ] = None,
    input_bits: Annotated[
        Any,
        _option(_LEARNED, "--input-bits", "8, 16 or auto", parser=_input_bits, metavar="BITS"),
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
            "part of the training rows that is kept aside for --reject-error",
            min=0.01,
            max=0.9,
            show_default="0.2",
        ),
    ] = None,
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
    check_method(ctx, method)
    _check_task(ctx.params)
    share = _share(validation)
    if patience is not None and validation is None:
        raise typer.BadParameter("needs --validation DATA or SHARE", param_hint="--patience")
    if budget is not None and not on_chip:
        raise typer.BadParameter(
            f"{target} has no flash to measure; choose a microcontroller as --target",
            param_hint="--budget",
        )
    parameters = options_of_the_classifier(ctx.params) | {"validation_fraction": share}
    dataset, cut, kept = dataset_for(ctx.params, parameters)
    hint = _shape_hint(dataset, ctx.params)
    if hint and not quiet:
        typer.echo(f"hint: {hint}", err=True)  # before the long training
    extra = None
    if validation is not None and share is None:
        if cut is not None:
            raise typer.BadParameter("recordings take a share, e.g. 0.1", param_hint="--validation")
        extra = _validation_rows(validation, label, groups, dataset, _selection(ctx.params))
    by_group = groups is not None or cut is not None
    aside: Rows | None = None
    if reject_error is not None:
        check_held(output, method)
        if budget is None and on_chip and n_components is None and n_kernels is None:
            budget = default_budget()
        kept["calibration_kept"] = {"size": calibration_size or 0.2, "by_group": by_group}
        dataset, aside = rows_aside(dataset, reject_error, seed, **kept["calibration_kept"])
    elif calibration_size is not None:
        raise typer.BadParameter("goes with --reject-error", param_hint="--calibration-size")
    smaller = None if budget is None or aside is None else less_decisions(budget)
    trained = _train(dataset, parameters, smaller or budget, target, by_group, extra, quiet)
    # Before anything else, or a fault of what follows would cost the training.
    given = {"label": label, "groups": groups, "test_size": test_size, "seed": seed,
             "class_weight": class_weight,
             "task": task if task == "regression" else None}  # fmt: skip
    about = about_training(trained, dataset, target, given | kept)
    result = summary(trained, dataset) | _save(trained, output, about)
    if aside is not None and reject_error is not None:
        trained, said = decided(trained, aside, reject_error, target, budget, output)
        about |= said
        result = summary(trained, dataset) | _save(trained, output, about) | said
    result |= {"recordings": None if cut is None else str(cut), "hint": hint or None}
    try:
        result |= _judged(trained, dataset, extra)
        found = _evaluation(trained, dataset, result, class_weight)
    except BaseException:
        typer.echo(f"{output} holds the trained model; its accuracy is not known", err=True)
        raise
    result |= _save(trained, output, about | {"accuracy": _accuracies_of(result)})
    if as_json:
        print_json(result | {"evaluation": None if found is None else found.to_dict()})
    elif not quiet:
        _print(result, dataset, found)
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


def dataset_for(
    options: Mapping[str, Any], parameters: dict[str, Any]
) -> tuple[Dataset, Windows | None, dict[str, Any]]:
    """Load rows, or cut recordings; also what the model is to remember of it."""
    from tinykernel.data.load import load_data
    from tinykernel.data.signals import is_recording, load_recordings

    data = options["data"]
    split = {"test_size": options["test_size"], "seed": options["seed"]}
    if options["window"] is not None or is_recording(data):
        for name in ("window_shape", "image_shape", "input_type"):
            if options[name] is not None:
                hint = f"--{name.replace('_', '-')}"
                raise typer.BadParameter("not for recordings", param_hint=hint)
        if options.get("task") == "regression":
            raise typer.BadParameter(
                "takes rows with values, as in .csv or .npz; recordings have labels",
                param_hint="--task",
            )
        check_missing(options["missing"], ("drop", "error"), "windows of recordings")
        how = {name: options[name] for name in (*_COLUMNS, "window", "hop", "rate", "time")}
        how |= {"drop": options["drop"] or (), "mixed": options["mixed"] or "drop",
                "missing": options["missing"] or "error"}  # fmt: skip
        dataset, cut, kept = load_recordings(data, **how, **split)
        parameters["hop"] = cut.hop
        return dataset, cut, kept
    for name in ("rate", "time", "mixed"):
        if options[name] is not None:
            raise typer.BadParameter("for recordings: give --window", param_hint=f"--{name}")
    if options["hop"] is not None:
        parameters["hop"] = _hop_of_rows(options)
    selection = _selection(options)
    dataset = load_data(
        data, label=options["label"], groups=options["groups"], selection=selection,
        input_type=options["input_type"], values=options.get("task") == "regression", **split,
    )  # fmt: skip
    inputs = dataset.columns if selection.names_columns else None
    kept = {"missing": selection.missing, "medians": dataset.medians, "inputs": inputs}
    return dataset, None, kept


def _hop_of_rows(options: Mapping[str, Any]) -> int:
    """Read --hop where rows are windows, of which no rate is known."""
    window = options["window_shape"]
    if window is None:
        raise typer.BadParameter("for recordings: give --window", param_hint="--hop")
    if not options["hop"].isdigit() or not 0 < int(options["hop"]) <= window[0]:
        raise typer.BadParameter(
            f"{options['hop']!r}: give samples, from 1 to the window's {window[0]}",
            param_hint="--hop",
        )
    return int(options["hop"])


def _shape_hint(dataset: Dataset, options: Mapping[str, Any]) -> str:
    """Say that a shape would help, where rows look like images or were windows in the file."""
    given = (options[name] for name in ("image_shape", "window_shape", "window"))
    if options["method"] != "learned" or any(value is not None for value in given):
        return ""
    if dataset.X_train.ndim > 2:
        return ""
    if dataset.shape is not None and len(dataset.shape) in (2, 3):
        text = "x".join(map(str, dataset.shape))
        window = f"--window-shape {text} (a signal) or " if len(dataset.shape) == 2 else ""
        return f"rows have a shape; {window}--image-shape {text} would make use of it"
    side = math.isqrt(dataset.X_train.shape[1])
    square = dataset.columns is None and side >= 8 and side**2 == dataset.X_train.shape[1]
    if square and _one_unit(dataset.X_train):
        return f"rows look like images; --image-shape {side}x{side} would make use of it"
    return ""


def _one_unit(X: NDArray[Any]) -> bool:
    """Whether all inputs are of one unit, as the trainer sees it."""
    from tinykernel.model.scaling import choose_scope

    return choose_scope(X, "auto") == "global"


def summary(trained: TrainResult, dataset: Dataset) -> dict[str, Any]:
    """Return what ``train --json`` prints, but for the file and the accuracies."""
    learned, classifier = trained.method == "learned", trained.classifier
    test, stage = dataset.y_test, trained.model.local
    found = {
        "data": dataset.source,
        "split": dataset.split,
        "train_rows": len(dataset.y_train),
        "test_rows": 0 if test is None else len(test),
        "features": trained.model.n_inputs,
        "classes": len(trained.model.classes),
        "method": trained.method,
        "model_kind": model_words(trained.model),
        "compared": compared(classifier) if learned else "",
        "search": (classifier.search_ or None) if learned else None,
        "layout": classifier.layout_ if learned else None,
        "components": classifier.n_components_,
        "kernels": None if stage is None else stage.n_kernels,
        "local": None if stage is None else "signal" if stage.is_signal else "image",
        "sigma": classifier.sigma_,
        "regularization": None if learned else classifier.regularization_,
        "iterations": classifier.n_iter_,
        "interrupted": trained.interrupted,
        "seconds": round(trained.seconds, 3),
    }
    if trained.model.values is not None:
        found["outputs"] = list(trained.model.values.names)
    memory = trained.memory
    if memory is None:
        return found
    return found | {
        "target": memory.target,
        "flash": memory.flash,
        "ram": memory.ram,
        "flash_source": memory.source,
        "budget": trained.budget,
        "limits": str(trained.limits) if trained.limits else None,
        "report": memory.to_dict(),
    }


def model_words(model: IntegerModel) -> str:
    """Say in words of what a model consists."""
    n_inputs, stage = f"{model.n_inputs} inputs", model.local
    parts = []
    if stage is not None:
        shape = " x ".join(map(str, stage.shape))
        what = f"windows of {shape}" if stage.is_signal else f"images of {shape}"
        parts.append(f"{stage.n_kernels} kernels on {what}")
        n_inputs = f"{model.n_features} counts"
    if model.n_components:
        parts.append(f"{model.n_components} components of {n_inputs}")
    if model.linear is not None:
        from tinykernel.codegen.packing_linear import weight_bits

        parts.append(f"linear part of {n_inputs}, {weight_bits(model.linear)} bits")
    return ", ".join(parts)


def compared(classifier: Any) -> str:
    """Say how the kinds of models did among which the trainer chose, in short trainings."""
    from tinykernel.training.options import form_of

    best: dict[str, float] = {}
    for trial in classifier.trials_:
        form = form_of(trial["layout"] if trial["n_components"] else None, trial["linear_bits"])
        best[form] = max(best.get(form, 0.0), trial["accuracy"])
    if not any("linear" in form for form in best):
        return ""
    ranked = sorted(best.items(), key=lambda item: -item[1])
    return ", ".join(f"{form} {percent(share)}" for form, share in ranked)


def accuracies(trained: TrainResult, dataset: Dataset) -> dict[str, float | None]:
    """Return the accuracies, 0 to 1, of the integers and the floats; None without test rows.

    Of values they are called r2, and are that.
    """
    found: dict[str, float | None] = {}
    measure = _measure(trained.model)
    for part, X, y in (
        ("train", dataset.X_train, dataset.y_train),
        ("test", dataset.X_test, dataset.y_test),
    ):
        found[f"{part}_{measure}"] = _accuracy(trained.model, X, y)
        found[f"{part}_{measure}_float"] = _accuracy(trained.classifier, X, y)
    return found


def _measure(model: IntegerModel) -> str:
    return "accuracy" if model.values is None else "r2"


def _accuracy(model: Any, X: NDArray[Any] | None, y: NDArray[Any] | None) -> float | None:
    """Return the share of rows that a model labels right, or R2; None where there are none."""
    if X is None or y is None:
        return None
    with warnings.catch_warnings():
        # The columns of the file were checked when it was read.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        found = in_batches(model.predict, X)
    if y.dtype.kind == "f":  # values; labels are never floats
        from sklearn.metrics import r2_score

        columns = found.reshape(len(y), -1)
        return float(r2_score(y, columns[:, columns.shape[1] // 2])) if len(y) > 1 else None
    return float((found == y).mean())


def _judged(trained: TrainResult, dataset: Dataset, extra: Rows | None) -> dict[str, Any]:
    found: dict[str, Any] = dict(accuracies(trained, dataset))
    if extra is not None:
        found["validation"] = {
            "data": extra.source,
            "part": extra.part,
            "rows": len(extra.X),
            _measure(trained.model): _accuracy(trained.model, extra.X, extra.y),
        }
    return found


def _evaluation(
    trained: TrainResult, dataset: Dataset, result: Mapping[str, Any], class_weight: str | None
) -> Judged | None:  # fmt: skip
    """Judge the model on the test rows, beside models that cost next to nothing."""
    from tinykernel.evaluation import evaluate

    if dataset.X_test is None or dataset.y_test is None:
        return None
    return evaluate(
        trained.model, dataset.X_test, dataset.y_test,
        groups=dataset.group_test,
        train=(dataset.X_train, dataset.y_train), class_weight=class_weight,
        float_accuracy=result.get("test_accuracy_float"),
    )  # fmt: skip


def _print(result: Mapping[str, Any], dataset: Dataset, found: Judged | None) -> None:
    """Print the training, and what the model gets right and wrong on the test rows."""
    print_pairs(_in_words(result, dataset))
    for note in dataset.notes:
        typer.echo(f"note: {note}")
    if dataset.medians is not None:
        typer.echo("note: your firmware must put the same medians in the place of missing values; "
                   "tinykernel inspect lists them")  # fmt: skip
    if found is not None:
        typer.echo("\nOn the test rows:")
        print_all(found)


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


def _share(validation: str | None) -> float | None:
    """Read --validation as a number; None where it names a file."""
    if validation is None:
        return None
    try:
        share = float(validation)
    except ValueError:
        return None
    if not 0 < share < 0.5:
        raise typer.BadParameter(
            f"{validation!r}: write a share above 0 and below 0.5, or a file",
            param_hint="--validation",
        )
    return share


def _selection(options: Mapping[str, Any]) -> Selection:
    """Return what is taken of a table."""
    from tinykernel.data.selection import Selection

    inputs, drop, missing = (options[name] for name in ("inputs", "drop", "missing"))
    check_missing(missing, ("drop", "median"), "rows of tables and arrays")
    return Selection(tuple(inputs) if inputs else None, tuple(drop or ()), missing)


def _validation_rows(
    file: str, label: str | None, groups: str | None, dataset: Dataset, selection: Selection
) -> Rows:
    from tinykernel.data.load import load_rows
    from tinykernel.errors import TinykernelError

    values = dataset.y_train.dtype.kind == "f"
    classes = None if values else sorted(set(dataset.y_train.tolist()))
    inputs = dataset.columns if selection.names_columns else None
    same = replace(selection, inputs=inputs, drop=(), medians=dataset.medians)
    rows = load_rows(
        file, label=label, groups=groups, n_features=dataset.X_train.shape[1],
        feature_names=dataset.columns, classes=classes,
        selection=same, values=values,
    )  # fmt: skip
    if rows.y is None:
        raise TinykernelError(f"{file}: has no labels; --validation needs them")
    return rows


def _train(
    dataset: Dataset, parameters: Mapping[str, Any], budget: Limits | None, target: str,
    by_group: bool, extra: Rows | None, quiet: bool,
) -> TrainResult:  # fmt: skip
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


def _accuracies_of(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the accuracies (R2 of values) of the integers, for the model file."""
    names = [f"{part}_{measure}" for part in ("train", "test") for measure in ("accuracy", "r2")]
    return {name: float(result[name]) for name in names if result.get(name) is not None}


def _save(trained: TrainResult, output: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write the model; .tkm holds what the firmware computes."""
    from tinykernel.modelfile import save

    held = trained.model if output.suffix.lower() == ".tkm" else trained.classifier
    save(held, output, about)
    return {"model": output, "bytes": output.stat().st_size}


def _searched(found: Mapping[str, Any] | None) -> str:
    """Say what the search chose and gained."""
    if not found or not found["trials"]:
        return ""
    text = f"{found['trials']} short trainings chose {found['chosen']}"
    if found["log_loss"] is not None:
        gained = "" if found["log_loss"] < found["log_loss_usual"] else ": no gain"
        text += (f"; log loss {found['log_loss_usual']:.3f} with usual values, "
                 f"{found['log_loss']:.3f} with these{gained}")  # fmt: skip
    return text + ("; Ctrl-C ended the search" if found["interrupted"] else "")


def _why_left(result: Mapping[str, Any]) -> str:
    """Say why a large budget is not used up."""
    from tinykernel.measure.capacity import MOST_CHOSEN, MOST_KERNELS

    if result["kernels"] is not None:
        most, what, option = MOST_KERNELS[result["local"]], "kernels", "--n-kernels"
    else:
        most, what, option = MOST_CHOSEN, "components", "--n-components"
    if (result["kernels"] or result["components"]) < most:
        return ""
    return f" ({most} {what} are the most that are chosen; {option} takes more)"


def _in_words(result: Mapping[str, Any], dataset: Dataset) -> list[tuple[str, str]]:
    def both(part: str) -> str:
        if result.get(f"{part}_{measure}") is None:
            return ""
        names = (f"{part}_{measure}_float", f"{part}_{measure}")
        exact, rounded = (shown(result[name]) for name in names)
        return f"{exact} in floats, {rounded} in integers as in the firmware"

    def shown(share: float) -> str:
        return percent(share) if measure == "accuracy" else f"R2 {share:.4f}"

    measure, what = "accuracy", f"{result['classes']} classes"
    if result.get("outputs"):
        measure, what = "r2", f"predicts {', '.join(result['outputs'])}"

    stored = f", layout {result['layout']}" if result["layout"] else ""
    pairs = [
        ("data", result["recordings"] or f"{dataset.source}: {dataset.split}"),
        ("split", dataset.split if result["recordings"] else ""),
        ("model", f"{result['model_kind']}, {what}, method "
         f"{result['method']}{stored}"),
        ("compared", result["compared"]),
        ("search", _searched(result["search"])),
        ("training", both("train")),
        ("test", both("test")),
    ]  # fmt: skip
    if "validation" in result:
        extra = result["validation"]
        where = f"{extra['rows']} rows, {extra['part']} of {extra['data']}"
        pairs.append(("validation", f"{shown(extra[measure])} in integers ({where})"))
    if "flash" in result:
        flash = f"{size(result['flash'])} on {result['target']} ({result['flash_source']})"
        if result["budget"] is not None:
            left = result["budget"] - result["flash"]
            flash += f", {size(left)} of the budget of {size(result['budget'])} left"
            flash += _why_left(result)
        pairs.append(("flash", flash))
        pairs.append(("RAM", size(result["ram"])))
        speed = result["report"]["instructions"]
        pairs.append(("instructions", "" if speed is None else f"about {speed} an inference"))
        pairs.append(("over", "; ".join(result["report"]["problems"])))
    if "calibration" in result:
        pairs.append(("promise", result["calibration"]["statement"]))
    pairs.append(("time", f"{result['seconds']:.1f} s"))
    pairs.append(("file", f"{result['model']} ({size(result['bytes'])})"))
    return pairs
