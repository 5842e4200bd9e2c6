"""Train a model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.options import (
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
from tinykernel.cli.progress import showing_progress
from tinykernel.errors import TinykernelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data import Dataset, Rows
    from tinykernel.estimator import TernaryKernelClassifier
    from tinykernel.integer import IntegerModel

__all__ = ["Training", "train_command", "train_model"]

_METHOD = "Method"


def train_command(
    data: DataArgument,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", help="model to write: .tkm or .pkl"),
    ],
    label: LabelOption = None,
    test_size: Annotated[
        float,
        typer.Option("--test-size", min=0, max=0.99, help="kept aside where DATA has no test part"),
    ] = 0.2,
    validation: Annotated[
        str | None,
        typer.Option("--validation", metavar="DATA", help="report the accuracy on this file too"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="of every random choice")] = 0,
    budget: BudgetOption = None,
    target: TargetOption = "cortex-m4",
    method: Annotated[
        str | None, typer.Option("--method", help="paper or learned", rich_help_panel=_METHOD)
    ] = None,
    n_components: Annotated[
        int | None,
        typer.Option(
            "--n-components",
            "-p",
            min=1,
            metavar="P",
            rich_help_panel=_METHOD,
            help="binary features; 2048, or what the budget allows",
        ),
    ] = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            "--sigma", help="kernel width; searched if not given", rich_help_panel=_METHOD
        ),
    ] = None,
    regularization: Annotated[
        float | None,
        typer.Option(
            "--regularization", "--lambda", help="searched if not given", rich_help_panel=_METHOD
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss", help="squared_hinge, hinge, logistic or squared", rich_help_panel=_METHOD
        ),
    ] = None,
    penalty: Annotated[
        str | None, typer.Option("--penalty", help="l2 or l1", rich_help_panel=_METHOD)
    ] = None,
    coefficients: Annotated[
        str | None,
        typer.Option("--coefficients", help="ternary or binary", rich_help_panel=_METHOD),
    ] = None,
    scaler: Annotated[
        str | None, typer.Option("--scaler", help="minmax or standard", rich_help_panel=_METHOD)
    ] = None,
    scaler_scope: Annotated[
        str | None,
        typer.Option("--scaler-scope", help="auto, feature or global", rich_help_panel=_METHOD),
    ] = None,
    input_bits: Annotated[
        str | None,
        typer.Option("--input-bits", help="8, 16 or auto", rich_help_panel=_METHOD),
    ] = None,
    class_weight: Annotated[
        str | None, typer.Option("--class-weight", help="balanced", rich_help_panel=_METHOD)
    ] = None,
    max_iter: Annotated[
        int | None,
        typer.Option("--max-iter", min=1, help="paper: most sweeps", rich_help_panel=_METHOD),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage", help="learned: compact, phases or windows", rich_help_panel=_METHOD
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            "--epochs", min=1, help="learned: passes over the rows", rich_help_panel=_METHOD
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="threads, all by default; the model is the same"),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a model and print its accuracy, in floats and as the firmware computes it."""
    from tinykernel.codegen.targets import find_target

    check_output_file(output, MODEL_SUFFIXES)
    row = find_target(target)
    parameters = {
        "method": method,
        "n_components": n_components,
        "sigma": sigma,
        "regularization": regularization,
        "loss": loss,
        "penalty": penalty,
        "coefficients": coefficients,
        "scaler": scaler,
        "scaler_scope": scaler_scope,
        "input_bits": int(input_bits) if input_bits in ("8", "16") else input_bits,
        "class_weight": class_weight,
        "max_iter": max_iter,
        "storage": storage,
        "epochs": epochs,
        "n_jobs": jobs,
        "random_state": seed,
    }
    from tinykernel.data import load_data

    dataset = load_data(data, label=label, test_size=test_size, seed=seed)
    extra = None if validation is None else _validation_rows(validation, label, dataset)
    training = train_model(dataset, parameters, budget=budget, target=target, quiet=quiet)
    result = training.summary(output)
    if extra is not None:
        result["validation"] = {
            "data": extra.source,
            "part": extra.part,
            "rows": len(extra.X),
            "accuracy": _accuracy(training.integer, extra.X, extra.y),
        }
    if budget is not None:
        result |= _flash(training.integer, target, budget)
    result["bytes"] = _save(training, output)
    if budget is None and row.family != "host":
        result |= _flash(training.integer, target, None)
    if as_json:
        print_json(result)
    elif not quiet:
        print_pairs(_in_words(result, dataset))


@dataclass(frozen=True, eq=False)
class Training:
    """A trained model and what was measured on the way.

    Parameters
    ----------
    dataset : Dataset
    estimator : TernaryKernelClassifier
        Fitted.
    integer : IntegerModel
        What the firmware computes.
    seconds : float
        Time of the training.
    accuracies : dict of str to float or None
        ``train`` and ``test`` of the integer model, ``train_float`` and ``test_float``; 0 to 1,
        None where there are no test rows.
    """

    dataset: Dataset
    estimator: TernaryKernelClassifier
    integer: IntegerModel
    seconds: float
    accuracies: dict[str, float | None]

    def summary(self, output: Path | None = None) -> dict[str, Any]:
        """Return what ``train --json`` prints, but for the size of the file.

        Parameters
        ----------
        output : pathlib.Path, optional
            The file that the model is written to.
        """
        test = self.dataset.y_test
        return {
            "model": output,
            "data": self.dataset.source,
            "split": self.dataset.split,
            "train_rows": len(self.dataset.y_train),
            "test_rows": 0 if test is None else len(test),
            "features": self.integer.n_features,
            "classes": len(self.integer.classes),
            "method": self.estimator.method,
            "components": self.estimator.n_components,
            "sigma": self.estimator.sigma_,
            "regularization": self.estimator.regularization_,
            "train_accuracy": self.accuracies["train"],
            "train_accuracy_float": self.accuracies["train_float"],
            "test_accuracy": self.accuracies["test"],
            "test_accuracy_float": self.accuracies["test_float"],
            "seconds": round(self.seconds, 3),
        }


def train_model(
    dataset: Dataset,
    parameters: Mapping[str, Any],
    *,
    budget: int | None = None,
    target: str = "cortex-m4",
    quiet: bool = False,
) -> Training:
    """Train, quantise and measure.

    Parameters
    ----------
    dataset : Dataset
    parameters : mapping
        Of `TernaryKernelClassifier`; entries that are None take its defaults.
    budget : int, optional
        Bytes of flash that the model may take. Without ``n_components`` the largest number is
        chosen that keeps to it.
    target : str, default="cortex-m4"
        Processor that the budget is for.
    quiet : bool, default=False
        Show no progress.

    Returns
    -------
    Training

    Raises
    ------
    TinykernelError
        If a parameter is wrong or the budget cannot be met.
    """
    from tinykernel.estimator import TernaryKernelClassifier

    given = {name: value for name, value in parameters.items() if value is not None}
    X, y = dataset.X_train, dataset.y_train
    if budget is not None and "n_components" not in given:
        from tinykernel.cli.budget import components_within

        given["n_components"] = components_within(X, y, given, budget=budget, target=target)
    estimator = TernaryKernelClassifier(**given)
    started = time.perf_counter()
    with showing_progress(quiet):
        estimator.fit(X, y)
    seconds = time.perf_counter() - started
    integer = estimator.quantize()
    accuracies = {
        "train": _accuracy(integer, X, y),
        "train_float": _accuracy(estimator, X, y),
        "test": _accuracy(integer, dataset.X_test, dataset.y_test),
        "test_float": _accuracy(estimator, dataset.X_test, dataset.y_test),
    }
    return Training(dataset, estimator, integer, seconds, accuracies)


def _flash(integer: IntegerModel, target: str, budget: int | None) -> dict[str, Any]:
    """Measure the flash; with a budget by linking where there is a compiler, and keep to it."""
    from tinykernel.measure.report import report

    found = report(integer, target, budget, compiler="none" if budget is None else "auto")
    if budget is not None and found.flash > budget:
        raise TinykernelError(
            f"the trained model needs {found.flash} bytes of flash on {target} ({found.source}), "
            f"{found.flash - budget} over the budget of {budget}; nothing was written, use fewer "
            "--n-components"
        )
    return {"target": target, "flash": found.flash, "flash_source": found.source, "budget": budget}


def _accuracy(
    model: TernaryKernelClassifier | IntegerModel, X: NDArray[Any] | None, y: NDArray[Any] | None
) -> float | None:
    return None if X is None else float((model.predict(X) == y).mean())


def _validation_rows(file: str, label: str | None, dataset: Dataset) -> Rows:
    from tinykernel.data import load_rows

    classes = sorted(set(dataset.y_train.tolist()))
    rows = load_rows(file, label=label, n_features=dataset.X_train.shape[1], classes=classes)
    if rows.y is None:
        raise TinykernelError(f"{file}: has no labels; --validation needs them")
    return rows


def _save(training: Training, output: Path) -> int:
    """Write the model and return the size of the file."""
    from tinykernel.storage import save

    save(training.estimator, output)
    return output.stat().st_size


def _in_words(result: Mapping[str, Any], dataset: Dataset) -> list[tuple[str, str]]:
    def both(part: str) -> str:
        if result[f"{part}_accuracy"] is None:
            return ""
        exact, rounded = result[f"{part}_accuracy_float"], result[f"{part}_accuracy"]
        return f"{percent(exact)} in floats, {percent(rounded)} in integers as in the firmware"

    pairs = [
        ("data", f"{dataset.source}: {dataset.split}"),
        ("model", f"{result['components']} components of {result['features']} inputs, "
         f"{result['classes']} classes, method {result['method']}"),
        ("training", both("train")),
        ("test", both("test")),
    ]  # fmt: skip
    if "validation" in result:
        extra = result["validation"]
        where = f"{extra['rows']} rows, {extra['part']} of {extra['data']}"
        pairs.append(("validation", f"{percent(extra['accuracy'])} in integers ({where})"))
    if "flash" in result:
        flash = f"{size(result['flash'])} on {result['target']} ({result['flash_source']})"
        pairs.append(("flash", flash))
    pairs.append(("time", f"{result['seconds']:.1f} s"))
    pairs.append(("file", f"{result['model']} ({size(result['bytes'])})"))
    return pairs
