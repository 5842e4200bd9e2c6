"""What ``train`` says of a training: as JSON and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.cli.common.evaluation import print_all
from tinykernel.cli.common.output import percent, print_pairs, size
from tinykernel.cli.common.rows import accuracy_of
from tinykernel.progress import report as say

if TYPE_CHECKING:
    from tinykernel.budget import TrainResult
    from tinykernel.data.partition import Dataset, Rows
    from tinykernel.evaluation import Evaluation
    from tinykernel.model import IntegerModel


def summary(trained: TrainResult, dataset: Dataset) -> dict[str, Any]:
    """Return what ``train --json`` prints, but for the file and the accuracies."""
    learned, classifier = trained.method == "learned", trained.classifier
    from tinykernel.codegen.description import consists_of
    from tinykernel.model.answers.values import Values
    from tinykernel.model.stages.kernels import Kernels
    from tinykernel.training.images.separable import size_of

    test, given = dataset.y_test, trained.model.input
    kernels, convolutions = trained.model.find(Kernels), size_of(trained.model)
    found = {
        "data": dataset.source,
        "split": dataset.split,
        "train_rows": dataset.drawn_of or len(dataset.y_train),
        "drawn": rows_in_words(dataset),
        "test_rows": 0 if test is None else len(test),
        "features": trained.model.n_inputs,
        "classes": len(trained.model.classes),
        "method": trained.method,
        "model_kind": consists_of(trained.model),
        "compared": compared(trained) if learned else "",
        "search": (classifier.search_ or None) if learned else None,
        "layout": classifier.layout_ if learned else None,
        "components": classifier.n_components_,
        "kernels": None if kernels is None else kernels.n_kernels,
        "channels": None if convolutions is None else convolutions[0],
        "hop": trained.model.hop,
        "local": None if given.is_table else given.kind,
        "sigma": classifier.sigma_,
        "regularization": None if learned else classifier.regularization_,
        "iterations": classifier.n_iter_,
        "interrupted": trained.interrupted,
        "seconds": round(trained.seconds, 3),
    }
    if isinstance(trained.model.answers, Values):
        found["outputs"] = list(trained.model.answers.names)
    memory = trained.memory
    if memory is None:
        return found
    if trained.budget is not None and found["local"] == "image":
        from tinykernel.budget.contenders import most_of_images

        form = "off" if convolutions is None else convolutions[1]
        found["most_chosen"] = most_of_images(trained.budget, given.shape, form)
    return found | {
        "target": memory.target,
        "flash": memory.flash,
        "ram": memory.ram,
        "flash_source": memory.source,
        "budget": trained.budget,
        "limits": str(trained.limits) if trained.limits else None,
        "report": memory.to_dict(),
    }


def rows_in_words(dataset: Dataset) -> str:
    """Say which rows a model was trained on, where these are not simply all; else nothing."""
    if dataset.drawn_of is None:
        return ""
    n, drawn = f"{dataset.drawn_of:,}", f"{len(dataset.y_train):,}"
    how = "drawn at random" if dataset.y_train.dtype.kind == "f" else "a sample stratified by class"
    return f"trained on {drawn} of {n} training rows, {how}"


def compared(trained: TrainResult) -> str:
    """Say how the kinds of models did among which the trainer chose, in short trainings."""
    classifier = trained.classifier
    contest = classifier.search_.get("contest")
    if contest:
        return str(contest)
    from tinykernel.training.options import form_of

    best: dict[str, float] = {}
    for trial in classifier.trials_:
        form = form_of(trial["layout"] if trial["n_components"] else None, trial["linear_bits"])
        best[form] = max(best.get(form, 0.0), trial["accuracy"])
    if not any("linear" in form for form in best):
        return ""
    ranked = sorted(best.items(), key=lambda item: -item[1])
    if not trained.model.is_regressor:
        return ", ".join(f"{form} {percent(share)}" for form, share in ranked)
    learned = classifier.search_.get("learned", "the rows")
    said = ", ".join(f"{form} {share:.4f}" for form, share in ranked)
    return f"R2 to {learned}, in short trainings: {said}"


def accuracies(trained: TrainResult, dataset: Dataset) -> dict[str, float | None]:
    """Return the accuracies, 0 to 1; None without test rows.

    Of values they are called r2, and are that.
    """
    found: dict[str, float | None] = {}
    measure = _measure(trained.model)
    for part, X, y in (
        ("train", dataset.X_train, dataset.y_train),
        ("test", dataset.X_test, dataset.y_test),
    ):
        found[f"{part}_{measure}"] = accuracy_of(trained.model, X, y)
    return found


def _measure(model: IntegerModel) -> str:
    return "r2" if model.is_regressor else "accuracy"


def judged(trained: TrainResult, dataset: Dataset, extra: Rows | None) -> dict[str, Any]:
    """Return the accuracies on all rows that are there."""
    say("judging", 0, None)
    found: dict[str, Any] = dict(accuracies(trained, dataset))
    if extra is not None:
        found["validation"] = {
            "data": extra.source,
            "part": extra.part,
            "rows": len(extra.X),
            _measure(trained.model): accuracy_of(trained.model, extra.X, extra.y),
        }
    return found


def accuracies_of(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the accuracies (R2 of values), for the model file."""
    names = [f"{part}_{measure}" for part in ("train", "test") for measure in ("accuracy", "r2")]
    return {name: float(result[name]) for name in names if result.get(name) is not None}


def print_training(
    trained: TrainResult, result: Mapping[str, Any], dataset: Dataset, found: Evaluation | None
) -> None:
    """Print the training, and what the model gets right and wrong on the test rows."""
    print_pairs(_in_words(result, dataset))
    for note in dataset.notes:
        typer.echo(f"note: {note}")
    if dataset.medians is not None:
        typer.echo(
            "note: your firmware must put the same medians in the place of missing values; "
            "tinykernel inspect lists them"
        )
    if found is not None:
        typer.echo("\nOn the test rows:")
        print_all(found)


def _why_left(result: Mapping[str, Any]) -> str:
    """Say why a large budget is not used up."""
    from tinykernel.measure.capacity import MOST_CHOSEN, MOST_KERNELS

    if result["local"] == "image":
        what = "kernels" if result["channels"] is None else "channels"
        most, option = result["most_chosen"], "n_kernels"
    elif result["kernels"] is not None:
        local = "stream" if result["hop"] else result["local"]
        local = "spectrum" if "spectrum" in result["model_kind"] else local
        most, what, option = MOST_KERNELS[local], "kernels", "n_kernels"
    else:
        most, what, option = MOST_CHOSEN, "components", "n_components"
    n = result.get("channels") or result["kernels"] or result["components"]
    if result["size_given"] or n < most:
        return ""
    return f" ({most} {what} are the most that are chosen; --set {option}=N takes more)"


def _in_words(result: Mapping[str, Any], dataset: Dataset) -> list[tuple[str, str]]:
    def right(part: str) -> str:
        share = result.get(f"{part}_{measure}")
        return "" if share is None else shown(share)

    def shown(share: float) -> str:
        return percent(share) if measure == "accuracy" else f"R2 {share:.4f}"

    from tinykernel.reporting.training import search_in_words

    measure, what = "accuracy", f"{result['classes']} classes"
    if result.get("outputs"):
        measure, what = "r2", f"predicts {', '.join(result['outputs'])}"

    stored = f", layout {result['layout']}" if result["layout"] else ""
    pairs = [
        ("data", result["recordings"] or f"{dataset.source}: {dataset.split}"),
        ("split", dataset.split if result["recordings"] else ""),
        ("rows", result["drawn"]),
        ("model", f"{result['model_kind']}, {what}, method {result['method']}{stored}"),
        ("compared", result["compared"]),
        ("search", search_in_words(result["search"])),
        ("training", right("train")),
        ("test", right("test")),
    ]
    if "validation" in result:
        extra = result["validation"]
        where = f"{extra['rows']} rows, {extra['part']} of {extra['data']}"
        pairs.append(("validation", f"{shown(extra[measure])} ({where})"))
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
