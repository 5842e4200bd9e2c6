"""Print how good a model is: the same words and keys in every command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from tinykernel.cli.common.output import percent, print_pairs, print_table, size
from tinykernel.text import listed, visible

if TYPE_CHECKING:
    from tinykernel.data.partition import Rows
    from tinykernel.evaluation import (
        Baseline,
        Evaluation,
        Importance,
        LabelEvaluation,
        ValueEvaluation,
    )

_CLASSES_SHOWN = 12


def evaluation_in_words(found: Evaluation) -> list[tuple[str, str]]:
    """Return the figures as names and values for `print_pairs`."""
    from tinykernel.evaluation import LabelEvaluation, ValueEvaluation

    of = f"{found.rows} rows"
    if found.n_groups is not None:
        of += f" of {found.n_groups} group{'s' if found.n_groups != 1 else ''}"
    beside = (f"{_named(each)} {_figure(each)}" for each in found.baselines.values())
    said = ("beside it", "; ".join(beside))
    if isinstance(found, ValueEvaluation):
        return [*_values_in_words(found, of), said]
    assert isinstance(found, LabelEvaluation)
    return [*_labels_in_words(found, of), said, *_decisions_in_words(found)]


def _labels_in_words(found: LabelEvaluation, of: str) -> list[tuple[str, str]]:
    from tinykernel.evaluation import interval_in_words

    interval = interval_in_words(found.interval, found.n_groups)
    return [
        ("accuracy", f"{percent(found.accuracy)}, {interval} ({of})"),
        (
            "balanced",
            f"{percent(found.balanced_accuracy)} mean recall of the classes"
            f"{_without_rows(found)}, macro F1 {found.macro_f1:.3f}",
        ),
        ("least found", _least_found(found)),
    ]


def _without_rows(found: LabelEvaluation) -> str:
    """Name the classes that no row has: of them nothing is found or missed."""
    absent = [label for label, n in zip(found.classes, found.counts, strict=True) if not n]
    return f" (no rows of {visible(listed(absent))})" if absent else ""


def _decisions_in_words(found: LabelEvaluation) -> list[tuple[str, str]]:
    """Say how often a calibrated model answers, and how often that is wrong."""
    from tinykernel.evaluation import interval_in_words

    figures = found.decisions
    if figures is None:
        return []
    said = f"{percent(figures.coverage)} of the rows"
    if figures.error is not None:
        said += f", wrong {percent(figures.error)}"
    if figures.interval is not None:
        said += f", {interval_in_words(figures.interval, found.n_groups, 2)}"
    plain, probability, confidence = (f"{error:.4f}" for error in figures.calibration_error)
    curve = (f"{100 * share:.0f} %: {percent(error)}" for share, error in figures.curve)
    return [
        ("answered", said),
        ("surest rows", f"wrong of the surest {', '.join(curve)}"),
        (
            "calibration",
            f"expected error of probabilities {probability} (uncalibrated {plain}), of "
            f"the confidence {confidence}",
        ),
    ]


def _values_in_words(found: ValueEvaluation, of: str) -> list[tuple[str, str]]:
    from tinykernel.evaluation import interval_in_words

    interval = interval_in_words(found.interval, found.n_groups, None)
    covered = (f"{percent(share)} at most {name}" for name, share in found.coverage.items())
    return [
        ("RMSE", f"{found.rmse:.4g}, {interval} ({of})"),
        ("MAE", f"{found.mae:.4g}"),
        ("R2", f"{found.r2:.4f}"),
        ("rows", ", ".join(covered)),
    ]


def _figure(baseline: Baseline) -> str:
    figures = baseline.figures
    return f"RMSE {figures['rmse']:.4g}" if baseline.by == "rmse" else percent(figures["accuracy"])


def _named(baseline: Baseline) -> str:
    """Name a model and its tables; the code that it needs as well is not counted."""
    taken = f" of {size(baseline.n_bytes)} of {baseline.made_of}" if baseline.n_bytes else ""
    return f"{baseline.name}{taken}"


def _does(baseline: Baseline) -> str:
    """Say how a model that is as good does."""
    if baseline.better:
        return "does better"
    return "is not clearly worse on so few rows" if baseline.worse else "does as well"


def _least_found(found: LabelEvaluation) -> str:
    import numpy as np

    at = int(np.nanargmin(found.recall))
    right, rows = int(found.confusion[at, at]), int(found.counts[at])
    return f"{found.classes[at]}, {right} of {rows} rows ({percent(float(found.recall[at]))})"


def print_classes(found: LabelEvaluation) -> None:
    """Print recall and precision of every class, and what its rows were taken for.

    Of many classes those with the lowest recall, without the confusion.
    """
    import numpy as np

    few = len(found.classes) <= _CLASSES_SHOWN
    names = [str(label) for label in found.classes]
    order = range(len(names)) if few else np.argsort(found.recall)[:_CLASSES_SHOWN]
    columns = ["class", "rows", "recall", "precision"]
    taken = [f"as {name}" for name in names] if few else []
    rows = []
    for i in order:
        shares = [_share(found.recall[i]), _share(found.precision[i])]
        confused = [str(count) for count in found.confusion[i]] if few else []
        rows.append([names[i], str(found.counts[i]), *shares, *confused])
    print_table([*columns, *taken], rows, right=[*columns[1:], *taken])
    if not few:
        typer.echo(
            f"the {_CLASSES_SHOWN} of {len(names)} classes that are found least; --json prints all"
        )


def _share(value: float) -> str:
    return "-" if value != value else percent(float(value))


def print_verdict(found: Evaluation) -> None:
    """Print what to think of: a baseline that does as well or better, and all cautions."""
    few = bool(found.n_groups) and found.interval is None
    better = [each for each in found.baselines.values() if each.better]
    if better:
        typer.secho("; ".join(map(_compared, better)), fg="yellow")
    others = [each for each in found.baselines.values() if each.as_good and not each.better]
    for baseline in others:
        if not (few and baseline.worse):
            typer.echo(_compared(baseline))
    if few and any(baseline.worse for baseline in others):
        groups = "one group" if found.n_groups == 1 else f"{found.n_groups} groups"
        typer.echo(
            f"all rows are of {groups}: whether the model does better on others cannot be concluded"
        )
    print_cautions(found.cautions)


def _compared(baseline: Baseline) -> str:
    """Say how a model that is as good does, in figures."""
    figure = _figure(baseline)
    if baseline.by != "rmse":
        figure += f" accuracy, {percent(baseline.figures['balanced_accuracy'])} balanced"
    return f"{_named(baseline)} {_does(baseline)}: {figure}"


def print_inputs(worth: Importance, saved: str) -> None:
    """Print what the inputs are worth, and which could be left out."""
    in_points = worth.by != "rmse"
    measure = worth.by.replace("_", " ") if in_points else "RMSE"

    def shown(loss: float) -> str:
        return f"{100 * loss:.2f} points" if in_points else f"{loss:.4g}"

    what = f"loss of {measure}" if in_points else "gain of RMSE"
    rows = [(one.name, shown(one.loss)) for one in worth.inputs[:_CLASSES_SHOWN]]
    print_table(("input", what), rows, right=(what,))
    if len(worth.inputs) > _CLASSES_SHOWN:
        typer.echo(f"the {_CLASSES_SHOWN} of {len(worth.inputs)} inputs that matter most")
    if worth.spare:
        cost = shown(worth.spare_loss) if worth.spare_loss > 0 else "nothing"
        drop = shlex.quote(visible("drop=" + ",".join(worth.spare)))
        typer.echo(
            f"hint: --set {drop} leaves out {len(worth.spare)} of {len(worth.inputs)} inputs "
            f"that cost {cost} together on these rows, and saves {saved}"
        )


def print_cautions(lines: Iterable[str]) -> None:
    """Print sentences of caution, a line each."""
    for line in lines:
        typer.echo(f"caution: {visible(line)}")


def print_notes(rows: Rows) -> None:
    """Print what became of missing values and what was left out."""
    for note in rows.notes:
        typer.echo(f"note: {visible(note)}")


def print_all(found: Evaluation) -> None:
    """Print figures, classes where there are some, and verdict."""
    from tinykernel.evaluation import LabelEvaluation

    print_pairs(evaluation_in_words(found))
    if isinstance(found, LabelEvaluation):
        print_classes(found)
    print_verdict(found)


def near_in_words(share: float) -> str:
    """Say which share of the rows are training rows with little changed; empty for none."""
    if not share:
        return ""
    return (
        f"{100 * share:.0f} % of these rows, or more, are training rows with little changed: they "
        "equal one in every second input"
    )


def seen_in_words(share: float | None, where: str = "in training") -> str:
    """Say which share of the rows was used before; empty for none or where nobody knows.

    >>> seen_in_words(0.5), seen_in_words(None)
    ('about 50 % of these rows were used in training', '')
    """
    if not share:
        return ""
    part = "all" if share == 1 else f"about {max(100 * share, 1):.0f} %"
    return f"{part} of these rows were used {where}"
