"""Print how good a model is: the same words and keys in every command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from tinykernel.cli.common.output import percent, print_pairs, print_table, size
from tinykernel.text import visible

if TYPE_CHECKING:
    from tinykernel.data.load import Rows
    from tinykernel.evaluation import Baseline, Evaluation, Judged
    from tinykernel.residuals import ValueBaseline, ValueEvaluation

_CLASSES_SHOWN = 12


def evaluation_in_words(found: Judged) -> list[tuple[str, str]]:
    """Return the figures as names and values for `print_pairs`.

    Parameters
    ----------
    found : Evaluation or ValueEvaluation
    """
    from tinykernel.evaluation import interval_in_words
    from tinykernel.residuals import ValueEvaluation

    if isinstance(found, ValueEvaluation):
        return _values_in_words(found)
    interval = interval_in_words(found.interval, found.n_groups)
    of = f"{found.rows} rows"
    if found.n_groups is not None:
        of += f" of {found.n_groups} group{'s' if found.n_groups != 1 else ''}"
    beside = (_in_words(baseline) for baseline in found.baselines.values())
    return [
        ("accuracy", f"{percent(found.accuracy)}, {interval} ({of})"),
        (
            "balanced",
            f"{percent(found.balanced_accuracy)} mean recall of the classes, "
            f"macro F1 {found.macro_f1:.3f}",
        ),
        ("least found", _least_found(found)),
        ("beside it", "; ".join(beside)),
        *_decisions_in_words(found),
    ]


def _decisions_in_words(found: Evaluation) -> list[tuple[str, str]]:
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


def _values_in_words(found: ValueEvaluation) -> list[tuple[str, str]]:
    from tinykernel.evaluation import interval_in_words

    interval = interval_in_words(found.interval, found.n_groups, None)
    of = f"{found.rows} rows"
    if found.n_groups is not None:
        of += f" of {found.n_groups} group{'s' if found.n_groups != 1 else ''}"
    beside = (f"{_named(each)} RMSE {each.rmse:.4g}" for each in found.baselines.values())
    covered = (f"{percent(share)} at most {name}" for name, share in found.coverage.items())
    return [
        ("RMSE", f"{found.rmse:.4g}, {interval} ({of})"),
        ("MAE", f"{found.mae:.4g}"),
        ("R2", f"{found.r2:.4f}"),
        ("rows", ", ".join(covered)),
        ("beside it", "; ".join(beside)),
    ]


def _in_words(baseline: Baseline) -> str:
    return f"{_named(baseline)} {percent(baseline.accuracy)}"


def _named(baseline: Baseline | ValueBaseline) -> str:
    """Name a model and its weights; the code that it needs as well is not counted."""
    taken = f" of {size(baseline.n_bytes)} of weights" if baseline.n_bytes else ""
    return f"{baseline.name}{taken}"


def _does(baseline: Baseline | ValueBaseline, *, lower: bool) -> str:
    """Say how a model that is as good does; `lower` is whether its figure is the worse one."""
    if baseline.better:
        return "does better"
    return "is not clearly worse on so few rows" if lower else "does as well"


def _least_found(found: Evaluation) -> str:
    import numpy as np

    at = int(np.nanargmin(found.recall))
    right, rows = int(found.confusion[at, at]), int(found.counts[at])
    return f"{found.classes[at]}, {right} of {rows} rows ({percent(float(found.recall[at]))})"


def print_classes(found: Evaluation) -> None:
    """Print recall and precision of every class, and what its rows were taken for.

    Of many classes those with the lowest recall, without the confusion.

    Parameters
    ----------
    found : Evaluation
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
    """Print what to think of: a baseline that does as well or better, and all cautions.

    Parameters
    ----------
    found : Evaluation
    """
    if _tells_nothing(found):
        return print_cautions(found.cautions)
    for baseline in found.baselines.values():
        if baseline.as_good:
            lower = getattr(baseline, baseline.by) < getattr(found, baseline.by)
            typer.echo(
                f"{_named(baseline)} {_does(baseline, lower=lower)}: "
                f"{percent(baseline.accuracy)} accuracy, "
                f"{percent(baseline.balanced_accuracy)} balanced"
            )
    print_cautions(found.cautions)


def _tells_nothing(found: Judged) -> bool:
    """Say so where all rows are of one group: it tells nothing of others."""
    one = found.n_groups == 1 and bool(found.baselines)
    if one:
        typer.echo(
            "all rows are of one group: whether the model does better on others cannot be concluded"
        )
    return one


def print_cautions(lines: Iterable[str]) -> None:
    """Print sentences of caution, a line each."""
    for line in lines:
        typer.echo(f"caution: {visible(line)}")


def print_notes(rows: Rows) -> None:
    """Print what became of missing values and what was left out."""
    for note in rows.notes:
        typer.echo(f"note: {visible(note)}")


def print_all(found: Judged) -> None:
    """Print figures, classes where there are some, and verdict."""
    from tinykernel.residuals import ValueEvaluation

    print_pairs(evaluation_in_words(found))
    if isinstance(found, ValueEvaluation):
        if _tells_nothing(found):
            return
        for baseline in found.baselines.values():
            if baseline.as_good:
                how = _does(baseline, lower=baseline.rmse > found.rmse)
                typer.echo(f"{_named(baseline)} {how}: RMSE {baseline.rmse:.4g}")
        return
    print_classes(found)
    print_verdict(found)


def seen_in_words(share: float | None, where: str = "in training") -> str:
    """Say which share of the rows was used before; empty for none or where nobody knows.

    Examples
    --------
    >>> seen_in_words(0.5), seen_in_words(None)
    ('about 50 % of these rows were used in training', '')
    """
    if not share:
        return ""
    part = "all" if share == 1 else f"about {max(100 * share, 1):.0f} %"
    return f"{part} of these rows were used {where}"
