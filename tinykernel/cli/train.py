"""Train a model."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli._judging import evaluation_in_words, print_classes, print_verdict
from tinykernel.cli._options import (
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
from tinykernel.cli._output import percent, print_json, print_pairs, size
from tinykernel.cli._progress import showing_progress
from tinykernel.cli._remembered import about_training
from tinykernel.cli.predict import in_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.budget import TrainResult
    from tinykernel.data.load import Dataset, Rows
    from tinykernel.data.selection import Selection
    from tinykernel.evaluation import Evaluation

__all__ = ["accuracies", "summary", "train_command"]

# An option in the panel of a method is refused with the other one.
_LEARNED = 'Method "learned"'
_PAPER = 'Method "paper"'
_METHODS = {"learned": _LEARNED, "paper": _PAPER}
# What is no parameter of the classifier.
_OTHERS = (
    "data", "output", "label", "groups", "test_size", "validation", "seed", "budget", "target",
    "as_json", "quiet", "inputs", "drop", "missing", "input_type",
)  # fmt: skip


def _option(panel: str | None, names: str, help_text: str, **settings: Any) -> Any:
    return typer.Option(*names.split(), help=help_text, rich_help_panel=panel, **settings)


def _input_bits(text: str) -> int | str:
    return int(text) if text in ("8", "16") else text


def _augmentation(text: str) -> dict[str, int]:
    match = re.fullmatch(r"shift(?::(\d+))?", text)
    if match is None:
        raise typer.BadParameter(f"{text!r}: write shift:PIXELS, as in shift:1")
    return {"shift": int(match.group(1) or 1)}


def _image_shape(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)[x,](\d+)", text.strip().lower())
    if match is None:
        raise typer.BadParameter(f"{text!r}: write HEIGHTxWIDTH, as in 28x28")
    return int(match.group(1)), int(match.group(2))


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
        str | None,
        _option(
            None,
            "--inputs",
            "columns of a table that are inputs, parted by commas",
            metavar="COLUMNS",
        ),
    ] = None,
    drop: Annotated[
        str | None,
        _option(
            None,
            "--drop",
            "columns of a table that are no inputs: an id, a time",
            metavar="COLUMNS",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        _option(
            None,
            "--missing",
            "drop: leave rows out that lack a value; median: fill them, as your firmware must then",
            metavar="HOW",
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
    search: Annotated[
        bool | None,
        _option(
            _LEARNED,
            "--search/--no-search",
            "choose layout, sigma, noise and slope by short trainings, or take usual values",
            show_default="search",
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
        Any,
        _option(
            _LEARNED,
            "--augment",
            "shift:1 moves images by up to a pixel",
            parser=_augmentation,
            metavar="KIND",
        ),
    ] = None,
    image_shape: Annotated[
        Any,
        _option(
            _LEARNED,
            "--image-shape",
            "height and width of images, e.g. 28x28",
            parser=_image_shape,
            metavar="HxW",
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
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a model that fits and print its accuracy, in floats and as the firmware computes it.

    Without --budget and --n-components the budget is 30KB. Ctrl-C after the first epoch of the
    training itself, not of the short ones before it, keeps the best model until then.
    """
    from tinykernel.codegen.targets import find_target

    check_output_file(output, MODEL_SUFFIXES)
    on_chip = find_target(target).family != "host"
    _check_method(ctx, method)
    share = _share(validation)
    if patience is not None and validation is None:
        raise typer.BadParameter("needs --validation DATA or SHARE", param_hint="--patience")
    if budget is not None and not on_chip:
        raise typer.BadParameter(
            f"{target} has no flash to measure; choose a microcontroller as --target",
            param_hint="--budget",
        )
    # The name of each other option is that of a parameter of the classifier.
    parameters = {name: value for name, value in ctx.params.items() if name not in _OTHERS}
    parameters |= {"random_state": seed, "validation_fraction": share}
    from tinykernel.data.load import load_data

    selection = _selection(inputs, drop, missing)
    dataset = load_data(
        data, label=label, groups=groups, test_size=test_size, seed=seed, selection=selection,
        input_type=input_type,
    )  # fmt: skip
    extra = None
    if validation is not None and share is None:
        extra = _validation_rows(validation, label, groups, dataset, selection)
    trained = _train(dataset, parameters, budget, target, groups is not None, extra, quiet)
    # Before anything else, or a fault of what follows would cost the training.
    given = {"label": label, "groups": groups, "test_size": test_size, "seed": seed,
             "class_weight": class_weight, "missing": missing, "medians": dataset.medians,
             "inputs": dataset.columns if selection.names_columns else None}  # fmt: skip
    about = about_training(trained, dataset, target, given)
    result = summary(trained, dataset) | _save(trained, output, about)
    try:
        result |= _judged(trained, dataset, extra)
        found = _evaluation(trained, dataset, result, class_weight)
    except BaseException:
        typer.echo(f"{output} holds the trained model; its accuracy is not known", err=True)
        raise
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


def summary(trained: TrainResult, dataset: Dataset) -> dict[str, Any]:
    """Return what ``train --json`` prints, but for the file and the accuracies."""
    learned, classifier = trained.method == "learned", trained.classifier
    test = dataset.y_test
    found = {
        "data": dataset.source,
        "split": dataset.split,
        "train_rows": len(dataset.y_train),
        "test_rows": 0 if test is None else len(test),
        "features": trained.model.n_features,
        "classes": len(trained.model.classes),
        "method": trained.method,
        "layout": classifier.layout_ if learned else None,
        "components": classifier.n_components_,
        "sigma": classifier.sigma_,
        "regularization": None if learned else classifier.regularization_,
        "iterations": classifier.n_iter_,
        "interrupted": trained.interrupted,
        "seconds": round(trained.seconds, 3),
    }
    memory = trained.memory
    if memory is None:
        return found
    return found | {
        "target": memory.target,
        "flash": memory.flash,
        "ram": memory.ram,
        "flash_source": memory.source,
        "budget": trained.budget,
        "report": memory.to_dict(),
    }


def accuracies(trained: TrainResult, dataset: Dataset) -> dict[str, float | None]:
    """Return the accuracies, 0 to 1, of the integers and the floats; None without test rows."""
    found: dict[str, float | None] = {}
    for part, X, y in (
        ("train", dataset.X_train, dataset.y_train),
        ("test", dataset.X_test, dataset.y_test),
    ):
        found[f"{part}_accuracy"] = _accuracy(trained.model, X, y)
        found[f"{part}_accuracy_float"] = _accuracy(trained.classifier, X, y)
    return found


def _accuracy(model: Any, X: NDArray[Any] | None, y: NDArray[Any] | None) -> float | None:
    """Return the share of rows that a model labels right, or None where there are none."""
    if X is None:
        return None
    with warnings.catch_warnings():
        # The columns of the file were checked when it was read.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return float((in_batches(model.predict, X) == y).mean())


def _judged(trained: TrainResult, dataset: Dataset, extra: Rows | None) -> dict[str, Any]:
    found: dict[str, Any] = dict(accuracies(trained, dataset))
    if extra is not None:
        found["validation"] = {
            "data": extra.source,
            "part": extra.part,
            "rows": len(extra.X),
            "accuracy": _accuracy(trained.model, extra.X, extra.y),
        }
    return found


def _evaluation(
    trained: TrainResult, dataset: Dataset, result: Mapping[str, Any], class_weight: str | None
) -> Evaluation | None:  # fmt: skip
    """Judge the model on the test rows, beside models that cost next to nothing."""
    from tinykernel.evaluation import evaluate

    if dataset.X_test is None or dataset.y_test is None:
        return None
    return evaluate(
        trained.model, dataset.X_test, dataset.y_test,
        groups=dataset.group_test,
        train=(dataset.X_train, dataset.y_train), class_weight=class_weight,
        float_accuracy=result["test_accuracy_float"],
    )  # fmt: skip


def _print(result: Mapping[str, Any], dataset: Dataset, found: Evaluation | None) -> None:
    """Print the training, and what the model gets right and wrong on the test rows."""
    print_pairs(_in_words(result, dataset))
    for note in dataset.notes:
        typer.echo(f"note: {note}")
    if dataset.medians is not None:
        typer.echo("note: your firmware must put the same medians in the place of missing values; "
                   "tinykernel inspect lists them")  # fmt: skip
    if found is not None:
        typer.echo("\nOn the test rows:")
        print_pairs(evaluation_in_words(found))
        print_classes(found)
        print_verdict(found)


def _check_method(ctx: typer.Context, method: str) -> None:
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


def _columns(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _selection(inputs: str | None, drop: str | None, missing: str | None) -> Selection:
    from tinykernel.data.selection import Selection

    if missing not in (None, "drop", "median"):
        raise typer.BadParameter(f"{missing!r}: write drop or median", param_hint="--missing")
    return Selection(_columns(inputs) or None, _columns(drop), missing)


def _validation_rows(
    file: str, label: str | None, groups: str | None, dataset: Dataset, selection: Selection
) -> Rows:
    from tinykernel.data.load import load_rows
    from tinykernel.errors import TinykernelError

    classes = sorted(set(dataset.y_train.tolist()))
    inputs = dataset.columns if selection.names_columns else None
    same = replace(selection, inputs=inputs, drop=(), medians=dataset.medians)
    rows = load_rows(
        file, label=label, groups=groups, n_features=dataset.X_train.shape[1],
        feature_names=dataset.columns, classes=classes,
        selection=same,
    )  # fmt: skip
    if rows.y is None:
        raise TinykernelError(f"{file}: has no labels; --validation needs them")
    return rows


def _train(
    dataset: Dataset, parameters: Mapping[str, Any], budget: int | None, target: str,
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
            **parameters,
        )


def _save(trained: TrainResult, output: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write the model; .tkm holds what the firmware computes."""
    from tinykernel.modelfile import save

    save(trained.model if output.suffix.lower() == ".tkm" else trained.classifier, output, about)
    return {"model": output, "bytes": output.stat().st_size}


def _why_left(components: int) -> str:
    """Say why a large budget is not used up."""
    from tinykernel.measure.capacity import MOST_CHOSEN

    if components < MOST_CHOSEN:
        return ""
    return f" ({MOST_CHOSEN} components are the most that are chosen; --n-components takes more)"


def _in_words(result: Mapping[str, Any], dataset: Dataset) -> list[tuple[str, str]]:
    def both(part: str) -> str:
        if result[f"{part}_accuracy"] is None:
            return ""
        exact, rounded = result[f"{part}_accuracy_float"], result[f"{part}_accuracy"]
        return f"{percent(exact)} in floats, {percent(rounded)} in integers as in the firmware"

    stored = f", layout {result['layout']}" if result["layout"] else ""
    pairs = [
        ("data", f"{dataset.source}: {dataset.split}"),
        ("model", f"{result['components']} components of {result['features']} inputs, "
         f"{result['classes']} classes, method {result['method']}{stored}"),
        ("training", both("train")),
        ("test", both("test")),
    ]  # fmt: skip
    if "validation" in result:
        extra = result["validation"]
        where = f"{extra['rows']} rows, {extra['part']} of {extra['data']}"
        pairs.append(("validation", f"{percent(extra['accuracy'])} in integers ({where})"))
    if "flash" in result:
        flash = f"{size(result['flash'])} on {result['target']} ({result['flash_source']})"
        if result["budget"] is not None:
            left = result["budget"] - result["flash"]
            flash += f", {size(left)} of the budget of {size(result['budget'])} left"
            flash += _why_left(result["components"])
        pairs.append(("flash", flash))
        pairs.append(("RAM", size(result["ram"])))
    pairs.append(("time", f"{result['seconds']:.1f} s"))
    pairs.append(("file", f"{result['model']} ({size(result['bytes'])})"))
    return pairs
