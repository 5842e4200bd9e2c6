"""Train a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.options import (
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
from tinykernel.cli.output import percent, print_json, print_pairs, size
from tinykernel.cli.training import DEFAULT_METHOD, Training, accuracy_of, train_model

if TYPE_CHECKING:
    from tinykernel.data.load import Dataset, Rows

__all__ = ["train_command"]

_METHOD = "Method"
_LEARNED = 'Method "learned"'
_PAPER = 'Method "paper"'
_DEFAULT_BUDGET = 30 * 1024
# Options that only one method has.
_ONLY = {
    "learned": (
        "layout",
        "epochs",
        "patience",
        "validation",
        "search",
        "augment",
        "image_shape",
    ),
    "paper": ("regularization", "loss", "penalty", "coefficients", "scaler", "max_iter"),
}


def _text(help_text: str, panel: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel, metavar=metavar)


def train_command(
    data: DataArgument,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", help="model to write: .tkm or .pkl"),
    ],
    label: LabelOption = None,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="COLUMN",
            help="column (tables), array (.npz) or file (.npy) that tells the person, record or "
            "batch of a row; whole groups are left out to choose and to test",
            show_default=False,
        ),
    ] = None,
    test_size: Annotated[
        float,
        typer.Option("--test-size", min=0, max=0.99, help="kept aside where DATA has no test part"),
    ] = 0.2,
    validation: Annotated[
        str | None,
        typer.Option(
            "--validation",
            metavar="DATA|SHARE",
            help="choose the best epoch by the rows of this file, or by this share of the training "
            "rows, e.g. 0.1",
            rich_help_panel=_LEARNED,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="of every random choice")
    ] = 0,
    budget: BudgetOption = None,
    target: TargetOption = "cortex-m4",
    n_components: Annotated[
        int | None,
        typer.Option(
            "--n-components",
            "-p",
            min=1,
            metavar="P",
            help="binary features, instead of what the budget allows",
        ),
    ] = None,
    method: Annotated[
        str, _text("learned or paper", _METHOD, "--method", metavar="NAME")
    ] = DEFAULT_METHOD,
    sigma: Annotated[
        float | None, _text("kernel width; searched if not given", _METHOD, "--sigma")
    ] = None,
    scaler_scope: Annotated[
        str | None, _text("auto, feature or global", _METHOD, "--scaler-scope")
    ] = None,
    input_bits: Annotated[str | None, _text("8, 16 or auto", _METHOD, "--input-bits")] = None,
    class_weight: Annotated[
        str | None, _text("balanced: all classes count the same", _METHOD, "--class-weight")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", min=1, help="passes over the rows", rich_help_panel=_LEARNED),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            "--patience",
            min=1,
            help="with --validation: epochs without improvement before the end",
            rich_help_panel=_LEARNED,
        ),
    ] = None,
    augment: Annotated[
        list[str] | None,
        typer.Option(
            "--augment",
            metavar="KIND",
            help="shift:1 moves images by up to a pixel; noise or noise:0.3 sets the noise, in "
            "radians, instead of searching it; may be repeated",
            rich_help_panel=_LEARNED,
        ),
    ] = None,
    image_shape: Annotated[
        str | None,
        _text("height and width of images, e.g. 28x28", _LEARNED, "--image-shape", metavar="HxW"),
    ] = None,
    layout: Annotated[
        str | None,
        _text("compact, phases, pruned or windows; chosen if not given", _LEARNED, "--layout"),
    ] = None,
    search: Annotated[
        bool | None,
        typer.Option(
            "--search/--no-search",
            help="choose layout, sigma, noise and slope by short trainings, or take usual values",
            rich_help_panel=_LEARNED,
            show_default="search",
        ),
    ] = None,
    regularization: Annotated[
        float | None, _text("searched if not given", _PAPER, "--regularization", "--lambda")
    ] = None,
    loss: Annotated[
        str | None, _text("squared_hinge, hinge, logistic or squared", _PAPER, "--loss")
    ] = None,
    penalty: Annotated[str | None, _text("l2 or l1", _PAPER, "--penalty")] = None,
    coefficients: Annotated[
        str | None, _text("ternary or binary", _PAPER, "--coefficients")
    ] = None,
    scaler: Annotated[str | None, _text("minmax or standard", _PAPER, "--scaler")] = None,
    max_iter: Annotated[
        int | None, typer.Option("--max-iter", min=1, help="most sweeps", rich_help_panel=_PAPER)
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="threads, all by default; the model is the same"),
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
    parameters = {
        "method": method, "n_components": n_components, "sigma": sigma,
        "regularization": regularization, "loss": loss, "penalty": penalty,
        "coefficients": coefficients, "scaler": scaler, "scaler_scope": scaler_scope,
        "input_bits": int(input_bits) if input_bits in ("8", "16") else input_bits,
        "class_weight": class_weight, "max_iter": max_iter, "layout": layout, "epochs": epochs,
        "patience": patience, "search": search,
        "augment": _augmentation(augment or ()),
        "image_shape": _image_shape(image_shape), "n_jobs": jobs, "random_state": seed,
    }  # fmt: skip
    share = _share(validation)
    _check_method(parameters | {"validation": validation})
    if search is False and layout is None:
        # To choose among formats takes short trainings, too.
        parameters["layout"] = "compact"
    if patience is not None and validation is None:
        raise typer.BadParameter("needs --validation DATA or SHARE", param_hint="--patience")
    if budget is not None and not on_chip:
        raise typer.BadParameter(
            f"{target} has no flash to measure; choose a microcontroller as --target",
            param_hint="--budget",
        )
    if share is not None:
        parameters["validation_fraction"], validation = share, None
    if budget is None and n_components is None and on_chip:
        budget = _DEFAULT_BUDGET
    from tinykernel.data.load import load_data

    dataset = load_data(data, label=label, groups=groups, test_size=test_size, seed=seed)
    extra = None
    if validation is not None:
        extra = _validation_rows(validation, label, groups, dataset)
    training = train_model(
        dataset, parameters, budget=budget, target=target, by_group=groups is not None,
        validation=extra, quiet=quiet,
    )  # fmt: skip
    result = training.summary(output) | _memory(training, target if on_chip else None, budget)
    if extra is not None:
        result["validation"] = {
            "data": extra.source,
            "part": extra.part,
            "rows": len(extra.X),
            "accuracy": accuracy_of(training.integer, extra.X, extra.y),
        }
    result["bytes"] = _save(training, output)
    if as_json:
        print_json(result)
    elif not quiet:
        print_pairs(_in_words(result, dataset))
    if result["interrupted"]:
        typer.echo(
            f"training was interrupted after {result['iterations']} epochs; {output} holds the "
            "best model until then",
            err=True,
        )


def _augmentation(given: Sequence[str]) -> dict[str, float] | None:
    """Read ``--augment``."""
    found: dict[str, float] = {}
    for text in given:
        kind, colon, value = text.partition(":")
        try:
            if kind == "noise" and not colon:
                from tinykernel.training.options import Recipe

                found[kind] = Recipe().noise
            elif kind == "noise":
                found[kind] = float(value)
            elif kind == "shift":
                found[kind] = int(value) if colon else 1
            else:
                raise ValueError
        except ValueError:
            raise typer.BadParameter(
                f"{text!r}: write shift:PIXELS, noise or noise:RADIANS", param_hint="--augment"
            ) from None
    return found or None


def _image_shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)[x,](\d+)", text.strip().lower())
    if match is None:
        raise typer.BadParameter(
            f"{text!r}: write HEIGHTxWIDTH, as in 28x28", param_hint="--image-shape"
        )
    return int(match.group(1)), int(match.group(2))


def _check_method(parameters: Mapping[str, Any]) -> None:
    """Refuse options that only the other method has, and a method that does not exist."""
    method = parameters["method"]
    if method not in _ONLY:
        raise typer.BadParameter(
            f"{method!r}: choose from {', '.join(_ONLY)}", param_hint="--method"
        )
    for other, names in _ONLY.items():
        given = [name for name in names if parameters[name] is not None]
        if other != method and given:
            option = "--" + given[0].replace("_", "-")
            raise typer.BadParameter(f"only for --method {other}", param_hint=option)


def _memory(training: Training, target: str | None, budget: int | None) -> dict[str, Any]:
    """Tell the flash: of a budget as it was measured, else without waiting for a compiler."""
    memory = training.memory
    if memory is None:
        if target is None:
            return {}
        from tinykernel.measure.report import report

        memory = report(training.integer, target, compiler="none")
    return {
        "target": memory.target,
        "flash": memory.flash,
        "ram": memory.ram,
        "flash_source": memory.source,
        "budget": budget,
        "report": memory.to_dict(),
    }


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


def _validation_rows(file: str, label: str | None, groups: str | None, dataset: Dataset) -> Rows:
    from tinykernel.data.load import load_rows
    from tinykernel.errors import TinykernelError

    classes = sorted(set(dataset.y_train.tolist()))
    rows = load_rows(
        file, label=label, groups=groups, n_features=dataset.X_train.shape[1],
        feature_names=dataset.columns, classes=classes,
    )  # fmt: skip
    if rows.y is None:
        raise TinykernelError(f"{file}: has no labels; --validation needs them")
    return rows


def _save(training: Training, output: Path) -> int:
    """Write the model and return the size of the file: .tkm holds what the firmware computes."""
    from tinykernel.modelfile import save

    save(training.integer if output.suffix.lower() == ".tkm" else training.estimator, output)
    return output.stat().st_size


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
