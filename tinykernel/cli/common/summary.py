"""The result of ``train`` as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.cli.common.evaluation import print_all, print_notes
from tinykernel.cli.common.output import percent, print_pairs, size
from tinykernel.cli.common.rows import accuracy_of

if TYPE_CHECKING:
    from tinykernel.budget import TrainResult
    from tinykernel.data.partition import Dataset, Rows
    from tinykernel.evaluation import Evaluation


def summary(trained: TrainResult, dataset: Dataset) -> dict[str, Any]:
    """Return the ``train --json`` without the file and the accuracies."""
    from tinykernel.codegen.description import consists_of
    from tinykernel.model.answers.values import Values
    from tinykernel.model.stages.kernels import Kernels
    from tinykernel.training.images.separable import size_of

    learned, classifier, model = trained.method == "learned", trained.classifier, trained.model
    kernels, convolutions, drawn = model.find(Kernels), size_of(model), ""
    if dataset.drawn_of is not None:
        drawn = f"trained on {len(dataset.y_train):,} of {dataset.drawn_of:,} training rows, "
        drawn += "drawn at random" if model.is_regressor else "a sample stratified by class"
    facts = {
        "data": dataset.source,
        "split": dataset.split,
        "train_rows": dataset.drawn_of or len(dataset.y_train),
        "drawn": drawn,
        "test_rows": 0 if dataset.y_test is None else len(dataset.y_test),
        "features": model.n_inputs,
        "classes": len(model.classes),
        "method": trained.method,
        "model_kind": consists_of(model),
        "compared": compared(trained) if learned else "",
        "search": (classifier.search_ or None) if learned else None,
        "layout": classifier.layout_ if learned else None,
        "components": classifier.n_components_,
        "kernels": None if kernels is None else kernels.n_kernels,
        "channels": None if convolutions is None else convolutions[0],
        "hop": model.hop,
        "local": None if model.input.is_table else model.input.kind,
        "sigma": classifier.sigma_,
        "regularization": None if learned else classifier.regularization_,
        "iterations": classifier.n_iter_,
        "interrupted": trained.interrupted,
    }
    if isinstance(model.answers, Values):
        facts["outputs"] = list(model.answers.names)
    sizes = trained.memory
    if sizes is None:
        return facts
    return facts | {
        "target": sizes.target,
        "flash": sizes.flash,
        "ram": sizes.ram,
        "flash_source": sizes.source,
        "budget": trained.budget,
        "limits": str(trained.limits) if trained.limits else None,
        "report": sizes.to_dict(),
    }


def compared(trained: TrainResult) -> str:
    """Describe the results of the kinds of models that were compared in short trainings."""
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
    is_regressor = trained.model.is_regressor
    shares = (
        f"{form} {share:.4f}" if is_regressor else f"{form} {percent(share)}"
        for form, share in sorted(best.items(), key=lambda item: -item[1])
    )
    learned = classifier.search_.get("learned", "the rows")
    return (f"R2 to {learned}, in short trainings: " if is_regressor else "") + ", ".join(shares)


def judged(
    trained: TrainResult, dataset: Dataset, evaluation: Evaluation | None, extra: Rows | None
) -> dict[str, Any]:
    """Return the accuracies, 0 to 1, or R2 of values, on training, test and validation rows."""
    measure, model = "r2" if trained.model.is_regressor else "accuracy", trained.model
    figures: dict[str, Any] = {
        f"train_{measure}": accuracy_of(model, dataset.X_train, dataset.y_train),
        f"test_{measure}": None if evaluation is None else evaluation.figures[measure],
    }
    if extra is not None:
        figures["validation"] = {
            "data": extra.source,
            "part": extra.part,
            "rows": len(extra.X),
            measure: accuracy_of(model, extra.X, extra.y),
        }
    return figures


def print_training(
    result: Mapping[str, Any], dataset: Dataset, evaluation: Evaluation | None
) -> None:
    """Print the training, and the evaluation on the test rows."""
    print_pairs(_in_words(result, dataset))
    print_notes(dataset.notes)
    if dataset.medians is not None:
        typer.echo(
            "note: your firmware must put the same medians in the place of missing values; "
            "tinykernel inspect lists them"
        )
    if evaluation is not None:
        typer.echo("\nOn the test rows:")
        print_all(evaluation)


def _in_words(result: Mapping[str, Any], dataset: Dataset) -> list[tuple[str, str]]:
    from tinykernel.reporting.facts import search_in_words

    outputs, extra = result.get("outputs"), result.get("validation")
    predicts = f"predicts {', '.join(outputs)}" if outputs else f"{result['classes']} classes"
    measure = "r2" if outputs else "accuracy"

    def right(figures: Mapping[str, Any], name: str) -> str:
        share = figures.get(name)
        if share is None:
            return ""
        return f"R2 {share:.4f}" if outputs else percent(share)

    stored = f", layout {result['layout']}" if result["layout"] else ""
    validation = ""
    if extra is not None:
        where = f"{extra['rows']} rows, {extra['part']} of {extra['data']}"
        validation = f"{right(extra, measure)} ({where})"
    return [
        ("data", result["recordings"] or f"{dataset.source}: {dataset.split}"),
        ("split", dataset.split if result["recordings"] else ""),
        ("rows", result["drawn"]),
        ("model", f"{result['model_kind']}, {predicts}, method {result['method']}{stored}"),
        ("compared", result["compared"]),
        ("search", search_in_words(result["search"])),
        ("training", right(result, f"train_{measure}")),
        ("test", right(result, f"test_{measure}")),
        ("validation", validation),
        *(_sizes_in_words(result) if "flash" in result else []),
        ("promise", result["calibration"]["statement"] if "calibration" in result else ""),
        ("time", f"{result['seconds']:.1f} s in all"),
        ("file", f"{result['model']} ({size(result['bytes'])})"),
    ]


def _sizes_in_words(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Describe the sizes of the model on its target."""
    flash = f"{size(result['flash'])} on {result['target']} ({result['flash_source']})"
    if result["budget"] is not None:
        left = size(result["budget"] - result["flash"])
        flash += f", {left} of the budget of {size(result['budget'])} left"
    speed = result["report"]["instructions"]
    return [
        ("flash", flash),
        ("RAM", size(result["ram"])),
        ("instructions", "" if speed is None else f"about {speed} an inference"),
        ("over", "; ".join(result["report"]["problems"])),
    ]
