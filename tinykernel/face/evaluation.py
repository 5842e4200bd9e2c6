"""The result of train as JSON, evaluations and comparisons, the same in every command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.text import count, percent, size, visible
from tinykernel.face.output import print_pairs, print_table
from tinykernel.face.rows import accuracy_of

if TYPE_CHECKING:
    from tinykernel.data.partition import Dataset
    from tinykernel.judge.figures import Baseline, Evaluation, LabelEvaluation
    from tinykernel.kinds.train.fitting import TrainResult
    from tinykernel.run.parity import VerifyResult


def verification_json(result: VerifyResult) -> dict[str, Any]:
    """Return the ``verify --json`` of a target."""
    first = result.first_difference
    names = ("target", "compiler", "rows", "scores", "hops", "events", "differences")
    return {
        **{name: getattr(result, name) for name in (*names, "accuracy")},
        "first_difference": None if first is None else str(first),
        **{name: getattr(result, name) or None for name in ("emulator", "core", "note")},
    }


def print_verification(results: list[VerifyResult], where: str) -> None:
    """Print a line a target; `where` describes the compared rows."""
    numbers = ("rows", "scores", "differences", "accuracy")
    rows = [
        (
            result.target,
            str(result.rows),
            str(result.scores),
            str(result.differences),
            percent(result.accuracy),
            ", ".join(tool for tool in (result.compiler, result.emulator, result.core) if tool),
        )
        for result in results
    ]
    print_table(("target", *numbers, "built and run with"), rows, right=numbers)
    for result in results:
        if result.note:
            typer.echo(f"{result.target}: {result.note}")
    for hops, events in sorted((each.hops, each.events) for each in results if each.hops)[:1]:
        more = f" and {count(events, 'event')}" * (events > 0)
        typer.echo(f"also compared: a stream of {count(hops, 'decision')}{more}")
    if all(result.ok for result in results):
        typer.echo(f"C and Python agree on every score ({where})")


_CLASSES_SHOWN = 12


def _figure(baseline: Baseline) -> str:
    figures = baseline.figures
    return f"RMSE {figures['rmse']:.4g}" if baseline.by == "rmse" else percent(figures["accuracy"])


def print_classes(evaluation: LabelEvaluation) -> None:
    """Print recall, precision and confusion of every class; of many those of least recall."""
    import numpy as np

    few = len(evaluation.classes) <= _CLASSES_SHOWN
    names = [str(label) for label in evaluation.classes]
    order = range(len(names)) if few else np.argsort(evaluation.recall)[:_CLASSES_SHOWN]
    columns = ["class", "rows", "recall", "precision", *(f"as {name}" for name in names if few)]
    rows = []
    for i in order:
        shares = (evaluation.recall[i], evaluation.precision[i])
        confused = evaluation.confusion[i] if few else ()
        cells = ("-" if share != share else percent(share) for share in shares)
        rows.append([names[i], str(evaluation.counts[i]), *cells, *map(str, confused)])
    print_table(columns, rows, right=columns[1:])
    if not few:
        typer.echo(
            f"the {_CLASSES_SHOWN} of {len(names)} classes of lowest recall; --json prints all"
        )


def print_verdict(evaluation: Evaluation) -> None:
    """Print the baselines, which of them do as well or better, and all cautions."""
    few, baselines = evaluation.too_few_groups, evaluation.baselines.values()
    beside = (f"{each.title} {_figure(each)}" for each in baselines)
    print_pairs([("baselines", "; ".join(beside))])
    better = [each for each in baselines if each.better]
    others = [each for each in baselines if each.as_good and not each.better]
    if better:
        typer.secho("; ".join(map(_comparison, better)), fg="yellow")
    for baseline in others:
        if not (few and baseline.worse):
            typer.echo(_comparison(baseline))
    if few and any(baseline.worse for baseline in others):
        typer.echo(few)
    how = "such columns out", "such columns out by --set drop=NAMES"
    print_notes((line.replace(*how) for line in evaluation.cautions), "caution")


def _comparison(baseline: Baseline) -> str:
    """Describe a baseline that is as good, with its figures."""
    # The test pairs the answers, so it may be sure where intervals overlap.
    verdict = "is not significantly worse" if baseline.worse else "is not behind"
    verdict = "is significantly better" if baseline.better else verdict
    figure = _figure(baseline)
    if baseline.by != "rmse":
        figure += f" accuracy, {percent(baseline.figures['balanced_accuracy'])} balanced"
    if baseline.better and baseline.made_of == "splits":
        figure += "; train --set model=tree trains such a tree"
    return f"{baseline.title} {verdict}: {figure}"


def print_notes(lines: Iterable[str], kind: str = "note") -> None:
    """Print notes on missing values and ignored rows, or cautions, a line each."""
    for line in lines:
        typer.echo(f"{kind}: {visible(line)}")


def print_figures(evaluation: Evaluation) -> None:
    """Print figures and classes."""
    from tinykernel.judge.figures import LabelEvaluation

    print_pairs(evaluation.words())
    if isinstance(evaluation, LabelEvaluation):
        print_classes(evaluation)


def usage_in_words(share: float | None, where: str = "in training") -> str:
    """Describe the share of rows that was used before; empty for none or if unknown."""
    if not share:
        return ""
    part = "all" if share == 1 else f"about {max(100 * share, 1):.0f} %"
    return f"{part} of these rows were used {where}"


def summary(trained: TrainResult, dataset: Dataset) -> dict[str, Any]:
    """Return the ``train --json`` without the file and the accuracies."""
    from tinykernel.compile.enums import consists_of
    from tinykernel.model.answers import Values

    learned, classifier, model = trained.method == "learned", trained.classifier, trained.model
    drawn = ""
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
        "teachers": trained.teachers,
        "model_kind": consists_of(model),
        "compared": classifier.search_.get("contest", "") if learned else "",
        "search": (classifier.search_ or None) if learned else None,
        "trials": classifier.trials_ if learned else [],
        "layout": classifier.layout_ if learned else None,
        "components": classifier.n_components_,
        "iterations": classifier.n_iter_,
        "interrupted": trained.interrupted,
        "smaller": trained.smaller,
        "cut": trained.cut,
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


def accuracies(
    trained: TrainResult, dataset: Dataset, evaluation: Evaluation | None
) -> dict[str, Any]:
    """Return the accuracies, 0 to 1, or R2 of values, on training and test rows."""
    measure = "r2" if trained.model.is_regressor else "accuracy"
    return {
        f"train_{measure}": accuracy_of(trained.model, dataset.X_train, dataset.y_train),
        f"test_{measure}": None if evaluation is None else evaluation.figures[measure],
    }


def print_training(
    result: Mapping[str, Any], dataset: Dataset, evaluation: Evaluation | None
) -> None:
    """Print the training, and the figures of the test rows."""
    from tinykernel.face.pages.page import TRIAL_COLUMNS, trials_in_rows

    print_pairs(_in_words(result, dataset))
    print_notes((*dataset.notes, *filter(None, [result["smaller"]])))
    if rows := trials_in_rows(result["trials"]):
        typer.echo("\nCompared on held-out rows:")
        print_table(TRIAL_COLUMNS, rows, right=TRIAL_COLUMNS[3:5])
    if evaluation is not None:
        typer.echo("\nOn the test rows:")
        print_figures(evaluation)


def _in_words(result: Mapping[str, Any], dataset: Dataset) -> list[tuple[str, str]]:
    from tinykernel.face.pages.page import search_in_words

    outputs = result.get("outputs")
    predicts = f"predicts {', '.join(outputs)}" if outputs else f"{result['classes']} classes"
    measure = "r2" if outputs else "accuracy"

    def right(part: str) -> str:
        share = result.get(f"{part}_{measure}")
        if share is None:
            return ""
        return f"R2 {share:.4f}" if outputs else percent(share)

    stored = f", {count(result['teachers'], 'teacher')}" if result["teachers"] else ""
    stored += f", layout {result['layout']}" if result["layout"] else ""
    return [
        ("cut", result["cut"]),
        ("data", result["recordings"] or f"{dataset.source}: {dataset.split}"),
        ("split", dataset.split if result["recordings"] else ""),
        ("rows", result["drawn"]),
        ("model", f"{result['model_kind']}, {predicts}, method {result['method']}{stored}"),
        ("compared", result["compared"]),
        ("search", search_in_words(result["search"])),
        ("training", right("train")),
        ("test", right("test")),
        ("along time", result.get("along_time", {}).get("line", "")),
        *(_sizes_in_words(result) if "flash" in result else []),
        ("time", f"{result['seconds']:.1f} s in all"),
        ("saved", str(result["model"])),
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
        ("RAM", f"{size(result['ram'])} ({result['flash_source']})"),
        ("instructions", "" if speed is None else f"about {speed} an inference"),
        ("over", "; ".join(result["report"]["problems"])),
    ]
